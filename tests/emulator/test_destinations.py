"""Facts about destinations: service.md, 1.3 to 1.6."""

from __future__ import annotations

import pytest

from tests.emulator.facts import ALL, KEYS, OLD, S3, Api, fact, invalid, refused

NOOP = {"type": "NoOp", "config": {}}
USER, WAREHOUSE = {"user": "u", "password": "p"}, {"warehouse": "w", "schema": "s"}
SQL = {**USER, "host": "h", "database": "d"}
BIGQUERY = {"private_key": "k", "private_key_id": "i", "token_uri": "t", "client_email": "e"}
INSIDE = "destination__non_field_errors"


@fact(
    "1.3", "an unknown type is refused, S3 with keys by the newest; some need a flag", rules=(15,)
)
def test_destination_types(api: Api) -> None:
    refused(api.post(**api.to("Nope")), 400, "invalid_choice", "destination__type")
    s3, workflows = api.post(**api.to("S3", **S3, **KEYS)), api.to("Workflows", hog_function_id="x")
    if api.dialect == "2026":
        detail = refused(s3, 400, "invalid_choice", "destination__type")
        assert detail == '"S3" is not a valid choice.'
        detail = refused(api.post(**workflows), 403, "permission_denied")
        assert detail == "Backfilling Workflows is not enabled for this team."
    else:
        assert s3.status_code == 201
        assert api.post(**workflows).status_code == 400


@fact("1.3", "old servers change the type in place, the newest refuse it", rules=(14,))
def test_changing_the_type(api: Api) -> None:
    """The detail names both types."""
    answer = api.patch(api.create(), destination=NOOP)
    if api.dialect == "2026":
        detail = invalid(answer, "destination")
        assert "'AwsS3'" in detail
        assert "'NoOp'" in detail
    else:
        kept = answer.json()["destination"]
        assert kept["type"] == "NoOp"
        assert kept["config"]["bucket_name"] == "b", "the old type's keys stay"


@pytest.mark.parametrize(
    ("type_name", "config", "secrets"),
    [
        ("S3", {**S3, **KEYS}, set(KEYS)),
        ("Snowflake", {**USER, "account": "a", "database": "d", **WAREHOUSE}, set(USER)),
        ("Postgres", SQL, set(USER)),
        ("Redshift", SQL, set(USER)),
        ("BigQuery", {"project_id": "p", "dataset_id": "d", **BIGQUERY}, set(BIGQUERY)),
        ("HTTP", {"url": "u", "token": "t"}, {"token"}),
        ("NoOp", {"arg": "x"}, set()),
    ],
)
@fact("1.3", "types with credentials in the config; answers never show secrets", *OLD, rules=(1,))
def test_inline_types(api: Api, type_name: str, config: dict, secrets: set) -> None:
    made = api.post(**api.to(type_name, **config))
    assert made.status_code == 201, made.text
    assert set(made.json()["destination"]["config"]) == set(config) - secrets
    state = api.emulator.exports()["Lake"]
    assert set(state["secrets"]) == secrets
    for name, value in config.items():
        if name not in secrets and value:
            missing = {key: value for key, value in config.items() if key != name}
            if type_name in ("S3", "Postgres", "BigQuery", "HTTP") and name != "arg":
                answer = api.post(**api.to(type_name, **missing))
                assert f"'{name}'" in invalid(answer, INSIDE)


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
    "types with credentials in an integration of the same project and kind",
    "2026",
    rules=(13, 15),
)
def test_types_by_integration(api: Api, type_name: str, config: dict, integration: int) -> None:
    destination = {"type": type_name, "config": config}
    named = {**destination, "integration": integration}
    assert api.create(destination=named)["destination"]["integration"] == integration
    invalid(api.post(destination=destination), "destination")
    foreign = {**destination, "integration": 8}
    refused(api.post(destination=foreign), 400, "does_not_exist", "destination__integration")
    wrong = {**destination, "integration": 7 if integration != 7 else 3}
    invalid(api.post(destination=wrong), "destination")


@fact("1.3", "secrets are removed from answers at any depth", "2025")
def test_secrets_at_depth(api: Api) -> None:
    inputs = {
        "s3_bucket": "b",
        "region_name": "r",
        "authorization": "role",
        "bucket_credentials": dict(KEYS),
    }
    made = api.create(**api.to("Redshift", **SQL, mode="COPY", copy_inputs=inputs))
    assert made["destination"]["config"]["copy_inputs"]["bucket_credentials"] == {}
    assert "hidden" not in str(made)


@fact("1.4", "the error lists all unknown config keys, sorted", rules=(12,))
def test_unknown_config_keys(api: Api) -> None:
    body = api.body()
    body["destination"]["config"] |= {"zz": 1, "aa": 2}
    detail = invalid(api.call("POST", api.project, body), INSIDE)
    assert detail.endswith("'aa', 'zz'")


@fact("1.4", "a PATCH needs no required keys, and keeps secrets that are not sent", rules=(8,))
def test_a_patch_is_merged(api: Api) -> None:
    export = api.create()
    before = api.emulator.exports()["Lake"]["secrets"]
    sent = {"type": export["destination"]["type"], "config": {"prefix": "q"}}
    config = api.patch(export, destination=sent).json()["destination"]["config"]
    assert (config["prefix"], config["bucket_name"]) == ("q", "b")
    assert api.emulator.exports()["Lake"]["secrets"] == before


