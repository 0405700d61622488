"""Facts about batch exports: service.md, 1.1, 1.2 and 1.7 to 1.11."""

from __future__ import annotations

import pytest

from tests.emulator.facts import OLD, Api, fact, invalid, refused

QUERY = "select event, toInt(1+1) as n from events"


@fact(
    "1.1",
    "the name is required and trimmed, neither blank nor null, and need not be unique",
    rules=(3,),
)
def test_names(api: Api) -> None:
    refused(api.call("POST", api.project, {}), 400, "required", "name")
    refused(api.post(name=" "), 400, "blank", "name")
    refused(api.post(name=None), 400, "null", "name")
    assert api.create(name=" Lake ")["name"] == "Lake"
    assert api.create(name="Lake")["name"] == "Lake"


@fact("1.1", "two equal creates make two exports", rules=(4,))
def test_a_create_is_not_idempotent(api: Api) -> None:
    assert api.create()["id"] != api.create()["id"]
    assert api.call("GET", api.project).json()["count"] == 2


@fact(
    "1.1", "the model is events by default and fixed in the newest; 2025 keeps null", rules=(10, 14)
)
def test_models(api: Api) -> None:
    assert api.create()["model"] == "events"
    answer = api.post(model=None)
    if api.dialect == "2026":
        refused(answer, 400, "null", "model")
    else:
        assert answer.json()["model"] == (None if api.dialect == "2025" else "events")
    refused(api.post(model="x"), 400, "invalid_choice", "model")
    answer = api.patch(api.create(), model="persons")
    if api.dialect == "2026":
        invalid(answer, "model")
    else:
        assert answer.json()["model"] == "persons"


@fact("1.1", "only listed intervals are valid; the short ones need a feature flag", rules=(19,))
def test_intervals(api: Api) -> None:
    refused(api.post(interval="x"), 400, "invalid_choice", "interval")
    refused(api.post(interval=None), 400, "null", "interval")
    short = api.body(interval="every 5 minutes")
    refused(api.call("POST", api.project, short), 403, "permission_denied")
    answer = api.patch(api.create(), interval="every 5 minutes")
    assert answer.status_code == (403 if api.dialect == "2026" else 200)


@fact(
    "1.1",
    "times are ISO 8601, in UTC; a write can set last_paused_at and changes last_updated_at",
    rules=(20, 23),
)
def test_times(api: Api) -> None:
    export = api.create(start_at="2026-01-01T02:00:00+02:00", end_at="2022-07-19 00:00:00")
    assert export["start_at"] == "2026-01-01T00:00:00Z"
    assert export["end_at"] == "2022-07-19T00:00:00Z"
    invalid(api.patch(export, start_at="soon"), "start_at")
    assert api.patch(export, end_at=None).json()["end_at"] is None
    export = api.create()
    assert api.patch(export).json()["last_updated_at"] > export["last_updated_at"]
    moment = "2026-01-01T00:00:00Z"
    assert api.create(last_paused_at=moment)["last_paused_at"] == moment


@fact("1.1", "unknown and read-only fields are ignored without an error", rules=(6,))
def test_unknown_fields_are_dropped(api: Api) -> None:
    export = api.create(nonsense=1, id="x", team_id=99)
    assert "nonsense" not in export
    assert export["team_id"] == 1
    unknown = "hogql_query" if api.dialect == "interface" else "sql_query"
    assert unknown not in api.create(**{unknown: "select 1 from events"})


@fact("1.1", "the server computes values that were not sent on every read", "2026", rules=(10, 46))
def test_computed_values(api: Api) -> None:
    export = api.create(interval="week")
    assert (export["timezone"], export["offset_day"], export["offset_hour"]) == ("UTC", 0, 0)
    assert api.create()["offset_hour"] is None
    assert export["incremental_mode"] == "APPEND"


@fact(
    "1.2",
    "offsets must fit the interval; a change of offsets without the interval crashes",
    "2026",
    rules=(18, 19),
)
def test_offsets(api: Api) -> None:
    export = api.create(interval="day", offset_hour=5)
    assert export["offset_hour"] == 5
    assert api.patch(export, offset_hour=6).status_code == 500
    assert api.patch(export, interval="day", offset_hour=None).json()["offset_hour"] == 0
    changed = api.patch(export, interval="hour", timezone="Europe/Berlin").json()
    assert (changed["offset_hour"], changed["timezone"]) == (None, "Europe/Berlin")
    assert api.patch(export, interval="hour", timezone=None).json()["timezone"] == "UTC"
    wrong = api.patch(export, interval="day", offset_hour=24)
    refused(wrong, 400, "max_value", "offset_hour")
    refused(api.patch(export, interval="week", offset_day=7), 400, "max_value", "offset_day")
    invalid(api.patch(export, interval="hour", offset_hour=1), "offset_hour")


