"""Facts about batch exports: service-facts, section 1."""

from __future__ import annotations

import pytest

from tests.emulator.facts import ALL, KEYS, OLD, REAL, S3, Api, fact, refused

NOOP = {"type": "NoOp", "config": {}}


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


@fact("1.3", "S3 with keys is refused by the newest servers", traps=(15,))
def test_s3_with_keys(api: Api) -> None:
    answer = api.call("POST", api.project, {**api.body(), **api.to("S3", **S3, **KEYS)})
    if api.dialect == "2026":
        assert "AwsS3" in refused(answer, 400, "invalid_input", "destination")
    else:
        assert answer.status_code == 201


@fact("1.3", "an unknown type is no choice; a gated one needs its flag")
def test_destination_types(api: Api) -> None:
    answer = api.call("POST", api.project, {**api.body(), **api.to("Nope")})
    refused(answer, 400, "invalid_choice", "destination__type")
    if api.dialect == "2026":
        workflows = {**api.body(), **api.to("Workflows", hog_function_id="x")}
        refused(api.call("POST", api.project, workflows), 403, "permission_denied")


@fact("1.3", "a change of type: in place in old servers, never in the newest", traps=(14,))
def test_changing_the_type(api: Api) -> None:
    answer = api.patch(api.create(), destination=NOOP)
    if api.dialect == "2026":
        refused(answer, 400, "invalid_input", "destination")
    else:
        kept = answer.json()["destination"]
        assert kept["type"] == "NoOp"
        assert kept["config"]["bucket_name"] == "b", "the old type's keys stay"


@pytest.mark.parametrize(
    ("type_name", "config", "secrets"),
    [
        ("S3", {**S3, **KEYS}, set(KEYS)),
        (
            "Snowflake",
            {
                "account": "a",
                "user": "u",
                "password": "p",
                "database": "d",
                "warehouse": "w",
                "schema": "s",
            },
            {"user", "password"},
        ),
        (
            "Postgres",
            {"user": "u", "password": "p", "host": "h", "database": "d"},
            {"user", "password"},
        ),
        (
            "Redshift",
            {"user": "u", "password": "p", "host": "h", "database": "d"},
            {"user", "password"},
        ),
        (
            "BigQuery",
            {
                "project_id": "p",
                "dataset_id": "d",
                "private_key": "k",
                "private_key_id": "i",
                "token_uri": "t",
                "client_email": "e",
            },
            {"private_key", "private_key_id", "token_uri", "client_email"},
        ),
        ("HTTP", {"url": "u", "token": "t"}, {"token"}),
        ("NoOp", {"arg": "x"}, set()),
    ],
)
@fact("1.3", "the types with credentials in the config; secrets are never shown", *OLD, traps=(1,))
def test_inline_types(api: Api, type_name: str, config: dict, secrets: set) -> None:
    made = api.call("POST", api.project, {**api.body(), **api.to(type_name, **config)})
    assert made.status_code == 201, made.text
    assert set(made.json()["destination"]["config"]) == set(config) - secrets
    state = api.emulator.exports()["Lake"]
    assert set(state["secrets"]) == secrets
    for name, value in config.items():
        if name not in secrets and value:
            missing = {key: value for key, value in config.items() if key != name}
            if type_name in ("S3", "Postgres", "BigQuery", "HTTP") and name != "arg":
                answer = api.call(
                    "POST", api.project, {**api.body(), **api.to(type_name, **missing)}
                )
                assert f"'{name}'" in refused(
                    answer, 400, "invalid_input", "destination__non_field_errors"
                )


