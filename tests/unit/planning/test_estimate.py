"""The estimated number of calls of a plan."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.commands.plan import calls_of
from reconciler.model.kind import Action
from reconciler.model.plan import Plan
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

WEB = project()


def creates(count: int) -> Plan:
    """A plan that creates exports in one project."""
    return planned(
        desired_of(WEB, *(export(f"e{number}") for number in range(count))), live_of(live_project())
    )


def test_an_empty_plan_takes_no_calls() -> None:
    assert calls_of(planned(desired_of(), live_of()), KINDS) == 0


def test_creates_share_the_lists_before_and_after_them() -> None:
    lists, verification = 2, 2
    assert calls_of(creates(1), KINDS) == 1 + lists + verification
    assert calls_of(creates(100), KINDS) == 100 + lists + verification
    second_page = 1
    assert calls_of(creates(101), KINDS) == 101 + lists + verification + second_page


def test_parents_are_checked_again_after_their_children() -> None:
    plan = planned(desired_of(WEB, export()), live_of())
    assert calls_of(plan, KINDS) == 2 + 2 + 2 + 1 + 2


def test_changes_in_place_take_a_write() -> None:
    live = live_of(live_project(), live_export(interval="day", paused=True))
    plan = planned(desired_of(WEB, export(paused=False)), live)
    assert [change.action for change in plan.effective] == [Action.UPDATE, Action.UNPAUSE]
    assert calls_of(plan, KINDS) == 2 + 2


def test_a_replacement_is_counted() -> None:
    (create,) = creates(1).effective
    whole = replace(create, action=Action.REPLACE, live_id="e1")
    plan = creates(1)
    assert calls_of(replace(plan, changes=(whole,)), KINDS) == 5 + 2 + 2
