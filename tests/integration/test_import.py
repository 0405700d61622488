"""`import`: live state goes into files, and the plan of those files is empty."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.commands.import_live import import_live
from reconciler.commands.workspace import Runtime, Workspace
from tests.conftest import ROOT, StartService
from tests.support.cli import Ran, reconciler
from tests.support.emulator import RunningEmulator
from tests.support.fields import QUERIES
from tests.support.importing import SECRET, an_export, new_workspace, resources
from tests.support.importing import run_import as run
from tests.support.importing import run_plan as plan

TWO = "version: 1\nenvironments: {staging: {}, production: {}}\n"
OTHERS = """\
version: 1
vars: {zone: Europe/Berlin}
defaults:
  project: {timezone: "${var:zone}", anonymize_ips: true}
  batch_export:
    paused: true
    end_at: 2030-01-01T00:00:00Z
    destination:
      config: {port: 1, user: "${secret:env:RECONCILER_SECRET_SHARED}"}
"""
SAME = """\
version: 1
defaults:
  batch_export:
    project: shop
    interval: hour
    paused: true
    destination: {type: Postgres, config: {port: 5432, database: d, host: other}}
"""
SHOP = "projects:\n  shop: {name: Shop}\n"
MINE = """\
batch_exports:
  mine:
    project: {name: Shop}
    name: Mine
    interval: hour
    destination:
      type: HTTP
      config:
        url: https://eu.i.posthog.com/batch/
        token: ${secret:env:RECONCILER_SECRET_TOKEN}
