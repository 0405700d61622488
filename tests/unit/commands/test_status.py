"""States of exports: what is said about runs, schedules and pauses at a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.commands.status.report import ExportStatus, State
from reconciler.commands.status.state import status_of, worst_first
from reconciler.commands.targets import Target
from reconciler.kinds import all_kinds
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject
from reconciler.model.times import rough_duration
from reconciler.model.values import Address

NOW = datetime(2026, 6, 10, 12, 40, tzinfo=UTC)
MADE = "2026-01-01T00:30:00Z"


def at(hour: float, day: int = 10) -> datetime:
    return datetime(2026, 6, day, tzinfo=UTC) + timedelta(hours=hour)


def run(end: datetime, status: str = "Completed", **fields: Any) -> dict[str, Any]:
    begun = end + timedelta(minutes=10)
    finished = None if status in ("Running", "Starting") else begun + timedelta(minutes=1)
    return {
        "id": f"{end:%d%H%M}-{status}",
        "status": status,
        "data_interval_start": (end - timedelta(hours=1)).isoformat(),
        "data_interval_end": end.isoformat(),
        "created_at": begun.isoformat(),
        "finished_at": finished.isoformat() if finished else None,
        "records_completed": 1000 if status == "Completed" else None,
        "latest_error": "access denied" if status.startswith("Failed") else None,
        **fields,
    }


def judged(
    runs: list[dict[str, Any]],
    *,
    now: datetime = NOW,
    dialect: Dialect | None = Dialect.V2026,
    **body: Any,
) -> ExportStatus:
    fields = {"interval": "hour", "created_at": MADE, "paused": False, **body}
    live = LiveObject("batch_export", "e1", "Lake", {**fields, "latest_runs": runs}, "1")
    return status_of(target(live), dialect, now)


def target(live: LiveObject) -> Target:
    kind = next(kind for kind in all_kinds() if kind.name == live.kind)
    return Target(Address(kind.name, "lake"), kind, live, parent_name="Web")


def codes(export: ExportStatus) -> list[str]:
    return [note.code for note in export.notes]


def hourly(*hours: int, status: str = "Completed", **fields: Any) -> list[dict[str, Any]]:
    return [run(at(hour), status, **fields) for hour in sorted(hours, reverse=True)]


def test_an_export_without_overdue_intervals_is_ok() -> None:
    export = judged(hourly(*range(3, 13)))
    assert export.state is State.OK
    assert export.lag is None
    assert export.rows_a_day == 24_000
    assert export.next_run == at(13)
    assert export.notes == ()


def test_failures_in_a_row_and_the_lag_are_exact() -> None:
    export = judged([*hourly(7, 8, 9, 10, 11, 12, status="Failed"), *hourly(3, 4, 5, 6)])
    assert export.state is State.FAILING
    assert (export.failures, export.all_failed) == (6, False)
    # The interval that ended at 7:00 is the first that is not exported.
    assert export.lag == timedelta(hours=5, minutes=40)
    assert not export.lag_is_least
    assert export.notes[0].message == "access denied"


def test_if_all_shown_runs_failed_the_lag_is_a_least_value() -> None:
    export = judged(hourly(*range(3, 13), status="Failed"))
    assert export.failures == 10
    assert export.all_failed
    assert export.lag == timedelta(hours=9, minutes=40)
    assert export.lag_is_least
    assert not judged(hourly(11, 12, status="Failed")).lag_is_least


def test_trap_15_52_a_tick_is_overdue_only_after_the_delay_of_its_start() -> None:
    runs = hourly(*range(3, 12))
    assert judged(runs, now=at(12.3)).state is State.OK
    late = judged(runs, now=at(12.5))
    assert late.state is State.LAGGING
    assert late.lag == timedelta(minutes=30)
    # A server of 2025 delays days by hours.
    days = [run(at(0, day)) for day in range(9, 3, -1)]
    noon = at(3)
    assert judged(days, now=noon, interval="day", dialect=Dialect.V2025).state is State.OK
    assert judged(days, now=noon, interval="day").state is State.LAGGING


def test_trap_15_49_a_pending_run_is_not_done_and_excuses_only_its_own_interval() -> None:
    done = hourly(*range(3, 12))
    running = judged([run(at(12), "Running"), *done])
    assert running.state is State.OK
    assert running.lag == timedelta(minutes=40)
    behind = judged([*hourly(11, 12, status="Running"), *done[1:]])
    assert behind.state is State.LAGGING
    assert behind.notes[0].message == "2 runs in progress"
    cancelled = judged([run(at(12), "Cancelled"), *done])
    assert cancelled.state is State.LAGGING


@pytest.mark.parametrize(
    ("interval", "limit"),
    [
        ("every 5 minutes", timedelta(minutes=20)),
        ("every 30 minutes", timedelta(minutes=30)),
        ("hour", timedelta(hours=6)),
        ("day", timedelta(days=1)),
        ("week", timedelta(days=3)),
    ],
)
def test_trap_15_49_a_run_longer_than_the_limit_of_an_attempt_is_warned_about(
    interval: str, limit: timedelta
) -> None:
    def begun(ago: timedelta) -> ExportStatus:
        stuck = run(NOW - ago, "Running", created_at=(NOW - ago).isoformat())
        return judged([stuck, run(NOW)], interval=interval)

    assert "run-takes-long" not in codes(begun(limit))
    late = begun(limit + timedelta(minutes=1))
    assert late.state is State.LAGGING
    assert "run-takes-long" in codes(late)


def test_trap_15_50_one_completed_run_settles_its_interval() -> None:
    failed = hourly(11, 12, status="Failed")
    repaired = hourly(11, 12)
    export = judged([*repaired, *failed, *hourly(10)])
    assert export.state is State.OK
    assert export.unsettled == 0
    # The newest run is the failed one, and an older run of the interval had exported it.
    again = judged([failed[0], *hourly(12, 11)])
    assert (again.state, again.failures) == (State.OK, 0)
    day = run(at(12), data_interval_start=at(12, 9).isoformat())
    assert judged([day, *failed]).unsettled == 0


def test_a_failure_that_was_not_repeated_is_noted_on_an_export_that_is_ok() -> None:
    export = judged([*hourly(12, 11), run(at(10), "Failed"), *hourly(9)])
    assert export.state is State.OK
    assert export.unsettled == 1
    assert export.notes[0].message == "1 failed run among its last 4"


def test_apply_p3_failed_runs_are_counted_as_they_are_drawn() -> None:
    repeated = [run(at(hour), "Failed") for hour in (9, 8, 7, 6)]
    repeats = hourly(9, 8, 7, 6, created_at=at(12).isoformat())
    export = judged([*hourly(12, 11), *repeats, run(at(10), "Failed"), *repeated])
    text = "5 failed runs among its last 11, 1 of them not repeated"
    assert export.notes[0].message == text


def test_trap_15_62_a_billing_failure_is_named_as_such() -> None:
    runs = hourly(12, status="FailedBilling", finished_at=None, latest_error=None)
    export = judged([*runs, *hourly(11)])
    assert export.state is State.FAILING
    assert codes(export) == ["billing-limit"]


def test_a_pause_of_three_days_counts_its_missed_runs() -> None:
    paused = {"paused": True, "last_paused_at": "2026-06-07T12:40:00Z"}
    export = judged([run(at(12, 7))], **paused)
    assert export.state is State.PAUSED
    assert export.paused_since == at(12 + 40 / 60, 7)
    assert export.missed == 72
    assert export.next_run is None
    assert not export.paused_by_service
    assert export.notes[0].message == "72 runs missed"


def test_a_pause_without_a_time_is_unknown() -> None:
    export = judged([run(at(12, 7))], paused=True, last_paused_at=None)
    assert export.missed is None
    assert codes(export) == ["paused"]


def test_a_pause_by_an_update_leaves_the_time_of_an_earlier_pause() -> None:
    earlier = {"paused": True, "last_paused_at": "2026-06-01T12:40:00Z"}
    export = judged([run(at(12, 7))], **earlier)
    assert (export.state, export.paused_since, export.missed) == (State.PAUSED, None, None)
    assert codes(export) == ["paused"]
    # A backfill runs also while an export is paused.
    assert judged([run(at(12, 7), backfill="b1")], **earlier).paused_since is not None


_ENDED = {"finished_at": "2026-06-10T12:14:00Z"}
_AT_ONCE = "2026-06-10T12:15:00Z"


@pytest.mark.parametrize(
    ("runs", "since", "state"),
    [
        pytest.param(["Failed"] * 3, _AT_ONCE, State.FAILING, id="at once"),
        pytest.param(["Failed"] * 3, None, State.FAILING, id="unknown time"),
        pytest.param(["Failed"] * 3, "2026-06-01T12:15:00Z", State.FAILING, id="earlier pause"),
        pytest.param(["Failed"] * 3, "2026-06-10T12:25:00Z", State.PAUSED_UNKNOWN, id="later"),
        pytest.param(["Failed"] * 2, _AT_ONCE, State.PAUSED_UNKNOWN, id="two"),
        pytest.param(["Failed"], None, State.PAUSED_UNKNOWN, id="one"),
        pytest.param(["FailedBilling"] * 3, _AT_ONCE, State.PAUSED, id="billing"),
        pytest.param(["Cancelled", *["Failed"] * 3], _AT_ONCE, State.FAILING, id="cancelled"),
        pytest.param(["Running", *["Failed"] * 3], _AT_ONCE, State.FAILING, id="running"),
        pytest.param(["Completed", *["Failed"] * 3], _AT_ONCE, State.PAUSED, id="completed"),
        pytest.param([], _AT_ONCE, State.PAUSED, id="no run"),
    ],
)
def test_m2_the_runs_and_the_time_of_a_pause_decide_who_paused(
    runs: list[str], since: str | None, state: State
) -> None:
    """M2: an export that the service paused after failures is failing."""
    failed = [run(at(12 - number), status, **_ENDED) for number, status in enumerate(runs)]
    export = judged([*failed, *hourly(7)], paused=True, last_paused_at=since)
    assert export.state is state
    assert export.paused_by_service == (state is State.FAILING)
    assert export.is_any_of({State.FAILING}) == (state is not State.PAUSED)
    failures = f"{runs.count('Failed')} failures"
    words = {
        State.FAILING: f"paused by the service after {failures}: access denied",
        State.PAUSED_UNKNOWN: "paused, cause unknown; its last run failed: access denied",
    }
    if state in words:
        assert export.notes[0].message == words[state]


def test_m2_a_backfill_of_a_pause_by_the_service_ends_no_failure() -> None:
    """M2: the export still does not run."""
    failed = [run(at(hour), "Failed", **_ENDED) for hour in (12, 11, 10)]
    repeat = run(at(12), backfill="b", finished_at="2026-06-10T12:29:00Z")
    export = judged([repeat, *failed, *hourly(9)], paused=True, last_paused_at=_AT_ONCE)
    assert (export.state, export.failures) == (State.FAILING, 0)
    assert export.notes[0].message == "paused by the service after failures"


def test_ticks_of_a_pause_that_ended_do_not_lag() -> None:
    runs = [run(at(12, 7))]
    body = {"last_paused_at": "2026-06-07T12:40:00Z", "last_updated_at": "2026-06-10T12:30:00Z"}
    assert judged(runs, **body).state is State.OK
    later = judged(runs, now=at(14.5), **body)
    assert later.state is State.LAGGING
    assert later.lag == timedelta(hours=1.5)


def test_an_export_that_never_ran_has_its_first_tick() -> None:
    export = judged([], created_at="2026-06-10T12:35:00Z")
    assert export.state is State.NEVER_RUN
    assert export.notes[0].message == "its first run is at 2026-06-10 13:00 UTC"
    overdue = judged([], created_at="2026-06-10T10:35:00Z")
    assert overdue.state is State.LAGGING
    assert overdue.lag == timedelta(hours=1, minutes=40)
    assert codes(overdue) == ["no-run"]


def test_trap_15_54_a_day_of_23_hours_lags_by_the_hours_that_passed() -> None:
    """In Berlin, 28 March 2027 begins at 23:00 UTC and ends at 22:00 UTC."""
    ends = [datetime(2027, 3, day, 23, tzinfo=UTC) for day in (27, 26, 25)]
    body = {"interval": "day", "timezone": "Europe/Berlin"}
    end = datetime(2027, 3, 28, 22, tzinfo=UTC)
    runs = [run(moment) for moment in ends]
    assert judged(runs, now=end + timedelta(minutes=20), **body).state is State.OK
    late = judged(runs, now=end + timedelta(hours=2), **body)
    assert (late.state, late.lag) == (State.LAGGING, timedelta(hours=2))
    assert late.next_run == end + timedelta(days=1)
    assert judged([run(end), *runs], now=end + timedelta(hours=2), **body).state is State.OK


def test_trap_15_56_an_export_past_its_end_is_ended() -> None:
    end = "2026-06-09T12:00:00Z"
    export = judged([run(at(12, 9))], end_at=end)
    assert (export.state, export.lag, export.next_run) == (State.ENDED, None, None)
    assert export.notes[0].message == "end_at 2026-06-09 12:00 UTC has passed"
    behind = judged([run(at(10, 9))], end_at=end)
    assert behind.notes[0].message.endswith("passed, and its last intervals are not exported")


def test_trap_15_57_after_a_change_of_the_interval_coverage_is_judged_by_time() -> None:
    """A daily export that became hourly at noon has exported everything up to its last day."""
    daily = run(at(0), data_interval_start=at(0, 9).isoformat())
    export = judged([run(at(12)), daily])
    assert export.state is State.OK


def test_a_run_from_the_beginning_of_time_counts_by_its_end() -> None:
    assert judged([run(at(12), data_interval_start=None)]).state is State.OK


@pytest.mark.parametrize(
    "body",
    [
        {"interval": "fortnight"},
        {"interval": "day", "timezone": "Mars/Olympus"},
        {"end_at": "soon"},
        {"latest_runs": [{"status": "Completed"}]},
        {"latest_runs": [{"id": "r1", "records_completed": "many"}]},
        {"latest_runs": "none"},
    ],
)
def test_what_cannot_be_read_is_unknown_and_not_ok(body: dict[str, Any]) -> None:
    fields = {"interval": "hour", "created_at": MADE, "latest_runs": [], **body}
    live = LiveObject("batch_export", "e1", "Lake", fields, "1")
    export = status_of(target(live), Dialect.V2026, NOW)
    assert export.state is State.UNKNOWN
    assert codes(export) == ["unreadable"]


def test_the_worst_is_first() -> None:
    failing = judged([*hourly(11, 12, status="Failed"), *hourly(10)])
    worse = judged([*hourly(10, 11, 12, status="Failed"), *hourly(9)])
    lagging = judged(hourly(9))
    paused = judged(hourly(12), paused=True)
    fine = judged(hourly(11, 12))
    ordered = worst_first([fine, paused, lagging, failing, worse])
    assert ordered == (worse, failing, lagging, paused, fine)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=59), "0 min"),
        (timedelta(minutes=40), "40 min"),
        (timedelta(hours=6), "6 h"),
        (timedelta(hours=1, minutes=40), "1 h 40 min"),
        (timedelta(hours=47), "47 h"),
        (timedelta(days=3), "3 d"),
    ],
)
def test_durations_are_rounded_down(duration: timedelta, text: str) -> None:
    assert rough_duration(duration) == text
