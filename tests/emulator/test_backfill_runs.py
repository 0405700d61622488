"""What backfills run: ranges, order, statuses, progress, data (service.md, 8.2 and 8.3)."""

from __future__ import annotations

import pytest

from tests.emulator.facts import OLD, REAL, Api, fact, invalid
from tests.emulator.operations import (
    END,
    START,
    backfill,
    backfills,
    begun,
    intervals,
    no_op,
    of,
    outcomes,
    runs,
    set_clock,
    settings,
)


@fact(
    "8.2",
    "runs start at the start of the range, aligned or not; an incomplete last interval is dropped",
)
def test_the_runs_of_a_backfill(api: Api) -> None:
    export = api.create()
    begun(api, export, "2026-10-01T10:00:00Z", "2026-10-01T12:20:00Z")
    begun(api, export, "2026-10-01T20:10:00Z", "2026-10-01T21:30:00Z")
    api.emulator.advance(minutes=20)
    assert intervals(api, export) == [
        ("2026-10-01T10:00:00Z", "2026-10-01T11:00:00Z"),
        ("2026-10-01T11:00:00Z", "2026-10-01T12:00:00Z"),
        ("2026-10-01T20:10:00Z", "2026-10-01T21:10:00Z"),
    ]


@fact("8.2", "runs of a backfill execute one after another, also while the export is paused")
def test_one_run_after_another(api: Api) -> None:
    outcomes(api, {"match": {"nth": 1}, "seconds": 600}, {"match": {}, "seconds": 60})
    export = api.create(paused=True)
    begun(api, export)
    api.emulator.advance(minutes=9)
    assert len(runs(api, export)) == 1
    api.emulator.advance(minutes=5)
    done = sorted(runs(api, export), key=lambda run: run["created_at"])
    assert len(done) == 3
    assert done[0]["finished_at"] < done[1]["created_at"]
    assert api.get(export)["paused"] is True


@fact("8.2", "days follow local time and have 23 to 25 hours", "2026")
def test_days_of_a_backfill(api: Api) -> None:
    export = api.create(interval="day", timezone="Europe/Berlin")
    begun(api, export, "2026-03-28", "2026-03-31")
    api.emulator.advance(minutes=30)
    assert intervals(api, export) == [
        ("2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z"),
        ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"),
    ]


@fact("8.3", "a backfill continues after a failed run and ends Completed", *REAL)
def test_a_failing_run_in_a_backfill(api: Api) -> None:
    outcomes(
        api,
        {"match": {"nth": 2}, "status": "Failed"},
        {"match": {}, "status": "Completed", "records": 10},
    )
    export = api.create(**no_op())
    begun(api, export)
    api.emulator.advance(minutes=20)
    row = backfills(api, export)[0]
    assert row["status"] == "Completed"
    assert row["progress"] == {"total_runs": 3, "finished_runs": 3, "progress": 1.0}
    own = [run for run in runs(api, export) if run["backfill"] == row["id"]]
    assert sorted(run["status"] for run in own) == ["Completed", "Completed", "Failed"]
    if api.dialect == "2026":
        assert row["total_records_count"] == 20


@fact("8.3", "a backfill is Starting while it estimates, then Running, then Completed", *REAL)
def test_the_statuses_of_a_backfill(api: Api) -> None:
    settings(api, backfill_estimate_seconds=60)
    outcomes(api, {"match": {}, "seconds": 100})
    export = api.create(**no_op())
    begun(api, export)
    row = backfills(api, export)[0]
    assert row["status"] == ("Starting" if api.dialect == "2026" else "Running")
    assert row["progress"] == {"total_runs": 3, "finished_runs": 0, "progress": 0.0}
    assert row["finished_at"] is None
    api.emulator.advance(seconds=165)
    row = backfills(api, export)[0]
    assert row["status"] == "Running"
    assert row["progress"] == {"total_runs": 3, "finished_runs": 1, "progress": 0.3}
    api.emulator.advance(minutes=6)
    row = backfills(api, export)[0]
    assert row["status"] == "Completed"
    assert row["finished_at"] is not None


@fact(
    "8.1", "cancel answers 200 until the backfill ends, then 400; 2026 ends its runs at once", *REAL
)
def test_cancelling_a_backfill(api: Api) -> None:
    outcomes(api, {"match": {}, "status": "Running"})
    export = api.create(**no_op())
    begun(api, export)
    api.emulator.advance(seconds=30)
    cancel = of(api, export, f"backfills/{backfills(api, export)[0]['id']}/cancel/")
    assert api.call("POST", cancel, {}).json() == {"cancelled": True}
    row = backfills(api, export)[0]
    assert (row["status"], row["progress"]) == ("Cancelled", None)
    now = "Cancelled" if api.dialect == "2026" else "Running"
    assert [run["status"] for run in runs(api, export)] == [now]
    detail = invalid(api.call("POST", cancel, {}))
    assert detail == "Cannot cancel a backfill that is in 'Cancelled' status"
    api.emulator.advance(minutes=30)
    assert [run["status"] for run in runs(api, export)] == ["Cancelled"]


