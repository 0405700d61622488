"""Gaps: intervals of a schedule that no run and no backfill has settled."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.commands.gaps import Gap, GapState, gaps_of
from reconciler.model.kind import Dialect
from reconciler.model.run import BackfillRow, Run
from reconciler.model.times import Interval, Schedule

HOUR = timedelta(hours=1)
DAY_ONE = datetime(2026, 6, 1, tzinfo=UTC)
NOW = DAY_ONE + timedelta(hours=12, minutes=30)
WINDOW = Interval(DAY_ONE, NOW)


def hour(number: float) -> datetime:
    return DAY_ONE + number * HOUR


def schedule(dialect: Dialect = Dialect.V2026, **body: object) -> Schedule:
    return Schedule.of({"interval": "hour", "created_at": "2026-01-01T00:00:00Z", **body}, dialect)


def told(gaps: Iterable[Gap]) -> str:
    """Say gaps as `2-4 missing`, in hours of the day."""
    return ", ".join(
        f"{(gap.start - DAY_ONE) / HOUR:g}-{(gap.end - DAY_ONE) / HOUR:g} {gap.state.value}"
        for gap in gaps
    )


def run(first: float | None, last: float, status: str = "Completed", **fields: object) -> Run:
    start = None if first is None else hour(first)
    given = {"created_at": hour(last), "error": None, **fields}
    return Run(f"{first}-{last}-{status}", status, start, hour(last), **given)  # type: ignore[arg-type]


def runs(first: int, last: int, status: str = "Completed", **fields: object) -> list[Run]:
    return [run(number, number + 1, status, **fields) for number in range(first, last)]


def row(first: float, last: float, status: str = "Completed", **fields: object) -> BackfillRow:
    return BackfillRow("b1", status, hour(first), hour(last), **fields)  # type: ignore[arg-type]


FAILED = runs(3, 4, "Failed")
STATUSES = ("Starting", "Running", "ContinuedAsNew", "Terminated", "TimedOut", "Cancelled")
ENDS = [run(number, number + 1, status) for number, status in enumerate(STATUSES)]
AGAIN = run(3, 4, created_at=hour(9), backfill="b2")
MINUTES = [run(number / 4, (number + 1) / 4) for number in range(15)]
ADJUSTED, EMPTY = {"adjusted_start": hour(5)}, row(0, 12, total_records=0)
RESUMED, BACKFILLED = {"last_paused_at": hour(6).isoformat()}, {"backfill": "b1"}
PAUSED = {"paused": True, **RESUMED}
YOUNG = {"created_at": hour(7.5).isoformat()}
BOUNDED = {"start_at": hour(3).isoformat(), "end_at": hour(5).isoformat()}
RESTS = [*runs(0, 2), *runs(4, 6), *runs(8, 10), *runs(11, 12)]
ENDLESS = BackfillRow("b1", "Running", hour(0), None)


@pytest.mark.parametrize(
    ("body", "history", "rows", "expected"),
    [
        ({}, [*runs(0, 2), *runs(4, 6, "Failed"), *runs(6, 12)], [], "2-4 missing, 4-6 failed"),
        pytest.param({}, runs(5, 12), [row(0, 12, **ADJUSTED)], "", id="trap_15_47"),
        ({}, runs(6, 12), [row(0, 12, **ADJUSTED)], "5-6 missing"),
        ({}, [], [EMPTY], ""),
        ({}, runs(5, 12), [row(0, 12, "Cancelled", **ADJUSTED)], "0-5 missing"),
        pytest.param(
            *({}, [*runs(0, 4, "Failed", **BACKFILLED), *runs(4, 12)]),
            *([row(0, 4, total_records=0)], "0-4 failed"),
            id="trap_15_48",
        ),
        pytest.param({}, [*ENDS, *runs(6, 12)], [], "0-2 pending, 2-6 failed", id="trap_15_49"),
        ({}, runs(3, 12), [row(0, 3, "Running")], "0-3 pending"),
        ({}, runs(3, 12), [ENDLESS], "0-3 missing"),
        pytest.param(
            {}, [*runs(0, 3), *FAILED, AGAIN, *FAILED, *runs(4, 12)], [], "", id="trap_15_50"
        ),
        pytest.param({}, [run(None, 8), *runs(8, 12)], [], "", id="trap_15_51"),
        pytest.param(RESUMED, RESTS, [], "2-4 unknown, 6-8 paused, 10-11 missing", id="trap_15_55"),
        ({"paused": True}, runs(0, 2), [], "2-12 unknown"),
        # The tick of 6:00 was delayed into the pause.
        (PAUSED, runs(0, 5), [], "5-12 paused"),
        pytest.param(YOUNG, [], [], "7-12 missing", id="trap_15_56"),
        (BOUNDED, [], [], "2-5 missing"),
        pytest.param(
            {}, [run(-24, 4.5), run(4.5, 6), *runs(6, 12)], [], "", id="trap_15_57_another_grid"
        ),
        ({}, [*MINUTES, *runs(4, 12)], [], "3-4 missing"),
    ],
)
def test_gaps(
    body: dict[str, Any], history: list[Run], rows: list[BackfillRow], expected: str
) -> None:
    found = gaps_of(schedule(**body), tuple(history), WINDOW, NOW, tuple(rows))
    assert told(found) == expected
    assert [gap.partly for gap in found if gap.partly] == [1] * (MINUTES[0] in history)


def test_trap_15_62_a_run_over_the_billing_limit_is_not_repairable() -> None:
    history = [*runs(0, 3), *runs(3, 5, "FailedBilling", finished_at=None), *runs(5, 12)]
    assert told(gaps_of(schedule(Dialect.V2025), history, WINDOW, NOW, ())) == "3-5 billing"
    assert not GapState.BILLING.repairable


def test_trap_15_52_a_run_is_not_missing_before_its_delayed_start() -> None:
    early = Interval(DAY_ONE, hour(12))
    seen = runs(0, 11)
    assert gaps_of(schedule(), seen, early, hour(12) + timedelta(minutes=19)) == ()
    (late,) = gaps_of(schedule(), seen, early, hour(12) + timedelta(minutes=20))
    assert (late.start, late.state) == (hour(11), GapState.MISSING)


ANY = st.sampled_from(["Completed", "Failed", "FailedBilling", "Cancelled", "Running"])
SPANS = st.tuples(st.integers(0, 47), st.integers(1, 8), ANY)


@given(st.lists(SPANS, max_size=30))
def test_exported_time_and_gaps_are_all_of_the_time(spans: list[tuple[int, int, str]]) -> None:
    history = [run(start / 4, (start + length) / 4, status) for start, length, status in spans]
    listed = gaps_of(schedule(), history, WINDOW, NOW)
    done = [item for item in history if item.completed]
    for number in range(48):
        first, last = hour(number / 4), hour((number + 1) / 4)
        covered = any(item.start <= first and last <= item.end for item in done)  # type: ignore[operator]
        in_gap = [gap for gap in listed if gap.start <= first and last <= gap.end]
        assert covered or len(in_gap) == 1
    for gap in listed:
        assert gap.end - gap.start == gap.intervals * HOUR
