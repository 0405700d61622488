"""Facts about batch exports: service.md, 1.1, 1.2 and 1.7 to 1.11."""

from __future__ import annotations

from typing import Any

from tests.conftest import StartService
from tests.emulator.facts import (
    ALL,
    NEWEST,
    OLD,
    POST,
    REAL,
    YEAR,
    Api,
    Row,
    Table,
    fact,
    facts,
    refused,
)
from tests.support.cli import reconciler

QUERY = "select event, toInt(1+1) as n from events"
MODIFIERS, GOOD = {"a": 1}, [{"type": "event", "key": "a"}]
HOGQL = {"model": "hogql", "hogql_query": QUERY}
MERGE = {"primary_key": ["id"], "version_key": ["v"], "incremental_mode": "MERGE"}
NEVER = [{"type": "cohort"}]
SHORT, WEEK = "every 5 minutes", {"interval": "week", "offset_day": 2, "offset_hour": 3}
QUARTER, DAY = {"interval": "every 15 minutes"}, {"interval": "day", "offset_hour": 5}
NO_OFFSET = "offset_hour is not applicable for non-daily/weekly intervals"
NO_DAY = "offset_day is not applicable for non-weekly intervals"
MOMENT = "2026-01-01T00:00:00Z"
BERLIN = {"timezone": "Europe/Berlin"}
DENIED = "403 permission_denied"
TOO_SHORT = f"{DENIED}: Higher frequency batch exports are not enabled for this team."
BAD_FILTERS, BAD_HOUR = "400 invalid_input filters", "400 invalid_input offset_hour"
BAD_QUERY = "400 invalid_input hogql_query"
FIXED = "Changing models is not supported. Create a new batch export instead."
RUN_KEYS = "'data_interval_start' and 'data_interval_end' are run attributes..."
NOT_HOGQL = "is only supported for 'hogql' not 'events' model"
KEY = "400 invalid_input primary_key"
WITHOUT_KEY = f"{KEY}: 'primary_key' is required when 'incremental_mode' is 'MERGE'"
OLD_QUERY = "select event as e, count(*), NULL from events where e = 'a' limit 10"
PRINTED = "SELECT event AS e, count(*), NULL FROM events WHERE equals(e, 'a') LIMIT 10"


def both(existing: dict[str, Any], sent: dict[str, Any], answer: str) -> list[Row]:
    """A create and a change that are answered alike."""
    return [(POST, {**existing, **sent}, answer), (existing, sent, answer)]


