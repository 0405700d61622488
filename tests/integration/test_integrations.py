"""Integrations by name: plans, imports, comparisons, promotions and tests of destinations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.simulated import no_op_export

ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
KEY = "phx_all_0123456789abcdef"
BUCKET = {"bucket_name": "b", "region": "eu-central-1", "prefix": "events/"}
TABLE = {"database": "d", "schema": "s", "table_name": "t"}
COPY = {
    "mode": "COPY",
    "copy_inputs": {
        "s3_bucket": "b",
        "region_name": "eu-central-1",
        "authorization": {"name": "lake"},
        "bucket_credentials": "lake",
    },
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lake": ("aws-s3", {"name": "lake", "aws_account_id": "123456789012"}),
    "store": ("s3-compatible", {"name": "store", "endpoint_url": "https://s3.acme.com"}),
    "flakes": ("snowflake", {"name": "flakes", "account": "acme", "user": "u"}),
    "shift": ("aws-redshift", {"name": "shift", "aws_role_arn": "arn:aws:iam::1:role/r"}),
    "red:5439/u": ("aws-redshift", {"host": "red", "port": 5439, "user": "u"}),
    "db:5432/u": ("postgresql", {"host": "db", "port": 5432, "user": "u"}),
    "ci@acme.iam": (
        "google-cloud-service-account",
        {"project_id": "acme", "service_account_email": "ci@acme.iam"},
    ),
    "bricks.acme.com": ("databricks", {"server_hostname": "bricks.acme.com"}),
    "blobs": ("azure-blob", {"account_name": "blobs"}),
}
"""Kinds and configs of integrations by their names in files."""
TYPES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "aws": ("AwsS3", "lake", BUCKET),
    "compatible": ("S3Compatible", "store", BUCKET),
    "snowflake": ("Snowflake", "flakes", {**TABLE, "warehouse": "w"}),
    "postgres": ("Postgres", "db:5432/u", TABLE),
    "redshift": ("Redshift", "red:5439/u", TABLE),
    "redshift_aws": ("Redshift", "shift", {**TABLE, "host": "cluster"}),
    "redshift_copy": ("Redshift", "shift", {**TABLE, "host": "cluster", **COPY}),
    "bigquery": ("BigQuery", "ci@acme.iam", {"project_id": "acme", "dataset_id": "d"}),
    "databricks": (
        "Databricks",
        "bricks.acme.com",
        {"http_path": "/sql", "catalog": "c", "schema": "s", "table_name": "t"},
    ),
    "blob": ("AzureBlob", "blobs", {"container_name": "c", "prefix": "p"}),
}
"""Types, integrations and configs of exports by key."""
WORKSPACE = "version: 1\nenvironments: {staging: {}, production: {}}\n"
WEB = """\
projects:
  web: {name: Staging, overrides: {production: {name: Production}}}
