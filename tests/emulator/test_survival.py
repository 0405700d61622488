"""No request makes later ones fail, and a 500 that nobody asked for is reported."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.emulator.facts import Api, fact
from tests.emulator.operations import get, no_op, of
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.limits import time_limit

REQUESTS = 10_000 if LONG else 400
"""How many random requests a dialect answers, at least."""
_EACH = 20
_LAST = "9999-12-31T23:59:59Z"
_QUERY = "select event from events"
Action = tuple[Any, ...]


@fact("7.3", "an end that no calendar passes does no harm")
def test_fidelity_2025_end_at_the_end_of_time(api: Api) -> None:
    export = api.create(**no_op())
    assert api.patch(export, end_at=_LAST).status_code == 200
    assert api.call("POST", of(api, export, "pause/"), {}).status_code == 200
    assert api.call("POST", of(api, export, "unpause/"), {"backfill": True}).status_code == 200
    api.emulator.advance(hours=2)
    assert get(api, of(api, export))["end_at"] == _LAST
    assert [request["error"] for request in api.emulator.requests() if request["error"]] == []


def test_a_failure_while_time_passes_is_an_answer_and_a_line(tmp_path: Path) -> None:
    """The database is broken behind the service's back: its own schedule fails at it."""
    file = tmp_path / "emulator.db"
    options = ["emulator", "--port", "0", "--db", str(file)]
    body = {"name": "a", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        with time_limit(process):
            where = json.loads(process.stdout.readline())
            headers = {"Authorization": f"Bearer {where['api_key']}"}
            with httpx.Client(base_url=where["base_url"], headers=headers) as http:
                http.post("/api/projects/1/batch_exports/", json=body).raise_for_status()
                with sqlite3.connect(file) as database:
                    database.execute("UPDATE exports SET body = '{}', due = 0")
                answer = http.get("/api/projects/1/")
                requests = http.get("/_emulator/requests").json()["requests"]
            process.terminate()
            printed = process.stderr.read().decode()
    assert (answer.status_code, answer.json()["code"]) == (500, "error")
    assert [request["error"] for request in requests] == [None, "KeyError"]
    assert "emulator: KeyError in GET /api/projects/1/ (" in printed


def _utc(moment: datetime) -> str:
    return f"{moment.isoformat()}Z"


_moments = st.sampled_from([_LAST, "0001-01-01T00:00:00Z", "2026-10-07T08:00:00+02:00"])
_times = st.sampled_from(["start_at", "end_at", "last_paused_at"])
_fields = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(min_size=1).filter(lambda name: name.strip() and "\0" not in name),
        "interval": st.sampled_from(["hour", "day", "week"]),
        "paused": st.booleans(),
        "timezone": st.sampled_from([None, "UTC", "Europe/Berlin", "Pacific/Apia"]),
        "offset_hour": st.integers(0, 23),
        "filters": st.none() | st.just([{"type": "event", "key": "a"}]),
        "destination": st.builds(
            lambda config: {"type": "NoOp", "config": config},
            st.fixed_dictionaries({}, optional={"arg": st.text(), "include_events": st.just([1])}),
        ),
        "hogql_query": st.just(_QUERY),
    },
)
_ranges = st.sampled_from(
    [("2026-10-07T01:00:00Z", "2026-10-07T08:00:00Z"), ("2026-09-06", "2026-10-04")]
) | st.tuples(st.none() | _moments, st.none() | _moments)
_which = st.integers(0, 1)
_clock = st.builds(
    lambda seconds: {"advance_seconds": seconds}, st.integers(-90_000, 900_000)
) | st.sampled_from([{"set": f"{year}-01-01T00:00:00Z"} for year in (1971, 2027, 9000)])
_actions: st.SearchStrategy[list[Action]] = st.lists(
    st.one_of(
        st.tuples(st.just("create"), _fields),
        st.tuples(st.just("change"), _which, _fields),
        st.tuples(
            st.just("change"),
            _which,
            st.dictionaries(_times, st.none() | _moments | st.datetimes().map(_utc), min_size=1),
        ),
        st.tuples(st.just("pause"), _which),
        st.tuples(st.just("unpause"), _which, st.booleans()),
        st.tuples(st.just("catch up"), _which),
        st.tuples(st.just("delete"), _which),
        st.tuples(st.just("backfill"), _which, _ranges),
        st.tuples(
            st.just("settings"), st.sampled_from([{"timezone": "Asia/Tokyo"}, {"name": "b"}])
        ),
        st.tuples(st.just("clock"), _clock),
    ),
    min_size=_EACH,
    max_size=_EACH,
)


def act(api: Api, exports: list[dict[str, Any]], action: Action) -> None:
    """Send one request. What it is answered does not matter."""
    match action:
        case ("create", fields):
            answer = api.call("POST", api.project, {**api.body(**no_op()), **fields})
            if answer.status_code == 201:
                exports.append(answer.json())
        case ("settings", fields):
            api.call("PATCH", "/api/projects/1/", fields)
        case ("clock", move):
            api.emulator.http.post("/_emulator/clock", json=move)
        case (kind, which, *rest):
            send(api, exports[which % len(exports)], kind, rest)


def send(api: Api, export: dict[str, Any], kind: str, rest: list[Any]) -> None:
    match kind, rest:
        case "change", [fields]:
            api.patch(export, **fields)
        case "unpause", [backfill]:
            api.call("POST", of(api, export, "unpause/"), {"backfill": backfill})
        case "delete", []:
            api.call("DELETE", of(api, export))
        case "catch up", []:
            api.call("POST", of(api, export, "pause/"), {})
            api.call("POST", of(api, export, "unpause/"), {"backfill": True})
        case "backfill", [(start, end)]:
            path = of(api, export, "backfill/" if api.dialect == "interface" else "backfills/")
            api.call("POST", path, {"start_at": start, "end_at": end})
        case _:
            api.call("POST", of(api, export, f"{kind}/"), {})


@pytest.mark.parametrize("name", DIALECTS)
def test_no_request_makes_later_ones_fail(emulators: dict[str, RunningEmulator], name: str) -> None:
    api = Api(emulators[name], name)

    @settings(max_examples=REQUESTS // _EACH)
    @given(actions=_actions)
    def check(actions: list[Action]) -> None:
        api.emulator.reset()
        api.emulator.admin("POST", "clock", {"set": "2026-10-07T10:20:00Z"})
        exports = [api.create(**no_op())]
        for action in actions:
            act(api, exports, action)
        for path in (api.project, "/api/projects/1/", f"{api.organization}batch_exports/"):
            get(api, path)
        for export in get(api, api.project)["results"]:
            get(api, of(api, export, "runs/?after=-90y"))
        api.emulator.state()
        assert [request for request in api.emulator.requests() if request["error"]] == []

    check()
