"""Runs: windows, statuses, retry and cancel (service.md, 2 and 7).

tests/integration/test_runs_and_logs.py has the rules of outcomes.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.emulator.facts import Api, fact, refused
from tests.emulator.operations import (
    get,
    intervals,
    of,
    outcomes,
    runs,
    set_clock,
    statuses,
)


def follow(api: Api, link: str) -> dict[str, Any]:
    parts = urlsplit(link)
    return get(api, f"{parts.path}?{parts.query}")


@fact(
    "2", "every interval makes one run; an export shows its ten latest, newest first", rules=(25,)
)
def test_runs_appear(api: Api) -> None:
    export, idle = api.create(), api.create(name="idle", paused=True)
    assert runs(api, export) == []
    api.emulator.advance(hours=30, minutes=5)
    listed = {item["id"]: item for item in get(api, api.project)["results"]}
    appeared = runs(api, export, "?after=-90d")
    assert len(appeared) == 30
    assert appeared[0]["data_interval_end"] > appeared[-1]["data_interval_end"]
    for shown in (api.get(export), listed[export["id"]]):
        latest = [run["id"] for run in shown["latest_runs"]]
        assert latest == [run["id"] for run in appeared[:10]]
    assert listed[idle["id"]]["latest_runs"] == []


@fact("2", "runs have stable cursor pages of 100 without limit")
def test_cursor_pages(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=150)
    first = get(api, of(api, export, "runs/?limit=3"))
    assert (len(first["results"]), first["previous"]) == (100, None)
    second = follow(api, first["next"])
    assert (len(second["results"]), second["next"]) == (50, None)
    assert follow(api, second["previous"])["results"] == first["results"]
    api.emulator.advance(hours=3)
    second = follow(api, first["next"])
    ids = [run["id"] for page in (first, second) for run in page["results"]]
    assert len(ids) == len(set(ids)) == 150


@fact("2", "runs older than seven days are visible only on request, also by id", rules=(26,))
def test_the_window(api: Api) -> None:
    export = api.create(interval="day")
    api.emulator.advance(days=20)
    whole = runs(api, export, "?after=-90d")
    assert len(whole) == 20
    assert len(runs(api, export)) == (20 if api.dialect == "interface" else 7)
    oldest = of(api, export, f"runs/{whole[-1]['id']}/")
    old = api.dialect == "interface"
    assert api.call("GET", oldest).status_code == (200 if old else 404)
    assert api.call("GET", f"{oldest}?after=-90d").status_code == 200


@fact("2", "each ordering has its own window, which includes the interval's end")
def test_windows_by_interval(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=6)
    query = "?ordering=data_interval_start&start=2026-10-07T11:00:00Z&end=2026-10-07T13:00:00Z"
    window = [
        ("2026-10-07T11:00:00Z", "2026-10-07T12:00:00Z"),
        ("2026-10-07T12:00:00Z", "2026-10-07T13:00:00Z"),
    ]
    assert intervals(api, export, f"{query}&after=2030-01-01T00:00:00Z") == window
    ordered = runs(api, export, query.replace("=data", "=-data"))
    assert [run["data_interval_end"] for run in ordered] == [end for _, end in reversed(window)]
    assert len(runs(api, export, "?start=2030-01-01T00:00:00Z")) == 6


@fact("2", "older servers ignore the status filter")
def test_the_status_filter(api: Api) -> None:
    outcomes(api, {"match": {"nth": 2}, "status": "Failed"}, {"match": {}, "status": "Completed"})
    export = api.create()
    api.emulator.advance(hours=4)
    query = "?status=Failed&status=Running"
    if api.dialect == "2026":
        assert [run["status"] for run in runs(api, export, query)] == ["Failed"]
        answer = api.call("GET", of(api, export, "runs/?status=Failed&status=Lost"))
        refused(answer, 400, "invalid_choice", "status__1")
    else:
        assert len(runs(api, export, query)) == 4


@fact("7.1", "a run is Starting, then Running, then ended; it can stay Running for days")
def test_a_run_goes_from_starting_to_its_end(api: Api) -> None:
    outcomes(
        api,
        {"match": {"nth": 1}, "status": "Completed", "seconds": 60},
        {"match": {"nth": 1}, "status": "Running"},
    )
    export = api.create()
    states = set()
    set_clock(api, "2026-10-07T11:00:00Z")
    for _ in range(100):
        api.emulator.advance(seconds=1)
        states |= {run["status"] for run in runs(api, export)}
    assert states == {"Starting", "Running", "Completed"}
    api.emulator.advance(days=3)
    assert statuses(api, export)[1] == "Running"
    assert runs(api, export, "?after=-90d")[-2]["finished_at"] is None