"""


def integrations(project: int, first: int) -> list[dict[str, Any]]:
    return [
        {"id": first + number, "project": project, "kind": kind, "config": config}
        for number, (kind, config) in enumerate(KINDS.values())
    ]


def ids_of(first: int) -> dict[str, int]:
    """Return the ids of integrations by name, of those that begin with an id."""
    return {name: first + number for number, name in enumerate(KINDS)}


def config_of(key: str, ids: dict[str, int] | None = None) -> dict[str, Any]:
    """Return the config of an export, with ids as the service stores them."""
    config = json.loads(json.dumps(TYPES[key][2]))
    if ids is not None and "copy_inputs" in config:
        config["copy_inputs"] |= dict.fromkeys(("authorization", "bucket_credentials"), ids["lake"])
    return config


def live_exports(first: int) -> list[dict[str, Any]]:
    """Return exports with the integrations that begin with an id."""
    ids = ids_of(first)
    destinations = {
        key: {"type": tag, "integration": ids[name], "config": config_of(key, ids)}
        for key, (tag, name, _) in TYPES.items()
    }
    return [{**no_op_export(key), "destination": it} for key, it in destinations.items()]


def seed(*exports: list[dict[str, Any]], **key: Any) -> dict[str, Any]:
    names = ("Staging", "Production")
    projects = [
        {"id": number + 1, "name": name, "batch_exports": exports[number] if exports else []}
        for number, name in enumerate(names)
    ]
    return {
        "organizations": [{"id": ORGANIZATION, "name": "Acme", "projects": projects}],
        "keys": [{"value": KEY, "scopes": ["*"], **key}],
        "integrations": [*integrations(1, 100), *integrations(2, 200)],
    }


def resources(*keys: str, **names: Any) -> str:
    exports = {
        key: no_op_export(key) | {"project": "web", "destination": destination_of(key, **names)}
        for key in keys or TYPES
    }
    return f"{WEB}batch_exports: {json.dumps(exports)}\n"


def destination_of(key: str, **names: Any) -> dict[str, Any]:
    tag, name, _ = TYPES[key]
    return {"type": tag, "integration": names.get(key, name), "config": config_of(key)}


def run(service: RunningEmulator, folder: Path, command: str, *words: str, code: int = 0) -> Ran:
    environ = service.environ()
    ran = reconciler(command, "-C", folder, "--trust-workspace", *words, environ=environ)
    assert ran.code == code, ran.out + ran.err
    return ran


def planned(service: RunningEmulator, folder: Path, *words: str) -> str:
    return run(service, folder, "plan", "-e", "staging", *words).out


def apply(service: RunningEmulator, folder: Path, *words: str) -> Ran:
    return run(service, folder, "apply", *(words or ("-e", "staging")), "--auto-approve")


def changed(service: RunningEmulator, folder: Path, action: str, *words: str) -> Any:
    """Return the change of an action in a plan."""
    plan = json.loads(planned(service, folder, "--format", "json", *words))
    (change,) = (item for item in plan["changes"] if item["action"] == action)
    return change


def workspace(folder: Path, text: str | None = None) -> Path:
    return write(folder, {"reconciler.yaml": WORKSPACE, "a.yaml": text or resources()})


def committed(folder: Path, text: str) -> Git:
    git = Git.init(workspace(folder, text))
    git.commit("base")
    git.trust()
    return git


@pytest.fixture
def stored(service_of: StartService) -> RunningEmulator:
    exports = live_exports(100), live_exports(200)
    return service_of(seed(*exports), "--dialect", "2026")


@pytest.fixture
def empty(service_of: StartService) -> RunningEmulator:
    return service_of(seed(), "--dialect", "2026")


def bodies(service: RunningEmulator, project: int) -> dict[str, dict[str, Any]]:
    answer = service.call("GET", f"/api/projects/{project}/batch_exports/", key=KEY).json()
    return {item["name"]: item for item in answer["results"]}


@pytest.mark.parametrize("options", [(), ("--no-organization-list",)], ids=str)
@pytest.mark.parametrize("environment", ["staging", "production"])
def test_names_of_all_types_are_the_ids_of_each_environment(
    service_of: StartService, tmp_path: Path, environment: str, options: tuple[str, ...]
) -> None:
    exports = live_exports(100), live_exports(200)
    service = service_of(seed(*exports), "--dialect", "2026", *options)
    ran = run(service, workspace(tmp_path), "plan", "-e", environment)
    assert "rror" not in ran.err
    assert "No changes." in ran.out


@pytest.mark.parametrize(
    ("environment", "project", "first"), [("staging", 1, 100), ("production", 2, 200)]
)
def test_creates_send_the_ids_of_the_environment(
    empty: RunningEmulator, tmp_path: Path, environment: str, project: int, first: int
) -> None:
    folder = workspace(tmp_path)
    apply(empty, folder, "-e", environment)
    created, ids = bodies(empty, project), ids_of(first)
    assert created.keys() == TYPES.keys()
    for key, (_, name, _) in TYPES.items():
        destination = created[key]["destination"]
        assert destination["integration"] == ids[name]
        inputs = destination["config"].get("copy_inputs") or {}
        assert {inputs.get("authorization"), inputs.get("bucket_credentials")} <= {
            None,
            ids["lake"],
        }
    assert "No changes." in run(empty, folder, "plan", "-e", environment).out


def create(service: RunningEmulator, project: int, kind: str, **config: Any) -> int:
    path = f"/api/projects/{project}/integrations/"
    answer = service.call("POST", path, {"kind": kind, "config": config}, key=KEY)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def test_an_update_shows_names_and_ids(stored: RunningEmulator, tmp_path: Path) -> None:
    new = create(stored, 1, "aws-s3", name="new", aws_account_id="210987654321")
    text = resources("aws", "redshift_copy", aws="new")
    text = text.replace('{"name": "lake"}', '{"name": "new"}')
    folder = workspace(tmp_path, text)
    shown = planned(stored, folder)
    label = f"new ({new}, AWS account 210987654321)"
    assert f"! integration {label}    batch_export.aws" in shown
    assert f"! authorization {label}  batch_export.redshift_copy" in shown
    before = "        - lake (100, AWS account 123456789012)\n"
    for path in ("integration", "config.copy_inputs.authorization"):
        assert f"      destination.{path}\n{before}        + {label}\n" in shown
    change = json.loads(planned(stored, folder, "--format", "json"))["changes"][0]
    assert change["body"]["destination"]["integration"] == new
    assert change["integrations"][str(new)] == label


def test_ids_are_not_read_as_names(stored: RunningEmulator, tmp_path: Path) -> None:
    """Files without names need no list of integrations."""
    folder = workspace(tmp_path, resources("aws", "snowflake", aws=100, snowflake="102"))
    ran = run(stored, folder, "plan", "-e", "staging")
    assert "No changes." in ran.out
    named = workspace(tmp_path / "named", resources("aws", "snowflake"))
    calls = [
        text.err.splitlines()[-1] for text in (ran, run(stored, named, "plan", "-e", "staging"))
    ]
    assert [int(line.split()[0]) for line in calls] == [3, 4]


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "status aws",
        "status -e *",
        "gaps --since 1m",
        "runs aws",
        "logs aws",
        "backfill aws --from 2026-01-01 --to 2026-01-02 --dry-run",
        "projects list",
        "import --project 1 --dry-run",
        "pause aws --auto-approve",
        "unpause aws --auto-approve",
        "doctor",
    ],
)
def test_m1_commands_for_operations_work_with_names(
    stored: RunningEmulator, tmp_path: Path, words: str
) -> None:
    """M1: `status` failed, since it planned without the lists of integrations."""
    command, *options = words.split()
    folder = workspace(tmp_path)
    ran = run(stored, folder, command, *options, *(() if "-e" in options else ("-e", "staging")))
    assert "rror" not in ran.err
    assert "differing" not in ran.out


def imported(service: RunningEmulator, folder: Path, *words: str, project: str = "1") -> str:
    """Import a project, and return the text of its files. They are what is live."""
    run(service, folder, "import", *words, "--project", project)
    assert "No changes." in run(service, folder, "plan", *words).out
    return "".join(path.read_text() for path in folder.rglob("projects/*.yaml"))


@pytest.mark.parametrize(
    ("text", "project", "words"),
    [
        (WORKSPACE, "1", ("-e", "staging")),
        (WORKSPACE, "2", ("-e", "production")),
        ("version: 1\n", "1", ()),
    ],
)
def test_import_writes_names(
    stored: RunningEmulator, tmp_path: Path, text: str, project: str, words: tuple[str, ...]
) -> None:
    folder = write(tmp_path, {"reconciler.yaml": text})
    text = imported(stored, folder, *words, project=project)
    assert text.count("integration: lake\n") == 1
    assert "authorization:\n            name: lake\n" in text


@pytest.mark.parametrize(
    "key",
    [
        {"scopes": ["batch_export:write", "project:write"]},
        {"integration_kinds": ["aws-s3"]},
    ],
)
def test_import_writes_ids_where_the_key_sees_no_names(
    service_of: StartService, tmp_path: Path, key: dict[str, Any]
) -> None:
    service = service_of(seed(live_exports(100), [], **key), "--dialect", "2026")
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    text = imported(service, folder)
    sees_some = "integration_kinds" in key
    assert text.count("integration: lake\n") == sees_some
    assert text.count("integration: 100\n") == (not sees_some)
    assert "integration: 101\n" in text


def plan_error(service: RunningEmulator, folder: Path) -> str:
    return " ".join(run(service, folder, "plan", "-e", "staging", code=5).out.split())


def test_unknown_and_ambiguous_names(stored: RunningEmulator, tmp_path: Path) -> None:
    for flavour in ("a", "b"):
        create(stored, 1, "aws-redshift", name=f"twin-{flavour}", host="h", port=1, user="u")
    text = resources("aws", "snowflake", "bigquery", aws="flakes", snowflake="flake", bigquery="x")
    error = plan_error(stored, workspace(tmp_path, text))
    assert (
        "a.yaml:3:108: error: batch_export.aws: unknown aws-s3 integration 'flakes' in project 1 "
        "(an integration of that name has the kind snowflake)"
    ) in error, error
    assert "unknown snowflake integration 'flake' in project 1" in error
    assert (
        "set `destination.integration` to one of flakes (102, Snowflake account acme), or create "
        "it in the service"
    ) in error


def test_a_name_of_two_integrations(service_of: StartService, tmp_path: Path) -> None:
    both = seed()
    both["integrations"].append({**both["integrations"][6], "id": 900})
    service = service_of(both, "--dialect", "2026")
    error = plan_error(service, workspace(tmp_path, resources("bigquery")))
    assert (
        "ambiguous google-cloud-service-account integration 'ci@acme.iam': "
        "ci@acme.iam (106, project acme), ci@acme.iam (900, project acme)"
    ) in error, error
    assert "set `destination.integration` to one of the ids" in error


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ({"scopes": ["batch_export:write", "project:write"]}, "scope 'integration:read'"),
        ({"integration_kinds": ["github"]}, "servers before May 2026"),
    ],
)
def test_names_that_the_key_does_not_see(
    service_of: StartService, tmp_path: Path, key: dict[str, Any], reason: str
) -> None:
    service = service_of(seed(**key), "--dialect", "2026")
    error = plan_error(service, workspace(tmp_path, resources("aws")))
    assert "aws-s3 integration 'lake' is not visible to this key:" in error
    assert reason in error
    assert "unknown" not in error
    states = run(service, workspace(tmp_path), "status", "-e", "staging")
    assert "No batch exports." in states.out
    assert "aws-s3 integration 'lake' is not visible to this key" in states.err
    apply(service, workspace(tmp_path / "ids", resources("aws", aws=100)))


def test_older_servers_list_no_integrations(service_of: StartService, tmp_path: Path) -> None:
    service = service_of(seed(), "--dialect", "2025")
    text = resources("bigquery")
    error = plan_error(service, workspace(tmp_path, text))
    assert "is not visible to this key: this server lists no integrations to API keys" in error


def test_an_integration_of_the_same_name_is_a_new_address(
    stored: RunningEmulator, tmp_path: Path
) -> None:
    folder = committed(tmp_path, resources("aws")).folder
    assert "No changes." in planned(stored, folder)
    new = recreate(stored, "lake")
    assert f"! integration lake ({new}, AWS account 123456789012)" in planned(stored, folder)
    apply(stored, folder)
    assert bodies(stored, 1)["aws"]["destination"]["integration"] == new
    assert "No changes." in planned(stored, folder)


def patch(service: RunningEmulator, name: str, /, **fields: Any) -> None:
    """Change an export of the first project as somebody else would."""
    path = f"/api/projects/1/batch_exports/{bodies(service, 1)[name]['id']}/"
    service.call("PATCH", path, fields, key=KEY).raise_for_status()


def recreate(service: RunningEmulator, label: str) -> int:
    """Give a name to a new integration, as a rotation does, and return its id."""
    (kind, config), old = KINDS[label], ids_of(100)[label]
    spare = create(service, 1, kind, **{**config, "name": "spare"})
    for name, export in bodies(service, 1).items():
        if export["destination"]["config"].get("mode") == "COPY":
            path = f"/api/projects/1/batch_exports/{export['id']}/"
            service.call("DELETE", path, key=KEY)
        elif export["destination"]["integration"] == old:
            patch(service, name, destination={**export["destination"], "integration": spare})
    service.call("DELETE", f"/api/projects/1/integrations/{old}/", key=KEY).raise_for_status()
    return create(service, 1, kind, **config)


def test_a_saved_plan_is_stale_when_a_name_has_another_id(
    empty: RunningEmulator, tmp_path: Path
) -> None:
    folder, saved = workspace(tmp_path / "w", resources("aws")), tmp_path / "plan.json"
    planned(empty, folder, "--out", str(saved))
    recreate(empty, "lake")
    ran = run(empty, folder, "apply", str(saved), "-e", "staging", "--auto-approve", code=4)
    assert "the saved plan is stale (1 difference)" in ran.err
    assert "is (not set) -> 210 now, the saved plan has (not set) -> 100" in ran.err


def test_doctor_sends_the_ids_of_the_environment(stored: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    for environment in ("staging", "production"):
        ran = run(stored, folder, "doctor", "*", "-e", environment, "--auto-approve")
        assert "0 checks failed" in ran.out


def test_doctor_of_new_exports(empty: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path, resources("aws", "redshift_copy", "snowflake"))
    ran = run(empty, folder, "doctor", "*", "-e", "production", "--auto-approve")
    assert ran.out.count("not tested") == 1
    assert ran.out.count("batch_export.") > 3


@pytest.mark.parametrize(
    ("integration", "compared"), [("new", ""), (100, "identity of the object")]
)
def test_promote_keeps_names_and_leaves_ids(
    stored: RunningEmulator, tmp_path: Path, integration: object, compared: str
) -> None:
    """A promoted name is the integration of the other environment; an id is that of a project."""
    create(stored, 1, "aws-s3", name="new")
    create(stored, 2, "aws-s3", name="new")
    own = json.dumps({"staging": {"destination": {"integration": integration}}})
    text = resources("aws").replace('"name": "aws",', f'"name": "aws", "overrides": {own},')
    folder = workspace(tmp_path, text)
    run(stored, folder, "promote", "--from", "staging", "--to", "production")
    assert ((folder / "a.yaml").read_text() == text) is bool(compared)
    shown = run(stored, folder, "compare", "staging", "production", "--verbose").out
    assert compared in shown
    assert ("integration" in shown) is bool(compared)


def test_pull_writes_a_name(stored: RunningEmulator, tmp_path: Path) -> None:
    exports = {key: {**no_op_export(key), "project": "web"} for key in ("aws", "redshift_copy")}
    for key, export in exports.items():
        export["destination"] = destination_of(key)
    text = WEB + yaml.safe_dump({"batch_exports": exports}, sort_keys=False)
    folder = committed(tmp_path, text).folder
    apply(stored, folder)
    other = create(stored, 1, "aws-s3", name="other")
    live = {name: bodies(stored, 1)[name]["destination"] for name in ("aws", "redshift_copy")}
    live["aws"]["integration"] = other
    live["redshift_copy"]["config"]["copy_inputs"]["authorization"] = other
    for name, destination in live.items():
        patch(stored, name, destination=destination)
    run(stored, folder, "drift", "-e", "staging", "--write", code=2)
    written = (folder / "a.yaml").read_text()
    assert "integration: other" in written, written
    assert "authorization:\n                name: other" in written, written
    assert "No changes." in planned(stored, folder)


@pytest.mark.parametrize(
    ("tag", "integration", "message"),
    [
        ("HTTP", "lake", "a.yaml:9:20: error: destination.integration of batch_export.a does not"),
        ("AwsS3", "' '", "must not be only whitespace"),
        ("AwsS3", "{id: 7}", "unknown field 'id'"),
        (
            "AwsS3",
            "{name: 12}",
            "a.yaml:9:41: error: destination.integration.name of ",
        ),
    ],
)
def test_validate_checks_integrations(
    tmp_path: Path, tag: str, integration: str, message: str
) -> None:
    text = f"""\
