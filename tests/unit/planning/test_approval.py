"""What approves a plan on a terminal, and a saved plan compared with that of now."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.sending import Verification
from reconciler.errors import ReconcilerError
from reconciler.model.kind import Action
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, Consequence, Plan, PlanSource, Severity
from reconciler.model.resource import Desired, Resource, State
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
SOURCE = PlanSource("production", "o", "https://x.example", "1")
WARNING = Consequence("runs-missed-while-paused", Severity.WARNING, "runs are missed")


def deletion(key: str, name: str, *consequences: Consequence) -> Change:
    address = Address("batch_export", key)
    return Change(address, Action.DELETE, name, consequences=consequences)


def in_project(*changes: Change) -> tuple[Change, ...]:
    """Return changes with the deletion of the project that contains the first one."""
    own = deletion("web", "Web Shop", DANGER)
    inside = replace(changes[0], live_id="e1")
    web = replace(own, address=Address("project", "web"), depends_on=(inside.id,))
    return (inside, *changes[1:], web)


A, B = deletion("a", "A", DANGER), deletion("b", "B", DANGER)


@pytest.mark.parametrize(
    ("changes", "words", "given", "refused"),
    [
        pytest.param(
            (deletion("a", "A", WARNING),), "", ["y\n", "Yes"], ["n", "", "a", "A"], id="no danger"
        ),
        pytest.param(
            (deletion("a", "Old  export", DANGER),),
            "batch_export.a (history-lost)|type its name, 'Old  export'",
            ["Old  export\n", "batch_export.a\n"],
            ["y", "yes", "a", "", "old  export"],
            id="one danger",
        ),
        pytest.param(
            (deletion("a", "x\x1b[2J", DANGER),), "x\\x1b[2J", ["x\\x1b[2J"], ["y"], id="control"
        ),
        pytest.param(
            *(in_project(A), "'Web Shop': ", ["Web Shop"], ["y", "production", "A", "B"]),
            id="R11: a project and what is in it",
        ),
        pytest.param(
            *(in_project(A, B), "'Web Shop': ", ["Web Shop"], ["y", "production", "A", "B"]),
            id="R11: a project and another danger",
        ),
        pytest.param(
            (A, B),
            "Danger for 2 objects: batch_export.a, batch_export.b (history-lost)\n"
            "|\nTo apply this plan, type the environment, ",
            ["production\n"],
            ["y", "A", "B", ""],
            id="plan V6: several dangers",
        ),
    ],
)
def test_a_plan_is_approved_by_yes_or_the_name_of_its_danger(
    changes: tuple[Change, ...], words: str, given: list[str], refused: list[str]
) -> None:
    approval = approval_of(Plan(SOURCE, changes))
    assert all(text in approval.question for text in words.split("|"))
    assert "\x1b" not in approval.question
    assert [line for line in given + refused if approval.is_given_by(line)] == given


# I10: the second plan judges the changes of the run, and nothing else


@pytest.mark.parametrize(
    ("verification", "passed", "begins"),
    [
        (Verification(), None, ""),
        (Verification(error=ReconcilerError("no answer")), False, ""),
        (Verification(Plan(SOURCE, ())), True, ""),
        (Verification(Plan(SOURCE, (B, A))), False, "error: the plan after apply is not empty"),
        (Verification(Plan(SOURCE, (B,))), True, "note: the plan after apply has 1 other change"),
    ],
)
def test_i10_the_second_plan_judges_the_run(
    verification: Verification, passed: bool | None, begins: str
) -> None:
    judged = Verification(verification.left, verification.error, frozenset({A.address}))
    assert judged.passed is passed
    text = unverified_as_text(judged.left, passed=passed is True)
    assert text.startswith(begins)
    assert bool(text) is bool(begins)


# A saved plan is compared with the plan of now: equal, outdated, forged or applied in part

SINCE = NOW.isoformat()
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


DAY, WEEK = export(interval="day"), export(interval="week")
ABSENT = {"state": State.ABSENT}
LAKE, SEA = live_export(), live_export("e2", "Sea")
NOT_SAVED = "is not in the saved plan"
UNDONE = "is in the saved plan, but is neither planned now nor done"
OLD_KEY = with_secrets()
OLD_KEY["config"]["aws_access_key_id"] = SecretRef.of("env", "OLD")
SECRET = export(destination=with_secrets())
HUNTER = export(destination=s3(prefix="hunter2/"))
OF_WEEK = live_export(interval="week")
OLD_PREFIX, OF_HUNTER = (live_export(destination=s3(prefix=p)) for p in ("old/", "hunter2/"))
SEA_GONE, SEA_PAUSED = export("sea", **ABSENT), live_export("e2", "Sea", paused=True)
TO_DAY, SAVED_DAY = 'interval "hour" -> "day"', 'the saved plan has "hour" -> "day"'


@pytest.mark.parametrize(
    ("declared", "was", "now", "live", "expected"),
    [
        (export(), [LAKE], [DAY], [LAKE], [f"{TO_DAY} {NOT_SAVED}"]),
        (DAY, [LAKE], [WEEK], [LAKE], [f'interval is "hour" -> "week" now, {SAVED_DAY}']),
        (DAY, [LAKE], [DAY], [OF_WEEK], [f'interval is "week" -> "day" now, {SAVED_DAY}']),
        (SEA_GONE, [SEA], [SEA_GONE], [SEA_PAUSED], [f"live value of paused true {NOT_SAVED}"]),
        (DAY, [LAKE], [export()], [LAKE], [f"{TO_DAY} {UNDONE}"]),
        (export("sea"), [], [], [], [f"create {UNDONE}"]),
        # F7: other values in the place of a create.
        (
            export(),
            [],
            [export()],
            [OF_WEEK],
            [f"create {UNDONE}", f'interval "week" -> "hour" {NOT_SAVED}'],
        ),
        # A masked value equals the same secret, to do and done.
        (HUNTER, [OLD_PREFIX], [HUNTER], [OLD_PREFIX], []),
        (HUNTER, [OLD_PREFIX], [HUNTER], [OF_HUNTER], []),
        # I7: somebody created it since.
        (export(), [], [export()], [live_export(created_at=SINCE)], []),
    ],
)
def test_i7_f7_a_saved_plan_is_compared_by_field(
    declared: Resource,
    was: list[LiveObject],
    now: list[Resource],
    live: list[LiveObject],
    expected: list[str],
) -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    saved = planned(desired_of(project(), declared), live_of(WEB, *was))
    found = differences(saved, desired_of(project(), *now), live_of(WEB, *live), mask=mask)
    assert found == tuple(f"{declared.address}: {text}" for text in expected)


def test_objects_that_were_added_to_a_project_make_its_deletion_stale() -> None:
    desired = desired_of(replace(project(), state=State.ABSENT))
    saved = planned(desired, live_of(WEB, LAKE))
    assert saved.effective[-1].inside == ("e1",)
    added = f"project.web: object inside with id e2 {NOT_SAVED}"
    assert added in differences(saved, desired, live_of(WEB, LAKE, SEA))


def test_a_secret_that_the_saved_plan_does_not_send_is_reported() -> None:
    desired, live = desired_of(project(), SECRET), live_of(WEB, LAKE)
    lines = differences(planned(desired, live), desired, live, options=PlanOptions(rotate=("*",)))
    name = "destination.config.aws_access_key_id"
    assert lines[0] == f"batch_export.lake: {name} (secret) {NOT_SAVED}"
    assert len(lines) == 2


def test_a_secret_that_was_to_be_sent_is_never_done_by_reading() -> None:
    base = desired_of(project(), export(destination=OLD_KEY))
    desired = desired_of(project(), export(interval="day", destination=with_secrets()))
    saved = planned(desired, live_of(WEB, LAKE), base=base)
    assert [len(change.fields) for change in saved.effective] == [3]
    assert len(differences(saved, desired, live_of(WEB, live_export(interval="day")))) == 3


def test_a_consequence_that_the_saved_plan_does_not_show_is_reported() -> None:
    live, desired = live_of(WEB, LAKE), desired_of(project(), DAY)
    saved = planned(desired, live)
    change = saved.effective[0]
    without = replace(saved, changes=(replace(change, consequences=()), *saved.changes[1:]))
    rules = [f"{item.severity} {item.rule}" for item in change.consequences]
    assert rules
    assert [line.split(": ", 1)[1] for line in differences(without, desired, live)] == [
        f"{rule} {NOT_SAVED}" for rule in sorted(rules)
    ]


def test_a_kind_that_does_not_exist_is_reported() -> None:
    desired, live = desired_of(project()), live_of()
    saved = planned(desired, live)
    other = replace(saved.changes[0], address=Address("dashboard", "web"))
    forged = replace(saved, changes=(*saved.changes, other))
    assert differences(forged, desired, live) == (f"dashboard.web: create {UNDONE}",)


@pytest.mark.parametrize(
    ("name", "value"),
    [("body", {"name": "Lake"}), ("after_create", {"a": 1}), ("depends_on", ("x",))],
)
def test_a_forged_part_without_words_of_its_own_is_refused(name: str, value: Any) -> None:
    desired, live = desired_of(project(), export()), live_of(WEB)
    saved = planned(desired, live)
    forged = replace(saved.effective[0], **{name: value})
    assert differences(replace(saved, changes=(forged,)), desired, live)


# Replacements


def test_f7_what_is_done_counts_as_done() -> None:
    live = live_of(live_project(2, "Shop"), live_export("e2", "Sea", parent=2))
    gone = export("sea", parent="shop", state=State.ABSENT)
    desired = desired_of(project("shop"), gone, project(), export())
    saved = planned(desired, live)
    assert len(saved.effective) == 3
    assert differences(saved, desired, live_of(live_project(2, "Shop"), WEB)) == ()


@pytest.mark.parametrize("left", [(), (LAKE,)])
def test_f4_a_replacement_that_was_cut_short_is_stale(left: tuple[LiveObject, ...]) -> None:
    base = desired_of(project(), project("shop"), export())
    desired = desired_of(project(), project("shop"), export(parent="shop", interval="day"))
    projects, options = (WEB, live_project(2, "Shop")), PlanOptions(allow_replace=True)
    saved = planned(desired, live_of(*projects, LAKE), base=base, options=options)
    assert [change.action for change in saved.effective] == [Action.REPLACE]
    new = live_export("e2", "Lake", parent=2, created_at=SINCE, interval="day")
    now = live_of(*projects, new, *left)
    assert bool(differences(saved, desired, now, base=base, options=options)) is bool(left)
