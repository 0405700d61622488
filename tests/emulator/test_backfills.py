"""Backfills: bodies, answers, limits and rows and their runs (service.md, 1.8 and 8)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.emulator.facts import ALL, NEWEST, OLD, REAL, YEAR, Api, fact, facts, invalid, refused
from tests.emulator.operations import (
    END,
    START,
    backfill,
    backfill_path,
    backfills,
    begun,
    get,
    no_op,
    of,
    outcomes,
    runs,
    set_clock,
    settings,
)


def at(text: str) -> str | None:
    """A time of 1 October, or a whole time, or none (`-`)."""
    return None if text == "-" else f"2026-10-01T{text}:00Z" if text[2:3] == ":" else text


@fact("1.8", "backfills have two paths and three kinds of answers", rules=(28, 43))
def test_paths_and_answers_of_backfills(api: Api) -> None:
    export = api.create()
    single = api.call("POST", of(api, export, "backfill/"), {"start_at": START, "end_at": END})
    later = {"start_at": END, "end_at": at("04:00")}
    several = api.call("POST", of(api, export, "backfills/"), later)
    if api.dialect == "2026":
        refused(single, 404, "not_found")
        assert several.status_code == 201
        assert backfills(api, export)[0]["id"] == several.json()["backfill_id"]
    elif api.dialect == "2025":
        assert single.status_code == several.status_code == 200
        assert single.json()["backfill_id"].startswith(f"{export['id']}-Backfill-2026-10-01")
    else:
        assert single.json()["id"] == export["id"]
        refused(several, 404, "not_found")


@fact("8.1", "a range without an end, and one that is running, crash real servers", *REAL)
def test_crashes_of_backfills(api: Api) -> None:
    """2025 answers the id of the workflow, with START and END for open bounds."""
    assert backfill(api, api.create(), START, None).status_code == 500
    export = api.create(**no_op())
    first = begun(api, export, "2026-10-01T02:00:00+02:00", "2026-10-01T05:00:00+02:00")
    assert backfill(api, export, START, END).status_code == 500
    if api.dialect == "2025":
        base, zone = f"{export['id']}-Backfill-", "00:00+00:00"
        start, end = f"2026-10-01T00:{zone}", f"2026-10-01T03:{zone}"
        assert first == {"backfill_id": f"{base}{start}-{end}"}
        assert begun(api, export, START, None) == {"backfill_id": f"{base}{start}-END"}
        assert begun(api, export, None, END) == {"backfill_id": f"{base}START-{end}"}


NO_DATA = {
    "status": "Completed",
    "total_records_count": 0,
    "progress": {"total_runs": 0, "finished_runs": 0, "progress": 1.0},
}
OPEN = {"end_at": None, "status": "Completed"}
BERLIN = {"interval": "day", "timezone": "Europe/Berlin"}
ENDED, FAILED = no_op(end_at="2026-09-01T00:00:00Z"), {"status": "Failed", "progress": None}
Range = tuple[dict[str, Any], str, str, str, dict[str, Any]]
"""Fields of an export, its first data, a range, the bounds of its runs, and fields of the row."""
RANGES: dict[tuple[str, ...], dict[str, Range]] = {
    ALL: {
        "an incomplete last interval is dropped": ({}, "", "10:00 12:20", "10:00 11:00 12:00", {}),
        "runs start at the start of the range": ({}, "", "20:10 21:30", "20:10 21:10", {}),
    },
    REAL: {
        "NoOp needs no end": (no_op(), "", "07:10 -", "07:10 08:10 09:10 10:10", OPEN),
        "a week after end_at the schedule is gone": (ENDED, "", "00:00 03:00", "", FAILED),
    },
    YEAR: {
        "the start moves to the first data": (
            *(no_op(), "01:20", "00:00 03:00"),
            *("01:00 02:00 03:00", {"start_at": at("01:00")}),
        ),
    },
    NEWEST: {
        "days follow local time and have 23 to 25 hours": (
            *(BERLIN, "", "2026-03-28 2026-03-31"),
            " ".join(f"2026-03-{day}:00:00Z" for day in ("27T23", "28T23", "29T22", "30T22")),
            {},
        ),
        "leading intervals without data make no runs": (
            *({}, "02:20", "00:00 04:00", "02:00 03:00 04:00"),
            {"start_at": START, "adjusted_start_at": at("02:00")},
        ),
        "an adjusted start can lie before an unaligned start": (
            *({}, "", "00:30 01:30", "00:30 01:30"),
            {"adjusted_start_at": START},
        ),
        "no data at all": ({}, "never", "00:00 03:00", "", NO_DATA),
        "data after the range": ({}, "09:00", "00:00 03:00", "", NO_DATA),
        "a week": (
            *({"interval": "week"}, "", "2026-W01-7 2026-W02-7"),
            *("2026-01-04T00:00:00Z 2026-01-11T00:00:00Z", {}),
        ),
    },
}


@facts("8.2", RANGES)
def test_the_runs_of_a_range(api: Api, row: Range) -> None:
    fields, first, bounds, expected, shown = row
    settings(api, first_data_at=at(first) if first else None)
    set_clock(api, "2026-10-01T10:20:00Z" if bounds.endswith("-") else "2026-10-07T10:20:00Z")
    export = api.create(**fields)
    begun(api, export, *map(at, bounds.split()))
    api.emulator.advance(minutes=30)
    made = sorted(runs(api, export), key=lambda run: run["data_interval_end"])
    times = list(map(at, expected.split()))
    found = [(run["data_interval_start"], run["data_interval_end"]) for run in made]
    assert found == list(pairwise(times))
    if shown:
        told = backfills(api, export)[0]
        assert {name: told[name] for name in shown} == shown


@fact("8.1", "older servers refuse a range without data, and have no limit", *OLD)
def test_ranges_without_data_in_older_servers(api: Api) -> None:
    export = api.create(**no_op())
    settings(api, first_data_at="never")
    detail = invalid(backfill(api, export, START, END))
    assert detail == "There is no data to backfill for this model."
    settings(api, first_data_at=at("01:20"))
    early = backfill(api, export, "2026-09-01T00:00:00Z", START)
    assert "contains no data. The earliest possible" in invalid(early)
    settings(api, backfill_limit=0)
    begun(api, export)


@fact("8.1", "daily and weekly exports require dates, weekly ones on their day", "2026")
def test_dates_of_daily_and_weekly_backfills(api: Api) -> None:
    daily = api.create(interval="day", timezone="US/Eastern", offset_hour=4)
    weekly = api.create(name="w", interval="week", offset_day=1)
    detail = invalid(backfill(api, daily, "2026-09-01T00:00:00Z", "2026-09-03"))
    assert "'2026-09-01T00:00:00Z' is not a valid ISO formatted date." in detail
    detail = invalid(backfill(api, weekly, "2026-09-06", "2026-09-14"))
    assert detail.endswith(
        "2026-09-06 is a Sunday but this batch export is configured to run weekly on Monday."
    )
    begun(api, daily, "20260101", "2026-W02-1")
    row = backfills(api, daily)[0]
    assert (row["start_at"], row["end_at"]) == ("2026-01-01T09:00:00Z", "2026-01-05T09:00:00Z")


@fact("8.1", "too many backfills answer 429", "2026", rules=(28, 42))
def test_too_many_backfills(api: Api) -> None:
    assert api.emulator.admin("GET", "settings")["backfill_limit"] == 100
    assert settings(api, backfill_limit=5)["backfill_limit"] == 5
    first, second = api.create(), api.create(name="second")
    for number in range(1, 5):
        begun(api, first, START, at(f"0{number}:00"))
    begun(api, second)
    answer = backfill(api, second, START, "2026-10-02T00:00:00Z")
    detail = refused(answer, 429, "too_many_concurrent_backfills")
    assert detail.startswith("This team already has 5 batch export backfills running.")
    assert (answer.json()["type"], "retry-after" in answer.headers) == ("server_error", False)


@fact("8.3", "a backfill is Starting while it estimates, then Running, then ended", *REAL)
def test_the_statuses_of_a_backfill(api: Api) -> None:
    """Cancel answers 200 until the backfill ends, then 400; 2026 ends its runs at once."""
    settings(api, backfill_estimate_seconds=60)
    outcomes(api, {"match": {"name": "Other"}, "status": "Running"}, {"match": {}, "seconds": 100})
    export = api.create(**no_op())
    begun(api, export)
    for minutes, status, finished in (
        (0, "Starting" if api.dialect == "2026" else "Running", 0),
        (2.75, "Running", 1),
        (6, "Completed", 3),
    ):
        api.emulator.advance(minutes=minutes)
        row = backfills(api, export)[0]
        share = {0: 0.0, 1: 0.3, 3: 1.0}[finished]
        progress = {"total_runs": 3, "finished_runs": finished, "progress": share}
        assert (row["status"], row["progress"]) == (status, progress)
        assert (row["finished_at"] is None) is (finished < 3)
    settings(api, backfill_estimate_seconds=0)
    export = api.create(name="Other", **no_op())
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


@fact("8.1", "a backfill can be read by its id, of its export", *REAL)
def test_reading_a_backfill(api: Api) -> None:
    export = api.create(**no_op())
    begun(api, export)
    row = backfills(api, export)[0]
    assert get(api, of(api, export, f"backfills/{row['id']}/")) == row
    added = {"total_records_count", "adjusted_start_at"}
    assert (set(row) & added == added) is (api.dialect == "2026")
    other = api.create(name="other", **no_op())
    refused(api.call("GET", of(api, other, f"backfills/{row['id']}/")), 404, "not_found")
    answer = api.call("POST", backfill_path(api, export), {}, key="phx_read")
    refused(answer, 403, "permission_denied")


@fact(
    "8.1", "a new backfill can answer 404 for some seconds, and counts for the limit after", "2026"
)
def test_a_row_that_appears_later(api: Api) -> None:
    settings(api, backfill_row_delay_seconds=90, backfill_limit=1)
    export = api.create()
    path = of(api, export, f"backfills/{begun(api, export)['backfill_id']}/")
    refused(api.call("GET", path), 404, "not_found")
    begun(api, export, START, "2026-10-02T00:00:00Z")
    api.emulator.advance(seconds=91)
    assert get(api, path)["status"] == "Starting"
    assert backfill(api, export, START, "2026-10-03T00:00:00Z").status_code == 429


@fact("8.1", "the list has cursor pages of 50, the newest first", *REAL)
def test_lists_of_backfills(api: Api) -> None:
    export = api.create(**no_op())
    for minute in range(51):
        begun(api, export, f"2026-10-01T00:{minute:02}:00Z", "2026-10-01T04:00:00Z")
    page = get(api, of(api, export, "backfills/"))
    assert len(page["results"]) == 50
    assert page["results"][0]["start_at"] == "2026-10-01T00:50:00Z"
    assert page["next"] is not None


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
