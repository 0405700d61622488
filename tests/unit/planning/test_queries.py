"""What a plan tells of a query: as it is written and as it is shown, never as it is compared."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.applying import stale_changes
from reconciler.model.change import Change
from reconciler.model.codec.plan import decode, encode
from reconciler.model.kind import Field
from reconciler.model.live import Dialect
from reconciler.model.plan import Plan
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Lifecycle, State
from reconciler.model.values import MISSING
from reconciler.planning.undo import AppliedPlan, undo_plan
from tests.support.worlds import (
    BY_NAME,
    KINDS,
    PureServer,
    desired_of,
    export,
    given_now,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

WRITTEN = "select event, 1 + 1 as two  -- the sum\nfrom events\n"
SHOWN = "SELECT event, plus(1, 2) AS two FROM events"
WEB = project()


def live_query(text: str | None) -> Any:
    return live_of(live_project(), live_export(sql_query=text))


def told(plan: Plan) -> Change:
    (change,) = decode(encode(plan)).effective
    return change


def query_of(change: Change) -> tuple[Any, Any]:
    (field,) = (each for each in change.fields if each.path == ("sql_query",))
    return field.before, field.after


def test_both_sides_of_an_update_are_as_they_stand() -> None:
    change = told(planned(desired_of(WEB, export(sql_query=WRITTEN)), live_query(SHOWN)))
    assert query_of(change) == (SHOWN, WRITTEN)
    assert change.body == {"sql_query": WRITTEN}


def test_what_is_shown_elsewhere_in_the_answer_is_told_as_it_is() -> None:
    answered = live_export(sql_query=None, schema={"hogql_query": SHOWN})
    live = live_of(live_project(), answered, dialect=Dialect.V2025)
    change = told(planned(desired_of(WEB, export(sql_query=WRITTEN)), live))
    assert query_of(change) == (SHOWN, WRITTEN)


@pytest.mark.parametrize("base", [None, desired_of(WEB, export(sql_query=WRITTEN))])
def test_another_form_is_no_change(base: Any) -> None:
    same = "SELECT event, plus(1, 1) AS two FROM events"
    assert planned(desired_of(WEB, export(sql_query=WRITTEN)), live_query(same), base=base).empty


def test_a_query_that_is_new_or_cleared_has_one_side() -> None:
    new = planned(desired_of(WEB, export(sql_query=WRITTEN)), live_query(None))
    assert query_of(told(new)) == (None, WRITTEN)
    created = planned(desired_of(WEB, export(sql_query=WRITTEN)), live_of(live_project()))
    assert query_of(told(created)) == (MISSING, WRITTEN)
    cleared = planned(desired_of(WEB, export(sql_query=None)), live_query(SHOWN))
    assert query_of(told(cleared)) == (SHOWN, None)


def test_a_query_removed_from_the_files_is_told_as_it_was() -> None:
    base = desired_of(WEB, export(sql_query=SHOWN))
    change = told(planned(desired_of(WEB, export()), live_query(SHOWN), base=base))
    assert query_of(change) == (SHOWN, None)
    assert change.body == {"sql_query": None}
    assert planned(desired_of(WEB, export()), live_query(None), base=base).empty


def test_a_replacement_carries_the_query_as_the_service_shows_it() -> None:
    elsewhere = live_of(
        live_project(), live_export(parent=2, sql_query=SHOWN), live_project(2, "B")
    )
    desired = desired_of(
        WEB, export(pinned_id="e1", lifecycle=Lifecycle(allow_replace=True)), project("b")
    )
    change = told(planned(desired, elsewhere))
    assert change.body is not None
    assert change.body["sql_query"] == SHOWN


@pytest.mark.parametrize("state", list(State))
def test_undoing_brings_back_what_was_shown(state: State) -> None:
    desired = desired_of(WEB, export(sql_query=WRITTEN, state=state))
    server = PureServer(live_query(SHOWN))
    plan = decode(encode(planned(desired, server.live())))
    server.carry_out(plan)
    back = undo_plan(AppliedPlan(plan), desired, server.live(), Policy(), KINDS, given=given_now())
    change = told(back)
    assert change.body is not None
    assert change.body["sql_query"] == SHOWN
    server.carry_out(back)
    (now,) = server.live().of("batch_export")
    assert now.body["sql_query"] == SHOWN


def test_undoing_leaves_a_query_that_moved_and_takes_back_one_in_another_form() -> None:
    desired = desired_of(WEB, export(sql_query=WRITTEN))
    plan = planned(desired, live_query(SHOWN))

    def back(now: str) -> Plan:
        return undo_plan(
            AppliedPlan(plan), desired, live_query(now), Policy(), KINDS, given=given_now()
        )

    assert back("select person_id from events").empty
    rewritten = "SELECT event, plus(1, 1) AS two FROM events"
    assert query_of(told(back(rewritten))) == (rewritten, SHOWN)


def test_a_query_that_is_only_written_otherwise_since_the_plan_has_not_moved() -> None:
    plan = planned(desired_of(WEB, export(sql_query=WRITTEN)), live_query(SHOWN))

    def moved(now: str) -> bool:
        return bool(stale_changes(plan, live_query(now), KINDS, mask=str))

    assert not moved("select event, 1 + 2 as two from events")
    assert moved("select event, 1 + 3 as two from events")


def test_a_pruned_query_is_kept_in_the_plan_as_it_was_shown() -> None:
    policy = Policy(prune={"*": Prune.UNMANAGED})
    change = told(planned(desired_of(WEB), live_query(SHOWN), policy))
    assert query_of(change) == (SHOWN, MISSING)


def test_only_queries_are_told_that_way() -> None:
    def verbatim(fields: tuple[Field, ...]) -> list[str]:
        return [each.name for each in fields if each.verbatim]

    found = {name: verbatim(kind.fields) for name, kind in BY_NAME.items()}
    assert {name: fields for name, fields in found.items() if fields} == {
        "batch_export": ["sql_query"]
    }
