"""Facts about destinations: service.md, 1.3 to 1.6."""

from __future__ import annotations

import pytest

from tests.emulator.facts import ALL, KEYS, OLD, REAL, S3, Api, fact, invalid, refused

NOOP = {"type": "NoOp", "config": {}}


@fact("1.3", "the newest servers refuse S3 with keys in the config", rules=(15,))
def test_s3_with_keys(api: Api) -> None:
    answer = api.post(**api.to("S3", **S3, **KEYS))
    if api.dialect == "2026":
        refused(answer, 400, "invalid_choice", "destination__type")
    else:
        assert answer.status_code == 201


@fact("1.3", "an unknown type is refused; some types need a feature flag")
def test_destination_types(api: Api) -> None:
    answer = api.post(**api.to("Nope"))
    refused(answer, 400, "invalid_choice", "destination__type")
    if api.dialect == "2026":
        workflows = {**api.body(), **api.to("Workflows", hog_function_id="x")}
        refused(api.call("POST", api.project, workflows), 403, "permission_denied")


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
                assert f"'{name}'" in invalid(answer, "destination__non_field_errors")


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


@fact("1.4", "the error lists all unknown config keys, sorted", rules=(12,))
def test_unknown_config_keys(api: Api) -> None:
    body = api.body()
    body["destination"]["config"] |= {"zz": 1, "aa": 2}
    detail = invalid(api.call("POST", api.project, body), "destination__non_field_errors")
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

    inside = "destination__non_field_errors"
    invalid(change(file_format=None), inside)
    detail = invalid(change(prefix=5), inside)
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


@fact("1.3", "Workflows exports are hidden in lists", *REAL)
def test_hidden_types_are_no_types_elsewhere(api: Api) -> None:
    answer = api.post(**api.to("Workflows", hog_function_id="x"))
    assert answer.status_code == (403 if api.dialect == "2026" else 400)


@fact("1.1", "the destination is required; it must be an object and not null")
def test_invalid_destinations(api: Api) -> None:
    refused(api.post(destination=None), 400, "null", "destination")
    invalid(api.post(destination=[]), "destination__non_field_errors")
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