projects:
  web: {{name: Web}}
batch_exports:
  a:
    project: web
    name: A
    interval: hour
    destination:
      {{type: {tag}, integration: {integration}, config: {{}}}}
"""
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    ran = reconciler("validate", "-C", folder, "--trust-workspace")
    assert (ran.code, message in ran.out + ran.err) == (1, True)


@pytest.mark.parametrize(
    ("aws", "result"),
    [
        ("lake", "missing: integration:read"),
        (100, "batch_export:read, project:read"),
    ],
)
def test_doctor_checks_the_scope(
    service_of: StartService, tmp_path: Path, aws: Any, result: str
) -> None:
    service = service_of(seed(scopes=["batch_export:write", "project:write"]), "--dialect", "2026")
    folder = workspace(tmp_path, resources("aws", aws=aws))
    words = ("doctor", "-e", "staging", "--format", "json")
    ran = run(service, folder, *words, code=int(aws == "lake"))
    checks = {item["name"]: item for item in json.loads(ran.out)["checks"]}
    assert sorted(checks["scopes to plan"]["result"].split(", ")) == sorted(result.split(", "))


def test_a_renamed_export_is_found_by_the_integration_of_the_base(
    stored: RunningEmulator, tmp_path: Path
) -> None:
    """It was renamed in the service, and the files name another integration since the apply."""
    create(stored, 1, "s3-compatible", name="new", endpoint_url="https://new.acme.com")
    folder = (git := committed(tmp_path, resources("compatible"))).folder
    apply(stored, folder)
    patch(stored, "compatible", name="renamed")
    write(folder, {"a.yaml": resources("compatible", compatible="new")})
    git.commit("another integration")
    assert 'name                     "renamed" -> "compatible"' in planned(stored, folder)


@pytest.mark.parametrize("other", [200, 102, 999], ids=["team", "kind", "existence"])
def test_ids_of_other_integrations_are_refused(
    empty: RunningEmulator, tmp_path: Path, other: int
) -> None:
    """The service refuses what the plan refuses."""
    text = resources("aws", "snowflake", aws=other)
    error = plan_error(empty, workspace(tmp_path / "w", text))
    assert "batch_export.aws: integration" in error
    assert "[unknown-integration]" in error
    attempt = f"{WORKSPACE}policy: {{attempt: [unknown-integration]}}\n"
    folder = write(tmp_path / "a", {"reconciler.yaml": attempt, "a.yaml": text})
    run(empty, folder, "apply", "-e", "staging", "--auto-approve", code=3)
    assert bodies(empty, 1).keys() == {"snowflake"}


def test_the_integration_of_another_project_is_no_drift(
    service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(seed(live_exports(100), []), "--dialect", "2026")
    text = resources("aws").replace("projects:\n", "projects:\n  app: {name: Production}\n")
    folder = committed(tmp_path, text).folder
    apply(service, folder)
    write(folder, {"a.yaml": text.replace('"project": "web"', '"project": "app"')})
    change = changed(service, folder, "replace", "--allow-replace")
    fields = {field["path"][-1]: field["origin"] for field in change["fields"]}
    assert fields["integration"] == "files"


def test_an_id_in_place_of_the_name_of_the_base_is_no_conflict(
    stored: RunningEmulator, tmp_path: Path
) -> None:
    new = create(stored, 1, "postgresql", host="new", port=5432, user="u")
    folder = committed(tmp_path, resources("postgres")).folder
    apply(stored, folder)
    write(folder, {"a.yaml": resources("postgres", postgres=new)})
    change = changed(stored, folder, "update")
    fields = {field["path"][-1]: field["origin"] for field in change["fields"]}
    assert fields == {"integration": "files"}


HOSTILE = ("x\n::error::y", "${secret:env:HOME}", "12", "yes", "a: b # c", "'\"")


@pytest.mark.parametrize("environments", ["", "environments: {staging: {}, production: {}}\n"])
def test_import_writes_any_name(
    service_of: StartService, tmp_path: Path, environments: str
) -> None:
    exports = [
        {**export, "destination": {"type": "AwsS3", "integration": 300 + number, "config": config}}
        for number in range(len(HOSTILE))
        for export in [no_op_export(f"e{number}")]
        for config in [{**BUCKET, "prefix": f"{number}/"}]
    ]
    given = seed(exports, [])
    given["integrations"] = [
        {"id": 300 + number, "project": 1, "kind": "aws-s3", "config": {"name": name}}
        for number, name in enumerate(HOSTILE)
    ]
    service = service_of(given, "--dialect", "2026")
    folder = write(tmp_path, {"reconciler.yaml": f"version: 1\n{environments}"})
    words = ("-e", "staging") if environments else ()
    text = imported(service, folder, *words)
    assert "\n::error" not in text
    assert text.count("integration:") == len(HOSTILE)


def test_x1_a_new_project_with_integrations_takes_three_steps(
    service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(seed(), "--dialect", "2026")
    text = resources("aws").replace(
        "name: Staging, overrides: {production: {name: Production}}", "name: New"
    )
    folder = workspace(tmp_path, text)
    first = "--target project.web"
    hint = f"run `apply {first}`, create the integration in the project, then apply the rest"
    assert hint in plan_error(service, folder)
    apply(service, folder, *first.split(), "-e", "staging")
    assert "integration-of-another-project" not in plan_error(service, folder)
