"""`import`: live state goes into files, and the plan of those files is empty."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator, start_emulator
from tests.support.fields import (
    BY_INTEGRATION,
    INLINE,
    INTEGRATIONS,
    NEWER,
    PROJECT,
    QUERIES,
    RETIRED,
    at,
)
from tests.support.git import Git
from tests.support.importing import SECRET, an_export, new_workspace, resources
from tests.support.importing import run_import as run
from tests.support.importing import run_plan as plan

ODD_NAMES = [
    "no",
    "1e3",
    ": #",
    "Wärehouse / Ünïcode – 日本",
    "🚀",
    "${var:x} $${y}",
    "'quoted' \"twice\"",
    "- a list",
    "{a: map}",
    "tab\there",
    "line\nbreak",
    "x" * 300,
    "null",
    "2026-01-01",
    "0o17",
    "*star",
    "&anchor",
    "!tag",
    "%percent",
    "@at",
    "CON",
    "../../etc/passwd",
    "a.b_c-d",
    "\u202eright to left",
]
PROJECTS = ["Web", "web", "日本語", "Web shop / EU", "no"]


def seed_of(dialect: str, exports: int) -> dict[str, Any]:
    """Return an organization with exports of all types in five projects, with duplicate names."""
    types = dict(BY_INTEGRATION if dialect == "2026" else INLINE)
    if dialect == "interface":
        types.pop("Databricks")
    kinds = enumerate(INTEGRATIONS.values(), start=1)
    count = len(PROJECTS)
    settings = {**PROJECT, **(NEWER if dialect == "2026" else RETIRED)}
    projects: list[dict[str, Any]] = [
        {"id": number + 1, "name": name, "batch_exports": [], **at(settings, number % 3)}
        for number, name in enumerate(PROJECTS)
    ]
    for number in range(exports):
        project = number % count
        name = ODD_NAMES[number] if number < len(ODD_NAMES) else f"Export {number // 2}"
        type_name = list(types)[number // count % len(types)]
        projects[project]["batch_exports"].append(
            export_of(dialect, name, type_name, types[type_name], number, project)
        )
    return {
        "organizations": [{"id": "org", "name": "Acme", "projects": projects}],
        "keys": [{"value": "phx_key"}],
        "integrations": [
            {"id": number + 100 * project, "project": project + 1, "kind": kind}
            for number, kind in kinds
            for project in range(count)
        ],
    }


def export_of(
    dialect: str,
    name: str,
    type_name: str,
    fields: Mapping[str, list[Any]],
    number: int,
    project: int,
) -> dict[str, Any]:
    config = json.loads(
        re.sub(r"\$\{secret:env:\w+\}", SECRET, json.dumps(at(dict(fields), number % 3)))
    )
    if number % 4 == 0:
        # Only what is required: the rest is as the server has it.
        config = {key: config[key] for key in config if key not in ("compression", "mode")}
        config.pop("copy_inputs", None)
    destination: dict[str, Any] = {"type": type_name, "config": config}
    kinds = INTEGRATIONS if dialect == "2026" else {"Databricks": "databricks"}
    if type_name in kinds:
        destination["integration"] = 1 + list(INTEGRATIONS).index(type_name) + 100 * project
    export = {
        "name": name,
        "interval": ["hour", "day", "week", "every 5 minutes"][number % 4],
        "paused": number % 3 == 0,
        "destination": destination,
        "start_at": [None, "2026-01-01T00:00:00Z"][number % 2],
    }
    if dialect == "2026":
        export["timezone"] = [None, "Europe/Berlin"][number % 2]
        export["offset_hour"] = 5 if number % 4 == 1 else None
    elif number % 5 == 0 and type_name != "HTTP":
        export["sql_query" if dialect == "interface" else "hogql_query"] = QUERIES[number % 2]
    return export


@pytest.fixture
def seeded(dialect: str, service_of: StartService) -> RunningEmulator:
    return service_of(seed_of(dialect, 200), "--dialect", dialect)


def settings_of(running: RunningEmulator) -> dict[str, Any]:
    """Return all stored objects without their runs, which appear as time passes."""
    state = running.state()
    for project in state["projects"]:
        for export in project["batch_exports"]:
            del export["latest_runs"]
    return state


@pytest.mark.parametrize("dialect", ["interface", "2025", "2026"])
def test_after_import_of_200_exports_of_all_types_the_plan_is_empty(
    seeded: RunningEmulator, dialect: str, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path / "workspace")
    before = settings_of(seeded)
    ran = reconciler("import", "-C", folder, environ=seeded.environ())
    assert ran.code == 0, ran.err
    assert "Imported: 5 projects, 200 batch_exports into 5 files" in ran.out
    declared = resources(folder)
    assert len(declared["projects"]) == 5
    assert len(declared["batch_exports"]) == 200
    planned = plan(folder, seeded)
    assert planned.code == 0, planned.out
    assert planned.out.rstrip().endswith("(205 resources).")
    assert seeded.writes() == []
    assert settings_of(seeded) == before
    assert SECRET not in ran.out + ran.err
    assert not any(SECRET in path.read_text() for path in folder.rglob("*.yaml"))
    names = {export["name"].replace("$${", "${") for export in declared["batch_exports"].values()}
    assert set(ODD_NAMES) <= names
    again = reconciler("import", "-C", folder, environ=seeded.environ())
    assert again.out == "Imported: nothing; 205 already in the configuration\n"


@pytest.fixture
def populated(emulator: RunningEmulator) -> RunningEmulator:
    """Run a service with two exports of one name, another export and a second project."""
    projects = f"/api/organizations/{emulator.organization}/projects/"
    other = emulator.call("POST", projects, {"name": "Shop"}).json()["id"]
    for project, name in (
        (emulator.project_id, "Twin"),
        (emulator.project_id, "Twin"),
        (emulator.project_id, "Lake"),
        (other, "Lake"),
    ):
        answer = emulator.call("POST", f"/api/projects/{project}/batch_exports/", an_export(name))
        assert answer.status_code == 201, answer.text
    emulator.clear_requests()
    return emulator


def test_objects_with_the_same_name_are_pinned_by_id(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path)
    assert run(folder, populated).code == 0
    exports = resources(folder)["batch_exports"]
    duplicates = [export for export in exports.values() if export["name"] == "Twin"]
    assert len({export["id"] for export in duplicates}) == 2
    # A name that is unique within each project needs no id: the keys differ by project.
    assert {key for key, export in exports.items() if export["name"] == "Lake"} == {
        "default-project-lake",
        "shop-lake",
    }
    assert not any("id" in export for export in exports.values() if export["name"] == "Lake")
    assert plan(folder, populated).code == 0


def test_the_secrets_to_set_are_listed(populated: RunningEmulator, tmp_path: Path) -> None:
    folder = new_workspace(tmp_path)
    ran = run(folder, populated, "--project", "Shop")
    assert "  RECONCILER_SECRET_SHOP_LAKE_PASSWORD" not in ran.out
    assert "  RECONCILER_SECRET_LAKE_PASSWORD  batch_export.lake\n" in ran.out
    config = resources(folder)["batch_exports"]["lake"]["destination"]["config"]
    assert config["password"] == "${secret:env:RECONCILER_SECRET_LAKE_PASSWORD}"
    assert config["user"] == "${secret:env:RECONCILER_SECRET_LAKE_USER}"


@pytest.mark.parametrize("dialect", ["interface", "2025"])
def test_performance_a_plan_of_imported_projects_takes_pages_only(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    projects = [{"name": f"P{number}"} for number in range(30)]
    projects.append({"name": "Careful", "anonymize_ips": True})
    seed = {"organizations": [{"name": "Acme", "projects": projects}]}
    service = service_of(seed, "--dialect", dialect)
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("import", "-C", tmp_path, "--into", "all.yaml", environ=service.environ())
    assert ran.code == 0, ran.err
    text = (tmp_path / "all.yaml").read_text()
    assert (text.count("anonymize_ips: true"), text.count("anonymize_ips")) == (1, 1)
    service.clear_requests()
    assert "No changes." in reconciler("plan", "-C", tmp_path, environ=service.environ()).out
    # Two lists, the key, the name of the organization, and the careful project.
    assert len(service.requests()) == 5


def test_what_the_newest_servers_set_in_new_projects_is_not_imported(
    service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(None, "--dialect", "2026")
    projects = f"/api/organizations/{service.organization}/projects/"
    for name in ("New", "Chosen"):
        made = service.call("POST", projects, {"name": name}).json()
    chosen = [{"key": "email", "type": "person", "value": "@acme.com", "operator": "icontains"}]
    service.call("PATCH", f"{projects}{made['id']}/", {"test_account_filters": chosen})
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("import", "-C", tmp_path, "--into", "all.yaml", environ=service.environ())
    assert ran.code == 0, ran.err
    imported = yaml.safe_load((tmp_path / "all.yaml").read_text())["projects"]
    assert imported["new"] == {"name": "New"}
    assert imported["chosen"] == {"name": "Chosen", "test_account_filters": chosen}


def test_issue_32_exports_with_the_same_account_share_variables(
    service_of: StartService, tmp_path: Path
) -> None:
    def export(name: str, kind: str, **config: object) -> dict[str, object]:
        return {"name": name, "destination": {"type": kind, "config": config}}

    keys = {"aws_access_key_id": "AK", "aws_secret_access_key": "S"}
    bucket = {"prefix": "x", "region": "eu", **keys}
    table = {"user": "u", "password": "p", "schema": "s", "database": "app", "port": 5432}
    exports = [
        export("a", "S3", bucket_name="lake", **bucket),
        export("b", "S3", bucket_name="lake", **bucket),
        export("c", "S3", bucket_name="other", **bucket),
        export("d", "Postgres", host="db.acme.com", table_name="t", **table),
        export("e", "Postgres", host="db.acme.com", table_name="u", **table),
        export("f", "Postgres", host="db.acme.com", table_name="u", **{**table, "port": 5433}),
        export("g", "HTTP", url="https://eu.i.posthog.com/batch/", token="t1"),
        export("h", "HTTP", url="https://eu.i.posthog.com/batch/", token="t2"),
    ]
    projects = [{"name": "Web", "batch_exports": exports}]
    service = service_of({"organizations": [{"name": "Acme", "projects": projects}]})
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    command = ("-C", tmp_path, "--share-secrets", "--into", "all.yaml")
    ran = reconciler("import", *command, "[!b]", environ=service.environ())
    assert ran.code == 0, ran.err
    ran = reconciler("import", *command, environ=service.environ())
    assert ran.code == 0, ran.err
    assert "1 batch_export" in ran.out
    plan = reconciler("plan", "-C", tmp_path, environ=service.environ())
    assert "No changes." in plan.out
    resources = yaml.safe_load((tmp_path / "all.yaml").read_text())["batch_exports"]
    used = {
        key: sorted(re.findall(r"\{secret:env:RECONCILER_SECRET_(\w+)\}", str(body)))
        for key, body in resources.items()
    }
    assert used["a"] == used["b"] == ["LAKE_AWS_ACCESS_KEY_ID", "LAKE_AWS_SECRET_ACCESS_KEY"]
    assert used["c"] == ["OTHER_AWS_ACCESS_KEY_ID", "OTHER_AWS_SECRET_ACCESS_KEY"]
    assert used["d"] == used["e"] == ["DB_ACME_COM_PASSWORD", "DB_ACME_COM_USER"]
    assert used["f"] == ["DB_ACME_COM_PASSWORD_2", "DB_ACME_COM_USER_2"]
    assert (used["g"], used["h"]) == (["G_TOKEN"], ["H_TOKEN"])


def test_with_an_inventory_the_plan_is_empty_too(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    """The references are new since the apply, but the objects are not: nothing is sent."""
    folder = new_workspace(tmp_path)
    Git.init(folder).commit("empty")
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=populated.environ())
    assert applied.code == 0, applied.err
    assert run(folder, populated).code == 0
    planned = plan(folder, populated)
    assert planned.code == 0, planned.out


def test_a_selection_by_project_name_kind_and_id(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    one = new_workspace(tmp_path / "one")
    assert run(one, populated, "--project", "Sh*").code == 0
    declared = resources(one)
    assert list(declared["projects"]) == ["shop"]
    assert list(declared["batch_exports"]) == ["lake"]
    two = new_workspace(tmp_path / "two")
    assert run(two, populated, "La*", "--kind", "batch_export").code == 0
    declared = resources(two)
    assert "projects" not in declared
    exports = declared["batch_exports"].values()
    parents = sorted(export["project"]["name"] for export in exports)
    assert parents == ["Default project", "Shop"]
    assert plan(two, populated).code == 0
    three = new_workspace(tmp_path / "three")
    twin = populated.call("GET", f"/api/projects/{populated.project_id}/batch_exports/").json()[
        "results"
    ][1]
    assert run(three, populated, twin["id"]).code == 0
    (only,) = resources(three)["batch_exports"].values()
    assert only["name"] == twin["name"]


def test_a_selection_without_matches_is_bad_usage(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path)
    ran = run(folder, populated, "lakes")
    assert ran.code == 64
    assert "nothing matches 'lakes'" in ran.err
    assert run(folder, populated, "--kind", "dashboard").code == 64
    assert list(folder.iterdir()) == [folder / "reconciler.yaml"]


def test_existing_files_are_extended_and_their_comments_kept(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    text = (
        "# The shop.\nprojects:\n    shop: {name: Shop}  # by hand\n\n"
        "batch_exports:\n    # nothing yet\n"
    )
    folder = new_workspace(tmp_path, **{"projects/shop.yaml": text})
    ran = run(folder, populated, "--project", "shop")
    assert ran.code == 0, ran.err
    assert "into 1 file (1 existing); 1 already in the configuration" in ran.out
    after = (folder / "projects/shop.yaml").read_text()
    kept = iter(after.splitlines())
    assert all(line in kept for line in text.splitlines()), after
    assert resources(folder)["batch_exports"]["lake"]["project"] == "shop"
    assert plan(folder, populated).code == 0


def test_a_dry_run_shows_a_difference_and_writes_nothing(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path)
    ran = run(folder, populated, "--dry-run", "--into", "resources.yaml")
    assert ran.code == 0
    assert "+++ b/resources.yaml\n" in ran.out
    assert list(folder.iterdir()) == [folder / "reconciler.yaml"]


def test_files_outside_all_globs_are_refused(populated: RunningEmulator, tmp_path: Path) -> None:
    text = "version: 1\nresources: [exports/**/*.yaml]\n"
    folder = new_workspace(tmp_path, text, **{"exports/none.yaml": "# nothing yet\n"})
    ran = run(folder, populated)
    assert ran.code == 1
    assert "projects/default-project.yaml would not be read" in ran.err
    assert '"projects/*.yaml" to `resources:`' in ran.err
    assert run(folder, populated, "--into", "exports").code == 0
    assert plan(folder, populated).code == 0
    assert run(folder, populated, "--into", "../elsewhere").code == 64


def test_with_several_environments_a_resource_has_its_environment(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    text = "version: 1\nenvironments: {staging: {}, production: {}}\n"
    folder = new_workspace(tmp_path, text)
    assert run(folder, populated, "-e", "staging").code == 0
    declared = resources(folder)
    assert all(
        resource["environments"] == ["staging"]
        for collection in (declared["projects"], declared["batch_exports"])
        for resource in collection.values()
    )
    assert plan(folder, populated, "-e", "staging").code == 0


def test_values_that_differ_from_defaults_are_written(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    defaults = (
        "version: 1\nvars: {zone: Europe/Berlin}\n"
        "defaults:\n"
        "  project: {timezone: '${var:zone}', anonymize_ips: true}\n"
        "  batch_export:\n"
        "    paused: true\n"
        "    end_at: 2030-01-01T00:00:00Z\n"
        "    destination: {config: {port: 1, user: '${secret:env:RECONCILER_SECRET_SHARED}'}}\n"
    )
    folder = new_workspace(tmp_path, defaults)
    ran = run(folder, populated)
    assert ran.code == 0, ran.err
    lake = resources(folder)["batch_exports"]["shop-lake"]
    assert lake["paused"] is False
    assert lake["end_at"] is None
    assert lake["destination"]["config"]["port"] == 5432
    assert "user" not in lake["destination"]["config"]
    assert resources(folder)["projects"]["shop"]["timezone"] == "UTC"
    planned = plan(folder, populated)
    assert planned.code == 0, planned.out


def test_an_object_that_contradicts_defaults_is_reported(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    text = "version: 1\ndefaults: {batch_export: {destination: {config: {bucket_name: b}}}}\n"
    folder = new_workspace(tmp_path, text)
    ran = run(folder, populated, "--project", "Shop")
    assert ran.code == 1
    assert 'Not imported: batch_export "Lake"' in ran.err
    assert "bucket_name" in ran.err
    assert "batch_exports" not in resources(folder)


def test_names_that_the_policy_ignores_are_not_imported(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path, "version: 1\npolicy: {ignore: [Tw*]}\n")
    ran = run(folder, populated)
    assert ran.code == 0
    assert 'Ignored by policy.ignore: "Twin", "Twin"' in ran.err
    assert "Twin" not in str(resources(folder))


def test_a_secret_in_a_plain_field_is_not_written(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    declared = (
        "batch_exports:\n  mine:\n    project: {name: Shop}\n    name: Mine\n    interval: hour\n"
        "    destination: {type: HTTP, config: {url: 'https://x.example', "
        "token: '${secret:env:RECONCILER_SECRET_TOKEN}'}}\n"
    )
    folder = new_workspace(tmp_path, **{"mine.yaml": declared})
    pasted = an_export("Pasted")
    pasted["destination"]["config"]["table_name"] = f"t_{SECRET}"
    populated.call("POST", f"/api/projects/{populated.project_id}/batch_exports/", pasted)
    environ = {**populated.environ(), "RECONCILER_SECRET_TOKEN": SECRET}
    ran = reconciler("import", "-C", folder, "Pasted", environ=environ)
    assert ran.code == 0, ran.err
    assert "destination.config.table_name: it contains the value of a secret" in ran.err
    assert not any(SECRET in path.read_text() for path in folder.rglob("*.yaml"))
    assert SECRET not in ran.out + ran.err


def test_an_export_of_a_deleted_project_is_left_out(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    projects = f"/api/organizations/{populated.organization}/projects/"
    shop = populated.call("GET", projects).json()["results"]
    identity = next(project["id"] for project in shop if project["name"] == "Shop")
    assert populated.call("DELETE", f"{projects}{identity}/").status_code == 204
    folder = new_workspace(tmp_path)
    ran = run(folder, populated)
    assert "shop" not in resources(folder)["projects"]
    assert "Lake" in {export["name"] for export in resources(folder)["batch_exports"].values()}
    assert plan(folder, populated).code == 0, ran.err


def test_mistakes_in_files_are_reported_before_the_first_request(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path, **{"bad.yaml": "batch_exports:\n  a: {nam: x}\n"})
    ran = run(folder, populated)
    assert ran.code == 1
    assert "bad.yaml:2:" in ran.err
    assert populated.requests() == []


@pytest.mark.parametrize("dialect", ["2026"])
def test_apply_p4_an_export_that_lists_hide_is_imported_by_id(dialect: str, tmp_path: Path) -> None:
    config = {"hog_function_id": "abc"}
    hidden = an_export("Flow", destination={"type": "Workflows", "config": config})
    identity = "0190a000-0000-4000-8000-000000000001"
    seed = {
        "organizations": [
            {
                "name": "A",
                "projects": [{"name": "Web", "batch_exports": [{**hidden, "id": identity}]}],
            }
        ]
    }
    (tmp_path / "seed.json").write_text(json.dumps(seed))
    with start_emulator(seed=tmp_path / "seed.json", extra=("--dialect", dialect)) as running:
        folder = new_workspace(tmp_path / "workspace")
        assert "Flow" not in run(folder, running, "--dry-run").out
        assert run(folder, running, identity).code == 0
        (flow,) = resources(folder)["batch_exports"].values()
        assert flow["id"] == identity
        assert plan(folder, running).code == 0