"""
Projects = Mapping[str, list[dict[str, Any]]]


def seed(projects: Projects, **settings: Any) -> dict[str, Any]:
    """Return a seed with exports by project, and a key that sees the first one only."""
    every = [
        {"id": number, "name": name, "batch_exports": exports, **settings}
        for number, (name, exports) in enumerate(projects.items(), 1)
    ]
    return {
        "organizations": [{"id": "org", "name": "Acme", "projects": every}],
        "keys": [{"value": "phx_key"}, {"value": "phx_one", "projects": [1]}],
    }


@pytest.fixture
def shop(service_of: StartService) -> RunningEmulator:
    return service_of(seed({"Shop": [an_export("Orders"), an_export("Users")], "App": []}))


@pytest.fixture
def twins(service_of: StartService) -> RunningEmulator:
    exports = [an_export(name) for name in ("Twin", "Twin", "Lake")]
    return service_of(seed({"Web": exports, "Shop": [an_export("Lake")]}))


def imported(
    folder: Path, running: RunningEmulator, *words: str, text: str = "version: 1\n", **files: str
) -> Ran:
    """Import into a new workspace, and check that the plan of it is empty."""
    ran = run(new_workspace(folder, text, **files), running, *words)
    assert ran.code == 0, ran.err
    check_plan(folder, running)
    return ran


def check_plan(folder: Path, running: RunningEmulator, *words: str, **environ: str) -> None:
    ran = plan(folder, running, *words, **environ)
    assert ran.code == 0, ran.out + ran.err


def contents(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


ODD_NAMES = [
    *("no", "1e3", ": #", "null", "2026-01-01", "0o17", "CON", "../../etc/passwd", "a.b_c-d"),
    *("*star", "&anchor", "!tag", "%percent", "@at", "- a list", "{a: map}", "${var:x} $${y}"),
    *("Wärehouse / Ünïcode – 日本", "🚀", "'quoted' \"twice\"", "\u202eright\u00a0to left\u200b"),
    *("tab\there", "line\nbreak", "x" * 300),
]
ODD_PROJECTS = ["Web", "web", "日本語", "Web shop / EU", "no"]


@pytest.mark.parametrize(
    ("dialect", "query"), [("interface", "sql_query"), ("2025", "hogql_query"), ("2026", None)]
)
def test_odd_names_in_two_projects_are_imported_and_the_plan_is_empty(
    service_of: StartService, dialect: str, query: str | None, tmp_path: Path
) -> None:
    """Fields and types of destinations: tests/integration/test_every_value.py."""
    queries = {query: QUERIES[0]} if query else {}
    exports = [an_export(name, paused=True, **queries) for name in ODD_NAMES * 2]
    projects = {name: exports[number::5] for number, name in enumerate(ODD_PROJECTS)}
    seeded = service_of(seed(projects), "--dialect", dialect)
    before, count = seeded.state(), 2 * len(ODD_NAMES)
    ran = run(new_workspace(tmp_path), seeded)
    assert ran.code == 0, ran.err
    assert f"Imported: 5 projects, {count} batch_exports into 5 files" in ran.out
    planned = plan(tmp_path, seeded)
    assert (planned.code, f"({count + 5} resources)." in planned.out) == (0, True), planned.out
    assert (seeded.writes(), seeded.state()) == ([], before)
    assert SECRET not in ran.out + ran.err + str(contents(tmp_path))
    # Names that differ in case only.
    written = resources(tmp_path)["projects"].values()
    assert {project["name"] for project in written if "id" in project} == {"Web", "web"}
    assert r'name: "\u202eright\u00a0to left\u200b"' in "".join(contents(tmp_path).values())
    if dialect == "2026":
        assert reconciler("validate", "-C", tmp_path).err == ""
    exports = resources(tmp_path)["batch_exports"]
    assert {export["name"].replace("$${", "${") for export in exports.values()} == set(ODD_NAMES)
    again = run(tmp_path, seeded).out
    assert again == f"Imported: nothing; {count + 5} already in the configuration\n"


ABSENT = "absent"


@pytest.mark.parametrize(
    ("words", "text", "declared"),
    [
        pytest.param(
            ("La*", "--kind", "batch_export"),
            "version: 1\n",
            {
                "projects": ABSENT,
                "batch_exports.web-lake.project": {"name": "Web"},
                "batch_exports.shop-lake.project": {"name": "Shop"},
                # A name that is unique within each project needs no id.
                "batch_exports.shop-lake.id": ABSENT,
            },
            id="names and kind",
        ),
        pytest.param(
            (),
            OTHERS,
            {
                "batch_exports.shop-lake.paused": False,
                "batch_exports.shop-lake.end_at": None,
                "batch_exports.shop-lake.destination.config.port": 5432,
                "batch_exports.shop-lake.destination.config.user": ABSENT,
                "projects.shop.timezone": "UTC",
            },
            id="other values than defaults",
        ),
        pytest.param(
            ("--project", "Sh*"),
            SAME,
            {
                "batch_exports.lake.project": ABSENT,
                "batch_exports.lake.interval": ABSENT,
                "batch_exports.lake.paused": False,
                "batch_exports.lake.destination": {
                    "type": "Postgres",
                    "config": {
                        "host": "h.example.com",
                        "user": "${secret:env:RECONCILER_SECRET_LAKE_USER}",
                        "password": "${secret:env:RECONCILER_SECRET_LAKE_PASSWORD}",
                    },
                },
            },
            id="experience_31 values of defaults",
        ),
    ],
)
def test_what_is_written(
    words: tuple[str, ...],
    text: str,
    declared: dict[str, Any],
    twins: RunningEmulator,
    tmp_path: Path,
) -> None:
    folder = new_workspace(tmp_path, text)
    assert run(folder, twins, *words).code == 0
    written = resources(folder)
    for path, value in declared.items():
        part: Any = written
        for name in path.split("."):
            part = part.get(name, ABSENT)
        assert part == value, path
    check_plan(folder, twins)


SIBLINGS = """\
batch_exports:
  orders: # the first
    project: shop
    name: Orders
    interval: hour
    destination: {type: Postgres, config: {host: h.example.com, database: d}}
