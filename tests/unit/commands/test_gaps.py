"""Gaps: intervals of a schedule that no run and no backfill has settled."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.commands.gaps import GapState, gaps_of
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


def run(first: float | None, last: float, status: str = "Completed", **fields: object) -> Run:
    start = None if first is None else hour(first)
    given = {"created_at": hour(last), "error": None, **fields}
    return Run(f"{first}-{last}-{status}", status, start, hour(last), **given)  # type: ignore[arg-type]


def runs(first: int, last: int, status: str = "Completed", **fields: object) -> list[Run]:
    return [run(number, number + 1, status, **fields) for number in range(first, last)]


def row(first: float, last: float, status: str = "Completed", **fields: object) -> BackfillRow:
    return BackfillRow("b1", status, hour(first), hour(last), **fields)  # type: ignore[arg-type]


def gaps(
    plan: Schedule, history: Iterable[Run], rows: Iterable[BackfillRow] | None = ()
) -> list[tuple[float, float, str]]:
    seen = None if rows is None else tuple(rows)
    return [
        ((gap.start - DAY_ONE) / HOUR, (gap.end - DAY_ONE) / HOUR, gap.state.value)
        for gap in gaps_of(plan, tuple(history), WINDOW, NOW, seen)
    ]


def test_complete_runs_leave_no_gap() -> None:
    assert gaps(schedule(), runs(0, 12)) == []


def test_missing_and_failed_runs_are_joined_by_state() -> None:
    history = [*runs(0, 2), *runs(4, 6, "Failed"), *runs(6, 12)]
    assert gaps(schedule(), history) == [(2, 4, "missing"), (4, 6, "failed")]


def test_trap_15_47_empty_intervals_at_the_start_of_a_backfill_are_settled() -> None:
    rows = [row(0, 12, adjusted_start=hour(5))]
    assert gaps(schedule(), runs(5, 12), rows) == []
    assert gaps(schedule(), runs(6, 12), rows) == [(5, 6, "missing")]
    assert gaps(schedule(), [], [row(0, 12, total_records=0)]) == []
    cancelled = [row(0, 12, "Cancelled", adjusted_start=hour(5))]
    assert gaps(schedule(), runs(5, 12), cancelled) == [(0, 5, "missing")]


def test_trap_15_48_a_completed_backfill_whose_runs_failed_settles_nothing() -> None:
    failed = [*runs(0, 4, "Failed", backfill="b1"), *runs(4, 12)]
    assert gaps(schedule(), failed, [row(0, 4, total_records=0)]) == [(0, 4, "failed")]


def test_trap_15_49_only_completed_is_done_and_running_is_pending() -> None:
    statuses = ("Starting", "Running", "ContinuedAsNew", "Terminated", "TimedOut", "Cancelled")
    history = [run(number, number + 1, status) for number, status in enumerate(statuses)]
    assert gaps(schedule(), [*history, *runs(6, 12)]) == [(0, 2, "pending"), (2, 6, "failed")]
    assert gaps(schedule(), runs(3, 12), [row(0, 3, "Running")]) == [(0, 3, "pending")]
    endless = BackfillRow("b1", "Running", hour(0), None)
    assert gaps(schedule(), runs(3, 12), [endless]) == [(0, 3, "missing")]


def test_trap_15_50_one_completed_run_of_several_settles_an_interval() -> None:
    again = run(3, 4, created_at=hour(9), backfill="b2")
    history = [*runs(0, 3), run(3, 4, "Failed"), again, run(3, 4, "Failed"), *runs(4, 12)]
    assert gaps(schedule(), history) == []


def test_trap_15_51_a_run_without_a_start_covers_everything_before_its_end() -> None:
    assert gaps(schedule(), [run(None, 8), *runs(8, 12)]) == []


def test_trap_15_52_a_run_is_not_missing_before_its_delayed_start() -> None:
    early = Interval(DAY_ONE, hour(12))
    seen = runs(0, 11)
    assert gaps_of(schedule(), seen, early, hour(12) + timedelta(minutes=19)) == ()
    (late,) = gaps_of(schedule(), seen, early, hour(12) + timedelta(minutes=20))
    assert (late.start, late.state) == (hour(11), GapState.MISSING)


def test_trap_15_55_a_gap_that_an_earlier_pause_may_explain_is_unknown() -> None:
    resumed = schedule(last_paused_at=hour(6).isoformat())
    history = [*runs(0, 2), *runs(4, 6), *runs(8, 10), *runs(11, 12)]
    assert gaps(resumed, history) == [(2, 4, "unknown"), (6, 8, "paused"), (10, 11, "missing")]
    unknown = schedule(paused=True)
    assert gaps(unknown, runs(0, 2)) == [(2, 12, "unknown")]


def test_a_present_pause_explains_every_tick_since() -> None:
    paused = schedule(paused=True, last_paused_at=hour(6).isoformat())
    # The tick of 6:00 was delayed into the pause.
    assert gaps(paused, runs(0, 5)) == [(5, 12, "paused")]


def test_trap_15_56_nothing_is_missing_before_the_create_or_outside_of_the_bounds() -> None:
    young = schedule(created_at=hour(7.5).isoformat())
    assert gaps(young, []) == [(7, 12, "missing")]
    bounded = schedule(start_at=hour(3).isoformat(), end_at=hour(5).isoformat())
    assert gaps(bounded, []) == [(2, 5, "missing")]


def test_trap_15_57_another_grid_covers_by_time() -> None:
    history = [run(-24, 4.5), run(4.5, 6), *runs(6, 12)]
    assert gaps(schedule(), history) == []
    minutes = [run(number / 4, (number + 1) / 4) for number in range(16)]
    assert gaps(schedule(), [*minutes[:-1], *runs(4, 12)]) == [(3, 4, "missing")]
    (partly,) = gaps_of(schedule(), [*minutes[:-1], *runs(4, 12)], WINDOW, NOW)
    assert partly.partly == 1


def test_trap_15_62_a_run_over_the_billing_limit_is_not_repairable() -> None:
    history = [*runs(0, 3), *runs(3, 5, "FailedBilling", finished_at=None), *runs(5, 12)]
    assert gaps(schedule(Dialect.V2025), history) == [(3, 5, "billing")]
    assert not GapState.BILLING.repairable


STATUSES = st.sampled_from(["Completed", "Failed", "FailedBilling", "Cancelled", "Running"])
SPANS = st.tuples(st.integers(0, 47), st.integers(1, 8), STATUSES)


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