@fact(
    "1.4", "config values must be of their type and not null; words become booleans", rules=(9, 17)
)
def test_config_types(api: Api) -> None:
    export = api.create()
    kind = export["destination"]["type"]

    def change(**config: object):
        return api.patch(export, destination={"type": kind, "config": config})

    invalid(change(file_format=None), INSIDE)
    detail = invalid(change(prefix=5), INSIDE)
    assert "'int'" in detail
    assert "'str'" in detail
    assert change(compression=None).status_code == 200
    if kind == "S3":
        answer = change(use_virtual_style_addressing="nonsense").json()
        assert answer["destination"]["config"]["use_virtual_style_addressing"] is False


@fact("1.4", "real servers crash on a PATCH of a destination without type or config", rules=(13,))
def test_a_patch_of_half_a_destination(api: Api) -> None:
    answer = api.patch(api.create(), destination={"config": {"prefix": "q"}})
    assert answer.status_code == (200 if api.dialect == "interface" else 500)


@fact("1.5", "a GET returns config scalars as text", *ALL, rules=(11,))
def test_scalars_as_text(api: Api) -> None:
    if api.dialect == "2026":
        config = {"database": "d", "port": 5433}
        export = api.create(destination={"type": "Postgres", "integration": 3, "config": config})
        assert api.get(export)["destination"]["config"]["port"] == 5433
        return
    export = api.create(**api.to("Postgres", **SQL, port=5433, has_self_signed_cert=True))
    assert export["destination"]["config"]["port"] == 5433
    read = api.get(export)["destination"]["config"]
    as_text = api.dialect == "2025"
    assert read["port"] == ("5433" if as_text else 5433)
    assert read["has_self_signed_cert"] == ("True" if as_text else True)


@fact(
    "1.5", "answers have no keys that were not sent, except one in the newest servers", rules=(10,)
)
def test_injected_keys(api: Api) -> None:
    config = api.create()["destination"]["config"]
    if api.dialect == "2026":
        assert config == {**S3, "legacy_parquet_extension": False}
        export = api.create()
        answer = api.patch(
            export, destination={"type": "AwsS3", "config": {"legacy_parquet_extension": True}}
        )
        invalid(answer, "destination")
    else:
        assert config == S3


@fact("1.6", "PUT requires the required fields and merges the others", rules=(8,))
def test_put_merges(api: Api) -> None:
    export = api.create(end_at="2030-01-01T00:00:00Z")
    path = f"{api.project}{export['id']}/"
    refused(api.call("PUT", path, {"name": "x"}), 400, "required", "destination")
    answer = api.call("PUT", path, api.body(name="New"))
    assert (answer.json()["name"], answer.json()["end_at"]) == ("New", "2030-01-01T00:00:00Z")


@fact(
    "1.6", "S3 keeps its integration on PATCH, other types must send it again", "2026", rules=(13,)
)
def test_integration_in_a_patch(api: Api) -> None:
    export = api.create()
    answer = api.patch(export, destination={"type": "AwsS3", "config": {"prefix": "q"}})
    assert answer.json()["destination"]["integration"] == 7
    query = api.create(
        destination={"type": "BigQuery", "config": {"dataset_id": "d"}, "integration": 4}
    )
    again = {"type": "BigQuery", "config": {"table_id": "t"}}
    invalid(api.patch(query, destination=again), "destination")


@fact("1.1", "the destination is required; it must be an object and not null")
def test_invalid_destinations(api: Api) -> None:
    refused(api.post(destination=None), 400, "null", "destination")
    invalid(api.post(destination=[]), INSIDE)
    refused(api.post(destination={"config": {}}), 400, "required", "destination__type")
    answer = api.post(destination={"type": "NoOp"})
    assert answer.status_code == {"interface": 201, "2025": 500, "2026": 400}[api.dialect]
    listed = api.post(destination={"type": "NoOp", "config": []})
    assert listed.status_code == (400 if api.dialect == "interface" else 500)


@fact("1.4", "the interface reads a null config as empty, real servers refuse it")
def test_a_null_config(api: Api) -> None:
    """On POST, PATCH and PUT."""
    null = {"type": "NoOp", "config": None}
    created = api.post(destination=null)
    export = api.create(destination=NOOP)
    patched = api.patch(export, destination=null)
    put = api.call("PUT", f"{api.project}{export['id']}/", api.body(destination=null))
    if api.dialect == "interface":
        assert [created.status_code, patched.status_code, put.status_code] == [201, 200, 200]
        assert created.json()["destination"]["config"] == {}
        return
    for answer in (created, patched, put):
        refused(answer, 400, "null", "destination__config")


@fact(
    "1.6", "a PATCH of the type needs no required keys; Databricks requires its integration", *OLD
)
def test_a_partial_change_of_type(api: Api) -> None:
    export = api.create()
    answer = api.patch(export, **api.to("Postgres", host="h"))
    assert answer.status_code == 200, answer.text
    config = answer.json()["destination"]["config"]
    assert (config["host"], config["bucket_name"]) == ("h", "b")
    invalid(api.patch(export, **api.to("Databricks")), "destination")
