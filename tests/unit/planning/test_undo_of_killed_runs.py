"""Undo of a run whose log does not say how every change ended."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, State
from reconciler.planning.undo import AppliedPlan, undo_plan
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    plan_context,
    planned,
    project,
    s3,
)

WEB, LIVE_WEB = project(), live_project()
POLICY = Policy(deletable=frozenset({"project"}))
PROJECT, LAKE = Address("project", "web"), Address("batch_export", "lake")


def undo_of(desired: Desired, before: Live, after: Live, **parts: Any) -> Plan:
    """The undo of a run that was killed: every change is uncertain if no other part says more."""
    applied = planned(desired, before, POLICY)
    if "uncertain" not in parts:
        parts["uncertain"] = frozenset(change.id for change in applied.effective)
    undone = AppliedPlan(applied, **{"done": frozenset(), **parts})
    return undo_plan(undone, desired, after, POLICY, KINDS, context=plan_context())


def actions(plan: Plan) -> list[tuple[str, str, str | None]]:
    return [(change.action.value, str(change.address), change.live_id) for change in plan.effective]


def notes(plan: Plan) -> list[str]:
    return [note.message for note in plan.notes]


def undo_of_create(*after: LiveObject, **parts: Any) -> Plan:
    desired = desired_of(WEB, export())
    return undo_of(desired, live_of(LIVE_WEB), live_of(LIVE_WEB, *after), **parts)


def test_f8_a_create_that_took_effect_is_undone() -> None:
    plan = undo_of_create(live_export("e7"))
    assert actions(plan) == [("delete", "batch_export.lake", "e7")]
    assert "its create has no recorded end; id e7 is what was sent" in notes(plan)[0]


def test_f8_a_create_that_did_not_take_effect_is_reported() -> None:
    plan = undo_of_create()
    assert actions(plan) == []
    assert notes(plan) == ["batch_export.lake: it was not created: nothing is deleted"]


@pytest.mark.parametrize("body", [{"interval": "day"}, {"destination": s3(prefix="other/")}])
def test_an_object_that_differs_from_what_was_sent_is_not_deleted(body: dict[str, Any]) -> None:
    plan = undo_of_create(live_export("e7", **body))
    assert actions(plan) == []
    assert "id e7 differs from what was sent: nothing is deleted" in notes(plan)[0]


def test_twins_of_an_uncertain_create_are_not_deleted() -> None:
    """The files are reverted already: otherwise they are an ambiguity of the workspace."""
    applied = planned(desired_of(WEB, export()), live_of(LIVE_WEB))
    undone = AppliedPlan(
        applied, done=frozenset(), uncertain=frozenset({"batch_export.lake:create"})
    )
    after = live_of(LIVE_WEB, live_export("e7"), live_export("e8"))
    plan = undo_plan(undone, desired_of(WEB), after, POLICY, KINDS, context=plan_context())
    assert actions(plan) == []
    assert "several live objects have its name: nothing is deleted" in notes(plan)[0]


def test_an_object_that_was_created_before_a_failure_is_deleted_by_its_id() -> None:
    """Its other fields may not be set yet."""
    half = live_export("e7", interval="day")
    plan = undo_of_create(half, live_export("e8"), created={LAKE: "e7"})
    assert actions(plan) == [("delete", "batch_export.lake", "e7")]


def test_an_adopted_object_is_never_deleted() -> None:
    plan = undo_of_create(
        live_export("e7"),
        uncertain=frozenset(),
        adopted=frozenset({"batch_export.lake:create"}),
        created={LAKE: "e7"},
    )
    assert actions(plan) == []
    assert notes(plan) == [
        "batch_export.lake: another client may have created it: nothing is deleted"
    ]


def test_f8_a_child_of_an_uncertain_parent_is_looked_for_inside_it() -> None:
    desired = desired_of(WEB, export())
    elsewhere = live_project(2, "Other")
    after = live_of(
        live_project(5), elsewhere, live_export("e7", parent=5), live_export("e8", parent=2)
    )
    plan = undo_of(desired, live_of(elsewhere), after)
    assert sorted(actions(plan)) == [
        ("delete", "batch_export.lake", "e7"),
        ("delete", "project.web", "5"),
    ]


@pytest.mark.parametrize(("live", "expected"), [("new/", 1), ("old/", 0)])
def test_f8_an_update_is_undone_if_it_took_effect(live: str, expected: int) -> None:
    desired = desired_of(WEB, export(destination=s3(prefix="new/")))
    before = live_of(LIVE_WEB, live_export(destination=s3(prefix="old/")))
    after = live_of(LIVE_WEB, live_export(destination=s3(prefix=live)))
    plan = undo_of(desired, before, after)
    assert actions(plan) == [("update", "batch_export.lake", "e1")] * expected
    assert notes(plan) == []


def test_f8_a_third_value_is_kept_and_reported() -> None:
    desired = desired_of(WEB, export(destination=s3(prefix="new/")))
    before = live_of(LIVE_WEB, live_export(destination=s3(prefix="old/")))
    after = live_of(LIVE_WEB, live_export(destination=s3(prefix="third/")))
    plan = undo_of(desired, before, after)
    assert actions(plan) == []
    assert "destination.config.prefix is not restored: modified since" in notes(plan)[0]


@pytest.mark.parametrize("paused", [True, False])
def test_f8_a_pause_is_undone_if_it_took_effect(*, paused: bool) -> None:
    desired = desired_of(WEB, export(paused=True))
    before, after = (live_of(LIVE_WEB, live_export(paused=value)) for value in (False, paused))
    expected = [("unpause", "batch_export.lake", "e1")] if paused else []
    assert actions(undo_of(desired, before, after)) == expected


def test_f8_a_delete_is_undone_if_it_took_effect() -> None:
    desired = desired_of(WEB, export(state=State.ABSENT))
    before = live_of(LIVE_WEB, live_export())
    without_effect = undo_of(desired, before, before)
    assert (actions(without_effect), notes(without_effect)) == ([], [])
    assert actions(undo_of(desired, before, live_of(LIVE_WEB))) == [
        ("create", "batch_export.lake", None)
    ]


def test_a_replacement_that_may_be_cut_short_is_left_to_the_next_plan() -> None:
    desired = desired_of(WEB, export())
    before = live_of(LIVE_WEB)
    applied = planned(desired, before)
    (change,) = applied.effective
    replaced = replace(
        applied, changes=(replace(change, action=change.action.REPLACE, live_id="e1"),)
    )
    undone = AppliedPlan(
        replaced, done=frozenset(), uncertain=frozenset({"batch_export.lake:replace"})
    )
    plan = undo_plan(undone, desired, before, POLICY, KINDS, context=plan_context())
    assert actions(plan) == []
    assert "the next plan does the rest" in notes(plan)[0]


# Files to revert


def undone_files(base: str | None, head: str | None) -> list[str]:
    desired = desired_of(WEB, replace(export(), mark=Mark("exports/lake.yaml", 3)))
    applied = planned(desired, live_of(LIVE_WEB))
    source = replace(applied.source, base=base, head=head)
    undone = AppliedPlan(replace(applied, source=source), created={LAKE: "e1"})
    after = live_of(LIVE_WEB, live_export())
    return notes(undo_plan(undone, desired, after, POLICY, KINDS, context=plan_context()))


def test_undo_names_the_files_to_revert() -> None:
    (note,) = undone_files(None, None)
    assert note.startswith("the configuration still contains what is undone")
    assert note.endswith("revert exports/lake.yaml")


def test_undo_names_the_commits_to_revert() -> None:
    (note,) = undone_files("a" * 40, "b" * 40)
    assert note.endswith("for example with `git revert aaaaaaaaaaaa..bbbbbbbbbbbb`")
    assert "git revert" not in undone_files("a" * 40, "a" * 40)[0]
