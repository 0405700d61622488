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
MINUTES = timedelta(minutes=40)
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
    runs: Any, *, now: datetime = NOW, dialect: Dialect | None = Dialect.V2026, **body: Any
) -> ExportStatus:
    fields = {"interval": "hour", "created_at": MADE, "paused": False, "latest_runs": runs, **body}
    (kind,) = (kind for kind in all_kinds() if kind.name == "batch_export")
    live = LiveObject(kind.name, "e1", "Lake", fields, "1")
    target = Target(Address(kind.name, "lake"), kind, live, parent_name="Web")
    return status_of(target, dialect, now)


def hourly(*hours: int, status: str = "Completed", **fields: Any) -> list[dict[str, Any]]:
    return [run(at(hour), status, **fields) for hour in sorted(hours, reverse=True)]


def failed(*hours: int, **fields: Any) -> list[dict[str, Any]]:
    return hourly(*hours, status="Failed", **fields)


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


OK, LAGGING, FAILING, PAUSED = State.OK, State.LAGGING, State.FAILING, State.PAUSED
ENDED = {"finished_at": "2026-06-10T12:14:00Z"}
AT_ONCE = "2026-06-10T12:15:00Z"
SINCE = {"paused": True, "last_paused_at": "2026-06-07T12:40:00Z"}
EARLIER = {"paused": True, "last_paused_at": "2026-06-01T12:40:00Z"}
RESUMED = {"last_paused_at": "2026-06-07T12:40:00Z", "last_updated_at": "2026-06-10T12:30:00Z"}
OVER = {"end_at": "2026-06-09T12:00:00Z"}
PASSED = "end_at 2026-06-09 12:00 UTC has passed"
DAYS = [run(at(0, day)) for day in range(9, 3, -1)]
DAILY = {"interval": "day", "now": at(3)}
DONE, SPLIT = hourly(*range(3, 12)), {"data_interval_start": at(0, 9).isoformat()}
FULL_DAY = run(at(12), data_interval_start=at(12, 9).isoformat())
BERLIN = {"interval": "day", "timezone": "Europe/Berlin"}
SHORT_DAY = datetime(2027, 3, 28, 22, tzinfo=UTC)
"""Its end; it began at 23:00 UTC."""
BEFORE = [run(datetime(2027, 3, day, 23, tzinfo=UTC)) for day in (27, 26, 25)]
AGAIN = hourly(9, 8, 7, 6, created_at=at(12).isoformat())
CAUSE = [*hourly(12, 11), *AGAIN, *failed(10, 9, 8, 7, 6)]
FILLED = [
    run(at(12), backfill="b", finished_at="2026-06-10T12:29:00Z"),
    *failed(12, 11, 10, **ENDED),
    *hourly(9),
]
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "all shown runs failed": (
        *(failed(*range(3, 13)), {}),
        {"failures": 10, "all_failed": True, "lag": hours(9) + MINUTES, "lag_is_least": True},
    ),
    "trap_15_52_delayed": (DONE, {"now": at(12.3)}, {"state": OK}),
    "trap_15_52_overdue": (DONE, {"now": at(12.5)}, {"state": LAGGING, "lag": hours(0.5)}),
    "trap_15_52_days_of_2025": (DAYS, {**DAILY, "dialect": Dialect.V2025}, {"state": OK}),
    "trap_15_52_days_of_2026": (DAYS, DAILY, {"state": LAGGING}),
    "trap_15_49_running": ([run(at(12), "Running"), *DONE], {}, {"state": OK, "lag": MINUTES}),
    "trap_15_49_two_running": (
        *([*hourly(11, 12, status="Running"), *DONE[1:]], {}),
        {"state": LAGGING, "message": "2 runs in progress"},
    ),
    "trap_15_49_cancelled": ([run(at(12), "Cancelled"), *DONE], {}, {"state": LAGGING}),
    "trap_15_50_repeated": (
        *([*hourly(11, 12), *failed(11, 12), *hourly(10)], {}),
        {"state": OK, "unsettled": 0},
    ),
    # The newest run is the failed one, and an older run of the interval had exported it.
    "trap_15_50_exported_before": (
        *([*failed(12), *hourly(12, 11)], {}),
        {"state": OK, "failures": 0},
    ),
    "trap_15_50_in_a_day": ([FULL_DAY, *failed(11, 12)], {}, {"unsettled": 0}),
    "apply_p3_counted_as_drawn": (
        *(CAUSE, {}),
        {"message": "5 failed runs among its last 11, 1 of them not repeated"},
    ),
    "trap_15_62": (
        *([run(at(12), "FailedBilling", finished_at=None, latest_error=None), *hourly(11)], {}),
        {"state": FAILING, "codes": ["billing-limit"]},
    ),
    "a pause of three days": (
        *([run(at(12, 7))], SINCE),
        {"paused_since": at(12, 7) + MINUTES, "next_run": None, "message": "72 runs missed"},
    ),
    "a pause by an update leaves the time of an earlier one": (
        *([run(at(12, 7))], EARLIER),
        {"state": PAUSED, "paused_since": None, "missed": None, "codes": ["paused"]},
    ),
    "a backfill also runs while an export is paused": (
        *([run(at(12, 7), backfill="b1")], EARLIER),
        {"paused_since": at(12, 1) + MINUTES},
    ),
    "m2_a_backfill_ends_no_failure": (
        *(FILLED, {"paused": True, "last_paused_at": AT_ONCE}),
        {"state": FAILING, "failures": 0, "message": "paused by the service after failures"},
    ),
    "ticks of a pause that ended": ([run(at(12, 7))], RESUMED, {"state": OK}),
    "ticks since a pause that ended": (
        *([run(at(12, 7))], {**RESUMED, "now": at(14.5)}),
        {"state": LAGGING, "lag": hours(1.5)},
    ),
    "never run": (
        *([], {"created_at": "2026-06-10T12:35:00Z"}),
        {"state": State.NEVER_RUN, "message": "its first run is at 2026-06-10 13:00 UTC"},
    ),
    "never run, overdue": (
        *([], {"created_at": "2026-06-10T10:35:00Z"}),
        {"state": LAGGING, "lag": hours(1) + MINUTES, "codes": ["no-run"]},
    ),
    "trap_15_54_ok": (BEFORE, {**BERLIN, "now": SHORT_DAY + MINUTES / 2}, {"state": OK}),
    "trap_15_54_a_day_of_23_hours": (
        *(BEFORE, {**BERLIN, "now": SHORT_DAY + hours(2)}),
        {"state": LAGGING, "lag": hours(2), "next_run": SHORT_DAY + hours(24)},
    ),
    "trap_15_56_ended": (
        *([run(at(12, 9))], OVER),
        {"state": State.ENDED, "lag": None, "next_run": None, "message": PASSED},
    ),
    "trap_15_56_behind": (
        *([run(at(10, 9))], OVER),
        {"message": f"{PASSED}, and its last intervals are not exported"},
    ),
    # A daily export that became hourly at noon has exported everything up to its last day.
    "trap_15_57": ([run(at(12)), run(at(0), **SPLIT)], {}, {"state": OK}),
    **{
        f"cannot be read: {runs or body}": (
            *(runs, body),
            {"state": State.UNKNOWN, "codes": ["unreadable"]},
        )
        for runs, body in (
            *(([], {"interval": "fortnight"}), ([], {"end_at": "soon"}), ("none", {})),
            *(([{"status": "Completed"}], {}), ([{"id": "r1", "records_completed": "many"}], {})),
        )
    },
    **{
        f"trap_15_49_{interval}, {more}": (
            *([run(at(0), "Running", created_at=(NOW - limit - more).isoformat()), run(NOW)],),
            {"interval": interval},
            {"takes_long": bool(more)},
        )
        for interval, limit in (
            *(("every 5 minutes", hours(1 / 3)), ("day", hours(24)), ("week", hours(72))),
        )
        for more in (timedelta(0), timedelta(minutes=1))
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_state_of_an_export(case: str) -> None:
    runs, body, expected = CASES[case]
    export = judged(runs, **body)
    codes = [note.code for note in export.notes]
    told = {"codes": codes, "takes_long": "run-takes-long" in codes}
    if "message" in expected:
        told["message"] = export.notes[0].message
    assert {name: told.get(name, getattr(export, name, None)) for name in expected} == expected
    if expected.get("takes_long"):
        assert export.state is LAGGING


@pytest.mark.parametrize(
    ("runs", "since", "state"),
    [
        (["Failed"] * 3, None, State.FAILING),
        (["Failed"] * 3, "2026-06-10T12:25:00Z", State.PAUSED_UNKNOWN),
        (["Failed"] * 2, AT_ONCE, State.PAUSED_UNKNOWN),
        (["FailedBilling"] * 3, AT_ONCE, State.PAUSED),
        (["Cancelled", *["Failed"] * 3], AT_ONCE, State.FAILING),
        (["Completed", *["Failed"] * 3], AT_ONCE, State.PAUSED),
        ([], AT_ONCE, State.PAUSED),
    ],
)
def test_m2_runs_and_times_decide_who_paused(
    runs: list[str], since: str | None, state: State
) -> None:
    """M2: an export that the service paused after failures is failing."""
    ended = [run(at(12 - number), status, **ENDED) for number, status in enumerate(runs)]
    export = judged([*ended, *hourly(7)], paused=True, last_paused_at=since)
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


def test_the_worst_is_first() -> None:
    failing, worse = judged([*failed(12, 11), *hourly(10)]), judged([*failed(12, 11, 10)])
    lagging, fine = judged(hourly(9)), judged(hourly(11, 12))
    paused = judged(hourly(12), paused=True)
    ordered = worst_first([fine, paused, lagging, failing, worse])
    assert ordered == (worse, failing, lagging, paused, fine)


def test_durations_are_rounded_down() -> None:
    shown = {0.01: "< 1 min", 0.02: "1 min", 5 / 3: "1 h 40 min", 47: "47 h", 72: "3 d"}
    assert {count: rough_duration(hours(count)) for count in shown} == shown
