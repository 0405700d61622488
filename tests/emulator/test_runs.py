"""Facts about runs, logs and backfills: service-facts 1.8, 2 and 3. The clock is moved."""

from __future__ import annotations

import pytest

from tests.emulator.facts import REAL, Api, fact, refused


def of(api: Api, export: dict, rest: str) -> str:
    return f"{api.project}{export['id']}/{rest}"


def runs(api: Api, export: dict, query: str = "") -> list[dict]:
    answer = api.call("GET", of(api, export, f"runs/{query}"))
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"next", "previous", "results"}
    return answer.json()["results"]


@pytest.mark.parametrize(
    ("interval", "hours", "least", "most"),
    [("hour", 5, 5, 5), ("day", 72, 3, 3), ("week", 24 * 15, 2, 3)],
)
@fact("2", "runs appear as time goes on, one an interval", traps=(25,))
def test_runs_appear(api: Api, interval: str, hours: int, least: int, most: int) -> None:
    export = api.create(interval=interval)
    assert runs(api, export) == []
    api.emulator.advance(hours=hours, minutes=5)
    found = runs(api, export, "?after=-90d")
    assert least <= len(found) <= most
    assert found[0]["data_interval_end"] > found[-1]["data_interval_end"]
    latest = api.get(export)["latest_runs"]
    assert [each["id"] for each in latest] == [each["id"] for each in found[:10]]


@fact("2", "at most ten latest runs")
def test_latest_runs(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=30)
    assert len(api.get(export)["latest_runs"]) == 10


@fact("2", "a paused export misses its runs; start_at and end_at bound them", traps=(20,))
def test_when_no_runs_are_made(api: Api) -> None:
    paused = api.create(name="paused", paused=True)
    later = api.create(name="later", start_at="2100-01-01T00:00:00Z")
    ended = api.create(name="ended", end_at="2001-01-01T00:00:00Z")
    api.emulator.advance(hours=5)
    assert [runs(api, each) for each in (paused, later, ended)] == [[], [], []]
    api.call("POST", of(api, paused, "unpause/"), {})
    api.emulator.advance(hours=3)
    assert 2 <= len(runs(api, paused)) <= 3


@fact("2", "the same seed gives the same history")
def test_history_is_repeatable(api: Api) -> None:
    export = api.create()
    api.emulator.admin("POST", "snapshots/before")
    api.emulator.advance(hours=40)
    first = runs(api, export, "?after=-90d")
    api.emulator.admin("POST", "snapshots/before/restore")
    assert runs(api, export) == []
    api.emulator.advance(hours=40)
    again = runs(api, export, "?after=-90d")
    keys = ("id", "status", "records_completed", "data_interval_end")
    assert [[each[key] for key in keys] for each in again] == [
        [each[key] for key in keys] for each in first
    ]
    assert {"Completed", "Failed"} >= {each["status"] for each in first}


@fact("2", "a run starts, runs and ends; it can be cancelled while it runs")
def test_a_run_in_flight(api: Api) -> None:
    export = api.create(**api.to("NoOp"))
    now = api.emulator.admin("GET", "clock")["now"]
    body = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2026-01-01T03:00:00Z"}
    path = "backfills/" if api.dialect == "2026" else "backfill/"
    assert api.call("POST", of(api, export, path), body).status_code in (200, 201)
    api.emulator.advance(seconds=10)
    found = runs(api, export)
    assert {each["status"] for each in found} <= {"Starting", "Running", "Completed"}
    if found:
        run = of(api, export, f"runs/{found[-1]['id']}/")
        if api.call("GET", run).json()["finished_at"] is None:
            assert api.call("POST", f"{run}cancel/", {}).json() == {"cancelled": True}
            assert api.call("GET", run).json()["status"] == "Cancelled"
            assert api.call("POST", f"{run}cancel/", {}).status_code == 400
    api.emulator.advance(hours=1)
    assert len(runs(api, export, f"?after={now}")) >= 3