"""


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ((), "exports/web.yaml"),
        (("--into", "more"), "more/projects/shop.yaml"),
        (("--into", "exports/lake.yml"), "exports/lake.yml"),
    ],
    ids=" ".join,
)
def test_experience_31_an_export_goes_to_its_siblings_or_where_options_say(
    words: tuple[str, ...], file: str, shop: RunningEmulator, tmp_path: Path
) -> None:
    files = {"projects.yaml": SHOP, "exports/web.yaml": SIBLINGS}
    names = {"RECONCILER_SECRET_ORDERS_USER": "u", "RECONCILER_SECRET_ORDERS_PASSWORD": "p"}
    folder = new_workspace(tmp_path, **files)
    ran = run(folder, shop, "--project", "Shop", *words, **names)
    assert ran.code == 0, ran.err
    assert f'"Users" in {file}' in ran.out
    after = contents(folder)
    assert after.keys() - {file} == {*files, "reconciler.yaml"} - {file}
    assert after["exports/web.yaml"].startswith(SIBLINGS)
    check_plan(folder, shop)


READ = "would not be read: "


@pytest.mark.parametrize(
    ("words", "files", "code", "message"),
    [
        (("Orders", "orrders"), {}, 64, "nothing matches 'orrders'"),
        (("users",), {}, 64, 'did you mean "Users" (batch_export.id:'),
        (("--project", "App", "Users"), {}, 64, "no live object matches App, Users together"),
        (("--into", ".hidden"), {}, 1, f".hidden/projects/app.yaml {READ}"),
        (("--into", "venv"), {}, 1, f"venv/projects/app.yaml {READ}"),
        (("--into", "inner/a.yaml"), {"inner/reconciler.yaml": "version: 1\n"}, 1, READ),
        (
            (),
            {"reconciler.yaml": "version: 1\nresources: [e/*.yaml]\n", "e/n.yaml": "# none\n"},
            1,
            f"projects/app.yaml {READ}`resources:` does not include it",
        ),
        (("--into", "../a.yaml"), {}, 64, "outside the workspace"),
        (("--into", "reconciler.yaml"), {}, 64, "contains no resources\n  hint: use another file"),
        (("--into", "sub/Reconciler.YAML"), {}, 64, "use another file"),
        ((), {"bad.yaml": "batch_exports:\n  a: {nam: x}\n"}, 1, "bad.yaml:2:"),
        (
            ("--project", "Shop"),
            {"projects/shop.yaml": "{projects: {shop: {name: Shop}}}\n"},
            1,
            "error: projects/shop.yaml:1:1: cannot edit a value with keys that do not",
        ),
        ((), {"projects": "a file"}, 1, "can't be written: projects is a file, not a folder"),
        ((), {"projects/shop.yaml/x": ""}, 1, "cannot read projects/shop.yaml"),
    ],
)
def test_i1_what_cannot_be_imported_is_refused_and_no_file_changes(
    words: tuple[str, ...],
    files: dict[str, str],
    code: int,
    message: str,
    shop: RunningEmulator,
    tmp_path: Path,
) -> None:
    """I1: the name of a workspace file is refused, too."""
    folder = new_workspace(tmp_path, **{"reconciler.yaml": "version: 1\n", **files})
    before = contents(folder)
    shop.clear_requests()
    ran = run(folder, shop, *words)
    assert ran.code == code
    assert message in ran.err
    assert contents(folder) == before
    if "bad.yaml" in files:
        assert shop.requests() == []


@pytest.mark.parametrize(
    "text",
    [
        f"{SHOP}...\n",
        f"---\n{SHOP}# last\n...\n# behind\n",
        f"{SHOP}batch_exports: {{}}  # soon\n",
        f"{SHOP}batch_exports: # soon\n",
        f"\ufeff{SHOP}",
        "# The shop.\nprojects:\n    shop: {name: Shop}  # x\n\nbatch_exports:\n    # none yet\n",
        # New lines end as the first one does.
        "projects:\n  shop: {name: Shop}\r\n",
    ],
)
def test_files_of_other_forms_are_extended_and_their_lines_stay(
    shop: RunningEmulator, tmp_path: Path, text: str
) -> None:
    ran = imported(tmp_path, shop, "--project", "shop", **{"projects/shop.yaml": text})
    assert "into 1 file (1 existing); 1 already in the configuration" in ran.out
    assert list(contents(tmp_path)) == ["projects/shop.yaml", "reconciler.yaml"]
    assert (tmp_path / "projects/shop.yaml").read_bytes().count(b"\r") == text.count("\r")
    after = iter(contents(tmp_path)["projects/shop.yaml"].splitlines())
    kept = text.replace("exports: {}", "exports:").splitlines()
    assert all(any(line == other for other in after) for line in kept)
    assert resources(tmp_path)["batch_exports"]["orders"]["project"] == "shop"
    assert reconciler("validate", "-C", tmp_path).err == ""


def test_what_the_newest_servers_set_in_new_projects_is_not_imported(
    service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(None, "--dialect", "2026")
    projects = f"/api/organizations/{service.organization}/projects/"
    for name in ("New", "Chosen"):
        made = service.call("POST", projects, {"name": name}).json()
    chosen = [{"key": "email", "type": "person", "value": "@acme.com", "operator": "icontains"}]
    service.call("PATCH", f"{projects}{made['id']}/", {"test_account_filters": chosen})
    imported(tmp_path, service)
    written = resources(tmp_path)["projects"]
    assert written["new"] == {"name": "New"}
    assert written["chosen"] == {"name": "Chosen", "test_account_filters": chosen}


def test_ecosystem_10_an_export_of_another_tool_is_imported_by_name(
    service_of: StartService, tmp_path: Path
) -> None:
    """By the command of the page, and its name keeps the mark of the tool."""
    page = (ROOT / "docs/other-tools.md").read_text("utf-8")
    (words,) = re.findall("^reconciler import '(.*)'$", page, re.MULTILINE)
    name = "events_to_lake <!-- iac:batch-exports:events_to_lake iac:hash:abc123 -->"
    imported(tmp_path, service_of(seed({"Web": [an_export(name), an_export("Lake")]})), words)
    assert [it["name"] for it in resources(tmp_path)["batch_exports"].values()] == [name]


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
    service = service_of(seed({"Web": exports}))
    words = ("--share-secrets", "--into", "all.yaml")
    imported(tmp_path, service, *words, "[!b]")
    ran = run(tmp_path, service, *words)
    assert ran.code == 0, ran.err
    assert "1 batch_export" in ran.out
    check_plan(tmp_path, service)
    used = {
        key: sorted(re.findall(r"\{secret:env:RECONCILER_SECRET_(\w+)\}", str(body)))
        for key, body in resources(tmp_path)["batch_exports"].items()
    }
    assert used["a"] == used["b"] == ["LAKE_AWS_ACCESS_KEY_ID", "LAKE_AWS_SECRET_ACCESS_KEY"]
    assert used["c"] == ["OTHER_AWS_ACCESS_KEY_ID", "OTHER_AWS_SECRET_ACCESS_KEY"]
    assert used["d"] == used["e"] == ["DB_ACME_COM_PASSWORD", "DB_ACME_COM_USER"]
    assert used["f"] == ["DB_ACME_COM_PASSWORD_2", "DB_ACME_COM_USER_2"]
    assert (used["g"], used["h"]) == (["G_TOKEN"], ["H_TOKEN"])


def test_what_is_left_out_has_a_reason(twins: RunningEmulator, tmp_path: Path) -> None:
    pasted = an_export("Pasted")
    pasted["destination"]["config"]["table_name"] = f"t_{SECRET}"
    twins.call("POST", "/api/projects/1/batch_exports/", pasted).raise_for_status()
    text = (
        "version: 1\npolicy: {ignore: [Tw*]}\n"
        "defaults: {batch_export: {destination: {config: {bucket_name: b}}}}\n"
    )
    mine = MINE.replace("/\n", "/\n        bucket_name: ${unset}\n")
    folder = new_workspace(tmp_path / "contradicts", text, **{"mine.yaml": mine})
    ran = run(folder, twins, "--project", "Shop")
    assert ran.code == 1
    assert re.search(r'Not imported: batch_export "Lake" .*bucket_name', ran.err)
    assert list(resources(folder)["batch_exports"]) == ["mine"]
    ignoring = text.partition("defaults")[0]
    folder = new_workspace(tmp_path / "ignores", ignoring, **{"mine.yaml": MINE})
    ran = run(folder, twins, RECONCILER_SECRET_TOKEN=SECRET)
    assert ran.code == 0, ran.err
    assert 'Ignored by policy.ignore: "Twin", "Twin"' in ran.err
    assert "destination.config.table_name: it contains the value of a secret" in ran.err
    written = "".join(contents(folder).values())
    assert "Twin" not in written
    assert SECRET not in written + ran.out + ran.err


def test_apply_p4_an_export_that_lists_hide_is_imported_by_id(
    service_of: StartService, tmp_path: Path
) -> None:
    identity = "0190a000-0000-4000-8000-000000000001"
    hidden = {"type": "Workflows", "config": {"hog_function_id": "abc"}}
    flow = an_export("Flow", destination=hidden, id=identity)
    running = service_of(seed({"Web": [flow]}), "--dialect", "2026")
    assert "Flow" not in run(new_workspace(tmp_path), running, "--dry-run").out
    imported(tmp_path, running, identity)
    (flow,) = resources(tmp_path)["batch_exports"].values()
    assert flow["id"] == identity


@pytest.mark.parametrize("into", [(), ("--into", "sub"), ("--into", "projects")], ids=" ".join)
def test_i1_no_derived_name_is_one_of_a_special_file(
    into: tuple[str, ...], tmp_path: Path, service_of: StartService
) -> None:
    """I1: a project "Reconciler" was written to `projects/reconciler.yaml`, another workspace."""
    names = ("Reconciler", "Con", "Web", "venv", "nul")
    noop = {"type": "NoOp", "config": {}}
    exports = [an_export(name, destination=noop) for name in names]
    imported(tmp_path, service_of(seed(dict.fromkeys(names, exports))), *into)
    written = [Path(name) for name in contents(tmp_path) if name != "reconciler.yaml"]
    assert not {"reconciler", "con", "venv", "nul"} & {
        part for path in written for part in (*path.parts, path.stem)
    }
    assert len(resources(tmp_path)["projects"]) == len(names)


def test_a_limited_key_imports_projects_by_id_and_pins_them(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    folder, key = new_workspace(tmp_path), {"RECONCILER_API_KEY": "phx_one"}
    ran = run(folder, shop, **key)
    assert ran.code == 1
    assert "for an import: --project ID" in ran.err
    assert run(folder, shop, "--project", "1", **key).code == 0
    assert resources(folder)["projects"]["shop"]["id"] == 1
    check_plan(folder, shop, **key)


def test_a_dry_run_prints_a_patch_and_json_is_for_scripts(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    literal = MINE.replace("${secret:env:RECONCILER_SECRET_TOKEN}", SECRET)
    allowed = "version: 1\npolicy: {allow_literal_secrets: true}\n"
    folder = new_workspace(tmp_path / "literal", allowed, **{"resources.yaml": literal})
    ran = run(folder, shop, "--dry-run", "--into", "resources.yaml")
    assert ran.code == 0, ran.err
    assert "Would import: 2 projects, 2 batch_exports into 1 file (1 existing)" in ran.err
    assert SECRET not in ran.out + ran.err
    assert contents(folder)["resources.yaml"] == literal

    fresh = new_workspace(tmp_path / "fresh")
    planned = json.loads(run(fresh, shop, "--format", "json", "--dry-run").out)
    diff = run(fresh, shop, "--dry-run", "Orders").out
    assert diff.startswith("--- /dev/null\n+++ b/projects/")
    assert list(contents(fresh)) == ["reconciler.yaml"]
    result = json.loads(run(fresh, shop, "--format", "json", "Orders").out)
    assert (planned["written"], result["written"], len(planned["resources"])) == (False, True, 4)
    assert result["resources"] == [
        {
            "address": "batch_export.orders",
            "name": "Orders",
            "id": shop.exports()["Orders"]["id"],
            "file": "projects/shop.yaml",
        }
    ]
    assert result["files"] == [{"path": "projects/shop.yaml", "new": True}]
    variables = [item["variable"] for item in result["secrets"]]
    assert variables == ["RECONCILER_SECRET_ORDERS_PASSWORD", "RECONCILER_SECRET_ORDERS_USER"]
    imported = contents(fresh)
    (fresh / "projects/shop.yaml").unlink()
    git = ["git", "-C", str(fresh), "apply", "-p1", "-"]
    subprocess.run(git, input=diff, text=True, check=True)
    assert contents(fresh) == imported


def test_a_second_environment_gets_its_own_keys(shop: RunningEmulator, tmp_path: Path) -> None:
    folder = new_workspace(tmp_path, TWO)
    assert run(folder, shop, "-e", "staging").code == 0
    ran = run(folder, shop, "-e", "production")
    assert ran.code == 0
    written = resources(folder)
    assert set(written["projects"]) == {"app", "app-production", "shop", "shop-production"}
    assert written["projects"]["shop"] == {"name": "Shop", "environments": ["staging"]}
    orders = written["batch_exports"]["orders-production"]
    assert (orders["project"], orders["environments"]) == ("shop-production", ["production"])
    assert "ORDERS_PRODUCTION_PASSWORD" in ran.out
    for environment in ("staging", "production"):
        check_plan(folder, shop, "-e", environment)


def test_plan_v9_objects_of_other_servers_are_imported_without_what_looks_secret(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    """A newer one, whose secret fields are unknown, and one with values that are refused today.

    Plan V11: an object that is not imported has one cause.
    """
    secret = {
        "sas_key": SECRET,
        "apiToken": SECRET,
        "nested": {"client_secret": SECRET, "depth": 2, "url": f"https://u:{SECRET}@h.example"},
        "hosts": [{"name": "a", "credential": SECRET}],
        "address": f"https://user:{SECRET}@h.example.com",
        "hook": f"https://h.example/in?a=b&api_key={SECRET}",
        "certificate": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n",
    }
    newer = {"type": "Glacier", "config": {"bucket": "b", "partition_key": "day", **secret}}
    wrong = {"type": "S3", "config": {"bucket_name": "b", "region": "r", "prefix": ["no text"]}}
    page = shop.call("GET", "/api/projects/1/batch_exports/").json()["results"]
    stored = [
        {**page[0], "name": "Lake", "destination": newer, "interval": "dayly"},
        {**page[1], "name": "Broken", "destination": wrong},
    ]
    lists = {"match": {"method": "GET", "path": "*/batch_exports/"}, "fault": "body"}
    shop.admin("PUT", "faults", [{**lists, "merge": {"results": stored}}])
    folder = new_workspace(tmp_path)
    ran = run(folder, shop, "--project", "Shop")
    (lake,) = resources(folder)["batch_exports"].values()
    assert set(lake["destination"]["config"]) == {"bucket", "partition_key"}
    for name in secret:
        assert ran.err.count(f"destination.config.{name}") == 1
    assert "of this workspace" not in ran.err
    assert SECRET not in ran.out + ran.err + (folder / "projects/shop.yaml").read_text()
    assert (ran.code, lake["name"], lake["interval"]) == (1, "Lake", "dayly")
    assert re.findall(r"warning: unknown value '(\w+)'", ran.err) == ["dayly", "Glacier"]
    (reason,) = re.findall(r'Not imported: batch_export "Broken".*?\): (.*)', ran.err)
    assert reason.startswith("destination.config.prefix: ")
    assert "missing field" not in reason
    check_plan(folder, shop)
    # The warnings say what `validate --strict` needs.
    strict = "validate", "--strict", "-C", folder
    assert reconciler(*strict).code == 1
    settings = ["ignore_warnings: [unknown-value]", "policy: {attempt: [unknown-value]}"]
    assert all(f"`{line}`" in " ".join(ran.err.split()) for line in settings)
    new_workspace(folder, "\n".join(["version: 1", *settings]))
    assert reconciler(*strict).code == 0


def test_a_name_that_contains_a_secret_is_neither_written_nor_printed(
    service_of: StartService, tmp_path: Path
) -> None:
    names = (f"Lake {SECRET}", "Hook h.example/in?token=cr3dential")
    projects = {"Shop": [*map(an_export, names)], SECRET: [an_export("Orders")]}
    running, folder = service_of(seed(projects)), new_workspace(tmp_path, **{"mine.yaml": MINE})
    for options in (("--dry-run",), ("--format", "json", "--dry-run"), ()):
        ran = run(folder, running, *options, RECONCILER_SECRET_TOKEN=SECRET)
        assert ran.code == 1
        assert SECRET not in ran.out + ran.err
        assert "cr3dential" not in ran.out + ran.err
    assert ran.err.count("its name contains the value of a secret") == 2
    assert ran.err.count("its name contains what looks like a secret") == 1
    assert resources(folder)["batch_exports"]["orders"]["project"] == {"id": 2}
    assert SECRET not in str(contents(folder))


def test_imported_resources_are_changed_without_their_secrets_and_created_with_them(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    imported(tmp_path, shop)
    path = tmp_path / "projects/shop.yaml"
    path.write_text(path.read_text().replace("interval: hour", "interval: day", 1))
    apply = ("apply", "-C", tmp_path, "--auto-approve")
    assert reconciler(*apply, environ=shop.environ()).code == 0
    check_plan(tmp_path, shop)
    assert [method for method, _ in shop.writes()] == ["PATCH"]
    shop.call("DELETE", shop.path_of("Orders")).raise_for_status()
    applied = reconciler(*apply, environ=shop.environ())
    assert applied.code == 1
    assert "set the environment variable RECONCILER_SECRET_ORDERS_PASSWORD" in applied.err
    secrets = {f"RECONCILER_SECRET_ORDERS_{name}": "s3cret" for name in ("PASSWORD", "USER")}
    assert reconciler(*apply, environ={**shop.environ(), **secrets}).code == 0
    check_plan(tmp_path, shop)


def test_what_still_plans_a_change_is_left_out_whole_with_what_is_in_it(
    service_of: StartService, tmp_path: Path
) -> None:
    """A default that no line can undo: leaving the field out does not help, either."""
    body = seed({"Shop": [an_export("Orders")], "App": [an_export("Users")]})
    for project in body["organizations"][0]["projects"]:
        project["app_urls"] = None if project["name"] == "Shop" else []
    service = service_of(body)
    text = "version: 1\ndefaults: {project: {app_urls: ['https://x.example']}}\n"
    folder = new_workspace(tmp_path, text)
    ran = run(folder, service)
    assert ran.code == 1
    assert 'Not imported: project "Shop" (id 1): its plan would not be empty\n' in ran.err
    assert re.search(r'"Orders" \(id [^)]+\): its project is not imported\n', ran.err)
    assert "Field not imported" not in ran.err
    assert "ORDERS" not in ran.out
    assert list(contents(folder)) == ["projects/app.yaml", "reconciler.yaml"]
    assert list(resources(folder)["batch_exports"]) == ["users"]
    check_plan(folder, service)


def test_a_stop_before_a_file_is_written_writes_nothing(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    folder = new_workspace(tmp_path)

    def stopping() -> datetime:
        # The clock is read when all that is to be written is known.
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return datetime(2026, 1, 1, tzinfo=UTC)

    runtime = Runtime(shop.environ(), stopping)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(import_live(Workspace(folder, runtime=runtime)))
    assert list(contents(folder)) == ["reconciler.yaml"]