@pytest.mark.parametrize(
    ("type_name", "config", "integration"),
    [
        ("AwsS3", S3, 7),
        ("Postgres", {"database": "d"}, 3),
        ("BigQuery", {"dataset_id": "d"}, 4),
        ("Databricks", {"http_path": "h", "catalog": "c", "schema": "s", "table_name": "t"}, 5),
        ("S3Compatible", S3, 10),
        ("Snowflake", {"database": "d", "warehouse": "w", "schema": "s"}, 11),
        ("AzureBlob", {"container_name": "c"}, 12),
    ],
)
@fact(
    "1.3",
    "the types with credentials in an integration of the same project and kind",
    "2026",
    traps=(13, 15),
)
def test_types_by_integration(api: Api, type_name: str, config: dict, integration: int) -> None:
    destination = {"type": type_name, "config": config}
    named = {**destination, "integration": integration}
    assert api.create(destination=named)["destination"]["integration"] == integration
    refused(
        api.call("POST", api.project, api.body(destination=destination)),
        400,
        "invalid_input",
        "destination",
    )
    foreign = {**destination, "integration": 8}
    refused(
        api.call("POST", api.project, api.body(destination=foreign)),
        400,
        "does_not_exist",
        "destination__integration",
    )
    wrong = {**destination, "integration": 7 if integration != 7 else 3}
    refused(
        api.call("POST", api.project, api.body(destination=wrong)),
        400,
        "invalid_input",
        "destination",
    )


@fact("1.3", "credentials are stripped at any depth", "2025")
def test_secrets_at_depth(api: Api) -> None:
    inputs = {
        "s3_bucket": "b",
        "region_name": "r",
        "authorization": "role",
        "bucket_credentials": dict(KEYS),
    }
    config = {
        "user": "u",
        "password": "p",
        "host": "h",
        "database": "d",
        "mode": "COPY",
        "copy_inputs": inputs,
    }
    made = api.create(**api.to("Redshift", **config))
    assert made["destination"]["config"]["copy_inputs"]["bucket_credentials"] == {}
    assert "hidden" not in str(made)


@fact("1.4", "unknown config keys are all named, sorted", traps=(12,))
def test_unknown_config_keys(api: Api) -> None:
    body = api.body()
    body["destination"]["config"] |= {"zz": 1, "aa": 2}
    detail = refused(
        api.call("POST", api.project, body), 400, "invalid_input", "destination__non_field_errors"
    )
    assert detail.endswith("'aa', 'zz'")


@fact(
    "1.4", "a PATCH needs no required keys, and keeps the secrets that it doesn't send", traps=(8,)
)
def test_a_patch_is_merged(api: Api) -> None:
    export = api.create()
    before = api.emulator.exports()["Lake"]["secrets"]
    sent = {"type": export["destination"]["type"], "config": {"prefix": "q"}}
    config = api.patch(export, destination=sent).json()["destination"]["config"]
    assert (config["prefix"], config["bucket_name"]) == ("q", "b")
    assert api.emulator.exports()["Lake"]["secrets"] == before


@fact("1.4", "plain types are checked: null, wrong types; words become booleans", traps=(9, 17))
def test_config_types(api: Api) -> None:
    export = api.create()
    kind = export["destination"]["type"]

    def change(**config: object):
        return api.patch(export, destination={"type": kind, "config": config})

    inside = "destination__non_field_errors"
    refused(change(file_format=None), 400, "invalid_input", inside)
    detail = refused(change(prefix=5), 400, "invalid_input", inside)
    assert "'int'" in detail
    assert "'str'" in detail
    assert change(compression=None).status_code == 200
    if kind == "S3":
        answer = change(use_virtual_style_addressing="nonsense").json()
        assert answer["destination"]["config"]["use_virtual_style_addressing"] is False


@fact(
    "1.4",
    "compression fits the format: judged by what is sent in old servers, merged in the newest",
    traps=(16,),
)
def test_compression(api: Api) -> None:
    export = api.create()
    kind = export["destination"]["type"]

    def change(**config: object):
        return api.patch(export, destination={"type": kind, "config": config})

    refused(change(compression="zstd"), 400, "invalid_input", "destination")
    assert change(compression="zstd", file_format="Parquet").status_code == 200
    answer = change(compression="snappy")
    assert answer.status_code == (200 if api.dialect == "2026" else 400)


