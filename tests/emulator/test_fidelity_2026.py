"""Rows of the comparison with the service's own code of autumn 2026 (service.md)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import StartService
from tests.emulator.facts import KEYS, REAL, S3, Api, fact, invalid, refused
from tests.emulator.operations import backfill, begun, get, of, runs

COPY = {
    "s3_bucket": "b",
    "region_name": "r",
    "s3_key_prefix": "p",
    "authorization": 7,
    "bucket_credentials": 7,
}
PLAIN_REDSHIFT, AWS_REDSHIFT = 13, 14
INSIDE = "destination__non_field_errors"
QUERY = "select event from events"


def destination(type_name: str, integration: Any, /, **config: Any) -> dict[str, Any]:
    return {"destination": {"type": type_name, "config": config, "integration": integration}}


def aws(**config: Any) -> dict[str, Any]:
    return destination("AwsS3", 7, **{**S3, **config})


def redshift(**config: Any) -> dict[str, Any]:
    return destination("Redshift", PLAIN_REDSHIFT, database="d", **config)


def post(api: Api, fields: dict[str, Any]) -> Any:
    return api.post(**fields)


def stored(api: Api, answer: Any) -> dict[str, Any]:
    """Return the config that the next read shows."""
    assert answer.status_code in (200, 201), answer.text
    return api.get(answer.json())["destination"]["config"]


@fact("1.4", "the port of Redshift is a plain number: null is refused", "2026", rules=(9,))
def test_fidelity_2026_redshift_port_null(api: Api) -> None:
    detail = invalid(post(api, redshift(port=None)), INSIDE)
    assert detail == "Configuration has invalid type: got 'NoneType', expected 'int'"
    export = api.create(**redshift(port=1))
    invalid(api.patch(export, **redshift(port=None)), INSIDE)


@pytest.mark.parametrize("name", ["authorization", "bucket_credentials"])
@fact("1.6", "credentials of COPY do not go back from an integration to the config", "2026")
def test_fidelity_2026_redshift_copy_back_to_keys(api: Api, name: str) -> None:
    export = api.create(**redshift(mode="COPY", copy_inputs=COPY))
    answer = api.patch(export, **redshift(copy_inputs={name: dict(KEYS)}))
    detail = invalid(answer, "destination")
    assert detail.startswith(f"Cannot switch '{name}' from an integration to inline credentials.")
    swapped = stored(api, api.patch(export, **redshift(copy_inputs={name: 15})))
    assert swapped["copy_inputs"][name] == 15
    foreign = api.patch(export, **redshift(copy_inputs={name: 8}))
    detail = invalid(foreign, "destination")
    assert detail == f"'{name}' does not reference an AWS S3 integration of this project."


@fact("1.1", "filters may not have the keys of a run's interval", "2026")
def test_fidelity_2026_filters_with_data_interval_start(api: Api) -> None:
    for key in ("data_interval_start", "data_interval_end"):
        entry = {"type": "event", key: "2026-01-01"}
        detail = invalid(post(api, {"filters": [entry]}), "filters")
        assert detail.startswith("'data_interval_start' and 'data_interval_end' are run attributes")
    assert post(api, {"filters": [{"type": "event", "key": "a"}]}).status_code == 201


@pytest.mark.parametrize("key", ["interval", "team_id", "integration_id"])
@fact("1.4", "a config with a key that the server sets itself crashes it", *REAL)
def test_fidelity_2026_config_with_interval(api: Api, key: str) -> None:
    export = api.create(destination={"type": "NoOp", "config": {}})
    crashing = {"destination": {"type": "NoOp", "config": {key: "1"}}}
    assert post(api, crashing).status_code == 500
    assert api.patch(export, **crashing).status_code == 500
    assert api.get(export)["destination"]["config"] == {}


@fact("1.4", "text for an optional number is converted; other text crashes the server", "2026")
def test_fidelity_2026_max_file_size_mb_as_text(api: Api) -> None:
    assert post(api, aws(max_file_size_mb="x")).status_code == 500
    assert stored(api, post(api, aws(max_file_size_mb="5")))["max_file_size_mb"] == 5
    assert stored(api, post(api, aws(max_file_size_mb=None)))["max_file_size_mb"] is None


@fact("1.4", "what is not checked is stored: a number for a port, null for a mode", "2026")
def test_fidelity_2026_unchecked_values(api: Api) -> None:
    """Read back, a number that is not whole is text."""
    postgres = {"database": "d"}
    assert post(api, destination("Postgres", 3, **postgres, port="x")).status_code == 500
    answer = post(api, destination("Postgres", 3, **postgres, port=5.5))
    assert answer.json()["destination"]["config"]["port"] == 5.5
    assert stored(api, answer)["port"] == "5.5"
    assert stored(api, post(api, redshift(mode=None)))["mode"] is None
    assert post(api, destination("HTTP", None, url="", token="t")).status_code == 201


@pytest.mark.parametrize("value", ["7", 7.0])
@fact("1.4", "the id of an integration can be text or a whole decimal")
def test_fidelity_2026_integration_as_text(api: Api, value: object) -> None:
    fields = {"destination": {**api.body()["destination"], "integration": value}}
    answer = post(api, fields)
    assert answer.json()["destination"]["integration"] == 7


@pytest.mark.parametrize(("value", "kind"), [("x", "str"), (True, "bool"), ([], "list")])
@fact("1.4", "what is no id of an integration is refused as incorrect_type", "2026")
def test_fidelity_2026_integration_of_a_wrong_type(api: Api, value: object, kind: str) -> None:
    answer = post(api, destination("AwsS3", value, **S3))
    detail = refused(answer, 400, "incorrect_type", "destination__integration")
    assert detail == f"Incorrect type. Expected pk value, received {kind}."


@fact("1.3", "integration_id wins over integration", "2026")
def test_fidelity_2026_integration_and_integration_id(api: Api) -> None:
    both = {"type": "AwsS3", "config": dict(S3), "integration": 7, "integration_id": 15}
    assert post(api, {"destination": both}).json()["destination"]["integration"] == 15


@fact("1.1", "incremental_mode is not checked on other models than hogql", "2026")
def test_fidelity_2026_merge_on_events(api: Api) -> None:
    assert post(api, {"incremental_mode": "MERGE"}).json()["incremental_mode"] == "MERGE"
    answer = post(api, {"model": "hogql", "hogql_query": QUERY, "incremental_mode": "MERGE"})
    detail = invalid(answer, "primary_key")
    assert detail == "'primary_key' is required when 'incremental_mode' is 'MERGE'"


@fact("1.2", "an offset that the stored interval does not take is refused before the crash", "2026")
def test_fidelity_2026_offset_day_alone_on_a_day_export(api: Api) -> None:
    export = api.create(interval="day")
    detail = invalid(api.patch(export, offset_day=1), "offset_day")
    assert detail == "offset_day is not applicable for non-weekly intervals"
    assert api.patch(export, offset_hour=1).status_code == 500


@pytest.mark.parametrize(
    ("sent", "kept"), [({"offset_hour": 5}, (0, 5)), ({"offset_day": 4}, (4, 0)), ({}, (2, 3))]
)
@fact("1.2", "a PATCH of one offset of a week resets the other", "2026", rules=(18,))
def test_fidelity_2026_week_one_offset(
    api: Api, sent: dict[str, int], kept: tuple[int, int]
) -> None:
    export = api.create(interval="week", offset_day=2, offset_hour=3)
    changed = api.patch(export, interval="week", **sent).json()
    assert (changed["offset_day"], changed["offset_hour"]) == kept


@fact("1.3", "FileDownload is a type like others", "2026")
def test_fidelity_2026_type_file_download(api: Api) -> None:
    assert post(api, destination("FileDownload", None, file_format="Parquet")).status_code == 201


@pytest.mark.parametrize(
    ("fields", "code", "attr"),
    [
        ({"hogql_query": ""}, "blank", "hogql_query"),
        ({"primary_key": []}, "empty", "primary_key"),
        ({"primary_key": [""]}, "blank", "primary_key__0"),
        ({"version_key": []}, "empty", "version_key"),
    ],
)
@fact("1.1", "blank queries and empty or blank keys have codes of their own", "2026")
def test_fidelity_2026_blank_query_and_keys(
    api: Api, fields: dict[str, Any], code: str, attr: str
) -> None:
    whole = {"model": "hogql", "hogql_query": QUERY, **fields}
    refused(post(api, whole), 400, code, attr)


@fact("2", "an unknown status is refused with its position", "2026")
def test_fidelity_2026_runs_with_an_unknown_status(api: Api) -> None:
    answer = api.call("GET", of(api, api.create(), "runs/?status=Failed&status=Nope"))
    assert refused(answer, 400, "invalid_choice", "status__1") == '"Nope" is not a valid choice.'


@fact("1.5", "scalars in lists are read as text", "2026")
def test_fidelity_2026_include_events_as_text(api: Api) -> None:
    answer = post(api, aws(include_events=[1]))
    assert answer.json()["destination"]["config"]["include_events"] == [1]
    assert stored(api, answer)["include_events"] == ["1"]


@pytest.mark.parametrize(
    ("interval", "start", "end"),
    [("day", "20260101", "20260103"), ("week", "2026-W01-7", "2026-W02-7")],
)
@fact("1.8", "dates of backfills can have any form of ISO 8601", "2026")
def test_fidelity_2026_forms_of_dates(api: Api, interval: str, start: str, end: str) -> None:
    export = api.create(interval=interval)
    begun(api, export, start, end)
    detail = invalid(backfill(api, export, "soon", end))
    assert detail == "Input 'soon' is not a valid ISO formatted date."


@fact("8.1", "a body of a backfill that is no object crashes the server", *REAL)
def test_fidelity_2026_backfill_with_a_list(api: Api) -> None:
    answer = api.call("POST", of(api, api.create(), "backfills/"), [])
    assert answer.status_code == 500


@pytest.mark.parametrize("rest", ["runs/", "backfills/"])
@fact("2", "lists inside an export crash at an id that is no UUID", *REAL)
def test_fidelity_2026_lists_of_an_id_that_is_none(api: Api, rest: str) -> None:
    assert api.call("GET", of(api, {"id": "nope"}, rest)).status_code == 500


@fact(
    "2", "the runs of an unknown export are an empty page, and a deleted one keeps its own", *REAL
)
def test_fidelity_2026_runs_of_an_unknown_export(api: Api) -> None:
    unknown = {"id": "4dc8564d-bd82-1065-2f40-97f7c50f67cf"}
    assert runs(api, unknown) == []
    export = api.create()
    api.emulator.advance(hours=2)
    assert api.call("DELETE", of(api, export)).status_code == 204
    assert len(runs(api, export)) == 2
    assert get(api, f"/api/projects/2/batch_exports/{export['id']}/runs/")["results"] == []


@fact("1.10", "no integration is found on the organization path", "2026")
def test_fidelity_2026_organization_path_with_integration(api: Api) -> None:
    export = api.create()
    path = f"{api.organization}batch_exports/{export['id']}/"
    answer = api.call("PATCH", path, aws(prefix="q"))
    refused(answer, 400, "does_not_exist", "destination__integration")


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        (destination("AwsS3", None, **S3), "Integration is required for AwsS3 batch exports"),
        (
            destination("AwsS3", 11, **S3),
            "Integration provided is not an AWS S3 integration (got kind='snowflake')",
        ),
        (
            destination("S3Compatible", 7, **S3),
            "Integration provided is not an AWS S3 integration (got kind='aws-s3')",
        ),
        (
            destination("Snowflake", 7, database="d", warehouse="w", schema="s"),
            "Integration provided is not a Snowflake integration (got kind='aws-s3')",
        ),
        (destination("Postgres", 7, database="d"), "Integration is not a PostgreSQL integration."),
        (
            destination("BigQuery", 7, dataset_id="d"),
            "Integration is not a Google Cloud service account integration.",
        ),
        (
            destination("AzureBlob", None, container_name="c"),
            "Integration is required for Azure Blob batch exports",
        ),
        (
            destination("AzureBlob", 7, container_name="c"),
            "Integration is not an Azure Blob integration.",
        ),
        (destination("Redshift", 7, database="d"), "Integration is not a Redshift integration."),
        (
            destination("Redshift", AWS_REDSHIFT, database="d"),
            (
                "A 'host' is required when using an AWS Redshift integration: set it to the "
                "cluster or workgroup endpoint."
            ),
        ),
        (aws(prefix=" ", region=""), "The following inputs are empty: ['region', 'prefix']"),
        (
            redshift(mode="COPY", copy_inputs={"s3_bucket": "b"}),
            "Missing required input for 'COPY'",
        ),
        (redshift(mode="COPY"), "Missing required inputs for 'COPY'"),
    ],
)
@fact("1.4", "the words of refused destinations", "2026")
def test_fidelity_2026_details_of_destinations(
    api: Api, fields: dict[str, Any], detail: str
) -> None:
    assert invalid(post(api, fields), "destination") == detail


@fact("1.6", "an integration of Redshift stays once it is set", "2026", rules=(13,))
def test_fidelity_2026_redshift_keeps_its_integration(api: Api) -> None:
    export = api.create(**redshift())
    for sent in ({}, {"integration": None}):
        bare = {"type": "Redshift", "config": {"schema": "s"}, **sent}
        answer = api.patch(export, destination=bare)
        detail = invalid(answer, "destination")
        assert detail.startswith("Cannot remove the integration from a Redshift batch export")


@fact("1.5", "an export without the setting gets the names that its files have", "2026")
def test_fidelity_2026_names_of_parquet_files(api: Api) -> None:
    export = api.create(**aws(file_format="Parquet", compression="zstd"))
    assert stored(api, api.patch(export, **aws()))["legacy_parquet_extension"] is False
    answer = api.patch(export, **aws(legacy_parquet_extension=True))
    detail = invalid(answer, "destination")
    assert detail.startswith("'legacy_parquet_extension' can only stay on for an export that")


@fact("1.1", "the words of refused models, queries and offsets", "2026")
def test_fidelity_2026_details_of_exports(api: Api) -> None:
    export = api.create()
    details = {
        "model": (
            "persons",
            "Changing models is not supported. Create a new batch export instead.",
        ),
        "hogql_query": (QUERY, "'hogql_query' is only supported for 'hogql' not 'events' model"),
        "primary_key": (["a"], "'primary_key' is only supported for 'hogql' not 'events' model"),
        "filters": ({}, "'filters' should be an array of filters"),
        "offset_hour": (1, "offset_hour is not applicable for non-daily/weekly intervals"),
    }
    for name, (value, detail) in details.items():
        assert invalid(api.patch(export, **{name: value}), name) == detail
    answer = post(api, {"interval": "every 5 minutes"})
    detail = refused(answer, 403, "permission_denied")
    assert detail == "Higher frequency batch exports are not enabled for this team."


@fact("5", "a list answers 405 to a PATCH, after the scope of a write", *REAL, rules=(43,))
def test_fidelity_2026_patch_of_a_list(api: Api) -> None:
    for path in (api.project, f"{api.organization}projects/"):
        refused(api.call("PATCH", path, {}), 405, "method_not_allowed")
        refused(api.call("PATCH", path, {}, key="phx_read"), 403, "permission_denied")


@fact("1.10", "the newest servers have no list of an organization's exports", "2026", rules=(44,))
def test_fidelity_2026_no_organization_list(service_of: StartService, dialect: str) -> None:
    """With an option; projects stay below the organization."""
    running = service_of(None, "--dialect", dialect, "--no-organization-list")
    below = f"/api/organizations/{running.organization}/"
    for path in ("batch_exports/", "batch_exports/4dc8564d-bd82-1065-2f40-97f7c50f67cf/"):
        refused(running.call("GET", f"{below}{path}"), 404, "not_found")
    assert running.call("GET", f"{below}projects/").status_code == 200
    own = f"/api/projects/{running.project_id}/batch_exports/"
    assert running.call("GET", own).json()["results"] == []


def test_only_2026_has_no_organization_list() -> None:
    options = ["emulator", "--dialect", "2025", "--no-organization-list"]
    ran = subprocess.run(
        [sys.executable, "-m", "reconciler", *options], capture_output=True, text=True, check=False
    )
    assert ran.returncode != 0
    assert "--no-organization-list needs --dialect 2026" in ran.stderr
