"""What approves a plan on a terminal, and a saved plan compared with that of now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.apply.changes import Verification
from reconciler.errors import ReconcilerError
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, Consequence, Plan, PlanSource, Severity
from reconciler.model.resource import Desired, State
from reconciler.model.settings import PlanOptions
from reconciler.model.values import Address, SecretRef
from reconciler.planning.approval import approval_of
from reconciler.planning.approval import differences as differences_of
from reconciler.render.plan_text import unverified_as_text
from tests.support.worlds import (
    KINDS,
    NOW,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    with_secrets,
)

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


# I10: the second plan judges the changes of the run, and nothing else

OWN, OTHER = deletion("a", "A"), deletion("b", "B")


@pytest.mark.parametrize(
    ("verification", "passed", "begins"),
    [
        (Verification(), None, ""),
        (Verification(error=ReconcilerError("no answer")), False, ""),
        (Verification(plan_of()), True, ""),
        (Verification(plan_of(OTHER, OWN)), False, "error: the plan after apply is not empty"),
        (Verification(plan_of(OTHER)), True, "note: the plan after apply has 1 other change"),
    ],
)
def test_i10_the_second_plan_judges_the_run(
    verification: Verification, passed: bool | None, begins: str
) -> None:
    judged = Verification(verification.left, verification.error, frozenset({OWN.address}))
    assert judged.passed is passed
    text = unverified_as_text(judged.left, passed=passed is True)
    assert text.startswith(begins)
    assert bool(text) is bool(begins)


# A saved plan is compared with the plan of now: equal, outdated, forged or applied in part

SINCE = NOW.isoformat()
BEFORE = "2026-01-01T00:00:00Z"
WEB = live_project()


def differences(
    saved: Plan,
    desired: Desired,
    live: Live,
    *,
    options: PlanOptions | None = None,
    base: Desired | None = None,
    **parts: Any,
) -> tuple[str, ...]:
    new = planned(desired, live, options=options, base=base)
    return differences_of(saved, new, **{"live": live, "kinds": KINDS, "mask": str, **parts})


# Outdated


def test_a_change_that_the_saved_plan_does_not_contain_is_reported_by_field() -> None:
    live = live_of(WEB, live_export())
    saved = planned(desired_of(project(), export()), live)
    assert differences(saved, desired_of(project(), export(interval="day")), live) == (
        'batch_export.lake: interval "hour" -> "day" is not in the saved plan',
    )


def test_another_value_than_in_the_saved_plan_is_reported_with_both() -> None:
    live = live_of(WEB, live_export())
    saved = planned(desired_of(project(), export(interval="day")), live)
    assert differences(saved, desired_of(project(), export(interval="week")), live) == (
        ('batch_export.lake: interval is "hour" -> "week" now, the saved plan has "hour" -> "day"'),
    )


def test_a_live_value_that_was_modified_since_is_reported() -> None:
    desired = desired_of(project(), export(interval="day", destination=s3(prefix="p/")))
    saved = planned(desired, live_of(WEB, live_export()))
    week = live_of(WEB, live_export(interval="week"))
    assert differences(saved, desired, week)[0] == (
        'batch_export.lake: interval is "week" -> "day" now, the saved plan has "hour" -> "day"'
    )
    paused = live_of(WEB, live_export(), live_export("e2", "Sea"))
    gone = planned(desired_of(project(), export("sea", state=State.ABSENT)), paused)
    modified = live_of(WEB, live_export("e2", "Sea", paused=True))
    desired = desired_of(project(), export("sea", state=State.ABSENT))
    assert differences(gone, desired, modified) == (
        "batch_export.sea: live value of paused true is not in the saved plan",
    )


def test_a_change_that_is_neither_planned_nor_done_is_reported() -> None:
    live = live_of(WEB, live_export())
    saved = planned(desired_of(project(), export(interval="day"), export("sea")), live)
    assert differences(saved, desired_of(project(), export()), live) == (
        (
            'batch_export.lake: interval "hour" -> "day" is in the saved plan, '
            "but is neither planned now nor done"
        ),
        "batch_export.sea: create is in the saved plan, but is neither planned now nor done",
    )


def test_objects_that_were_added_to_a_project_make_its_deletion_stale() -> None:
    desired = desired_of(replace(project(), state=State.ABSENT))
    saved = planned(desired, live_of(WEB, live_export()))
    assert saved.effective[-1].inside == ("e1",)
    more = live_of(WEB, live_export(), live_export("e2", "Sea"))
    assert "project.web: object inside with id e2 is not in the saved plan" in differences(
        saved, desired, more
    )


def test_a_secret_that_the_saved_plan_does_not_send_is_reported() -> None:
    desired = desired_of(project(), export(destination=with_secrets()))
    live = live_of(WEB, live_export())
    rotating = PlanOptions(rotate=("*",))
    saved = planned(desired, live)
    lines = differences(saved, desired, live, options=rotating)
    assert lines[0] == (
        "batch_export.lake: destination.config.aws_access_key_id (secret) is not in the saved plan"
    )
    assert len(lines) == 2


def test_a_consequence_that_the_saved_plan_does_not_show_is_reported() -> None:
    live = live_of(WEB, live_export())
    desired = desired_of(project(), export(interval="day"))
    saved = planned(desired, live)
    change = saved.effective[0]
    without = replace(saved, changes=(replace(change, consequences=()), *saved.changes[1:]))
    rules = [f"{item.severity} {item.rule}" for item in change.consequences]
    assert rules
    assert [line.split(": ", 1)[1] for line in differences(without, desired, live)] == [
        f"{rule} is not in the saved plan" for rule in sorted(rules)
    ]


def test_a_kind_that_does_not_exist_is_reported() -> None:
    desired, live = desired_of(project()), live_of()
    saved = planned(desired, live)
    other = replace(saved.changes[0], address=Address("dashboard", "web"))
    assert differences(replace(saved, changes=(*saved.changes, other)), desired, live) == (
        "dashboard.web: create is in the saved plan, but is neither planned now nor done",
    )


def test_a_masked_value_equals_the_same_secret() -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    desired = desired_of(project(), export(destination=s3(prefix="hunter2/")))
    live = live_of(WEB, live_export(interval="hour", destination=s3(prefix="old/")))
    shown = differences(planned(desired, live), desired, live, mask=mask)
    assert shown == ()
    done = live_of(WEB, live_export(destination=s3(prefix="hunter2/")))
    assert differences(planned(desired, live), desired, done, mask=mask) == ()


# Done


def test_f7_what_is_done_counts_as_done() -> None:
    live = live_of(live_project(2, "Shop"), live_export("e2", "Sea", parent=2))
    desired = desired_of(
        project("shop"), export("sea", parent="shop", state=State.ABSENT), project(), export()
    )
    saved = planned(desired, live)
    assert len(saved.effective) == 3
    after = live_of(live_project(2, "Shop"), WEB)
    assert differences(saved, desired, after) == ()


def test_f7_an_object_in_the_place_of_a_saved_create_with_other_values_is_not_done() -> None:
    desired = desired_of(project(), export())
    saved = planned(desired, live_of(WEB))
    other = live_of(WEB, live_export(interval="week", created_at=BEFORE))
    assert differences(saved, desired, other) == (
        "batch_export.lake: create is in the saved plan, but is neither planned now nor done",
        'batch_export.lake: interval "week" -> "hour" is not in the saved plan',
    )


# Cut short: stale


def half_created() -> tuple[Plan, Desired, Live]:
    desired = desired_of(project(timezone="UTC", primary_dashboard=3), export())
    live = live_of(live_project(created_at=SINCE, primary_dashboard=1))
    return planned(desired, live_of()), desired, live


def half_updated() -> tuple[Plan, Desired, Live]:
    desired = desired_of(project(), export(interval="day", end_at="2027-01-01T00:00:00Z"))
    saved = planned(desired, live_of(WEB, live_export(end_at=None)))
    return saved, desired, live_of(WEB, live_export(interval="day", end_at=None))


def of_another_dialect() -> tuple[Plan, Desired, Live]:
    """The first create of an organization shows the dialect of the server."""
    parts: Any = {"sql_query": "SELECT 1", "destination": {"type": "NoOp", "config": {}}}
    desired = desired_of(project(), export(**parts), export("sea", **parts))
    saved = planned(desired, live_of(dialect=None))
    made = live_export(created_at=SINCE, **parts)
    return saved, desired, live_of(WEB, made, dialect=Dialect.V2026)


@pytest.mark.parametrize("cut_short", [half_created, half_updated, of_another_dialect])
def test_what_was_cut_short_is_stale(cut_short: Callable[[], tuple[Plan, Desired, Live]]) -> None:
    """Nothing resumes what another run began."""
    assert differences(*cut_short())


@pytest.mark.parametrize("interval", ["hour", "week"])
def test_i7_an_export_that_somebody_created_since_gets_nothing(interval: str) -> None:
    """I7: with the values of the file it is done, with others the file is stale."""
    desired = desired_of(project(), export())
    saved = planned(desired, live_of(WEB))
    theirs = live_of(WEB, live_export(interval=interval, created_at=SINCE))
    assert bool(differences(saved, desired, theirs)) is (interval == "week")
    assert planned(desired, theirs).empty is (interval == "hour")


def test_a_secret_that_was_to_be_sent_is_never_done_by_reading() -> None:
    old = with_secrets()
    old["config"]["aws_access_key_id"] = SecretRef.of("env", "OLD")
    base = desired_of(project(), export(destination=old))
    desired = desired_of(project(), export(interval="day", destination=with_secrets()))
    saved = planned(desired, live_of(WEB, live_export()), base=base)
    assert [len(change.fields) for change in saved.effective] == [3]
    assert len(differences(saved, desired, live_of(WEB, live_export(interval="day")))) == 3


# Replacements


def continued(*exports: Any) -> tuple[str, ...]:
    """Compare the plan of a move with the plan after a part of it was made."""
    base = desired_of(project(), project("shop"), export(end_at=None))
    desired = desired_of(project(), project("shop"), export(parent="shop", interval="day"))
    live, options = live_of(WEB, live_project(2, "Shop")), PlanOptions(allow_replace=True)
    before = replace(live, objects={**live.objects, "batch_export": (live_export(),)})
    saved = planned(desired, before, base=base, options=options)
    assert [change.action for change in saved.effective] == [Action.REPLACE]
    now = replace(live, objects={**live.objects, "batch_export": exports})
    return differences(saved, desired, now, base=base, options=options)


def new_export(name: str, **body: Any) -> LiveObject:
    return live_export("e2", name, parent=2, created_at=SINCE, **{"interval": "day", **body})


def test_f4_a_replacement_is_done_after_its_rename() -> None:
    assert continued(new_export("Lake")) == ()


@pytest.mark.parametrize(
    "exports",
    [
        (live_export(), new_export("Lake")),
        (new_export("Lake", interval="week"),),
        (live_export(interval="week"), new_export("Lake")),
    ],
    ids=["created", "of-other-values", "modified"],
)
def test_f4_a_replacement_that_was_cut_short_is_stale(exports: tuple[LiveObject, ...]) -> None:
    assert continued(*exports)


@pytest.mark.parametrize("name", ["body", "after_create", "depends_on"])
def test_a_forged_part_without_words_of_its_own_is_refused(name: str) -> None:
    desired, live = desired_of(project(), export()), live_of(WEB)
    saved = planned(desired, live)
    value: Any = {"body": {"name": "Lake"}, "after_create": {"a": 1}}.get(name, ())
    forged = replace(saved.effective[0], **{name: ("x",) if name == "depends_on" else value})
    assert differences(replace(saved, changes=(forged,)), desired, live)


# Deletions