FIELDS: Table = {
    ALL: {
        "the name is neither blank nor null, and trimmed": [
            (POST, {"name": " "}, "400 blank name"),
            (POST, {"name": None}, "400 null name"),
            (POST, {"name": " Lake "}, {"name": "Lake"}),
        ],
        "the model is events by default": [
            (POST, {}, {"model": "events"}),
            (POST, {"model": "x"}, "400 invalid_choice model"),
        ],
        "only listed intervals are valid; the short ones need a feature flag": [
            (POST, {"interval": "x"}, "400 invalid_choice interval"),
            (POST, {"interval": None}, "400 null interval"),
            (POST, {"interval": SHORT}, TOO_SHORT),
        ],
        "times are ISO 8601; a write can set last_paused_at": [
            ({}, {"start_at": "soon"}, "400 invalid_input start_at"),
            ({"end_at": "2030-01-01"}, {"end_at": None}, {"end_at": None}),
            (POST, {"last_paused_at": MOMENT}, {"last_paused_at": MOMENT}),
        ],
    },
    OLD: {
        "the model can change": [({}, {"model": "persons"}, {"model": "persons"})],
        "a change to a short interval is not checked": [
            ({}, {"interval": SHORT}, {"interval": SHORT})
        ],
    },
    REAL: {
        "filters are stored": [
            (POST, {"filters": GOOD}, {"filters": GOOD}),
            ({"filters": GOOD}, {"filters": None}, {"filters": None}),
        ],
    },
    ("interface",): {"null means events": [(POST, {"model": None}, {"model": "events"})]},
    ("interface", "2026"): {"every 15 minutes is short": [(POST, QUARTER, DENIED)]},
    YEAR: {
        "every 15 minutes came later": [(POST, QUARTER, "400 invalid_choice interval")],
        "a model that is null or blank is kept": [
            (POST, {"model": None}, {"model": None}),
            (POST, {"model": ""}, {"model": ""}),
        ],
        "filters are any JSON": [
            ({}, {"filters": NEVER}, {"filters": NEVER}),
            ({}, {"filters": {}}, {"filters": {}}),
        ],
    },
    NEWEST: {
        "the model is fixed": [
            (POST, {"model": None}, "400 null model"),
            ({}, {"model": "persons"}, f"400 invalid_input model: {FIXED}"),
        ],
        "a change to a short interval needs the flag": [({}, {"interval": SHORT}, DENIED)],
        "filters have types, and not the keys of a run's interval": [
            ({}, {"filters": NEVER}, BAD_FILTERS),
            ({}, {"filters": {}}, f"{BAD_FILTERS}: 'filters' should be an array of filters"),
            *(
                row
                for key in ("data_interval_start", "data_interval_end")
                for row in both(
                    {}, {"filters": [{"type": "event", key: "a"}]}, f"{BAD_FILTERS}: {RUN_KEYS}"
                )
            ),
        ],
        "values that were not sent are computed": [
            (POST, {}, {"offset_hour": None, "incremental_mode": "APPEND"}),
            (POST, {"interval": "week"}, {"timezone": "UTC", "offset_day": 0, "offset_hour": 0}),
        ],
        "incremental_mode, keys and modifiers are stored": [
            (POST, sent := {**HOGQL, **MERGE, "hogql_modifiers": MODIFIERS}, sent),
            (HOGQL, {"incremental_mode": "x"}, "400 invalid_choice incremental_mode"),
            (HOGQL, {"version_key": "v"}, "400 not_a_list version_key"),
        ],
        "MERGE needs a key, and is not checked on other models": [
            ({**HOGQL, **MERGE}, {"primary_key": None}, KEY),
            (POST, {**HOGQL, "incremental_mode": "MERGE"}, WITHOUT_KEY),
            (POST, {"incremental_mode": "MERGE"}, {"incremental_mode": "MERGE"}),
        ],
        "blank queries and empty or blank keys have codes of their own": [
            (POST, {**HOGQL, "hogql_query": ""}, "400 blank hogql_query"),
            (POST, {**HOGQL, "primary_key": []}, "400 empty primary_key"),
            (POST, {**HOGQL, "primary_key": [""]}, "400 blank primary_key__0"),
        ],
        "fields of another model are refused": [
            *both({}, {"primary_key": ["id"]}, f"{KEY}: 'primary_key' {NOT_HOGQL}"),
            *both({}, {"version_key": ["v"]}, "400 invalid_input version_key"),
            *both(
                *({"model": "persons"}, {"hogql_modifiers": MODIFIERS}),
                "400 invalid_input hogql_modifiers",
            ),
            *both({"model": "sessions"}, {"filters": GOOD}, BAD_FILTERS),
        ],
    },
}
OFFSETS: Table = {
    NEWEST: {
        "offsets must fit the interval": [
            (POST, DAY, DAY),
            (DAY, {"interval": "day", "offset_hour": 24}, "400 max_value offset_hour"),
            (DAY, {"interval": "week", "offset_day": 7}, "400 max_value offset_day"),
            (DAY, {"interval": "hour", "offset_hour": 1}, BAD_HOUR),
        ],
        "a change of offsets without the interval crashes, unless it does not fit": [
            (DAY, {"offset_hour": 6}, "500"),
            ({}, {"offset_hour": 1}, f"{BAD_HOUR}: {NO_OFFSET}"),
            ({"interval": "day"}, {"offset_day": 1}, f"400 invalid_input offset_day: {NO_DAY}"),
        ],
        "a PATCH keeps the offsets that its interval takes": [
            (DAY, {"interval": "day", **BERLIN}, {"offset_hour": 5, **BERLIN}),
            (DAY, {"interval": "hour", **BERLIN}, {"offset_hour": None, **BERLIN}),
            (BERLIN, {"interval": "hour"}, {"offset_hour": None, **BERLIN}),
            ({"interval": "day"}, {"interval": "week"}, {"offset_day": 0, "offset_hour": 0}),
            (WEEK, {"interval": "week"}, WEEK),
        ],
        "one offset of a week resets the other": [
            (WEEK, {"interval": "week", "offset_hour": 5}, {"offset_day": 0, "offset_hour": 5}),
            (WEEK, {"interval": "week", "offset_day": 4}, {"offset_day": 4, "offset_hour": 0}),
        ],
        "null is the default": [
            (DAY, {"interval": "day", "offset_hour": None}, {"offset_hour": 0}),
            (DAY, {"interval": "hour", "timezone": None}, {"timezone": "UTC"}),
        ],
    },
}
QUERIES: Table = {
    ("interface",): {
        "queries are shown as sent": [
            (POST, {"sql_query": QUERY}, {"sql_query": QUERY}),
            ({"sql_query": QUERY}, {"sql_query": None}, {"sql_query": None}),
        ],
    },
    YEAR: {
        "queries that do not select fields from events are refused": [
            ({}, {"hogql_query": None}, "400 null hogql_query"),
            *(
                row
                for query, detail in (
                    ("select * from events", "Unsupported HogQL query"),
                    ("select nope from events", "Invalid HogQL query: Unable to resolve..."),
                    ("select a from persons", "Query must only SELECT FROM events"),
                    ("select event from events join persons on 1 = 1", "JOINs are not supported"),
                    ("nonsense", "Failed to parse query"),
                )
                for row in both({}, {"hogql_query": query}, f"{BAD_QUERY}: {detail}")
            ),
        ],
    },
    NEWEST: {
        "a query requires the model hogql": [
            *both({}, {"hogql_query": QUERY}, f"{BAD_QUERY}: 'hogql_query' {NOT_HOGQL}"),
            ({}, {"hogql_query": None}, {"hogql_query": None}),
        ],
        "the model hogql requires a query that can be parsed": [
            *both(HOGQL, {"hogql_query": None}, BAD_QUERY),
            *both(HOGQL, {"hogql_query": "SELEC nonsense"}, BAD_QUERY),
        ],
        "the model hogql accepts any query and shows it as sent": [
            (POST, {**HOGQL, "hogql_query": query}, {"hogql_query": query, "schema": None})
            for query in (
                QUERY,
                "with a as (select 1) select * from a union all select 2 -- it's (",
                "(select ')', \"(\" from persons join events on 1 = 1);",
            )
        ],
    },
}


