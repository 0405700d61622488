"""Integrations by name: plans, imports, comparisons, promotions and tests of destinations."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
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


def ids_of(first: int) -> dict[str, int]:
    """Return the ids of integrations by name, of those that begin with an id."""
    return {name: first + number for number, name in enumerate(KINDS)}


def live_exports(first: int) -> list[dict[str, Any]]:
    """Return exports with the integrations that begin with an id, as the service stores them."""
    ids, exports = ids_of(first), []
    for key, (tag, name, given) in TYPES.items():
        config = dict(given)
        if "copy_inputs" in config:
            roles = dict.fromkeys(("authorization", "bucket_credentials"), ids["lake"])
            config["copy_inputs"] = {**config["copy_inputs"], **roles}
        destination = {"type": tag, "integration": ids[name], "config": config}
        exports.append(no_op_export(key, destination=destination))
    return exports


def seed(*exports: list[dict[str, Any]], **key: Any) -> dict[str, Any]:
    names = ("Staging", "Production")
    projects = [
        {"id": number + 1, "name": name, "batch_exports": exports[number] if exports else []}
        for number, name in enumerate(names)
    ]
    return {
        "organizations": [{"id": ORGANIZATION, "name": "Acme", "projects": projects}],
        "keys": [{"value": KEY, "scopes": ["*"], **key}],
        "integrations": [
            {"id": number, "project": project, "kind": KINDS[name][0], "config": KINDS[name][1]}
            for project in (1, 2)
            for name, number in ids_of(100 * project).items()
        ],
    }


def resources(*keys: str, **names: Any) -> str:
    exports = {
        key: no_op_export(key, project="web", destination=destination_of(key, **names))
        for key in keys or TYPES
    }
    return f"{WEB}batch_exports: {json.dumps(exports)}\n"


def destination_of(key: str, **names: Any) -> dict[str, Any]:
    tag, name, config = TYPES[key]
    return {"type": tag, "integration": names.get(key, name), "config": config}


@dataclass(frozen=True)
class World:
    """A workspace, and a service with the integrations."""

    service: RunningEmulator
    folder: Path

    def write(self, text: str | None = None, *, committed: bool = False) -> None:
        write(self.folder, {"reconciler.yaml": WORKSPACE, "a.yaml": text or resources()})
        if committed:
            git = Git.init(self.folder)
            git.commit()
            git.trust()

    def run(self, command: str, *words: str, code: int = 0) -> Ran:
        """Run a command, in staging unless the words name another environment."""
        own = () if {"-e", "staging", "--from"} & {*words} else ("-e", "staging")
        where = ("-C", self.folder, "--trust-workspace")
        ran = reconciler(command, *where, *own, *words, environ=self.service.environ())
        assert ran.code == code, ran.out + ran.err
        return ran

    def plan(self, *words: str) -> str:
        return self.run("plan", *words).out

    def apply(self, *words: str, code: int = 0) -> Ran:
        return self.run("apply", *words, "--auto-approve", code=code)

    def error(self) -> str:
        """Return what a plan that is refused says."""
        return " ".join(self.run("plan", code=5).out.split())

    def imported(self, environment: str = "staging", project: str = "1") -> str:
        """Import a project, and return the text of its files. They are what is live."""
        write(self.folder, {"reconciler.yaml": WORKSPACE})
        self.run("import", "--project", project, "-e", environment)
        assert "No changes." in self.plan("-e", environment)
        return "".join(path.read_text() for path in self.folder.rglob("projects/*.yaml"))

    def call(self, method: str, path: str, body: Any = None, project: int = 1) -> Any:
        """Send a request below a project, and return the body of the answer."""
        answer = self.service.call(method, f"/api/projects/{project}/{path}/", body, key=KEY)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def create(self, kind: str, project: int = 1, **config: Any) -> int:
        made = self.call("POST", "integrations", {"kind": kind, "config": config}, project)
        return int(made["id"])

    def bodies(self, project: int = 1) -> dict[str, dict[str, Any]]:
        """Return the exports of a project by name."""
        listed = self.call("GET", "batch_exports", project=project)
        return {item["name"]: item for item in listed["results"]}

    def patch(self, export: str, /, **fields: Any) -> None:
        """Change an export as somebody else would."""
        self.call("PATCH", f"batch_exports/{self.bodies()[export]['id']}", fields)

    def recreate(self, label: str) -> int:
        """Give a name to a new integration, as a rotation does, and return its id."""
        kind, config = KINDS[label]
        self.call("DELETE", f"integrations/{ids_of(100)[label]}")
        return self.create(kind, **config)


@pytest.fixture
def world_of(service_of: StartService, tmp_path: Path) -> Callable[..., World]:
    """Return a function of a seed that returns a world, of 2026 if no option says otherwise."""

    def world(given: dict[str, Any], *options: str, dialect: str = "2026") -> World:
        return World(service_of(given, "--dialect", dialect, *options), tmp_path / "w")

    return world


@pytest.fixture
def stored(world_of: Any) -> World:
    return world_of(seed(live_exports(100), live_exports(200)))


@pytest.fixture
def empty(world_of: Any) -> World:
    return world_of(seed())


def test_commands_send_and_write_what_is_of_the_environment(stored: World) -> None:
    """M1: `status` planned without the lists of integrations. The matrix has other commands."""
    stored.write()
    for command in ("plan", "status"):
        ran = stored.run(command)
        assert "rror" not in ran.err
        assert ("No changes." in ran.out, "differing" in ran.out) == (command == "plan", False)
    ran = stored.run("doctor", "*", "-e", "production", "--auto-approve")
    assert "0 checks failed" in ran.out
    (stored.folder / "a.yaml").unlink()
    text = stored.imported("production", project="2")
    assert text.count("integration: lake\n") == 1
    assert "authorization:\n            name: lake\n" in text


def test_creates_send_the_ids_of_the_environment(empty: World) -> None:
    empty.write()
    empty.apply("-e", "production")
    created, ids = empty.bodies(2), ids_of(200)
    assert created.keys() == TYPES.keys()
    for key, (_, name, _) in TYPES.items():
        destination = created[key]["destination"]
        assert destination["integration"] == ids[name]
        inputs = destination["config"].get("copy_inputs") or {}
        sent = {inputs.get("authorization"), inputs.get("bucket_credentials")}
        assert sent <= {None, ids["lake"]}
    assert "No changes." in empty.plan("-e", "production")


HOSTILE = ("x\n::error::y", "${secret:env:HOME}", "12", "yes", "a: b # c", "'\"")


def test_import_writes_any_name(world_of: Any) -> None:
    numbered = dict(enumerate(HOSTILE, start=300))
    exports = [
        no_op_export(f"e{id_}", destination={"type": "AwsS3", "integration": id_, "config": BUCKET})
        for id_ in numbered
    ]
    named = [
        {"id": id_, "project": 1, "kind": "aws-s3", "config": {"name": name}}
        for id_, name in numbered.items()
    ]
    text = world_of({**seed(exports, []), "integrations": named}).imported()
    assert "\n::error" not in text
    assert text.count("integration:") == len(HOSTILE)


def test_unknown_and_ambiguous_names(world_of: Any) -> None:
    both = seed()
    both["integrations"].append({**both["integrations"][6], "id": 900})
    world = world_of(both)
    world.write(resources("aws", "snowflake", "bigquery", aws="flakes", snowflake="flake"))
    error = world.error()
    assert (
        "a.yaml:3:108: error: batch_export.aws: unknown aws-s3 integration 'flakes' in project 1 "
        "(an integration of that name has the kind snowflake)"
    ) in error, error
    assert "unknown snowflake integration 'flake' in project 1" in error
    assert (
        "set `destination.integration` to one of flakes (102, Snowflake account acme), or create "
        "it in the service"
    ) in error
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
def test_names_that_the_key_does_not_see(world_of: Any, key: dict[str, Any], reason: str) -> None:
    world = world_of(seed(**key))
    world.write(resources("aws"))
    error = world.error()
    assert "aws-s3 integration 'lake' is not visible to this key:" in error
    assert (reason in error, "unknown" in error) == (True, False)
    world.write()
    states = world.run("status")
    assert "No batch exports." in states.out
    assert "aws-s3 integration 'lake' is not visible to this key" in states.err
    world.write(resources("aws", aws=100))
    world.apply()


def test_older_servers_list_no_integrations(world_of: Any) -> None:
    world = world_of(seed(), dialect="2025")
    world.write(resources("bigquery"))
    reason = "is not visible to this key: this server lists no integrations to API keys"
    assert reason in world.error()


def test_an_integration_of_the_same_name_is_a_new_address(empty: World) -> None:
    empty.write(resources("aws"), committed=True)
    empty.apply()
    spare = empty.create("aws-s3", name="spare", aws_account_id="1")
    empty.patch("aws", destination={**destination_of("aws"), "integration": spare})
    new = empty.recreate("lake")
    assert f"! integration lake ({new}, AWS account 123456789012)" in empty.plan()
    empty.apply()
    assert empty.bodies()["aws"]["destination"]["integration"] == new


def test_a_saved_plan_is_stale_when_a_name_has_another_id(empty: World, tmp_path: Path) -> None:
    saved = str(tmp_path / "plan.json")
    empty.write(resources("aws"))
    empty.plan("--out", saved)
    empty.recreate("lake")
    ran = empty.apply(saved, code=4)
    assert "the saved plan is stale (1 difference)" in ran.err
    assert "is (not set) -> 209 now, the saved plan has (not set) -> 100" in ran.err


@pytest.mark.parametrize(
    ("integration", "compared"), [("new", ""), (100, "identity of the object")]
)
def test_promote_keeps_names_and_leaves_ids(
    stored: World, integration: object, compared: str
) -> None:
    """A promoted name is the integration of the other environment; an id is that of a project."""
    for project in (1, 2):
        stored.create("aws-s3", project, name="new")
    own = json.dumps({"staging": {"destination": {"integration": integration}}})
    text = resources("aws").replace('"name": "aws",', f'"name": "aws", "overrides": {own},')
    stored.write(text)
    stored.run("promote", "--from", "staging", "--to", "production")
    assert ((stored.folder / "a.yaml").read_text() == text) is bool(compared)
    shown = stored.run("compare", "staging", "production", "--verbose").out
    assert compared in shown
    assert ("integration" in shown) is bool(compared)


def test_pull_writes_a_name(stored: World) -> None:
    keys = ("aws", "redshift_copy")
    exports = {
        key: no_op_export(key, project="web", destination=destination_of(key)) for key in keys
    }
    stored.write(WEB + yaml.safe_dump({"batch_exports": exports}, sort_keys=False), committed=True)
    stored.apply()
    other = stored.create("aws-s3", name="other")
    live = {name: stored.bodies()[name]["destination"] for name in keys}
    live["aws"]["integration"] = other
    live["redshift_copy"]["config"]["copy_inputs"]["authorization"] = other
    for name, destination in live.items():
        stored.patch(name, destination=destination)
    stored.run("drift", "--write", code=2)
    written = (stored.folder / "a.yaml").read_text()
    assert "integration: other" in written, written
    assert "authorization:\n                name: other" in written, written
    assert "No changes." in stored.plan()


@pytest.mark.parametrize(
    ("key", "integration", "message"),
    [
        ("HTTP", "lake", "a.yaml:4:90: error: destination.integration of batch_export.a does not"),
        ("AwsS3", " ", "must not be only whitespace"),
        ("AwsS3", {"id": 7}, "unknown field 'id'"),
        ("AwsS3", {"name": 12}, "a.yaml:4:115: error: destination.integration.name of "),
    ],
)
def test_validate_checks_integrations(
    tmp_path: Path, key: str, integration: Any, message: str
) -> None:
    destination = {"type": key, "integration": integration, "config": {}}
    export = {"project": "web", **no_op_export("A", destination=destination)}
    text = f"projects:\n  web: {{name: Web}}\nbatch_exports:\n  a: {json.dumps(export)}\n"
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    ran = reconciler("validate", "-C", folder)
    assert (ran.code, message in ran.out + ran.err) == (1, True), ran.out


@pytest.mark.parametrize("other", [200, 102, 999], ids=["team", "kind", "existence"])
def test_ids_of_other_integrations_are_refused(empty: World, other: int) -> None:
    empty.write(resources("aws", "snowflake", aws=other))
    assert "[unknown-integration]" in empty.error()
    attempt = f"{WORKSPACE}policy: {{attempt: [unknown-integration]}}\n"
    write(empty.folder, {"reconciler.yaml": attempt})
    empty.apply(code=3)
    assert empty.bodies().keys() == {"snowflake"}


def test_x1_a_new_project_with_integrations_takes_three_steps(empty: World) -> None:
    overridden = "name: Staging, overrides: {production: {name: Production}}"
    empty.write(resources("aws").replace(overridden, "name: New"))
    first = "--target project.web"
    hint = f"run `apply {first}`, create the integration in the project, then apply the rest"
    assert hint in empty.error()
    empty.apply(*first.split())
    assert "integration-of-another-project" not in empty.error()
