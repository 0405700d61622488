"""Facts about the activity log: service.md, section 10."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.emulator.facts import NEWEST, REAL, YEAR, Api, Table, fact, facts
from tests.support.emulator import start_emulator
from tests.support.limits import TIMEOUT

LOG = "/api/projects/1/activity_log/"
MOMENT, BERLIN = "2026-01-01T00:00:00Z", "Europe/Berlin"
OFFSETS = ("interval_offset", 93_600, 180_000)


def log(api: Api, path: str = LOG, *, key: str = "phx_activity", **query: Any) -> dict:
    text = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
    answer = api.call("GET", f"{path}?{text}", key=key)
    assert answer.status_code == 200, answer.text
    return answer.json()


def entries(api: Api, export: dict, **query: Any) -> list[dict]:
    """The entries of an export, oldest first."""
    found = log(api, scope="BatchExport", item_id=export["id"], **query)["results"]
    return found[::-1]


def changes(entry: dict) -> list[tuple[str, str, Any, Any]]:
    return [
        (change["action"], change["field"], change["before"], change["after"])
        for change in entry["detail"]["changes"]
    ]


@fact("10", "an entry of a create has no changes", *REAL)
def test_entries_of_creation(api: Api) -> None:
    export = api.create()
    [entry] = entries(api, export)
    kind = export["destination"]["type"]
    assert (entry["activity"], entry["item_id"]) == ("created", export["id"])
    assert (entry["scope"], entry["detail"]["changes"]) == ("BatchExport", [])
    assert entry["detail"]["name"] == f"'Lake' ({kind})"
    assert entry["organization_id"] == api.organization.split("/")[3]
    assert set(entry["detail"]) == {"name", "short_id", "type", "changes", "trigger", "context"}
    assert ({"client", "ip_address", "team_id"} <= set(entry)) is (api.dialect == "2026")


@fact(
    "10", "a write by key is logged as the system before July 2026, then as the key's user", *REAL
)
def test_users_of_entries(api: Api) -> None:
    answer = api.call("POST", api.project, api.body(), key="phx_admin")
    [entry] = entries(api, answer.json())
    if api.dialect == "2025":
        assert (entry["user"], entry["is_system"]) == (None, True)
        return
    user = entry["user"]
    assert set(user) == {"id", "uuid", "distinct_id", "first_name", "last_name", "email"}
    assert (user["id"], user["email"], entry["is_system"]) == (2, "ada@example.com", False)


PAUSED, UNPAUSED = ([("changed", "enabled", before, not before)] for before in (False, True))
EVENTS = {
    "fields": [{"expression": "event", "alias": "event"}],
    "values": {},
    "hogql_query": "SELECT event FROM events",
}
Case = tuple[dict[str, Any], list[Any], list[list[tuple[str, str, Any, Any]]]]
"""Fields of an export, what is done to it (an action, the fields of a PATCH), and its entries."""
ENTRIES: Table = {
    REAL: {
        "without a change there is no entry": ({}, [{"name": "Lake"}, {}], []),
        "an entry of an update has the changed fields": (
            *({}, [{"name": "Pond", "start_at": MOMENT}, {"start_at": None}]),
            [
                [("changed", "name", "Lake", "Pond"), ("created", "start_at", None, MOMENT)],
                [("deleted", "start_at", MOMENT, None)],
            ],
        ),
        "a pause is the field `enabled` with the values of `paused`": (
            *({}, ["pause", "pause", "unpause", {"paused": True}]),
            [PAUSED, UNPAUSED, PAUSED],
        ),
        "a deletion is an update of `deleted`; its entry stays": (
            *({}, ["DELETE"]),
            [[("changed", "deleted", False, True)]],
        ),
    },
    NEWEST: {
        "changed schedules are logged by time zone and offset in seconds": (
            {"interval": "week", "offset_day": 1, "offset_hour": 2},
            [{"interval": "week", "offset_day": 2, "offset_hour": 2, "timezone": BERLIN}],
            [[("changed", "timezone", "UTC", BERLIN), ("changed", *OFFSETS)]],
        ),
    },
    YEAR: {
        "a query is logged as schema": (
            *({}, [{"hogql_query": "select event from events"}]),
            [[("created", "schema", None, EVENTS)]],
        ),
    },
}


@facts("10", ENTRIES, rules=(20, 23))
def test_entries(api: Api, row: Case) -> None:
    fields, acts, expected = row
    export = api.create(**fields)
    for act in acts:
        if isinstance(act, dict):
            answer = api.patch(export, **act)
        elif act == "DELETE":
            answer = api.call(act, f"{api.project}{export['id']}/")
        else:
            answer = api.call("POST", f"{api.project}{export['id']}/{act}/", {})
        answer.raise_for_status()
    _, *rest = entries(api, export)
    assert [changes(entry) for entry in rest] == expected
    assert {entry["activity"] for entry in rest} <= {"updated"}


def test_data_survives_a_crash_and_a_restart(tmp_path: Path) -> None:
    db, keys = tmp_path / "db.sqlite", set()
    body = {"name": "Lake", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    for restarts in range(2):
        with start_emulator(db=db, extra=("--dialect", "2026")) as running:
            assert len(running.call("GET", LOG).json()["results"]) == restarts
            assert running.call("GET", "/api/projects/1/batch_exports/").json()["count"] == restarts
            running.call("POST", "/api/projects/1/batch_exports/", body).raise_for_status()
            keys.add(running.api_key)
            if restarts:
                running.process.terminate()
                assert running.process.wait(timeout=TIMEOUT) == 0
            else:
                running.process.kill()
    assert len(keys) == 1
