"""Backfills: bodies, answers, limits and rows (service.md, 1.8 and 8.1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import REAL, Api, fact, invalid, refused
from tests.emulator.operations import (
    END,
    START,
    backfill,
    backfill_path,
    backfills,
    begun,
    get,
    intervals,
    no_op,
    of,
    runs,
    settings,
)

# Answers and bodies


@fact("1.8", "backfills have two paths and three kinds of answers", rules=(28, 43))
def test_paths_and_answers_of_backfills(api: Api) -> None:
    export = api.create()
    sent = {"start_at": START, "end_at": END}
    single = api.call("POST", of(api, export, "backfill/"), sent)
    later = {"start_at": END, "end_at": "2026-10-01T04:00:00Z"}
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


@fact("1.10", "a backfill on the organization path answers the export; real servers crash")
def test_backfills_on_the_organization_path(api: Api) -> None:
    export = api.create(**no_op())
    path = f"{api.organization}batch_exports/{export['id']}/backfill/"
    answer = api.call("POST", path, {"start_at": START, "end_at": END})
    wanted = {"interface": 200, "2025": 500, "2026": 404}
    assert answer.status_code == wanted[api.dialect]
    if api.dialect == "interface":
        shown = {**answer.json(), "latest_runs": None}
        assert shown == {**api.get(export), "latest_runs": None}
        api.emulator.advance(minutes=30)
        assert len(intervals(api, export)) == 3


@fact("8.1", "2025 answers the workflow id, with START and END for open bounds", "2025")
def test_workflow_ids_of_2025(api: Api) -> None:
    export = api.create(**no_op())
    base = f"{export['id']}-Backfill-"
    hours = ("2026-10-01T00:00:00+00:00", "2026-10-01T03:00:00+00:00")
    answer = begun(api, export, "2026-10-01T02:00:00+02:00", "2026-10-01T05:00:00+02:00")
    assert answer == {"backfill_id": f"{base}{hours[0]}-{hours[1]}"}
    assert begun(api, export, START, None) == {"backfill_id": f"{base}{hours[0]}-END"}
    assert begun(api, export, None, END) == {"backfill_id": f"{base}START-{hours[1]}"}
    assert {row["start_at"] for row in backfills(api, export)} == {START, None}


@fact("8.1", "a backfill without a start makes one run from the beginning of the data in 2025")
def test_a_backfill_without_start(api: Api) -> None:
    export = api.create(**no_op())
    if api.dialect == "2026":
        detail = invalid(backfill(api, export, None, END))
        assert detail == "Backfilling from the beginning of time is not enabled for this team."
        return
    if api.dialect == "interface":
        # The document has no null bounds: the export's own creation takes the place of the start.
        assert backfill(api, export, None, None).status_code == 200
        return
    begun(api, export, None, "2000-01-01T00:00:00Z")
    api.emulator.advance(minutes=10)
    run = runs(api, export)[0]
    assert run["data_interval_start"] is None
    assert run["data_interval_end"] == "2000-01-01T00:00:00Z"
    assert runs(api, export, "?ordering=data_interval_start&start=-90y") == []
    row = backfills(api, export)[0]
    assert row["progress"] == {"total_runs": 1, "finished_runs": 1, "progress": 1.0}


@fact("8.1", "a missing end crashes, except for HTTP and NoOp", *REAL)
def test_a_backfill_without_end(api: Api) -> None:
    assert backfill(api, api.create(), START, None).status_code == 500
    export = api.create(name="n", **no_op())
    begun(api, export, "2026-10-07T07:10:00Z", None)
    api.emulator.advance(minutes=20)
    assert intervals(api, export) == [
        ("2026-10-07T07:10:00Z", "2026-10-07T08:10:00Z"),
        ("2026-10-07T08:10:00Z", "2026-10-07T09:10:00Z"),
        ("2026-10-07T09:10:00Z", "2026-10-07T10:10:00Z"),
    ]
    assert backfills(api, export)[0]["end_at"] is None
    assert backfills(api, export)[0]["status"] == "Completed"


@fact("1.8", "a second backfill of the same range crashes while the first runs", *REAL)
def test_the_same_range_twice(api: Api) -> None:
    export = api.create(**no_op())
    begun(api, export)
    assert backfill(api, export, START, END).status_code == 500
    api.emulator.advance(hours=1)
    begun(api, export)
    assert len(backfills(api, export)) == 2


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2026-01-01T00:00:00", "2026-01-01T02:00:00Z", "Input 2026-01-01T00:00:00 is naive."),
        ("yesterday", "2026-01-01T02:00:00Z", "Input yesterday is not a valid ISO formatted"),
        (7, "2026-01-01T02:00:00Z", "Input 7 is not a valid ISO formatted"),
        ("0001-01-01T00:00:00+14:00", "2026-01-01T02:00:00Z", "is not a valid ISO formatted"),
        ("2026-01-01T02:00:00Z", "2026-01-01T02:00:00Z", "'start_at' {order} 'end_at'"),
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "'start_at' {order} 'end_at'"),
        ("2026-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "is in the future"),
    ],
)
@fact("8.1", "invalid ranges answer 400 without a field", rules=(28,))
def test_invalid_ranges(api: Api, start: Any, end: str, text: str) -> None:
    detail = invalid(backfill(api, api.create(), start, end))
    order = "must be before" if api.dialect == "2026" else "happens after"
    assert text.format(order=order) in detail


@fact(
    "8.1", "daily and weekly exports require dates, weekly ones on their day", "2026", rules=(28,)
)
def test_dates_of_daily_and_weekly_backfills(api: Api) -> None:
    daily = api.create(interval="day", timezone="US/Eastern", offset_hour=4)
    weekly = api.create(name="w", interval="week", offset_day=1)
    detail = invalid(backfill(api, daily, "2026-09-01T00:00:00Z", "2026-09-03"))
    assert "'2026-09-01T00:00:00Z' is not a valid ISO formatted date." in detail
    eastern = api.create(name="t", interval="day", timezone="Asia/Tokyo")
    outside = backfill(api, eastern, "0001-01-01", "2026-09-01")
    assert "'0001-01-01' is not a valid" in invalid(outside)
    assert "expect only the date component" in detail
    begun(api, daily, "2026-09-01", "2026-09-03")
    row = backfills(api, daily)[0]
    assert (row["start_at"], row["end_at"]) == ("2026-09-01T08:00:00Z", "2026-09-03T08:00:00Z")
    detail = invalid(backfill(api, weekly, "2026-09-06", "2026-09-14"))
    assert detail == (
        "Input 2026-09-06 is not on the correct day of the week for this batch export. 2026-09-06 "
        "is a Sunday but this batch export is configured to run weekly on Monday."
    )
    begun(api, weekly, "2026-09-07", "2026-09-21")
    begun(api, daily, "20260101", "2026-W02-1")
    assert backfills(api, daily)[0]["end_at"] == "2026-01-05T09:00:00Z"


# Limit and scope


@fact(
    "8.1",
    "too many backfills of a project answer 429 without Retry-After, after a null start",
    "2026",
    rules=(28, 42),
)
def test_too_many_backfills(api: Api) -> None:
    assert settings(api, backfill_limit=5)["backfill_limit"] == 5
    first, second = api.create(), api.create(name="second")
    for hour in range(1, 5):
        begun(api, first, START, f"2026-10-01T0{hour}:00:00Z")
    begun(api, second)
    answer = backfill(api, second, START, "2026-10-02T00:00:00Z")
    detail = refused(answer, 429, "too_many_concurrent_backfills")
    assert answer.json()["type"] == "server_error"
    assert detail.startswith("This team already has 5 batch export backfills running.")
    assert "retry-after" not in answer.headers
    newest = backfills(api, second)[0]["id"]
    cancel = of(api, second, f"backfills/{newest}/cancel/")
    assert api.call("POST", cancel, {}).json() == {"cancelled": True}
    begun(api, second, START, "2026-10-02T00:00:00Z")
    settings(api, backfill_limit=0)
    export = api.create()
    invalid(backfill(api, export, None, "soon"))
    refused(backfill(api, export, "late", "soon"), 429, "too_many_concurrent_backfills")


@fact("8.1", "the limit of backfills is 100 by default; 2025 has no limit")
def test_the_default_limit(api: Api) -> None:
    assert api.emulator.admin("GET", "settings")["backfill_limit"] == 100
    settings(api, backfill_limit=1)
    export = api.create()
    begun(api, export)
    status = backfill(api, export, START, "2026-10-02T00:00:00Z").status_code
    assert (status == 429) is (api.dialect == "2026")


# Rows


@fact("8.1", "a backfill can be read by its id, in its project; elsewhere the list is empty", *REAL)
def test_reading_a_backfill(api: Api) -> None:
    export = api.create(**no_op())
    begun(api, export)
    row = backfills(api, export)[0]
    assert get(api, of(api, export, f"backfills/{row['id']}/")) == row
    added = {"total_records_count", "adjusted_start_at"}
    assert (set(row) & added == added) is (api.dialect == "2026")
    other = api.create(name="other", **no_op())
    refused(api.call("GET", of(api, other, f"backfills/{row['id']}/")), 404, "not_found")
    export = api.create(**no_op())
    begun(api, export)
    path = f"/api/projects/2/batch_exports/{export['id']}/backfills/"
    assert get(api, path)["results"] == []
    refused(api.call("POST", path, {"start_at": START, "end_at": END}), 404, "not_found")
    answer = api.call("POST", backfill_path(api, export), {}, key="phx_read")
    refused(answer, 403, "permission_denied")


@fact("8.1", "a new backfill can answer 404 for some seconds", "2026")
def test_a_row_that_appears_later(api: Api) -> None:
    settings(api, backfill_row_delay_seconds=90, backfill_limit=1)
    export = api.create()
    path = of(api, export, f"backfills/{begun(api, export)['backfill_id']}/")
    refused(api.call("GET", path), 404, "not_found")
    assert backfills(api, export) == []
    # The limit counts rows, so a fast series of requests passes.
    begun(api, export, START, "2026-10-02T00:00:00Z")
    api.emulator.advance(seconds=91)
    assert get(api, path)["status"] == "Starting"
    assert backfill(api, export, START, "2026-10-03T00:00:00Z").status_code == 429


@fact("8.1", "the list has cursor pages of 50, ordered by creation or start", *REAL)
def test_lists_of_backfills(api: Api) -> None:
    export = api.create(**no_op())
    for minute in range(51):
        begun(api, export, f"2026-10-01T00:{minute:02}:00Z", "2026-10-01T04:00:00Z")
    page = get(api, of(api, export, "backfills/"))
    assert len(page["results"]) == 50
    assert page["results"][0]["start_at"] == "2026-10-01T00:50:00Z"
    ordered = get(api, of(api, export, "backfills/?ordering=start_at"))
    assert ordered["results"][0]["start_at"] == "2026-10-01T00:00:00Z"
    assert ordered["next"] is not None
