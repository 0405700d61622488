"""Facts about batch exports: docs/service.md, 1.1, 1.2 and 1.7 to 1.11."""

from __future__ import annotations

import pytest

from tests.emulator.facts import OLD, Api, fact, refused

QUERY = "select event, toInt(1+1) as n from events"


@fact("1.1", "name: required, trimmed, neither blank nor null, not unique", traps=(3,))
def test_names(api: Api) -> None:
    refused(api.call("POST", api.project, {}), 400, "required", "name")
    refused(api.call("POST", api.project, api.body(name=" ")), 400, "blank", "name")
    refused(api.call("POST", api.project, api.body(name=None)), 400, "null", "name")
    assert api.create(name=" Lake ")["name"] == "Lake"
    assert api.create(name="Lake")["name"] == "Lake"


@fact("1.1", "creating twice makes two", traps=(4,))
def test_a_create_is_not_idempotent(api: Api) -> None:
    assert api.create()["id"] != api.create()["id"]
    assert api.call("GET", api.project).json()["count"] == 2


@fact(
    "1.1",
    "model: events by default; null means events in old servers, is refused in the newest",
    traps=(10,),
)
def test_models(api: Api) -> None:
    assert api.create()["model"] == "events"
    answer = api.call("POST", api.project, api.body(model=None))
    if api.dialect == "2026":
        refused(answer, 400, "null", "model")
    else:
        assert answer.json()["model"] == "events"
    refused(api.call("POST", api.project, api.body(model="x")), 400, "invalid_choice", "model")


@fact("1.1", "the model can't change in place in the newest servers", traps=(14,))
def test_changing_the_model(api: Api) -> None:
    answer = api.patch(api.create(), model="persons")
    if api.dialect == "2026":
        refused(answer, 400, "invalid_input", "model")
    else:
        assert answer.json()["model"] == "persons"


@fact(
    "1.1",
    "interval: known words only, short ones need a flag: on create, in the newest on PATCH too",
    traps=(19,),
)
def test_intervals(api: Api) -> None:
    refused(
        api.call("POST", api.project, api.body(interval="x")), 400, "invalid_choice", "interval"
    )
    refused(api.call("POST", api.project, api.body(interval=None)), 400, "null", "interval")
    short = api.body(interval="every 5 minutes")
    refused(api.call("POST", api.project, short), 403, "permission_denied")
    answer = api.patch(api.create(), interval="every 5 minutes")
    assert answer.status_code == (403 if api.dialect == "2026" else 200)


@fact("1.1", "times: any ISO, naive means UTC, answered in UTC with Z")
def test_times(api: Api) -> None:
    export = api.create(start_at="2026-01-01T02:00:00+02:00", end_at="2022-07-19 00:00:00")
    assert export["start_at"] == "2026-01-01T00:00:00Z"
    assert export["end_at"] == "2022-07-19T00:00:00Z"
    refused(api.patch(export, start_at="soon"), 400, "invalid_input", "start_at")
    assert api.patch(export, end_at=None).json()["end_at"] is None


@fact("1.1", "unknown and read-only fields are dropped without a word", traps=(6,))
def test_unknown_fields_are_dropped(api: Api) -> None:
    export = api.create(nonsense=1, id="x", team_id=99)
    assert "nonsense" not in export
    assert export["team_id"] == 1
    unknown = "hogql_query" if api.dialect == "interface" else "sql_query"
    assert unknown not in api.create(**{unknown: "select 1 from events"})


@fact("1.1", "every save moves last_updated_at, an empty one too", traps=(23,))
def test_every_save_moves_the_date(api: Api) -> None:
    export = api.create()
    assert api.patch(export).json()["last_updated_at"] > export["last_updated_at"]


@fact("1.1", "values that nobody sent are computed on read", "2026", traps=(10, 46))
def test_computed_values(api: Api) -> None:
    export = api.create(interval="week")
    assert (export["timezone"], export["offset_day"], export["offset_hour"]) == ("UTC", 0, 0)
    assert api.create()["offset_hour"] is None
    assert export["incremental_mode"] == "APPEND"


@fact("1.2", "offsets fit their interval, go with it, and crash without it", "2026", traps=(18, 19))
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
    refused(api.patch(export, interval="hour", offset_hour=1), 400, "invalid_input", "offset_hour")


