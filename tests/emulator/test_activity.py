"""Facts about the activity log: service.md, section 10."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.emulator.facts import KEYS, REAL, Api, fact, refused
from tests.support.emulator import start_emulator
from tests.support.limits import TIMEOUT

LOG = "/api/projects/1/activity_log/"


def log(api: Api, path: str = LOG, *, key: str = "phx_activity", **query: Any) -> dict:
    text = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
    answer = api.call("GET", f"{path}?{text}", key=key)
    assert answer.status_code == 200, answer.text
    return answer.json()


def entries(api: Api, export: dict, **query: Any) -> list[dict]:
    """The entries of an export, oldest first."""
    found = log(api, scope="BatchExport", item_id=export["id"], **query)["results"]
    return found[::-1]


def changes(entry: dict) -> list[tuple[str, Any, Any]]:
    return [
        (change["field"], change["before"], change["after"])
        for change in entry["detail"]["changes"]
    ]


def act(api: Api, export: dict, action: str) -> None:
    assert api.call("POST", f"{api.project}{export['id']}/{action}/", {}).status_code == 200


@fact("10", "an entry of a create has no changes", *REAL)
def test_entries_of_creation(api: Api) -> None:
    export = api.create()
    [entry] = entries(api, export)
    kind = export["destination"]["type"]
    assert (entry["activity"], entry["item_id"]) == ("created", export["id"])
    assert (entry["scope"], entry["detail"]["changes"]) == ("BatchExport", [])
    assert entry["detail"]["name"] == f"'Lake' ({kind})"
    assert (entry["unread"], entry["was_impersonated"]) == (False, False)
    assert entry["organization_id"] == api.organization.split("/")[3]
    assert set(entry["detail"]) == {"name", "short_id", "type", "changes", "trigger", "context"}
    newer = {"client", "ip_address", "team_id"} & set(entry)
    assert newer == ({"client", "ip_address", "team_id"} if api.dialect == "2026" else set())


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


@fact("10", "an entry has the header x-posthog-client, cut to 32 characters", "2026")
def test_clients_of_entries(api: Api) -> None:
    export = api.create()
    headers = {"Authorization": "Bearer phx_all", "X-PostHog-Client": "reconciler/" + "1" * 40}
    path = f"{api.project}{export['id']}/"
    api.emulator.http.patch(path, json={"name": "Pond"}, headers=headers).raise_for_status()
    first, second = entries(api, export)
    assert (first["client"], second["client"]) == (None, "reconciler/" + "1" * 21)
    assert (second["ip_address"], second["team_id"]) == ("127.0.0.1", 1)


@fact(
    "10",
    "an entry of an update has the changed fields; without a change there is no entry",
    *REAL,
    rules=(23,),
)
def test_entries_of_updates(api: Api) -> None:
    export = api.create()
    api.patch(export, name="Lake")
    api.patch(export)
    assert len(entries(api, export)) == 1
    moment = "2026-01-01T00:00:00Z"
    api.patch(export, name="Pond", start_at=moment)
    api.patch(export, start_at=None)
    _, update, reset = entries(api, export)
    assert update["activity"] == "updated"
    assert changes(update) == [("name", "Lake", "Pond"), ("start_at", None, moment)]
    assert [change["action"] for change in update["detail"]["changes"]] == ["changed", "created"]
    assert {change["type"] for change in update["detail"]["changes"]} == {"BatchExport"}
    assert changes(reset) == [("start_at", moment, None)]
    assert reset["detail"]["changes"][0]["action"] == "deleted"


@fact("10", "a pause is the field `enabled` with the values of `paused`", *REAL, rules=(20,))
def test_entries_of_pauses(api: Api) -> None:
    export = api.create()
    for action in ("pause", "pause", "unpause"):
        act(api, export, action)
    api.patch(export, paused=True)
    _, *rest = entries(api, export)
    assert [changes(entry) for entry in rest] == [
        [("enabled", False, True)],
        [("enabled", True, False)],
        [("enabled", False, True)],
    ]


@fact("10", "a deletion is an update of `deleted`; its entry stays", *REAL)
def test_entries_of_deletion(api: Api) -> None:
    export = api.create()
    api.call("DELETE", f"{api.project}{export['id']}/")
    _, entry = entries(api, export)
    assert (entry["activity"], changes(entry)) == ("updated", [("deleted", False, True)])


@fact("10", "edits of the destination, backfills and runs are not logged", *REAL)
def test_what_is_not_logged(api: Api) -> None:
    export = api.create()
    destination = {**api.body()["destination"], "config": {"prefix": "other"}}
    if api.dialect == "2025":
        destination["config"] |= KEYS
    assert api.patch(export, destination=destination).status_code == 200
    bounds = {"start_at": "2026-10-01T00:00:00+00:00", "end_at": "2026-10-01T02:00:00+00:00"}
    answer = api.call("POST", f"{api.project}{export['id']}/backfills/", bounds)
    assert answer.status_code in (200, 201)
    api.emulator.advance(hours=3)
    assert len(entries(api, export)) == 1


@fact("10", "changed schedules are logged by time zone and offset in seconds", "2026")
def test_entries_of_schedules(api: Api) -> None:
    export = api.create(interval="week", offset_day=1, offset_hour=2)
    api.patch(export, interval="week", offset_day=2, offset_hour=2, timezone="Europe/Berlin")
    _, entry = entries(api, export)
    assert changes(entry) == [
        ("timezone", "UTC", "Europe/Berlin"),
        ("interval_offset", 93_600, 180_000),
    ]


@fact("10", "a query is logged as schema", "2025")
def test_entries_of_queries(api: Api) -> None:
    export = api.create()
    api.patch(export, hogql_query="select event from events")
    _, entry = entries(api, export)
    [(field, before, after)] = changes(entry)
    assert (field, before, after["hogql_query"]) == ("schema", None, "SELECT event FROM events")


@fact("10", "the log has cursor pages without a count", *REAL)
def test_pages_of_the_log(api: Api) -> None:
    export = api.create(name="0")
    for number in range(1, 5):
        api.patch(export, name=str(number))

    def names(page: dict) -> list[str]:
        return [entry["detail"]["name"][1] for entry in page["results"]]

    first = log(api, page_size=2)
    assert (set(first), names(first)) == ({"next", "previous", "results"}, ["4", "3"])
    assert first["previous"] is None
    second = api.call("GET", first["next"]).json()
    third = api.call("GET", second["next"]).json()
    assert (names(second), names(third), third["next"]) == (["2", "1"], ["0"], None)
    assert names(api.call("GET", third["previous"]).json()) == ["2", "1"]
    assert names(api.call("GET", second["previous"]).json()) == ["4", "3"]
    refused(api.call("GET", f"{LOG}?cursor=zzz"), 404, "not_found")
    assert len(log(api, page_size=5000)["results"]) == 5


@fact("10", "the log is filtered by scope, item and user", *REAL)
def test_filters_of_the_log(api: Api) -> None:
    ours = api.create(name="Ours")
    answer = api.call("POST", api.project, api.body(name="Hers"), key="phx_admin")
    hers = answer.json()
    assert len(log(api)["results"]) == 2
    assert [entry["item_id"] for entry in log(api, item_id=hers["id"])["results"]] == [hers["id"]]
    assert log(api, scope="Team")["results"] == []
    assert len(log(api, scopes="Team,BatchExport")["results"]) == 2
    by_user = [entry["item_id"] for entry in log(api, user=1)["results"]]
    assert by_user == ([ours["id"]] if api.dialect == "2026" else [])


@fact("10", "the log requires activity_log:read and shows its own project only", *REAL)
def test_scopes_of_the_log(api: Api) -> None:
    api.create()
    detail = refused(api.call("GET", LOG, key="phx_read"), 403, "permission_denied")
    assert detail == "API key missing required scope 'activity_log:read'"
    assert log(api, "/api/projects/2/activity_log/")["results"] == []
    refused(
        api.call("GET", "/api/projects/2/activity_log/", key="phx_one"), 403, "permission_denied"
    )
    assert len(log(api, "/api/environments/1/activity_log/")["results"]) == 1


@fact("10", "the interface has no activity log: 404", "interface")
def test_the_log_in_the_interface(api: Api) -> None:
    refused(api.call("GET", LOG), 404, "not_found")


@fact("10", "without the paid feature the log answers 402", "2026", rules=(42,))
def test_the_log_without_the_feature(api: Api) -> None:
    answer = api.call("GET", LOG.replace("/1/", "/9/"), key="phx_activity")
    refused(answer, 402, "payment_required")
    assert answer.json()["type"] == "server_error"
    assert api.call("GET", LOG, key="phx_activity").status_code == 200


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


@fact("10", "the activity of a project answers 403 to keys; the interface answers the project")
def test_activity_of_projects(api: Api) -> None:
    for base in (f"{api.organization}projects/1/", "/api/projects/1/"):
        answer = api.call("GET", f"{base}activity/")
        if api.dialect == "interface":
            assert answer.json()["name"] == "Web"
        else:
            detail = refused(answer, 403, "permission_denied")
            assert "does not support personal API key" in detail