@fact("1.4", "Snowflake needs the secret of its way to sign in; the stored one counts", *OLD)
def test_snowflake(api: Api) -> None:
    config = {"account": "a", "user": "u", "database": "d", "warehouse": "w", "schema": "s"}
    refused(
        api.call("POST", api.project, {**api.body(), **api.to("Snowflake", **config)}),
        400,
        "invalid_input",
        "destination",
    )
    export = api.create(**api.to("Snowflake", **config, password="p"))
    keypair = api.to("Snowflake", authentication_type="keypair")
    refused(api.patch(export, **keypair), 400, "invalid_input", "destination")
    assert api.patch(export, **api.to("Snowflake", role="r")).status_code == 200


@fact("1.4", "HTTP exports events only")
def test_http_exports_events_only(api: Api) -> None:
    body = {**api.body(model="persons"), **api.to("HTTP", url="u", token="t")}
    if api.dialect == "2026":
        refused(
            api.call("POST", api.project, {**body, "model": "events"}),
            400,
            "invalid_input",
            "destination",
        )
        body["destination"]["config"]["url"] = "https://eu.i.posthog.com/batch/"
    refused(api.call("POST", api.project, body), 400, "invalid_input", "destination")


@fact("1.4", "a destination PATCH without type or config crashes the real servers", traps=(13,))
def test_half_a_destination(api: Api) -> None:
    answer = api.patch(api.create(), destination={"config": {"prefix": "q"}})
    assert answer.status_code == (200 if api.dialect == "interface" else 500)


@fact("1.5", "config scalars come back as text from a GET", *ALL, traps=(11,))
def test_scalars_as_text(api: Api) -> None:
    if api.dialect == "2026":
        export = api.create(
            destination={
                "type": "Postgres",
                "integration": 3,
                "config": {"database": "d", "port": 5433},
            }
        )
        assert api.get(export)["destination"]["config"]["port"] == 5433
        return
    config = {
        "user": "u",
        "password": "p",
        "host": "h",
        "database": "d",
        "port": 5433,
        "has_self_signed_cert": True,
    }
    export = api.create(**api.to("Postgres", **config))
    assert export["destination"]["config"]["port"] == 5433
    read = api.get(export)["destination"]["config"]
    as_text = api.dialect == "2025"
    assert read["port"] == ("5433" if as_text else 5433)
    assert read["has_self_signed_cert"] == ("True" if as_text else True)


@fact(
    "1.5",
    "keys never sent are not returned, but for one that the newest servers inject",
    traps=(10,),
)
def test_injected_keys(api: Api) -> None:
    config = api.create()["destination"]["config"]
    if api.dialect == "2026":
        assert config == {**S3, "legacy_parquet_extension": False}
        export = api.create()
        answer = api.patch(
            export, destination={"type": "AwsS3", "config": {"legacy_parquet_extension": True}}
        )
        refused(answer, 400, "invalid_input", "destination")
    else:
        assert config == S3


@fact("1.6", "PUT needs the required fields and merges all the same", traps=(8,))
def test_put_merges(api: Api) -> None:
    export = api.create(end_at="2030-01-01T00:00:00Z")
    path = f"{api.project}{export['id']}/"
    refused(api.call("PUT", path, {"name": "x"}), 400, "required", "destination")
    answer = api.call("PUT", path, api.body(name="New"))
    assert (answer.json()["name"], answer.json()["end_at"]) == ("New", "2030-01-01T00:00:00Z")


@fact("1.6", "absent integration stays for S3, must be named again for others", "2026", traps=(13,))
def test_integration_in_a_patch(api: Api) -> None:
    export = api.create()
    answer = api.patch(export, destination={"type": "AwsS3", "config": {"prefix": "q"}})
    assert answer.json()["destination"]["integration"] == 7
    query = api.create(
        destination={"type": "BigQuery", "config": {"dataset_id": "d"}, "integration": 4}
    )
    again = {"type": "BigQuery", "config": {"table_id": "t"}}
    refused(api.patch(query, destination=again), 400, "invalid_input", "destination")


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


