"""Facts about destinations: service.md, 1.3 to 1.6.

tests/integration/test_known_refusals.py has what each type requires.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import (
    ALL,
    KEYS,
    NEWEST,
    OLD,
    POST,
    REAL,
    S3,
    YEAR,
    Api,
    Row,
    Table,
    fact,
    facts,
    invalid,
    to,
)

USER, WAREHOUSE = {"user": "u", "password": "p"}, {"warehouse": "w", "schema": "s"}
SQL = {**USER, "host": "h", "database": "d"}
SNOWFLAKE = {"account": "a", "user": "u", "database": "d", **WAREHOUSE}
BIGQUERY = {"private_key": "k", "private_key_id": "i", "token_uri": "t", "client_email": "e"}
BUCKET = {"s3_bucket": "b", "region_name": "r"}
COPY = {**BUCKET, "authorization": "role", "bucket_credentials": dict(KEYS)}
AWS_COPY = {**BUCKET, "s3_key_prefix": "p", "authorization": 7, "bucket_credentials": 7}
CAPTURE = "https://eu.i.posthog.com/batch/"
PLAIN_REDSHIFT, AWS_REDSHIFT = 13, 14
D = {"database": "d"}
DATABRICKS = {"http_path": "h", "catalog": "c", "schema": "s", "table_name": "t"}

BAD = "400 invalid_input destination"
BAD_TYPE = "400 invalid_choice destination__type"
INSIDE = f"{BAD}__non_field_errors"
UNKNOWN = "400 does_not_exist destination__integration"
KIND = "Integration provided is not"
BACK = "from an integration to inline credentials."
LOST = "Cannot remove the integration from a Redshift batch export"
HOST = "A 'host' is required when using an AWS Redshift integration"
CHANGED = "Cannot change destination type from 'AwsS3' to 'NoOp'. Delete this batch export..."

BY_INTEGRATION: list[tuple[str, int, dict[str, Any]]] = [
    ("AwsS3", 7, S3),
    ("Postgres", 3, D),
    ("BigQuery", 4, {"dataset_id": "d"}),
    ("Databricks", 5, DATABRICKS),
    ("S3Compatible", 10, S3),
    ("Snowflake", 11, {**D, **WAREHOUSE}),
    ("AzureBlob", 12, {"container_name": "c"}),
]
ONE_KEY = {**COPY, "bucket_credentials": {"aws_access_key_id": "a"}}
UNFIT, FITTING = "is not supported for file format", "Supported compressions are"
FORMATS = "Supported file formats are"
EMPTY = "The following inputs are empty:"
NO_NUMBER = "Configuration has invalid type: got 'NoneType', expected 'int'"
NO_ID = "400 incorrect_type destination__integration"
NO_LEGACY = {"legacy_parquet_extension": False}


def whole(destination: Any) -> dict[str, Any]:
    return {"destination": destination}


def redshift(**config: Any) -> dict[str, Any]:
    return to("Redshift", PLAIN_REDSHIFT, **D, **config)


def with_null(type_name: str, config: dict[str, Any]) -> dict[str, Any]:
    return whole({"type": type_name, "config": config, "integration": None})


def of_buckets(kind: str, integration: int | None, **keys: str) -> dict[str, list[Row]]:
    """Facts about exports to S3, whose type the newest servers gave another name."""
    zstd = {"compression": "zstd"}
    return {
        "the error lists all unknown config keys, sorted": [
            (
                *(POST, to(kind, integration, **S3, **keys, zz=1, aa=2)),
                f"{INSIDE}: Configuration has unknown field/s: 'aa', 'zz'",
            ),
        ],
        "a PATCH needs no required keys": [
            ({}, to(kind, prefix="q"), {"prefix": "q", "bucket_name": "b"}),
        ],
        "config values must be of their type and not null": [
            ({}, to(kind, file_format=None), INSIDE),
            (
                *({}, to(kind, prefix=5)),
                f"{INSIDE}: Configuration has invalid type: got 'int', expected 'str'",
            ),
            ({}, to(kind, compression=None), {"compression": None}),
        ],
        "compression must fit the format": [
            (
                *({}, to(kind, **zstd)),
                f"{BAD}: Compression zstd {UNFIT} JSONLines. {FITTING} ['gzip', 'brotli']",
            ),
            (
                *({}, to(kind, file_format="CSV")),
                f"{BAD}: File format CSV is not supported. {FORMATS} ['JSONLines', 'Parquet']",
            ),
            ({}, to(kind, **zstd, file_format="Parquet"), zstd),
        ],
    }


PARQUET = {"file_format": "Parquet", "compression": "zstd"}
TYPES: Table = {
    ALL: {
        "the destination is an object with a type": [
            (POST, whole(None), "400 null destination"),
            (POST, whole([]), INSIDE),
            (POST, whole({"config": {}}), "400 required destination__type"),
        ],
        "an unknown type is refused": [(POST, to("Nope"), BAD_TYPE)],
        "HTTP exports events only; the error names no field": [
            (POST, {"model": "persons", **to("HTTP", url=CAPTURE, token="t")}, "400 invalid_input"),
        ],
    },
    REAL: {
        "a null config is refused": [
            (existing, whole({"type": "NoOp", "config": None}), "400 null destination__config")
            for existing in (POST, to("NoOp"))
        ],
        "a PATCH of a destination without its type crashes": [
            ({}, whole({"config": {"prefix": "q"}}), "500"),
        ],
    },
    ("interface",): {
        "a missing or null config is empty": [
            (POST, whole({"type": "NoOp"}), {"config": {}}),
            (POST, whole({"type": "NoOp", "config": None}), {"config": {}}),
            (to("NoOp"), whole({"type": "NoOp", "config": None}), {"config": {}}),
        ],
        "a PATCH needs no type": [({}, whole({"config": {"prefix": "q"}}), {"prefix": "q"})],
    },
    YEAR: {"a missing config crashes": [(POST, whole({"type": "NoOp"}), "500")]},
    OLD: {
        "credentials are in the config": [
            (POST, to("S3", **S3, **KEYS), {"config": S3}),
            (POST, to("S3", "7", **S3, **KEYS), {"integration": 7}),
            (POST, to("S3", 7.0, **S3, **KEYS), {"integration": 7}),
            (POST, to("Workflows", hog_function_id="x"), "400"),
            (POST, to("HTTP", url="https://h", token="t"), {"url": "https://h"}),
        ],
        "the type changes in place, and keys of the old type stay": [
            ({}, to("NoOp"), {"type": "NoOp", "bucket_name": "b"}),
            ({}, to("Postgres", host="h"), {"host": "h", "bucket_name": "b"}),
            (to("Postgres", **SQL), to("Databricks"), BAD),
        ],
        "HTTP exports events only, also after a change": [
            (
                *({}, {"model": "persons", **to("HTTP", url=CAPTURE, token="t")}),
                "400 invalid_input",
            ),
            ({}, {"model": "events", **to("HTTP", url=CAPTURE, token="t")}, {"type": "HTTP"}),
        ],
        **of_buckets("S3", None, **KEYS),
        "what is sent decides whether the compression fits": [
            (to("S3", **S3, **KEYS, **PARQUET), to("S3", compression="snappy"), "400"),
        ],
        "an empty compression is none": [
            (POST, to("S3", **S3, **KEYS, compression=""), {"compression": ""}),
        ],
        "Snowflake requires the secret of the authentication type, if that is sent": [
            (
                to("Snowflake", **SNOWFLAKE, password="p"),
                *(to("Snowflake", authentication_type=kind), answer),
            )
            for kind, answer in (("keypair", BAD), ("password", "200"))
        ],
    },
    NEWEST: {
        "a missing config is refused": [(POST, whole({"type": "NoOp"}), "400")],
        "types with credentials in an integration": [
            (POST, to("S3", **S3, **KEYS), f'{BAD_TYPE}: "S3" is not a valid choice.'),
            (POST, to("Workflows", hog_function_id="x"), "403 permission_denied: Backfilling..."),
            (POST, to("FileDownload", file_format="Parquet"), "201"),
        ],
        "the integration is one of the same project and kind": [
            row
            for type_name, number, config in BY_INTEGRATION
            for row in (
                (POST, to(type_name, 8, **config), UNKNOWN),
                (POST, to(type_name, 7 if number != 7 else 3, **config), BAD),
            )
        ],
        "the id of an integration can be text or a whole decimal": [
            (POST, to("AwsS3", "7", **S3), {"integration": 7}),
            (POST, to("AwsS3", 7.0, **S3), {"integration": 7}),
            (POST, to("AwsS3", "x", **S3), f"{NO_ID}: Incorrect type. Expected pk value..."),
        ],
        "the type is fixed": [({}, to("NoOp"), f"{BAD}: {CHANGED}")],
        "HTTP can have no address": [(POST, to("HTTP", url="", token="t"), "201")],
        **of_buckets("AwsS3", 7),
        "the result decides whether the compression fits": [
            (to("AwsS3", 7, **S3, **PARQUET), to("AwsS3", compression="snappy"), "200"),
        ],
        "one error names all blank fields": [
            (
                *(POST, to("AwsS3", 7, **dict.fromkeys(S3, " "))),
                f"{BAD}: {EMPTY} ['bucket_name', 'region', 'prefix']",
            ),
        ],
        "an export without the setting gets the names that its files have": [
            (POST, to("AwsS3", 7, **S3), {"config": {**S3, "legacy_parquet_extension": False}}),
            (to("AwsS3", 7, **S3, **PARQUET), to("AwsS3", 7, **S3), NO_LEGACY),
            (
                *({}, to("AwsS3", legacy_parquet_extension=True)),
                f"{BAD}: 'legacy_parquet_extension' can only stay on for an export that...",
            ),
        ],
        "what is not checked is stored, and shown as sent": [
            (POST, to("Postgres", 3, **D, port=5.5), {"port": 5.5}),
            (POST, to("AwsS3", 7, **S3, include_events=[1]), {"include_events": [1]}),
        ],
        "the words of refused destinations": [
            (POST, to("AwsS3", **S3), f"{BAD}: Integration is required for AwsS3 batch exports"),
            (POST, to("AwsS3", 11, **S3), f"{BAD}: {KIND} an AWS S3 integration (got kind=..."),
            (POST, to("Postgres", 7, **D), f"{BAD}: Integration is not a PostgreSQL integration."),
        ],
        "S3 keeps its integration on PATCH, other types must send it again": [
            ({}, to("AwsS3", prefix="q"), {"integration": 7}),
            (to("BigQuery", 4, dataset_id="d"), to("BigQuery", table_id="t"), BAD),
        ],
        "Redshift keeps its integration": [
            (redshift(), to("Redshift", PLAIN_REDSHIFT, schema="s"), {"schema": "s"}),
            (redshift(), to("Redshift", schema="s"), f"{BAD}: {LOST}..."),
            (redshift(), with_null("Redshift", {"schema": "s"}), f"{BAD}: {LOST}..."),
        ],
        "a host is in the integration of Redshift or in the config": [
            (
                *(POST, to("Redshift", AWS_REDSHIFT, **D)),
                f"{BAD}: {HOST}: set it to the cluster or workgroup endpoint.",
            ),
            (POST, to("Redshift", AWS_REDSHIFT, **D, host="h"), {"integration": AWS_REDSHIFT}),
        ],
        "the port of Redshift is a plain number": [
            (existing, redshift(port=None), f"{INSIDE}: {NO_NUMBER}")
            for existing in (POST, redshift(port=1))
        ],
        "Redshift COPY requires its bucket and both keys": [
            (POST, redshift(mode="COPY"), f"{BAD}: Missing required inputs for 'COPY'"),
            (POST, redshift(mode="COPY", copy_inputs=ONE_KEY), BAD),
        ],
        "credentials of COPY do not go back from an integration to the config": [
            (existing, redshift(copy_inputs={name: value}), f"{BAD}: {detail}")
            for existing in (redshift(mode="COPY", copy_inputs=AWS_COPY),)
            for name in ("authorization", "bucket_credentials")
            for value, detail in (
                (dict(KEYS), f"Cannot switch '{name}' {BACK}..."),
                (8, f"'{name}' does not reference an AWS S3 integration of this project."),
            )
        ],
    },
}


@facts("1.3 to 1.6", TYPES, rules=(8, 9, 10, 12, 13, 14, 15, 16, 17))
def test_destinations(api: Api, row: Row) -> None:
    api.answer(row)


@pytest.mark.parametrize(
    ("type_name", "config", "secrets"),
    [
        ("S3", {**S3, **KEYS}, set(KEYS)),
        ("Snowflake", {**USER, "account": "a", **D, **WAREHOUSE}, set(USER)),
        ("Postgres", SQL, set(USER)),
        ("BigQuery", {"project_id": "p", "dataset_id": "d", **BIGQUERY}, set(BIGQUERY)),
        ("HTTP", {"url": "u", "token": "t"}, {"token"}),
        ("NoOp", {"arg": "x"}, set()),
    ],
)
@fact("1.3", "types with credentials in the config; answers never show secrets", *OLD, rules=(1,))
def test_inline_types(api: Api, type_name: str, config: dict, secrets: set) -> None:
    made = api.create(**to(type_name, **config))
    assert set(made["destination"]["config"]) == set(config) - secrets
    assert set(api.emulator.exports()["Lake"]["secrets"]) == secrets


@fact("1.3", "secrets are removed from answers at any depth", "2025")
def test_secrets_at_depth(api: Api) -> None:
    made = api.create(**to("Redshift", **SQL, mode="COPY", copy_inputs=COPY))
    assert made["destination"]["config"]["copy_inputs"]["bucket_credentials"] == {}
    assert "hidden" not in str(made)


@fact("1.4", "secrets that are not sent are kept", rules=(8,))
def test_what_is_not_sent(api: Api) -> None:
    export = api.create()
    before = api.emulator.exports()["Lake"]["secrets"]
    api.patch(export, **to(export["destination"]["type"], prefix="q")).raise_for_status()
    assert api.emulator.exports()["Lake"]["secrets"] == before


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (to("Postgres", 3, **D, port=5.5), {"port": "5.5"}),
        (to("AwsS3", 7, **S3, include_events=[1]), {"include_events": ["1"]}),
        (to("AwsS3", 7, **S3, max_file_size_mb="5"), {"max_file_size_mb": 5}),
        (to("AwsS3", 7, **S3, max_file_size_mb=None), {"max_file_size_mb": None}),
    ],
)
@fact("1.5", "a GET of the newest servers shows what they can store", "2026", rules=(11,))
def test_scalars_that_are_read(api: Api, fields: dict[str, Any], shown: dict[str, Any]) -> None:
    config = api.get(api.create(**fields))["destination"]["config"]
    assert {name: config[name] for name in shown} == shown


@fact("1.5", "a GET of 2025 returns config scalars as text", *OLD, rules=(11,))
def test_scalars_as_text(api: Api) -> None:
    export = api.create(**to("Postgres", **SQL, port=5433, has_self_signed_cert=True))
    assert export["destination"]["config"]["port"] == 5433
    read = api.get(export)["destination"]["config"]
    as_text = api.dialect == "2025"
    assert read["port"] == ("5433" if as_text else 5433)
    assert read["has_self_signed_cert"] == ("True" if as_text else True)


@fact("1.6", "a config is merged at every level before it is checked")
def test_part_of_a_nested_config(api: Api) -> None:
    config = {**SQL, "mode": "COPY", "copy_inputs": COPY}
    number = PLAIN_REDSHIFT if api.dialect == "2026" else None
    export = api.create(**to("Redshift", number, **config))

    def change(**inputs: Any) -> Any:
        return api.patch(export, **to("Redshift", number, copy_inputs=inputs))

    inputs = change(s3_bucket="b2").json()["destination"]["config"]["copy_inputs"]
    assert (inputs["s3_bucket"], inputs["region_name"]) == ("b2", "r")
    invalid(change(bucket_credentials=None), "destination")


@fact("1.6", "credentials of COPY move to another integration", "2026")
def test_another_integration_of_copy(api: Api) -> None:
    export = api.create(**redshift(mode="COPY", copy_inputs=AWS_COPY))
    for name in ("authorization", "bucket_credentials"):
        api.patch(export, **redshift(copy_inputs={name: 15})).raise_for_status()
        assert api.get(export)["destination"]["config"]["copy_inputs"][name] == 15