@facts("1.1", FIELDS, rules=(3, 10, 14, 19, 20, 46))
def test_fields_of_exports(api: Api, row: Row) -> None:
    api.answer(row)


@facts("1.2", OFFSETS, rules=(18, 19))
def test_offsets(api: Api, row: Row) -> None:
    api.answer(row)


@facts("1.9", QUERIES, rules=(6, 7))
def test_queries(api: Api, row: Row) -> None:
    api.answer(row)


@fact("1.9", "2025 prints queries in the schema and does not show them", "2025", rules=(7,))
def test_printed_queries(api: Api) -> None:
    for query, printed in (
        (QUERY, "SELECT event, toInt(plus(1, 1)) AS n FROM events"),
        (OLD_QUERY, PRINTED),
    ):
        export = api.create(hogql_query=query)
        assert "hogql_query" not in export
        assert export["schema"]["hogql_query"] == printed


@fact("1.1", "the name and the destination are required, filters are unknown to the interface")
def test_required_fields(api: Api) -> None:
    refused(api.call("POST", api.project, {}), 400, "required", "name")
    refused(api.call("POST", api.project, {"name": "x"}), 400, "required", "destination")
    assert ("filters" in api.create(filters=GOOD)) is (api.dialect != "interface")


@fact("1.1", "two equal creates make two exports", rules=(4,))
def test_a_create_is_not_idempotent(api: Api) -> None:
    assert api.create()["id"] != api.create()["id"]
    assert api.call("GET", api.project).json()["count"] == 2


@fact("1.1", "times are shown in UTC; a write changes last_updated_at", rules=(20, 23))
def test_times(api: Api) -> None:
    export = api.create(start_at="2026-01-01T02:00:00+02:00", end_at="2022-07-19 00:00:00")
    assert export["start_at"] == "2026-01-01T00:00:00Z"
    assert export["end_at"] == "2022-07-19T00:00:00Z"
    assert api.patch(export).json()["last_updated_at"] > export["last_updated_at"]