@fact("1.9", "queries: shown as sent, or rewritten in the schema", traps=(6, 7))
def test_queries(api: Api) -> None:
    name = "sql_query" if api.dialect == "interface" else "hogql_query"
    query = "select event, toInt(1+1) as n from events"
    export = api.create(**{name: query})
    if api.dialect == "2025":
        assert "hogql_query" not in export
        printed = "SELECT event, toInt(plus(1, 1)) AS n FROM events"
        assert export["schema"]["hogql_query"] == printed
        for bad in ("nonsense", "select a from persons", "select a from events union all select b"):
            refused(api.patch(export, hogql_query=bad), 400, "invalid_input", "hogql_query")
        refused(api.patch(export, hogql_query=None), 400, "null", "hogql_query")
    else:
        assert export[name] == query
        assert api.patch(export, **{name: None}).json()[name] is None


@fact("1.10", "lists: newest first, pages of 100, odd numbers mean the default", traps=(24,))
def test_pages(api: Api) -> None:
    names = [api.create(name=f"E{n}")["name"] for n in range(5)]
    listed = api.call("GET", api.project).json()
    assert [each["name"] for each in listed["results"]] == names[::-1]
    page = api.call("GET", f"{api.project}?limit=2&offset=2").json()
    assert [each["name"] for each in page["results"]] == ["E2", "E1"]
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


@fact("1.3", "Workflows exports are hidden in lists", *REAL)
def test_hidden_types_are_no_types_elsewhere(api: Api) -> None:
    answer = api.call(
        "POST", api.project, {**api.body(), **api.to("Workflows", hog_function_id="x")}
    )
    assert answer.status_code == (403 if api.dialect == "2026" else 400)


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


@fact("1.1", "a destination is required, is an object, and is not null")
def test_odd_destinations(api: Api) -> None:
    refused(api.call("POST", api.project, api.body(destination=None)), 400, "null", "destination")
    refused(
        api.call("POST", api.project, api.body(destination=[])),
        400,
        "invalid_input",
        "destination__non_field_errors",
    )
    refused(
        api.call("POST", api.project, api.body(destination={"config": {}})),
        400,
        "required",
        "destination__type",
    )
    answer = api.call("POST", api.project, api.body(destination={"type": "NoOp"}))
    assert answer.status_code == {"interface": 201, "2025": 500, "2026": 400}[api.dialect]
    listed = api.call("POST", api.project, api.body(destination={"type": "NoOp", "config": []}))
    assert listed.status_code == (400 if api.dialect == "interface" else 500)


@fact("1.1", "settings of the newest model: modes, keys and modifiers are kept", "2026")
def test_settings_of_the_newest_model(api: Api) -> None:
    settings = {
        "hogql_modifiers": {"a": 1},
        "primary_key": ["id"],
        "version_key": "v",
        "incremental_mode": "MERGE",
    }
    made = api.create(**settings)
    assert {name: made[name] for name in settings} == settings
    refused(api.patch(made, incremental_mode="x"), 400, "invalid_choice", "incremental_mode")


@fact(
    "1.3",
    "Redshift takes credentials or an integration, and needs it named again",
    "2026",
    traps=(13,),
)
def test_redshift_by_integration(api: Api) -> None:
    made = api.create(
        destination={"type": "Redshift", "config": {"database": "d"}, "integration": 13}
    )
    assert made["destination"]["integration"] == 13
    inline = api.create(**api.to("Redshift", database="d", host="h", user="u", password="p"))
    assert set(inline["destination"]["config"]) == {"database", "host"}


@fact("1.4", "Redshift COPY needs its bucket and both keys", *OLD)
def test_redshift_copy(api: Api) -> None:
    config = {"user": "u", "password": "p", "host": "h", "database": "d", "mode": "COPY"}
    inputs = {
        "s3_bucket": "b",
        "region_name": "r",
        "authorization": "role",
        "bucket_credentials": {"aws_access_key_id": "a"},
    }
    for wrong in ({}, {"copy_inputs": {}}, {"copy_inputs": inputs}):
        answer = api.call("POST", api.project, api.body(**api.to("Redshift", **config, **wrong)))
        refused(answer, 400, "invalid_input", "destination")