@fact(
    "2", "cursor pages of 100; limit has no effect; a broken cursor is 404; odd orders are ignored"
)
def test_cursor_pages(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=150)
    first = api.call("GET", of(api, export, "runs/?limit=3")).json()
    assert len(first["results"]) == 100
    second = api.call(
        "GET", first["next"].partition("/api/")[1] + first["next"].partition("/api/")[2]
    )
    assert second.json()["previous"] is not None
    assert len(second.json()["results"]) >= 40
    refused(api.call("GET", of(api, export, "runs/?cursor=broken")), 404, "not_found")
    ordered = runs(api, export, "?ordering=data_interval_start")
    assert ordered[0]["data_interval_start"] < ordered[-1]["data_interval_start"]
    assert runs(api, export, "?ordering=nonsense")[0]["id"] == first["results"][0]["id"]


@fact("2", "runs older than seven days are invisible, even by id, unless asked for", traps=(26,))
def test_the_window(api: Api) -> None:
    export = api.create(interval="day")
    api.emulator.advance(days=20)
    whole = runs(api, export, "?after=-90d")
    assert len(whole) >= 19
    shown = runs(api, export)
    assert (len(shown) <= 8) is (api.dialect != "interface")
    oldest = of(api, export, f"runs/{whole[-1]['id']}/")
    assert api.call("GET", oldest).status_code == (200 if api.dialect == "interface" else 404)
    assert api.call("GET", f"{oldest}?after=-90d").status_code == 200


@fact("3", "logs: newest first, filtered, in two shapes; refused to keys in 2025", traps=(27, 40))
def test_export_logs(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=4)
    answer = api.call("GET", of(api, export, "logs/"))
    if api.dialect == "2025":
        refused(answer, 403, "permission_denied")
        return
    entries = answer.json()["results"]
    assert entries[0]["timestamp"] >= entries[-1]["timestamp"]
    old = {"team_id", "batch_export_id", "run_id", "timestamp", "level", "message"}
    new = {"log_source_id", "instance_id", "timestamp", "level", "message"}
    assert set(entries[0]) == (old if api.dialect == "interface" else new)
    name = "level_filter" if api.dialect == "interface" else "level"
    debug = api.call("GET", of(api, export, f"logs/?{name}=debug")).json()["results"]
    assert {each["level"] for each in debug} == {"DEBUG"}
    before = api.call("GET", of(api, export, f"logs/?before={entries[3]['timestamp']}")).json()
    assert all(each["timestamp"] < entries[3]["timestamp"] for each in before["results"])
    if api.dialect == "2026":
        refused(api.call("GET", of(api, export, "logs/?limit=501")), 400, "invalid_input", "limit")
        assert api.call("GET", of(api, export, "logs/?limit=2&offset=2")).json()["results"] == []


@fact("3", "logs of a run: whole in the interface, empty in 2025, a crash in 2026", traps=(27,))
def test_run_logs(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=2)
    run = runs(api, export)[0]["id"]
    answer = api.call("GET", of(api, export, f"runs/{run}/logs/"))
    if api.dialect == "2026":
        assert answer.status_code == 500
    else:
        assert bool(answer.json()["results"]) is (api.dialect == "interface")


