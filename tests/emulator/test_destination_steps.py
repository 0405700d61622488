"""Facts about the steps that test a destination: service.md, 11."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import KEYS, REAL, S3, Api, fact, invalid, refused

NOT_CONFIGURED = "The test step cannot run as it's not configured."
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


def key_of(api: Api) -> str:
    """A key that reaches the steps: in 2025, only with a scope that no issued key has."""
    return "phx_internal" if api.dialect == "2025" else "phx_all"


def steps(api: Api, destination: str | None) -> Any:
    query = "" if destination is None else f"?destination={destination}"
    return api.call("GET", f"{api.project}test/{query}", key=key_of(api))


def run_new(api: Api, body: dict[str, Any]) -> Any:
    return api.call("POST", f"{api.project}run_test_step_new/", body, key=key_of(api))


def run_existing(api: Api, export: dict[str, Any], body: dict[str, Any]) -> Any:
    path = f"{api.project}{export['id']}/run_test_step/"
    return api.call("POST", path, body, key=key_of(api))


def set_rules(api: Api, *rules: dict[str, Any]) -> None:
    api.emulator.admin("PUT", "test_steps", list(rules))


@pytest.mark.parametrize(
    ("destination", "names"),
    [
        ("S3", {"2025": ["Check S3 bucket exists"]}),
        ("AwsS3", {"2026": ["Ensure we can assume provided AWS role", "Check S3 bucket exists"]}),
        ("S3Compatible", {"2026": ["Check S3 bucket exists"]}),
        (
            "BigQuery",
            {
                "2025": [f"Verify BigQuery {name}" for name in ("project", "dataset", "table")],
                "2026": [
                    "Impersonate BigQuery service account",
                    "Verify BigQuery service account ownership",
                    *(f"Verify BigQuery {name}" for name in ("project", "dataset", "table")),
                ],
            },
        ),
        ("Snowflake", {"2025": SNOWFLAKE, "2026": SNOWFLAKE}),
        ("Databricks", {"2025": DATABRICKS, "2026": DATABRICKS}),
        ("AzureBlob", {"2026": ["Check Azure Blob container exists"]}),
        ("Postgres", {}),
        ("Redshift", {}),
        ("HTTP", {}),
        ("NoOp", {}),
        ("Nope", {}),
        (None, {}),
    ],
)
@fact("11", "steps are listed by type; a type without steps answers 404 without a body", *REAL)
def test_the_list_of_steps(api: Api, destination: str | None, names: dict[str, list[str]]) -> None:
    answer = steps(api, destination)
    if api.dialect not in names:
        assert (answer.status_code, answer.content) == (404 if destination else 400, b"")
        return
    listed = answer.json()
    assert list(listed) == ["steps"]
    assert [step["name"] for step in listed["steps"]] == names[api.dialect]
    assert all(set(step) == {"name", "description", "result"} for step in listed["steps"])
    assert all(step["result"] is None for step in listed["steps"])


@fact("11", "2025 refuses keys, also those with all scopes", "2025")
def test_keys_do_not_reach_the_steps_of_2025(api: Api) -> None:
    export = api.create()
    calls = [
        ("GET", "test/?destination=S3", None),
        ("POST", "run_test_step_new/", api.body()),
        ("POST", f"{export['id']}/run_test_step/", api.body()),
    ]
    for method, rest, body in calls:
        for key in ("phx_all", "phx_read"):
            answer = api.call(method, api.project + rest, body, key=key)
            assert "'INTERNAL'" in refused(answer, 403, "permission_denied")


@fact("11", "listing requires batch_export:read, running batch_export:write", "2026")
def test_scopes_of_steps(api: Api) -> None:
    listed = api.call("GET", f"{api.project}test/?destination=AwsS3", key="phx_read")
    assert listed.status_code == 200
    export = api.create()
    for rest in ("run_test_step_new/", f"{export['id']}/run_test_step/"):
        answer = api.call("POST", api.project + rest, api.body(), key="phx_read")
        assert "batch_export:write" in refused(answer, 403, "permission_denied")


@fact("11", "the interface has no test steps", "interface")
def test_no_steps_in_the_interface(api: Api) -> None:
    export = api.create()
    for method, rest in (
        ("GET", "test/?destination=S3"),
        ("POST", "run_test_step_new/"),
        ("POST", f"{export['id']}/run_test_step/"),
    ):
        refused(api.call(method, api.project + rest), 404, "not_found")


@fact("11", "a call runs one step of a new export, and checks the body as that of a create", *REAL)
def test_a_step_for_a_new_export(api: Api) -> None:
    export = api.create()
    for run in (lambda body: run_new(api, body), lambda body: run_existing(api, export, body)):
        refused(run({}), 400, "required", "name")
        refused(run({**api.body(), "interval": "x"}), 400, "invalid_choice", "interval")
        bad = api.body()
        bad["destination"]["config"]["zz"] = 1
        invalid(run(bad), "destination__non_field_errors")
    part = api.body()
    del part["destination"]["config"]["bucket_name"]
    invalid(run_new(api, part), "destination__non_field_errors")
    first = run_new(api, api.body()).json()
    assert set(first) == {"name", "description", "result"}
    passed = {"status": "Passed", "message": None}
    if api.dialect == "2025":
        assert (first["name"], first["result"]) == ("Check S3 bucket exists", passed)
        return
    assert first["result"] == {"status": "Skipped", "message": NO_ROLE}
    second = run_new(api, {**api.body(), "step": 1}).json()
    assert (second["name"], second["result"]) == ("Check S3 bucket exists", passed)
    keyless = {"type": "AwsS3", "config": S3, "integration": 15}
    assert run_new(api, api.body(destination=keyless)).json()["result"] == passed
    assert api.call("GET", api.project).json()["count"] == 1


@fact("11", "BigQuery skips some steps if the integration holds a key", "2026")
def test_skipped_steps_of_bigquery(api: Api) -> None:
    destination = {"type": "BigQuery", "config": {"dataset_id": "d"}, "integration": 4}
    statuses = [
        run_new(api, {**api.body(destination=destination), "step": step}).json()["result"]["status"]
        for step in range(5)
    ]
    assert statuses == ["Skipped", "Skipped", "Passed", "Passed", "Passed"]


@pytest.mark.parametrize(
    ("type_name", "config"),
    [
        ("S3", S3),
        (
            "Snowflake",
            {"account": "a", "user": "u", "database": "d", "warehouse": "w", "schema": "s"},
        ),
    ],
)
@fact("11", "a step without credentials answers 200 with the status Failed", "2025")
def test_a_step_that_is_not_configured(api: Api, type_name: str, config: dict[str, Any]) -> None:
    answer = run_new(api, api.body(**api.to(type_name, **config)))
    assert answer.status_code == 200
    assert answer.json()["result"] == {"status": "Failed", "message": NOT_CONFIGURED}


@fact("11", "servers crash without a config, for unknown steps and for types without steps", *REAL)
def test_crashes_of_steps(api: Api) -> None:
    export = api.create()
    kind = export["destination"]["type"]
    without = api.body(destination={"type": kind})
    null = api.body(destination={"type": kind, "config": None})
    for body in (without, null, {**api.body(), "step": 9}, {**api.body(), "step": "a"}):
        assert run_new(api, body).status_code == 500
        assert run_existing(api, export, body).status_code == 500
    noop = api.body(destination={"type": "NoOp", "config": {}})
    assert run_new(api, noop).status_code == 500


@fact("11", "a step of an export uses the stored config, secrets included", *REAL)
def test_a_step_for_an_existing_export(api: Api) -> None:
    export = api.create()
    before = api.emulator.exports()["Lake"]
    body = api.body()
    body["destination"] = {"type": body["destination"]["type"], "config": {"prefix": "q"}}
    answer = run_existing(api, export, {**body, "step": 1 if api.dialect == "2026" else 0})
    assert answer.json()["result"] == {"status": "Passed", "message": None}
    assert api.emulator.exports()["Lake"] == before
    gone = f"{api.project}{'0' * 8}-0000-0000-0000-{'0' * 12}/run_test_step/"
    refused(api.call("POST", gone, body, key=key_of(api)), 404, "not_found")
    removed = {"type": "S3", "config": dict.fromkeys(KEYS)}
    if api.dialect == "2025":
        answer = run_existing(api, export, api.body(destination=removed))
        assert answer.json()["result"]["message"] == NOT_CONFIGURED
        return
    other = {"type": "S3Compatible", "config": S3, "integration": 10}
    detail = invalid(run_existing(api, export, api.body(destination=other)), "destination")
    assert detail.startswith("Cannot change destination type")


@fact("11", "a failed step answers 200; rules of the switchboard set the results", *REAL)
def test_rules_of_results(api: Api) -> None:
    name = "S3" if api.dialect == "2025" else "AwsS3"
    last = 0 if api.dialect == "2025" else 1
    body = {**api.body(), "step": last}
    set_rules(
        api,
        {"destination": "Snowflake", "status": "Failed"},
        {"destination": name, "step": last, "status": "Failed", "message": "No such bucket."},
    )
    answer = run_new(api, body)
    assert answer.status_code == 200
    assert answer.json()["result"] == {"status": "Failed", "message": "No such bucket."}
    set_rules(api, {"step": "Check S3 bucket exists", "status": "Failed"})
    message = run_new(api, body).json()["result"]["message"]
    assert message.startswith("The test step failed with an unknown error: ")
    assert api.emulator.admin("GET", "test_steps") == {
        "rules": [
            {
                "destination": None,
                "step": "Check S3 bucket exists",
                "status": "Failed",
                "message": None,
            }
        ]
    }
    assert api.emulator.admin("DELETE", "test_steps") == {"rules": []}
    assert run_new(api, body).json()["result"]["status"] == "Passed"
    set_rules(api, {"status": "Failed"})
    api.emulator.reset()
    assert api.emulator.admin("GET", "test_steps") == {"rules": []}


@pytest.mark.parametrize(
    "rules",
    [
        1,
        ["x"],
        [{"status": "Nope"}],
        [{"status": "Failed", "zz": 1}],
        [{"status": "Failed", "message": 1}],
        [{"status": "Failed", "destination": "Postgres"}],
        [{"status": "Failed", "destination": ["Snowflake"]}],
        [{"status": "Failed", "destination": "Snowflake", "step": 9}],
        [{"status": "Failed", "step": "Check nothing"}],
    ],
)
@fact("switchboard", "invalid rules of test steps are refused", *REAL)
def test_invalid_rules_of_steps(api: Api, rules: Any) -> None:
    answer = api.emulator.http.put("/_emulator/test_steps", json=rules)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert api.emulator.admin("GET", "test_steps") == {"rules": []}


@fact("switchboard", "only the newest servers have skipped steps", *REAL)
def test_skipped_by_a_rule(api: Api) -> None:
    answer = api.emulator.http.put("/_emulator/test_steps", json=[{"status": "Skipped"}])
    assert answer.status_code == (200 if api.dialect == "2026" else 400)