@fact("1.2", "a PATCH keeps the offsets that its interval takes; a PUT resets them", "2026")
def test_offsets_that_are_not_sent(api: Api) -> None:
    week = api.create(interval="week", offset_day=1, offset_hour=2)
    again = api.patch(week, interval="week").json()
    assert (again["offset_day"], again["offset_hour"]) == (1, 2)
    day = api.create(interval="day", offset_hour=5)
    moved = api.patch(day, interval="day", timezone="Europe/Berlin").json()
    assert (moved["offset_hour"], moved["timezone"]) == (5, "Europe/Berlin")
    hour = api.patch(day, interval="hour").json()
    assert (hour["offset_hour"], hour["timezone"]) == (None, "Europe/Berlin")
    back = api.patch(day, interval="week").json()
    assert (back["offset_day"], back["offset_hour"]) == (0, 0)
    put = api.call("PUT", f"{api.project}{week['id']}/", api.body(interval="week")).json()
    assert (put["offset_day"], put["offset_hour"]) == (0, 0)


@fact(
    "1.7",
    "pause and unpause answer a small object in real servers; a PATCH changes no last_paused_at",
    rules=(20, 21),
)
def test_pausing(api: Api) -> None:
    export = api.create()
    path = f"{api.project}{export['id']}"
    answer = api.call("POST", f"{path}/pause/", {}).json()
    assert answer["paused"] is True
    assert (set(answer) == {"paused"}) is (api.dialect != "interface")
    paused = api.get(export)
    assert paused["last_paused_at"] is not None
    api.call("POST", f"{path}/pause")
    assert api.get(export)["last_updated_at"] == paused["last_updated_at"]
    assert api.call("POST", f"{path}/unpause/", {}).json()["paused"] is False
    assert api.get(export)["last_paused_at"] == paused["last_paused_at"]
    assert api.patch(api.create(), paused=True).json()["last_paused_at"] is None


@fact("1.7", "unpause answers 401 for a user without a current project", rules=(22,))
def test_unpausing_without_a_current_project(api: Api) -> None:
    export = api.create(paused=True)
    answer = api.call("POST", f"{api.project}{export['id']}/unpause/", {}, key="phx_nowhere")
    refused(answer, 401, "not_authenticated")


@fact("1.9", "queries are shown as sent, or rewritten in the schema", *OLD, rules=(6, 7))
def test_queries(api: Api) -> None:
    name = "sql_query" if api.dialect == "interface" else "hogql_query"
    query = QUERY
    export = api.create(**{name: query})
    if api.dialect == "2025":
        assert "hogql_query" not in export
        printed = "SELECT event, toInt(plus(1, 1)) AS n FROM events"
        assert export["schema"]["hogql_query"] == printed
        for bad in ("nonsense", "select a from persons", "select a from events union all select b"):
            invalid(api.patch(export, hogql_query=bad), "hogql_query")
        refused(api.patch(export, hogql_query=None), 400, "null", "hogql_query")
    elif api.dialect == "interface":
        assert export[name] == query
        assert api.patch(export, **{name: None}).json()[name] is None


@fact(
    "1.10", "lists are newest first in pages of 100; invalid numbers mean the default", rules=(24,)
)
def test_pages(api: Api) -> None:
    names = [api.create(name=f"E{n}")["name"] for n in range(5)]
    listed = api.call("GET", api.project).json()
    assert [export["name"] for export in listed["results"]] == names[::-1]
    page = api.call("GET", f"{api.project}?limit=2&offset=2").json()
    assert [export["name"] for export in page["results"]] == ["E2", "E1"]
    assert "offset=4" in page["next"]
    assert page["previous"] is not None
    assert len(api.call("GET", f"{api.project}?limit=0&offset=x").json()["results"]) == 5
    assert api.call("GET", f"{api.project}?offset=99").json()["results"] == []
    assert len(api.call("GET", f"{api.project}?limit=10000").json()["results"]) == 5


@fact(
    "1.10",
    "the organization path lists all projects; only the interface creates there",
    rules=(5, 44),
)
def test_the_organization_path(api: Api) -> None:
    export = api.create()
    base = f"{api.organization}batch_exports/"
    assert api.call("GET", base).json()["count"] == 1
    assert api.call("GET", f"{base}{export['id']}/").status_code == 200
    patched = api.call("PATCH", f"{base}{export['id']}/", {"name": "x"}).status_code
    assert patched == (500 if api.dialect == "2025" else 200)
    assert (api.get(export)["name"] == "Lake") is (api.dialect == "2025")
    assert api.call("POST", f"{base}{export['id']}/pause/", {}).status_code == 200
    created = api.call("POST", base, api.body()).status_code
    assert created == (201 if api.dialect == "interface" else 500)
    assert api.call("DELETE", f"{base}{export['id']}/").status_code == 204


@pytest.mark.parametrize(
    ("dialect_of", "change"),
    [
        ("2026", {"hogql_query": "select event from events"}),
        ("2026", {"interval": "every 5 minutes"}),
    ],
)
@fact("1.10", "the newest server crashes where a PATCH without a project in its path needs one")
def test_patches_on_the_organization_path(api: Api, dialect_of: str, change: dict) -> None:
    """Inferred. The interface has no crashes."""
    export = api.create()
    path = f"{api.organization}batch_exports/{export['id']}/"
    answer = api.call("PATCH", path, change)
    if api.dialect == dialect_of:
        assert answer.status_code == 500
    if api.dialect == "interface":
        assert answer.status_code != 500
    if api.dialect == "2025":
        return
    kept = {"destination": {"type": export["destination"]["type"], "config": {"prefix": "q"}}}
    assert api.call("PATCH", path, kept).status_code == 200