@fact("1.2", "a PATCH keeps the offsets that its interval takes; a PUT resets them", "2026")
def test_offsets_that_are_not_sent(api: Api) -> None:
    """fidelity-2."""
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
    "pause and unpause: the export in the interface, something small in real servers; twice "
    "is once",
    traps=(20, 21),
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


@fact("1.7", "paused by PATCH leaves last_paused_at", traps=(20,))
def test_pausing_by_patch(api: Api) -> None:
    assert api.patch(api.create(), paused=True).json()["last_paused_at"] is None


@fact("1.7", "unpause is 401 for a user without a current project", traps=(22,))
def test_unpausing_from_nowhere(api: Api) -> None:
    export = api.create(paused=True)
    answer = api.call("POST", f"{api.project}{export['id']}/unpause/", {}, key="phx_nowhere")
    refused(answer, 401, "not_authenticated")


@fact("1.9", "queries: shown as sent, or rewritten in the schema", *OLD, traps=(6, 7))
def test_queries(api: Api) -> None:
    name = "sql_query" if api.dialect == "interface" else "hogql_query"
    query = QUERY
    export = api.create(**{name: query})
    if api.dialect == "2025":
        assert "hogql_query" not in export
        printed = "SELECT event, toInt(plus(1, 1)) AS n FROM events"
        assert export["schema"]["hogql_query"] == printed
        for bad in ("nonsense", "select a from persons", "select a from events union all select b"):
            refused(api.patch(export, hogql_query=bad), 400, "invalid_input", "hogql_query")
        refused(api.patch(export, hogql_query=None), 400, "null", "hogql_query")
    elif api.dialect == "interface":
        assert export[name] == query
        assert api.patch(export, **{name: None}).json()[name] is None


@fact("1.10", "lists: newest first, pages of 100, odd numbers mean the default", traps=(24,))
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
    "the organization path reads all projects, and creates only in the interface",
    traps=(5, 44),
)
def test_the_organization_path(api: Api) -> None:
    export = api.create()
    base = f"{api.organization}batch_exports/"
    assert api.call("GET", base).json()["count"] == 1
    assert api.call("GET", f"{base}{export['id']}/").status_code == 200
    assert api.call("PATCH", f"{base}{export['id']}/", {"name": "x"}).json()["name"] == "x"
    assert api.call("POST", f"{base}{export['id']}/pause/", {}).status_code == 200
    created = api.call("POST", base, api.body()).status_code
    assert created == (201 if api.dialect == "interface" else 500)
    assert api.call("DELETE", f"{base}{export['id']}/").status_code == 204


@pytest.mark.parametrize(
    ("dialect_of", "change"),
    [
        ("2025", {"hogql_query": "select event from events"}),
        ("2025", {"destination": {"type": "Databricks", "config": {}, "integration": 5}}),
        ("2026", {"hogql_query": "select event from events"}),
        ("2026", {"interval": "every 5 minutes"}),
        ("2026", {"destination": {"type": "AwsS3", "config": {"prefix": "q"}, "integration": 7}}),
    ],
)
@fact("1.10", "the organization path crashes where a PATCH needs the project")
def test_patches_on_the_organization_path(api: Api, dialect_of: str, change: dict) -> None:
    """fidelity-19; inferred. The interface has no crashes."""
    export = api.create()
    path = f"{api.organization}batch_exports/{export['id']}/"
    answer = api.call("PATCH", path, change)
    if api.dialect == dialect_of:
        assert answer.status_code == 500
    if api.dialect == "interface":
        assert answer.status_code != 500
    kept = {"destination": {"type": export["destination"]["type"], "config": {"prefix": "q"}}}
    assert api.call("PATCH", path, kept).status_code == 200


@fact("1.10", "environments is another name of projects")
def test_environments(api: Api) -> None:
    export = api.create()
    assert api.call("GET", f"/api/environments/1/batch_exports/{export['id']}/").status_code == 200
    answer = api.call("PATCH", "/api/environments/1/", {"timezone": "UTC"})
    assert answer.json()["timezone"] == "UTC"
    assert api.call("GET", "/api/projects/@current/batch_exports/").json()["count"] == 1


