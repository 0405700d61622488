"""What approves a plan on a terminal."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.kind import Action
from reconciler.model.plan import Change, Consequence, Plan, PlanSource, Severity
from reconciler.model.values import Address
from reconciler.planning.approval import approval_of

DANGER = Consequence("history-lost", Severity.DANGER, "its history is lost")
WARNING = Consequence("runs-missed-while-paused", Severity.WARNING, "runs are missed")


def plan_of(*changes: Change) -> Plan:
    return Plan(PlanSource("production", "o", "https://x.example", "1"), changes)


def deletion(key: str, name: str, *consequences: Consequence) -> Change:
    address = Address("batch_export", key)
    return Change(address, Action.DELETE, name, consequences=consequences)


def test_a_plan_without_danger_asks_for_yes() -> None:
    approval = approval_of(plan_of(deletion("a", "A", WARNING)))
    assert [line for line in ("y\n", "Yes", "n", "", "a", "A") if approval.is_given_by(line)] == [
        "y\n",
        "Yes",
    ]


def test_a_danger_asks_for_the_name() -> None:
    approval = approval_of(plan_of(deletion("a", "Old  export", DANGER)))
    assert 'type its name, "Old  export"' in approval.question.replace("'", '"')
    assert "batch_export.a (history-lost)" in approval.question
    assert approval.is_given_by("Old  export\n")
    assert approval.is_given_by("batch_export.a\n")
    assert not any(map(approval.is_given_by, ("y", "yes", "a", "", "old  export")))


def test_a_name_with_control_characters_can_be_typed_as_it_is_shown() -> None:
    approval = approval_of(plan_of(deletion("a", "x\x1b[2J", DANGER)))
    assert "\x1b" not in approval.question
    assert approval.is_given_by("x\\x1b[2J")


def test_r11_the_deletion_of_a_project_asks_for_its_name() -> None:
    """What is deleted with it is no danger of its own; other dangers do not hide it."""
    project = replace(deletion("web", "Web Shop", DANGER), address=Address("project", "web"))
    inside = replace(deletion("a", "A", DANGER), live_id="e1")
    whole = replace(project, depends_on=(inside.id,))
    other = deletion("b", "B", DANGER)
    for changes in ((inside, whole), (inside, other, whole)):
        approval = approval_of(plan_of(*changes))
        assert "'Web Shop': " in approval.question
        assert approval.is_given_by("Web Shop")
        assert not any(map(approval.is_given_by, ("y", "production", "A", "B")))


def test_plan_v6_several_dangers_are_named_and_ask_for_the_environment() -> None:
    approval = approval_of(plan_of(deletion("a", "A", DANGER), deletion("b", "B", DANGER)))
    dangers = "batch_export.a, batch_export.b (history-lost)"
    assert approval.question.startswith(f"Danger for 2 objects: {dangers}\n")
    assert "\nTo apply this plan, type the environment, " in approval.question
    assert approval.is_given_by("production\n")
    assert not any(map(approval.is_given_by, ("y", "A", "B", "")))
