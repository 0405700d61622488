"""Facts about the steps that test a destination: service.md, 11.

tests/integration/test_doctor.py has those of existing exports, and the rules of results.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import REAL, S3, Api, answers, fact, invalid, refused, to

NOT_CONFIGURED = "The test step cannot run as it's not configured."
NEW = "{}run_test_step_new/"
KEY_OF = {"2025": "phx_internal", "2026": "phx_all"}
PASSED = {"status": "Passed", "message": None}
SNOWFLAKE = [
    "Establish connection to Snowflake",
    *(f"Verify Snowflake {name}" for name in ("warehouse", "database", "schema")),
]
DATABRICKS = [
    "Establish connection to Databricks",
    *(f"Verify Databricks {name}" for name in ("catalog", "schema", "table")),
    "Verify permissions to create a Databricks volume",
]
NO_ROLE = "No configured AWS role ARN, skipping test"
FIELDS = {"name", "description", "result"}


def path_of(api: Api, export: dict[str, Any] | None) -> str:
    return f"{api.project}{export['id']}/run_test_step/" if export else NEW.format(api.project)


def run(api: Api, body: Any, export: dict[str, Any] | None = None) -> Any:
    """Run a step of a new export, or of an existing one.

    Keys reach the steps: in 2025 only with a scope that no issued key has.
    """
    return api.call("POST", path_of(api, export), body, key=KEY_OF[api.dialect])


TABLES = [f"Verify BigQuery {name}" for name in ("project", "dataset", "table")]
OWNED = ["Impersonate BigQuery service account", "Verify BigQuery service account ownership"]
ROLE, BUCKET = "Ensure we can assume provided AWS role", "Check S3 bucket exists"


@pytest.mark.parametrize(
    ("destination", "names"),
    [
        ("S3", {"2025": [BUCKET]}),
        ("AwsS3", {"2026": [ROLE, BUCKET]}),
        ("S3Compatible", {"2026": [BUCKET]}),
        ("BigQuery", {"2025": TABLES, "2026": [*OWNED, *TABLES]}),
        ("Snowflake", dict.fromkeys(REAL, SNOWFLAKE)),
        ("Databricks", dict.fromkeys(REAL, DATABRICKS)),
        ("AzureBlob", {"2026": ["Check Azure Blob container exists"]}),
        *((name, {}) for name in ("Postgres", "Redshift", "HTTP", "NoOp", "Nope", None)),
    ],
)
@fact("11", "steps are listed by type; a type without steps answers 404 without a body", *REAL)
def test_the_list_of_steps(api: Api, destination: str | None, names: dict[str, list[str]]) -> None:
    query = f"?destination={destination}" if destination else ""
    answer = api.call("GET", f"{api.project}test/{query}", key=KEY_OF[api.dialect])
    if api.dialect not in names:
        assert (answer.status_code, answer.content) == (404 if destination else 400, b"")
        return
    steps = answer.json()["steps"]
    assert [step["name"] for step in steps] == names[api.dialect]
    assert [step for step in steps if set(step) != FIELDS or step["result"] is not None] == []


@fact("11", "the interface has no test steps, 2025 refuses keys, 2026 requires scopes")
def test_keys_of_steps(api: Api) -> None:
    """2025 refuses also those with all scopes."""
    export = api.create()
    kind = export["destination"]["type"]
    denied = "403 permission_denied: API key missing required scope"
    calls = [("GET", f"{api.project}test/?destination={kind}", "200")]
    calls += [
        ("POST", path_of(api, own), f"{denied} 'batch_export:write'") for own in (None, export)
    ]
    old = {"interface": "404 not_found", "2025": f"{denied} 'INTERNAL'"}.get(api.dialect)
    for method, path, unless_written in calls:
        body = api.body() if method == "POST" else None
        for key, new in (("phx_all", "200"), ("phx_read", unless_written)):
            answers(api.call(method, path, body, key=key), old or new)


@fact("11", "a call runs one step of a new export, and checks the body as that of a create", *REAL)
def test_a_step_for_a_new_export(api: Api) -> None:
    bad, part = api.body(), api.body()
    bad["destination"]["config"]["zz"] = 1
    del part["destination"]["config"]["bucket_name"]
    for export in (None, api.create()):
        refused(run(api, {}, export), 400, "required", "name")
        invalid(run(api, bad, export), "destination__non_field_errors")
    invalid(run(api, part), "destination__non_field_errors")
    first = run(api, api.body()).json()
    assert set(first) == FIELDS
    if api.dialect == "2025":
        assert (first["name"], first["result"]) == (BUCKET, PASSED)
        return
    assert first["result"] == {"status": "Skipped", "message": NO_ROLE}
    second = run(api, {**api.body(), "step": 1}).json()
    assert (second["name"], second["result"]) == (BUCKET, PASSED)
    assert run(api, api.body(**to("AwsS3", 15, **S3))).json()["result"] == PASSED
    assert api.call("GET", api.project).json()["count"] == 1


@fact("11", "steps without credentials fail in 2025; 2026 skips what a key of BigQuery does", *REAL)
def test_steps_that_are_not_run(api: Api) -> None:
    if api.dialect == "2026":
        body = api.body(**to("BigQuery", 4, dataset_id="d"))
        results = [run(api, {**body, "step": step}).json()["result"] for step in range(5)]
        assert [result["status"] for result in results] == ["Skipped"] * 2 + ["Passed"] * 3
        return
    snowflake = {"account": "a", "user": "u", "database": "d", "warehouse": "w", "schema": "s"}
    for fields in (to("S3", **S3), to("Snowflake", **snowflake)):
        answer = run(api, api.body(**fields))
        assert answer.status_code == 200
        assert answer.json()["result"] == {"status": "Failed", "message": NOT_CONFIGURED}


@fact("11", "a step of an export uses the stored config, secrets included", *REAL)
def test_a_step_for_an_existing_export(api: Api) -> None:
    export = api.create()
    body = api.body(**to(export["destination"]["type"], prefix="q"))
    answer = run(api, {**body, "step": 1 if api.dialect == "2026" else 0}, export)
    assert answer.json()["result"] == PASSED
    assert api.get(export)["destination"] == export["destination"]