@fact("1.11", "deletion: gone at once, a second time is 404")
def test_deletion(api: Api) -> None:
    path = f"{api.project}{api.create()['id']}/"
    assert api.call("DELETE", path).status_code == 204
    refused(api.call("GET", path), 404, "not_found")
    refused(api.call("DELETE", path), 404, "not_found")
    assert api.call("GET", api.project).json()["count"] == 0


@fact("1.1", "filters: any JSON in 2025, typed in the newest, unknown to the interface")
def test_filters(api: Api) -> None:
    good = [{"type": "event", "key": "a"}]
    made = api.create(filters=good)
    if api.dialect == "interface":
        assert "filters" not in made
        return
    assert made["filters"] == good
    assert api.patch(made, filters=None).json()["filters"] is None
    for bad in ([{"type": "cohort"}], [{"type": "event", "key": "data_interval_start"}], {}):
        answer = api.patch(made, filters=bad)
        if api.dialect == "2026":
            refused(answer, 400, "invalid_input", "filters")
        else:
            assert answer.status_code == 200


@fact("1.1", "last_paused_at can be written", traps=(20,))
def test_the_date_of_the_pause_can_be_written(api: Api) -> None:
    moment = "2026-01-01T00:00:00Z"
    assert api.create(last_paused_at=moment)["last_paused_at"] == moment


@fact("1.1", "settings of the newest model: modes, keys and modifiers are kept", "2026")
def test_settings_of_the_newest_model(api: Api) -> None:
    """fidelity-6: version_key is a list."""
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
    refused(api.patch(export, primary_key=None), 400, "invalid_input", "incremental_mode")
    assert api.patch(export, name="New").status_code == 200


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        ("events", "primary_key", ["id"]),
        ("events", "version_key", ["v"]),
        ("persons", "hogql_modifiers", {"a": 1}),
        ("persons", "filters", [{"type": "event", "key": "a"}]),
        ("sessions", "filters", [{"type": "event", "key": "a"}]),
        ("hogql", "incremental_mode", "MERGE"),
        ("events", "incremental_mode", "MERGE"),
    ],
)
@fact("1.1", "fields that another model takes are refused, on PATCH as well", "2026")
def test_fields_of_another_model(api: Api, model: str, field: str, value: object) -> None:
    """fidelity-6."""
    fields = {"model": model, **({"hogql_query": QUERY} if model == "hogql" else {})}
    refused(
        api.call("POST", api.project, api.body(**fields, **{field: value})),
        400,
        "invalid_input",
        field,
    )
    export = api.create(**fields)
    refused(api.patch(export, **{field: value}), 400, "invalid_input", field)


@fact("1.9", "queries need the model hogql", "2026", traps=(6,))
def test_queries_on_events(api: Api) -> None:
    """fidelity-1: on POST and PATCH; null is accepted."""
    for model in ("events", "persons"):
        body = api.body(model=model, hogql_query=QUERY)
        refused(api.call("POST", api.project, body), 400, "invalid_input", "hogql_query")
    export = api.create(hogql_query=None)
    refused(api.patch(export, hogql_query=QUERY), 400, "invalid_input", "hogql_query")
    assert api.patch(export, hogql_query=None).json()["hogql_query"] is None


@pytest.mark.parametrize(
    "query",
    [None, "", "SELEC nonsense", "select", "select count( from events", "select (1] from events"],
)
@fact("1.9", "the model hogql needs a query that can be parsed", "2026")
def test_bad_queries_of_the_hogql_model(api: Api, query: str | None) -> None:
    """fidelity-1."""
    body = api.body(model="hogql", hogql_query=query)
    refused(api.call("POST", api.project, body), 400, "invalid_input", "hogql_query")
    export = api.create(model="hogql", hogql_query=QUERY)
    refused(api.patch(export, hogql_query=query), 400, "invalid_input", "hogql_query")
    refused(
        api.call("POST", api.project, api.body(model="hogql")), 400, "invalid_input", "hogql_query"
    )


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "with a as (select 1) select * from a union all select 2 -- it's (",
        "(select ')', \"(\" from persons join events on 1 = 1);",
    ],
)
@fact("1.9", "the model hogql takes any query and shows it as sent", "2026", traps=(7,))
def test_queries_of_the_hogql_model(api: Api, query: str) -> None:
    export = api.create(model="hogql", hogql_query=query)
    assert (api.get(export)["hogql_query"], export["schema"]) == (query, None)