@fact("1.8", "backfills: two addresses, two answers", traps=(28, 43))
def test_two_addresses(api: Api) -> None:
    export = api.create()
    body = {"start_at": "2026-01-01T00:00:00+00:00", "end_at": "2026-01-01T02:00:00+00:00"}
    single = api.call("POST", of(api, export, "backfill/"), body)
    several = api.call("POST", of(api, export, "backfills/"), body)
    if api.dialect == "2026":
        refused(single, 404, "not_found")
        assert several.status_code == 201
        listed = api.call("GET", of(api, export, "backfills/")).json()["results"]
        assert listed[0]["id"] == several.json()["backfill_id"]
        assert listed[0]["progress"]["total_runs"] == 2
    elif api.dialect == "2025":
        assert single.json()["backfill_id"].startswith(f"{export['id']}-Backfill-2026-01-01")
    else:
        assert single.json()["id"] == export["id"]
        refused(several, 404, "not_found")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-01-01T00:00:00", "2026-01-01T02:00:00Z"),
        ("yesterday", "2026-01-01T02:00:00Z"),
        ("2026-01-01T02:00:00Z", "2026-01-01T02:00:00Z"),
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2100-01-01T00:00:00Z"),
    ],
)
@fact("1.8", "naive, odd, empty, reversed and future ranges are refused", traps=(28,))
def test_ranges_of_backfills(api: Api, start: str, end: str) -> None:
    path = of(api, api.create(), "backfills/" if api.dialect == "2026" else "backfill/")
    assert api.call("POST", path, {"start_at": start, "end_at": end}).status_code == 400


@fact("1.8", "days and weeks take dates, and weeks their own day", "2026", traps=(28,))
def test_dates_of_backfills(api: Api) -> None:
    daily = of(api, api.create(interval="day"), "backfills/")
    weekly = of(api, api.create(interval="week"), "backfills/")
    time = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2026-01-03T00:00:00Z"}
    assert api.call("POST", daily, time).status_code == 400
    dates = {"start_at": "2026-01-01", "end_at": "2026-01-03"}
    assert api.call("POST", daily, dates).status_code == 201
    assert api.call("POST", weekly, dates).status_code == 400
    sundays = {"start_at": "2026-01-04", "end_at": "2026-01-18"}
    assert api.call("POST", weekly, sundays).status_code == 201


@fact("1.8", "too many backfills at a time: 429 without Retry-After", "2026", traps=(28, 42))
def test_too_many_backfills(api: Api) -> None:
    path = of(api, api.create(), "backfills/")
    body = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2026-01-03T00:00:00Z"}
    answers = [api.call("POST", path, body) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [201] * 5 + [429]
    refused(answers[-1], 429, "too_many_concurrent_backfills")
    assert "retry-after" not in answers[-1].headers
    newest = api.call("GET", path).json()["results"][0]["id"]
    assert api.call("POST", f"{path}{newest}/cancel/", {}).json() == {"cancelled": True}
    assert api.call("POST", path, body).status_code == 201


@fact("1.8", "a missing end crashes real servers for most destinations", *REAL)
def test_a_backfill_without_end(api: Api) -> None:
    path = "backfills/" if api.dialect == "2026" else "backfill/"
    body = {"start_at": "2026-01-01T00:00:00Z"}
    assert api.call("POST", of(api, api.create(), path), body).status_code == 500
    noop = api.create(destination={"type": "NoOp", "config": {}})
    assert api.call("POST", of(api, noop, path), body).status_code in (200, 201)


@fact("1.7", "unpausing can make up for what was missed")
def test_unpausing_with_a_backfill(api: Api) -> None:
    export = api.create()
    api.call("POST", of(api, export, "pause/"), {})
    api.emulator.advance(hours=5)
    api.call("POST", of(api, export, "unpause/"), {"backfill": True})
    api.emulator.advance(minutes=30)
    assert len(runs(api, export)) >= 4
    if api.dialect == "2026":
        refused(
            api.call("POST", of(api, export, "unpause/"), {"backfill": "x"}),
            400,
            "invalid_input",
            "backfill",
        )


@fact("2", "a retry is a backfill of the run's interval")
def test_retrying_a_run(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=2)
    run = runs(api, export)[0]
    answer = api.call("POST", of(api, export, f"runs/{run['id']}/retry/"), {})
    assert answer.status_code == (201 if api.dialect == "2026" else 200)
    api.emulator.advance(minutes=20)
    again = [
        each for each in runs(api, export) if each["data_interval_end"] == run["data_interval_end"]
    ]
    assert len(again) == 2