@fact("1.1", "unknown and read-only fields are ignored without an error", rules=(6,))
def test_unknown_fields_are_dropped(api: Api) -> None:
    export = api.create(nonsense=1, id="x", team_id=99)
    assert "nonsense" not in export
    assert export["team_id"] == 1
    unknown = "hogql_query" if api.dialect == "interface" else "sql_query"
    assert unknown not in api.create(**{unknown: "select 1 from events"})


@fact("1.7", "pauses answer a small object; a PATCH changes no last_paused_at", rules=(20, 21))
def test_pausing(api: Api) -> None:
    export = api.create()
    path = f"{api.project}{export['id']}"
    answer = api.call("POST", f"{path}/pause/", {}).json()
    assert answer["paused"] is True
    assert (set(answer) == {"paused"}) is (api.dialect != "interface")
    paused = api.get(export)
    assert paused["last_paused_at"] is not None
    api.call("POST", f"{path}/pause")
    assert api.get(export) == paused
    assert api.call("POST", f"{path}/unpause/", {}).json()["paused"] is False
    assert api.get(export)["last_paused_at"] == paused["last_paused_at"]
    assert api.patch(api.create(), paused=True).json()["last_paused_at"] is None


@fact("1.7", "unpause answers 401 for a user without a current project", rules=(22,))
def test_unpausing_without_a_current_project(api: Api) -> None:
    export = api.create(paused=True)
    answer = api.call("POST", f"{api.project}{export['id']}/unpause/", {}, key="phx_nowhere")
    refused(answer, 401, "not_authenticated")


@fact("1.10", "lists are newest first in pages", rules=(24,))
def test_pages(api: Api) -> None:
    names = [api.create(name=f"E{n}")["name"] for n in range(5)]
    listed = api.call("GET", api.project).json()
    assert [export["name"] for export in listed["results"]] == names[::-1]
    page = api.call("GET", f"{api.project}?limit=2&offset=2").json()
    assert [export["name"] for export in page["results"]] == ["E2", "E1"]
    assert "offset=4" in page["next"]
    assert page["previous"] is not None
    assert api.call("GET", f"{api.project}?offset=99").json()["results"] == []


@fact("1.10", "the organization path lists all; only the interface creates there", rules=(5, 44))
def test_the_organization_path(api: Api) -> None:
    export = api.create()
    base = f"{api.organization}batch_exports/"
    path = f"{base}{export['id']}/"
    assert api.call("GET", base).json()["count"] == 1
    assert api.call("GET", path).status_code == 200
    patched = api.call("PATCH", path, {"name": "x"}).status_code
    assert patched == (500 if api.dialect == "2025" else 200)
    assert (api.get(export)["name"] == "Lake") is (api.dialect == "2025")
    assert api.call("POST", f"{path}pause/", {}).status_code == 200
    created = api.call("POST", base, api.body()).status_code
    assert created == (201 if api.dialect == "interface" else 500)
    assert api.call("DELETE", path).status_code == 204


@fact("1.10", "the newest servers have no list of an organization's exports", "2026", rules=(44,))
def test_no_organization_list(service_of: StartService, dialect: str) -> None:
    running = service_of(None, "--dialect", dialect, "--no-organization-list")
    below = f"/api/organizations/{running.organization}/batch_exports/"
    for path in (below, f"{below}4dc8564d-bd82-1065-2f40-97f7c50f67cf/"):
        refused(running.call("GET", path), 404, "not_found")
    options = ("emulator", "--dialect", "2025", "--no-organization-list")
    assert "--no-organization-list needs --dialect 2026" in reconciler(*options).err


@fact("1.11", "a deleted export disappears at once; a second deletion answers 404")
def test_deletion(api: Api) -> None:
    path = f"{api.project}{api.create()['id']}/"
    assert api.call("DELETE", path).status_code == 204
    for method in ("GET", "DELETE"):
        refused(api.call(method, path), 404, "not_found")
    assert api.call("GET", api.project).json()["count"] == 0
