"""No request makes later ones fail, and a 500 that nobody asked for is reported."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.emulator.facts import Api, fact
from tests.emulator.operations import get, no_op, of
from tests.support.emulator import DIALECTS, RunningEmulator, start_emulator

REQUESTS = 10_000 if LONG else 150
"""How many random requests a dialect answers, at least."""
_EACH = 10
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


def test_a_failure_while_time_passes_is_an_answer_and_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The database is broken behind the service's back: its own schedule fails at it."""
    file = tmp_path / "emulator.db"
    with start_emulator(db=file) as running:
        body = {"name": "a", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
        running.call("POST", "/api/projects/1/batch_exports/", body)
        with sqlite3.connect(file) as database:
            database.execute("UPDATE exports SET body = '{}', due = 0")
        answer = running.call("GET", "/api/projects/1/")
        errors = [request["error"] for request in running.requests()]
    assert answer.status_code == 500
    assert answer.json()["code"] == "error"
    assert errors == [None, "KeyError"]
    assert "emulator: KeyError in GET /api/projects/1/ (" in capfd.readouterr().err


_moments = st.sampled_from(
    ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-10-07T08:00:00+02:00", _LAST]
) | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
_times = {name: st.none() | _moments for name in ("start_at", "end_at", "last_paused_at")}
_fields = st.fixed_dictionaries(
    {},
    optional={
        **_times,
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
_which = st.integers(0, 3)
_clock = st.one_of(
    st.builds(lambda seconds: {"advance_seconds": seconds}, st.integers(-90_000, 900_000)),
    st.builds(
        lambda moment: {"set": moment},
        st.sampled_from(["1971-01-01T00:00:00Z", "2026-11-01T00:00:00Z", "9000-01-01T00:00:00Z"]),
    ),
)
_actions: st.SearchStrategy[list[Action]] = st.lists(
    st.one_of(
        st.tuples(st.just("create"), _fields),
        st.tuples(st.just("change"), _which, _fields),
        st.tuples(st.just("pause"), _which),
        st.tuples(st.just("unpause"), _which, st.booleans()),
        st.tuples(st.just("delete"), _which),
        st.tuples(st.just("backfill"), _which, st.none() | _moments, _moments),
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
        case "backfill", [start, end]:
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