@fact("1.10", "environments is an alias of projects")
def test_environments(api: Api) -> None:
    export = api.create()
    assert api.call("GET", f"/api/environments/1/batch_exports/{export['id']}/").status_code == 200
    answer = api.call("PATCH", "/api/environments/1/", {"timezone": "UTC"})
    assert answer.json()["timezone"] == "UTC"
    assert api.call("GET", "/api/projects/@current/batch_exports/").json()["count"] == 1


@fact("1.11", "a deleted export disappears at once; a second deletion answers 404")
def test_deletion(api: Api) -> None:
    path = f"{api.project}{api.create()['id']}/"
    assert api.call("DELETE", path).status_code == 204
    refused(api.call("GET", path), 404, "not_found")
    refused(api.call("DELETE", path), 404, "not_found")
    assert api.call("GET", api.project).json()["count"] == 0


@fact("1.1", "filters are any JSON in 2025 and typed in the newest; the interface ignores them")
def test_filters(api: Api) -> None:
    good = [{"type": "event", "key": "a"}]
    made = api.create(filters=good)
    if api.dialect == "interface":
        assert "filters" not in made
        return
    assert made["filters"] == good
    assert api.patch(made, filters=None).json()["filters"] is None
    for bad in ([{"type": "cohort"}], [{"type": "event", "data_interval_start": "a"}], {}):
        answer = api.patch(made, filters=bad)
        if api.dialect == "2026":
            invalid(answer, "filters")
        else:
            assert answer.status_code == 200


@fact("1.1", "the newest servers store incremental_mode, keys and modifiers", "2026")
def test_settings_of_the_newest_model(api: Api) -> None:
    """Version_key is a list."""
    settings = {
        "hogql_modifiers": {"a": 1},
        "primary_key": ["id"],
        "version_key": ["v"],
        "incremental_mode": "MERGE",
    }
    export = api.create(model="hogql", hogql_query=QUERY, **settings)
    assert {name: export[name] for name in settings} == settings
    refused(api.patch(export, incremental_mode="x"), 400, "invalid_choice", "incremental_mode")
    refused(api.patch(export, version_key="v"), 400, "not_a_list", "version_key")
    invalid(api.patch(export, primary_key=None), "primary_key")
    assert api.patch(export, name="New").status_code == 200


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        ("events", "primary_key", ["id"]),
        ("events", "version_key", ["v"]),
        ("persons", "hogql_modifiers", {"a": 1}),
        ("persons", "filters", [{"type": "event", "key": "a"}]),
        ("sessions", "filters", [{"type": "event", "key": "a"}]),
    ],
)
@fact("1.1", "fields of another model are refused, also on PATCH", "2026")
def test_fields_of_another_model(api: Api, model: str, field: str, value: object) -> None:
    fields = {"model": model, **({"hogql_query": QUERY} if model == "hogql" else {})}
    invalid(api.post(**fields, **{field: value}), field)
    export = api.create(**fields)
    invalid(api.patch(export, **{field: value}), field)


@fact("1.9", "a query requires the model hogql", "2026", rules=(6,))
def test_queries_on_events(api: Api) -> None:
    """On POST and PATCH; null is accepted."""
    for model in ("events", "persons"):
        body = api.body(model=model, hogql_query=QUERY)
        invalid(api.call("POST", api.project, body), "hogql_query")
    export = api.create(hogql_query=None)
    invalid(api.patch(export, hogql_query=QUERY), "hogql_query")
    assert api.patch(export, hogql_query=None).json()["hogql_query"] is None


@pytest.mark.parametrize(
    "query",
    [None, "SELEC nonsense", "select", "select count( from events", "select (1] from events"],
)
@fact("1.9", "the model hogql requires a query that can be parsed", "2026")
def test_invalid_queries_of_the_hogql_model(api: Api, query: str | None) -> None:
    body = api.body(model="hogql", hogql_query=query)
    invalid(api.call("POST", api.project, body), "hogql_query")
    export = api.create(model="hogql", hogql_query=QUERY)
    invalid(api.patch(export, hogql_query=query), "hogql_query")
    invalid(api.post(model="hogql"), "hogql_query")


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "with a as (select 1) select * from a union all select 2 -- it's (",
        "(select ')', \"(\" from persons join events on 1 = 1);",
    ],
)
@fact("1.9", "the model hogql accepts any query and shows it as sent", "2026", rules=(7,))
def test_queries_of_the_hogql_model(api: Api, query: str) -> None:
    export = api.create(model="hogql", hogql_query=query)
    assert (api.get(export)["hogql_query"], export["schema"]) == (query, None)
