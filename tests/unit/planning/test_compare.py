"""The rules of comparison, the fast path, and queries, which are shown verbatim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from reconciler.model.kind import Field
from reconciler.model.live import Live
from reconciler.model.resource import Desired
from reconciler.model.schemas import MergedObject
from reconciler.model.values import MISSING, SecretRef
from reconciler.planning.compare import compared, difference, is_equal, is_identical
from reconciler.planning.inventory import Declared
from tests.support.worlds import (
    BY_NAME,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    stale_changes,
    with_secrets,
    worlds,
)

EXPORT = BY_NAME["batch_export"]
MERGED = Field("settings", MergedObject(depth=2))


@pytest.mark.parametrize(
    ("wanted", "live", "equal"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": None}, {"b": 2}, True),
        ({"a": None}, {"a": 1}, False),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, True),
        ({"a": {"x": {"deep": 1}}}, {"a": {"x": {"deep": 1, "more": 2}}}, False),
        ({"a": {"x": None}}, {"a": {}}, True),
        ({"a": {"x": None}}, {}, True),
        ({"a": {"x": None}}, {"a": {"x": 1}}, False),
        ({"a": {"x": None}}, {"a": {"x": None}}, True),
        ({"a": SecretRef.of("env", "A")}, {}, True),
        ({}, MISSING, True),
        (None, MISSING, True),
        (None, {"a": 1}, False),
    ],
)
def test_only_wanted_keys_of_a_merged_object_count(wanted: Any, live: Any, equal: bool) -> None:
    assert is_equal(MERGED, wanted, live) is equal


def test_both_values_are_returned_in_the_compared_form() -> None:
    assert compared(MERGED, {"a": 1.0, "b": None}, {"a": 2, "c": 3}) == ({"a": 1}, {"a": 2})


@pytest.mark.parametrize(
    ("declared", "live", "identical"),
    [
        ({}, {}, True),
        ({"destination": with_secrets()}, {}, True),
        ({"destination": s3(prefix="q/")}, {}, False),
        ({"destination": {"type": "S3"}}, {}, True),
        ({"interval": "day"}, {}, False),
        ({"paused": False}, {}, True),
        ({"unknown": 1}, {}, False),
        ({"filters": [True]}, {"filters": [1]}, False),
        ({"destination": with_secrets(new=[True])}, {"destination": s3(new=[1])}, False),
        ({"start_at": None}, {}, False),
        ({"start_at": None}, {"start_at": None}, True),
    ],
)
def test_the_fast_path_compares_literally(declared: Any, live: Any, identical: bool) -> None:
    spec = export(**declared).spec
    assert is_identical(EXPORT, spec, live_export(**live).body) is identical


@given(worlds())
def test_identical_resources_have_no_difference(world: tuple[Desired, Live]) -> None:
    desired, live = world
    for resource in desired.resources.values():
        kind = BY_NAME[resource.address.kind]
        for item in live.of(kind.name):
            if is_identical(kind, resource.spec, item.body):
                differs = difference(kind, resource, item, Declared())
                assert (differs.changes, differs.toggles, differs.unreset) == ((), (), ())


# Plans show queries verbatim: as configured and as live, not in the form compared

WRITTEN = "select event, 1 + 1 as two  -- the sum\nfrom events\n"
SHOWN = "SELECT event, plus(1, 2) AS two FROM events"
WEB = project()


def live_query(text: str | None) -> Any:
    return live_of(live_project(), live_export(sql_query=text))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a is null or b is not null", "or(isNull(a), isNotNull(b))"),
        ("a not in (1, 2) and b in [1]", "and(notIn(a, tuple(1, 2)), in(b, [1]))"),
        ("a like 'x' and b and c not like 'y'", "and(like(a, 'x'), b, notLike(c, 'y'))"),
        ("a ilike 'x' or b not ilike 'y'", "or(ilike(a, 'x'), notILike(b, 'y'))"),
        ("not a = 1 or not (b <> 2)", "or(not(equals(a, 1)), not(notEquals(b, 2)))"),
        ("a and b or c and d", "or(and(a, b), and(c, d))"),
        ("a and (b or c)", "and(a, or(b, c))"),
        (
            "a < 1 or b <= 2 or c > 3 or d >= 4",
            "or(less(a, 1), lessOrEquals(b, 2), greater(c, 3), greaterOrEquals(d, 4))",
        ),
        ("a < b = c == d", "equals(equals(less(a, b), c), d)"),
        ("a = b != c <> d", "notEquals(notEquals(equals(a, b), c), d)"),
        ("a = b < c > d", "greater(less(equals(a, b), c), d)"),
        ("a = b <= c >= d", "greaterOrEquals(lessOrEquals(equals(a, b), c), d)"),
        ("a + b * c - d / e", "minus(plus(a, multiply(b, c)), divide(d, e))"),
        ("(a + b) * -c % -1", "modulo(multiply(plus(a, b), negate(c)), -1)"),
        ("a || b || c ?? d", "ifNull(concat(a, b, c), d)"),
        ("and(a, b) or f(and(a, b), c) and d", "or(and(a, b), and(f(and(a, b), c), d))"),
        ("a =~ '^x' /* a\ncomment */", "match(a, '^x')"),
        ('"properties" . `$browser`[1] = TRUE;', "equals(properties.`$browser`[1], true)"),
    ],
)
def test_a_condition_is_that_which_servers_of_2025_show(written: str, shown: str) -> None:
    query = f"select Distinct a as b, count( * ) from events e where {written}"
    live = live_query(f"SELECT DISTINCT a AS b, count(*) FROM events AS e WHERE {shown}")
    assert planned(desired_of(WEB, export(sql_query=query)), live).empty


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("select a from events where a - (b - c)", "select a from events where a - b - c"),
        ("select a from events where a and (b or c)", "select a from events where a and b or c"),
        ("select a from events where a = 'x  y'", "select a from events where a = 'x y'"),
        ("select a from events where A", "select a from events where a"),
        ("select a from events where not a is null", "select a from events where a is null"),
        ("select a as b from events", "select a as c from events"),
        ("select a from events e", "select a from events"),
        ("select distinct a from events", "select a from events"),
        ("select a, b from events", "select b, a from events"),
        ("select `select` from events", "select a from events"),
        ("select a from events where (a, b) = c", "select a from events where a = c"),
    ],
)
def test_another_query_is_a_change(written: str, shown: str) -> None:
    assert not planned(desired_of(WEB, export(sql_query=written)), live_query(shown)).empty


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("select a from events  order by b", "SELECT a\nFROM events ORDER BY b -- newest"),
        ("with x as (select 1) select a, from x", "with x AS (SELECT 1) SELECT a, FROM x"),
        ("select  ^ from events", "select ^  from\nevents"),
    ],
)
def test_a_query_that_is_not_understood_is_compared_by_words(written: str, shown: str) -> None:
    assert planned(desired_of(WEB, export(sql_query=written)), live_query(shown)).empty


def test_a_reformatted_query_does_not_make_a_plan_stale() -> None:
    plan = planned(desired_of(WEB, export(sql_query=WRITTEN)), live_query(SHOWN))

    def moved(now: str) -> bool:
        return bool(stale_changes(plan, live_query(now)))

    assert not moved("select event, 1 + 2 as two from events")
    assert moved("select event, 1 + 3 as two from events")
