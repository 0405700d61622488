"""Facts about single destination types: service.md, 1.3 to 1.6."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import ALL, KEYS, OLD, S3, Api, fact, invalid

SQL = {"user": "u", "password": "p", "host": "h", "database": "d"}
SNOWFLAKE = {"account": "a", "user": "u", "database": "d", "warehouse": "w", "schema": "s"}
COPY = {
    "s3_bucket": "b",
    "region_name": "r",
    "authorization": "role",
    "bucket_credentials": dict(KEYS),
}
CAPTURE = "https://eu.i.posthog.com/batch/"
AWS_REDSHIFT = 14


def attempt(api: Api, type_name: str, config: dict[str, Any], integration: int | None) -> Any:
    """A POST of an export with this destination."""
    destination = {"type": type_name, "config": config, "integration": integration}
    return api.post(destination=destination)


def redshift(api: Api, **config: Any) -> dict[str, Any]:
    destination = {"type": "Redshift", "config": {**SQL, **config}}
    return {**destination, "integration": 13} if api.dialect == "2026" else destination


@fact(
    "1.4",
    "compression must fit the format; old servers check what is sent, the newest the result",
    rules=(16,),
)
def test_compression(api: Api) -> None:
    export = api.create()
    kind = export["destination"]["type"]

    def change(**config: object):
        return api.patch(export, destination={"type": kind, "config": config})

    assert invalid(change(compression="zstd"), "destination") == (
        "Compression zstd is not supported for file format JSONLines. "
        "Supported compressions are ['gzip', 'brotli']"
    )
    assert invalid(change(file_format="CSV"), "destination") == (
        "File format CSV is not supported. Supported file formats are ['JSONLines', 'Parquet']"
    )
    assert change(compression="zstd", file_format="Parquet").status_code == 200
    answer = change(compression="snappy")
    assert answer.status_code == (200 if api.dialect == "2026" else 400)


@fact("1.4", "old servers read an empty compression as no compression", *OLD)
def test_an_empty_compression(api: Api) -> None:
    created = attempt(api, "S3", {**S3, **KEYS, "compression": ""}, None)
    assert created.status_code == 201
    assert created.json()["destination"]["config"]["compression"] == ""


@pytest.mark.parametrize(
    ("name", "value"), [("prefix", ""), ("bucket_name", "  "), ("bucket_name", ""), ("region", " ")]
)
@pytest.mark.parametrize(("type_name", "integration"), [("AwsS3", 7), ("S3Compatible", 10)])
@fact("1.4", "bucket, region and prefix must not be blank", "2026")
def test_blank_bucket_fields(
    api: Api, type_name: str, integration: int, name: str, value: str
) -> None:
    """Also where a PATCH leaves them blank."""
    detail = invalid(attempt(api, type_name, {**S3, name: value}, integration), "destination")
    assert name in detail
    export = attempt(api, type_name, S3, integration).json()
    blank = {"type": type_name, "config": {name: value}, "integration": integration}
    invalid(api.patch(export, destination=blank), "destination")


@pytest.mark.parametrize(
    ("type_name", "config", "integration"),
    [("AwsS3", S3, 7), ("S3Compatible", S3, 10), ("AzureBlob", {"container_name": "c"}, 12)],
)
@fact("1.5", "a new export cannot enable the legacy extension of Parquet files", "2026")
def test_the_legacy_extension(
    api: Api, type_name: str, config: dict[str, Any], integration: int
) -> None:
    legacy = {**config, "legacy_parquet_extension": True}
    invalid(attempt(api, type_name, legacy, integration), "destination")
    new = attempt(api, type_name, {**legacy, "legacy_parquet_extension": False}, integration)
    assert new.status_code == 201


@fact("1.4", "Snowflake requires the secret of the authentication type, if that is sent", *OLD)
def test_snowflake(api: Api) -> None:
    """Not judged otherwise; a stored secret counts."""
    assert attempt(api, "Snowflake", SNOWFLAKE, None).status_code == 201
    for kind in ("password", "keypair"):
        invalid(
            attempt(api, "Snowflake", {**SNOWFLAKE, "authentication_type": kind}, None),
            "destination",
        )
    export = api.create(**api.to("Snowflake", **SNOWFLAKE, password="p"))
    keypair = api.to("Snowflake", authentication_type="keypair")
    invalid(api.patch(export, **keypair), "destination")
    password = api.to("Snowflake", authentication_type="password")
    assert api.patch(export, **password).status_code == 200
    assert api.patch(export, **api.to("Snowflake", role="r")).status_code == 200


@fact("1.3", "HTTP exports events only; the error names no field")
def test_http_exports_events_only(api: Api) -> None:
    """Attr is null, on PATCH as well."""
    http = api.to("HTTP", url=CAPTURE, token="t")
    answer = api.post(model="persons", **http)
    invalid(answer)
    if api.dialect == "2026":
        return
    export = api.create()
    invalid(api.patch(export, model="persons", **http))
    assert api.patch(export, model="events", **http).status_code == 200


@fact("1.3", "the newest servers accept two addresses for HTTP")
def test_addresses_of_http(api: Api) -> None:
    answer = attempt(api, "HTTP", {"url": "https://h", "token": "t"}, None)
    if api.dialect == "2026":
        detail = invalid(answer, "destination")
        assert detail == "Invalid destination URL: https://h"
    else:
        assert answer.status_code == 201


@fact("1.4", "Redshift COPY requires its bucket and both keys", *ALL)
def test_redshift_copy(api: Api) -> None:
    one_key = {**COPY, "bucket_credentials": {"aws_access_key_id": "a"}}
    for inputs in ({}, {"copy_inputs": {}}, {"copy_inputs": one_key}):
        body = api.body(destination=redshift(api, mode="COPY", **inputs))
        answer = api.call("POST", api.project, body)
        invalid(answer, "destination")


@fact("1.6", "a config is merged at every level before it is checked")
def test_part_of_a_nested_config(api: Api) -> None:
    """On PATCH and on PUT."""
    export = api.create(destination=redshift(api, mode="COPY", copy_inputs=COPY))
    part = redshift(api)
    part["config"] = {"copy_inputs": {"s3_bucket": "b2"}}
    answer = api.patch(export, destination=part)
    assert answer.status_code == 200, answer.text
    inputs = answer.json()["destination"]["config"]["copy_inputs"]
    assert (inputs["s3_bucket"], inputs["region_name"]) == ("b2", "r")
    gone = {**part, "config": {"copy_inputs": {"bucket_credentials": None}}}
    invalid(api.patch(export, destination=gone), "destination")
    put = api.body(destination=redshift(api, copy_inputs={"s3_bucket": "b3"}))
    answer = api.call("PUT", f"{api.project}{export['id']}/", put)
    assert answer.status_code == 200, answer.text


@fact("1.6", "an object sent over stored text crashes 2025 and replaces the text elsewhere")
def test_an_object_over_text(api: Api) -> None:
    """A sibling."""
    export = api.create(destination=redshift(api, mode="COPY", copy_inputs=COPY))
    keys = {**redshift(api), "config": {"copy_inputs": {"authorization": dict(KEYS)}}}
    answer = api.patch(export, destination=keys)
    assert answer.status_code == (500 if api.dialect == "2025" else 200)
    role = {**keys, "config": {"copy_inputs": {"authorization": "role"}}}
    assert api.patch(export, destination=role).status_code == 200


@fact(
    "1.3",
    "Redshift requires an integration on create, and again on every PATCH",
    "2026",
    rules=(13,),
)
def test_redshift_by_integration(api: Api) -> None:
    """Both kinds of integration; without a host in the integration, in the config."""
    invalid(attempt(api, "Redshift", SQL, None), "destination")
    export = attempt(api, "Redshift", {"database": "d"}, 13).json()
    assert export["destination"]["integration"] == 13
    again = {"type": "Redshift", "config": {"schema": "s"}}
    invalid(api.patch(export, destination=again), "destination")
    assert api.patch(export, destination={**again, "integration": 13}).status_code == 200
    assert "host" in invalid(
        attempt(api, "Redshift", {"database": "d"}, AWS_REDSHIFT), "destination"
    )
    hosted = attempt(api, "Redshift", {"database": "d", "host": "h"}, AWS_REDSHIFT)
    assert hosted.json()["destination"]["integration"] == AWS_REDSHIFT


@pytest.mark.parametrize(
    ("type_name", "config", "integration", "status"),
    [
        ("Postgres", {"database": "d"}, 3, 200),
        ("AwsS3", S3, 7, 400),
        ("S3Compatible", S3, 10, 400),
        ("Snowflake", {"database": "d", "warehouse": "w", "schema": "s"}, 11, 400),
        ("BigQuery", {"dataset_id": "d"}, 4, 400),
        ("AzureBlob", {"container_name": "c"}, 12, 400),
    ],
)
@fact(
    "1.6",
    "a PATCH can set the integration of Postgres to null, not that of other types",
    "2026",
    rules=(13,),
)
def test_a_null_integration(
    api: Api, type_name: str, config: dict[str, Any], integration: int, status: int
) -> None:
    export = attempt(api, type_name, config, integration).json()
    dropped = {"type": type_name, "config": config, "integration": None}
    answer = api.patch(export, destination=dropped)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert api.get(export)["destination"]["integration"] is None