@fact("7.4", "a backfill waits for a run of another one until that run ends or is cancelled", *REAL)
def test_waiting_for_a_run_of_another_backfill(api: Api) -> None:
    outcomes(api, {"match": {"times": 1}, "status": "Running"}, {"match": {}, "seconds": 60})
    export = api.create(**no_op())
    begun(api, export, "2026-10-01T00:00:00Z", "2026-10-01T03:00:00Z")
    api.emulator.advance(seconds=30)
    begun(api, export, "2026-10-01T00:00:00Z", "2026-10-01T02:00:00Z")
    api.emulator.advance(minutes=30)
    waiting, first = backfills(api, export)
    assert (waiting["status"], first["status"], len(runs(api, export))) == ("Running", "Running", 1)
    api.call("POST", of(api, export, f"backfills/{first['id']}/cancel/"), {})
    api.emulator.advance(minutes=5)
    waiting, first = backfills(api, export)
    assert (waiting["status"], first["status"]) == ("Completed", "Cancelled")
    last, cancelled = runs(api, export)
    assert (cancelled["status"], cancelled["backfill"]) == ("Cancelled", first["id"])
    assert (last["status"], last["backfill"]) == ("Completed", waiting["id"])
    assert last["data_interval_start"] == "2026-10-01T01:00:00Z"


@fact("7.3", "the schedule is deleted a week after end_at; a backfill then ends Failed", *REAL)
def test_a_backfill_without_a_schedule(api: Api) -> None:
    export = api.create(**no_op(end_at="2026-09-01T00:00:00Z"))
    begun(api, export)
    api.emulator.advance(minutes=1)
    row = backfills(api, export)[0]
    assert (row["status"], row["progress"]) == ("Failed", None)
    assert runs(api, export) == []


# Where the data begins


@fact("8.2", "leading intervals without data make no runs; adjusted_start_at is their end", "2026")
def test_leading_intervals_without_data(api: Api) -> None:
    settings(api, first_data_at="2026-10-01T02:20:00Z")
    export = api.create()
    begun(api, export, START, "2026-10-01T04:00:00Z")
    api.emulator.advance(minutes=20)
    assert [start for start, _ in intervals(api, export)] == [
        "2026-10-01T02:00:00Z",
        "2026-10-01T03:00:00Z",
    ]
    row = backfills(api, export)[0]
    assert (row["start_at"], row["adjusted_start_at"]) == (START, "2026-10-01T02:00:00Z")
    assert row["progress"]["total_runs"] == 2


@fact("8.2", "an adjusted start can lie before an unaligned start", "2026")
def test_an_adjusted_start_before_the_start(api: Api) -> None:
    export = api.create()
    begun(api, export, "2026-10-01T00:30:00Z", "2026-10-01T01:30:00Z")
    api.emulator.advance(minutes=20)
    assert backfills(api, export)[0]["adjusted_start_at"] == START
    assert intervals(api, export) == [("2026-10-01T00:30:00Z", "2026-10-01T01:30:00Z")]


@pytest.mark.parametrize("first", ["never", "2026-10-05T00:00:00Z"])
@fact("8.1", "a range without data ends Completed, with 0 records and no runs", "2026")
def test_a_range_without_data(api: Api, first: str) -> None:
    settings(api, first_data_at=first)
    export = api.create()
    begun(api, export)
    api.emulator.advance(minutes=20)
    row = backfills(api, export)[0]
    assert (row["status"], row["total_records_count"]) == ("Completed", 0)
    assert row["progress"] == {"total_runs": 0, "finished_runs": 0, "progress": 1.0}
    assert runs(api, export) == []


@fact(
    "8.1", "older servers refuse a range without data, and move the start to the first data", *OLD
)
def test_ranges_without_data_in_older_servers(api: Api) -> None:
    export = api.create(**no_op())
    settings(api, first_data_at="never")
    detail = invalid(backfill(api, export, START, END))
    assert detail == "There is no data to backfill for this model."
    settings(api, first_data_at="2026-10-01T01:20:00Z")
    early = backfill(api, export, "2026-09-01T00:00:00Z", START)
    assert "contains no data. The earliest possible" in invalid(early)
    answer = begun(api, export)
    api.emulator.advance(minutes=20)
    assert intervals(api, export)[0][0] == "2026-10-01T01:00:00Z"
    if api.dialect == "2025":
        assert "2026-10-01T01:00:00+00:00" in answer["backfill_id"]
        assert backfills(api, export)[0]["start_at"] == "2026-10-01T01:00:00Z"


@fact("1.7", "unpause can backfill from last_paused_at, which is not aligned")
def test_unpausing_with_a_backfill(api: Api) -> None:
    export = api.create()
    api.call("POST", of(api, export, "pause/"), {})
    set_clock(api, "2026-10-07T15:30:00Z")
    api.call("POST", of(api, export, "unpause/"), {"backfill": True})
    api.emulator.advance(minutes=29)
    made = intervals(api, export)
    assert len(made) == 5
    assert made[0][0].startswith("2026-10-07T10:20:00")
    assert made[0][1].startswith("2026-10-07T11:20:00")
    if api.dialect == "2026":
        answer = api.call("POST", of(api, export, "unpause/"), {"backfill": "x"})
        invalid(answer, "backfill")
