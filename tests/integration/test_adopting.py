"""The messages and refusals of `import`, and what it never writes."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from reconciler.commands.import_live import import_live
from reconciler.commands.workspace import Runtime, Workspace
from tests.conftest import StartService
from tests.support.cli import reconciler
from tests.support.emulator import RunningEmulator, start_emulator
from tests.support.importing import SECRET, new_workspace
from tests.support.importing import an_export as export
from tests.support.importing import resources as declared
from tests.support.importing import run_import as run
from tests.support.importing import run_plan as planned

TWO = "version: 1\nenvironments: {staging: {}, production: {}}\n"


def seed(projects: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a seed with exports by project."""
    return {
        "organizations": [
            {
                "id": "org",
                "name": "Acme",
                "projects": [
                    {"id": number, "name": name, "batch_exports": exports}
                    for number, (name, exports) in enumerate(projects.items(), 1)
                ],
            }
        ],
        "keys": [{"value": "phx_key"}, {"value": "phx_one", "projects": [1]}],
    }


@contextmanager
def service(
    folder: Path, projects: Mapping[str, list[dict[str, Any]]], *extra: str
) -> Iterator[RunningEmulator]:
    """Run a service with exports by project."""
    (folder / "seed.json").write_text(json.dumps(seed(projects)))
    with start_emulator(seed=folder / "seed.json", extra=extra) as running:
        yield running


@pytest.fixture
def shop(service_of: StartService) -> RunningEmulator:
    return service_of(seed({"Shop": [export("Orders"), export("Users")], "App": []}))


def workspace(folder: Path, text: str = "version: 1\n", **files: str) -> Path:
    return new_workspace(folder / "workspace", text, **files)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("into", [".hidden", "a/node_modules", "venv"])
def test_a_folder_outside_the_globs_is_refused(
    shop: RunningEmulator, tmp_path: Path, into: str
) -> None:
    folder = workspace(tmp_path)
    ran = run(folder, shop, "--into", into)
    assert ran.code == 1
    assert "/projects/app.yaml would not be read: " in ran.err
    assert files(folder) == ["reconciler.yaml"]


def test_every_name_gets_a_valid_file_name(tmp_path: Path) -> None:
    exports = [export("con"), export("venv")]
    with service(tmp_path, {"venv": exports, "nul": [export("x")]}) as running:
        folder = workspace(tmp_path)
        assert run(folder, running).code == 0
        assert not {"venv", "con.yaml", "nul.yaml"} & {
            part for name in files(folder) for part in name.split("/")
        }
        assert planned(folder, running).code == 0


def test_a_failed_write_leaves_all_files_unchanged(shop: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    (folder / "projects/shop.yaml").mkdir(parents=True)
    ran = run(folder, shop)
    assert ran.code == 1
    assert "cannot read projects/shop.yaml" in ran.err
    assert files(folder) == ["reconciler.yaml"]
    (folder / "projects/shop.yaml").rmdir()
    (folder / "projects").rmdir()
    (folder / "projects").write_text("a file")
    ran = run(folder, shop)
    assert "cannot be written: projects is a file, not a folder" in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "projects:\n  shop: {name: Shop}\n...\n",
        "---\nprojects:\n  shop: {name: Shop}\n# last\n...\n# behind\n",
        "projects:\n  shop: {name: Shop}\nbatch_exports: {}\n",
        "projects:\n  shop: {name: Shop}\nbatch_exports: {}  # soon\n",
        "projects:\n  shop: {name: Shop}\nbatch_exports: # soon\n",
    ],
)
def test_files_of_other_forms_are_extended_too(
    shop: RunningEmulator, tmp_path: Path, text: str
) -> None:
    folder = workspace(tmp_path, **{"projects/shop.yaml": text})
    assert run(folder, shop, "--project", "Shop").code == 0
    assert files(folder) == ["projects/shop.yaml", "reconciler.yaml"]
    after = (folder / "projects/shop.yaml").read_text()
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        line for line in after.splitlines() if line.startswith("#")
    ]
    assert reconciler("validate", "-C", folder).err == ""
    assert planned(folder, shop, "--project", "shop").code == 0


def test_line_ends_of_new_lines_are_those_of_the_first_line(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    text = "projects:\n  shop: {name: Shop}\r\n"
    folder = workspace(tmp_path, **{"projects/shop.yaml": ""})
    (folder / "projects/shop.yaml").write_bytes(text.encode())
    assert run(folder, shop, "--project", "Shop").code == 0
    assert (folder / "projects/shop.yaml").read_bytes().count(b"\r") == 1


def test_a_byte_order_mark_stays(shop: RunningEmulator, tmp_path: Path) -> None:
    folder, text = workspace(tmp_path), "\ufeffprojects:\n  shop: {name: Shop}\n"
    (folder / "shop.yaml").write_text(text, encoding="utf-8")
    assert run(folder, shop, "--project", "Shop", "--into", "shop.yaml").code == 0
    assert (folder / "shop.yaml").read_text(encoding="utf-8").startswith(text)
    assert planned(folder, shop, "--project", "shop").code == 0


def test_a_file_that_cannot_be_extended_is_refused_with_its_place(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    flow = "{projects: {shop: {name: Shop}}}\n"
    folder = workspace(tmp_path, **{"projects/shop.yaml": flow})
    ran = run(folder, shop, "--project", "Shop")
    assert ran.code == 1
    assert "error: projects/shop.yaml:1:1: cannot edit a value with keys that do not" in ran.err
    assert (folder / "projects/shop.yaml").read_text() == flow
    assert run(folder, shop, "--project", "Shop", "--into", "other.yaml").code == 0
    assert planned(folder, shop, "--project", "shop").code == 0


def test_a_limited_key_imports_projects_by_id_and_pins_them(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    ran = run(folder, shop, RECONCILER_API_KEY="phx_one")
    assert ran.code == 1
    assert "for an import: --project ID" in ran.err
    assert run(folder, shop, "--project", "1", RECONCILER_API_KEY="phx_one").code == 0
    assert declared(folder)["projects"]["shop"]["id"] == 1
    assert planned(folder, shop, RECONCILER_API_KEY="phx_one").code == 0


def test_a_selection_without_matches_is_reported_with_close_names(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    ran = run(folder, shop, "Orders", "orrders")
    assert ran.code == 64
    assert "nothing matches 'orrders'" in ran.err
    ran = run(folder, shop, "users")
    assert ran.code == 64
    assert 'did you mean "Users" (batch_export.id:' in ran.err
    assert files(folder) == ["reconciler.yaml"]
    ran = run(folder, shop, "--project", "App", "Users")
    assert "no live object matches App, Users together" in ran.err


def test_a_dry_run_prints_a_patch_and_the_rest_on_stderr(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    there = (
        "batch_exports:\n  mine:\n    project: {name: Shop}\n    name: Mine\n    interval: hour\n"
        "    destination:\n      type: HTTP\n      config:\n"
        f"        url: https://eu.i.posthog.com/batch/\n        token: {SECRET}\n"
    )
    allowed = "version: 1\npolicy: {allow_literal_secrets: true}\n"
    folder = workspace(tmp_path, allowed, **{"resources.yaml": there})
    ran = run(folder, shop, "--dry-run", "--into", "resources.yaml")
    assert ran.code == 0, ran.err
    assert "Would import: 2 projects, 2 batch_exports into 1 file (1 existing)" in ran.err
    assert "  RECONCILER_SECRET_ORDERS_PASSWORD  batch_export.orders\n" in ran.err
    assert SECRET not in ran.out + ran.err
    assert (folder / "resources.yaml").read_text() == there
    fresh = workspace(tmp_path / "fresh")
    diff = run(fresh, shop, "--dry-run").out
    assert diff.startswith("--- /dev/null\n+++ b/projects/")
    git = ["git", "-C", str(fresh), "apply", "-p1", "-"]
    subprocess.run(git, input=diff, text=True, check=True)
    assert planned(fresh, shop).code == 0


def test_json_for_scripts_keeps_its_keys(shop: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    ran = run(folder, shop, "--format", "json", "Orders")
    assert ran.code == 0
    result = json.loads(ran.out)
    identity = result["resources"][0].pop("id")
    assert identity in shop.exports()["Orders"]["id"]
    assert result == {
        "format_version": 2,
        "written": True,
        "files": [{"path": "projects/shop.yaml", "new": True}],
        "resources": [
            {"address": "batch_export.orders", "name": "Orders", "file": "projects/shop.yaml"}
        ],
        "secrets": [
            {"variable": "RECONCILER_SECRET_ORDERS_PASSWORD", "address": "batch_export.orders"},
            {"variable": "RECONCILER_SECRET_ORDERS_USER", "address": "batch_export.orders"},
        ],
        "left_out": [],
        "not_imported": [],
        "ignored": [],
        "in_the_files_already": 0,
        "calls": result["calls"],
    }
    result = json.loads(run(folder, shop, "--format", "json", "--dry-run").out)
    assert result["written"] is False
    assert len(result["resources"]) == 3


def test_a_second_environment_gets_its_own_keys(shop: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path, TWO)
    assert run(folder, shop, "-e", "staging").code == 0
    ran = run(folder, shop, "-e", "production")
    assert ran.code == 0
    resources = declared(folder)
    assert set(resources["projects"]) == {"app", "app-production", "shop", "shop-production"}
    assert resources["batch_exports"]["orders-production"]["project"] == "shop-production"
    assert "ORDERS_PRODUCTION_PASSWORD" in ran.out
    for environment in ("staging", "production"):
        assert planned(folder, shop, "-e", environment).code == 0
    # One resource for both, as the documentation says.
    text = (folder / "projects/shop.yaml").read_text()
    (folder / "projects/shop.yaml").write_text(text.replace("[staging]", "[staging, production]"))
    (folder / "projects/shop-production.yaml").unlink()
    for environment in ("staging", "production"):
        assert planned(folder, shop, "-e", environment).code == 0


def test_an_unknown_type_is_written_without_fields_named_like_secrets(tmp_path: Path) -> None:
    """A newer server: which of its fields are secrets is unknown."""
    database = tmp_path / "service.db"
    config = {
        "bucket": "b",
        "partition_key": "day",
        "sas_key": SECRET,
        "apiToken": SECRET,
        "nested": {"client_secret": SECRET, "depth": 2},
        "hosts": [{"name": "a", "credential": SECRET}],
        "address": f"https://user:{SECRET}@h.example.com",
        "certificate": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n",
    }
    with service(tmp_path, {"Shop": [export("Lake")]}, "--db", str(database)):
        pass
    connection = sqlite3.connect(database)
    (body,) = connection.execute("SELECT body FROM exports").fetchone()
    stored = {**orjson.loads(body), "destination": {"type": "Glacier", "config": config}}
    connection.execute("UPDATE exports SET body = ?", (orjson.dumps(stored),))
    connection.commit()
    connection.close()
    with start_emulator(db=database) as running:
        folder = workspace(tmp_path)
        ran = run(folder, running)
        assert ran.code == 0, ran.err
        written = declared(folder)["batch_exports"]["lake"]["destination"]["config"]
        assert set(written) == {"bucket", "partition_key"}
        for name in ("sas_key", "apiToken", "nested", "hosts", "address", "certificate"):
            assert f"destination.config.{name}: " in ran.err
        assert SECRET not in ran.out + ran.err + (folder / "projects/shop.yaml").read_text()
        assert planned(folder, running).code == 0


def test_a_name_that_contains_a_secret_is_neither_written_nor_printed(tmp_path: Path) -> None:
    there = (
        "batch_exports:\n  mine:\n    project: {name: Shop}\n    name: Mine\n    interval: hour\n"
        "    destination: {type: HTTP, config: {url: 'https://eu.i.posthog.com/batch/', "
        "token: '${secret:env:RECONCILER_SECRET_TOKEN}'}}\n"
    )
    projects = {"Shop": [export(f"Lake {SECRET}")], SECRET: [export("Orders")]}
    with service(tmp_path, projects) as running:
        folder = workspace(tmp_path, **{"mine.yaml": there})
        for options in (("--dry-run",), ("--format", "json", "--dry-run"), ()):
            ran = run(folder, running, *options, RECONCILER_SECRET_TOKEN=SECRET)
            assert ran.code == 1
            assert SECRET not in ran.out + ran.err
        assert "its name contains the value of a secret" in ran.err
        assert declared(folder)["batch_exports"]["orders"]["project"] == {"id": 2}
        assert not any(SECRET in name for name in files(folder))
        assert not any(SECRET in (folder / name).read_text() for name in files(folder))


def test_projects_whose_names_differ_in_case_only_are_pinned(tmp_path: Path) -> None:
    with service(tmp_path, {"Web": [export("a")], "WEB": []}) as running:
        folder = workspace(tmp_path)
        assert run(folder, running).code == 0
        assert all("id" in project for project in declared(folder)["projects"].values())
        assert reconciler("validate", "-C", folder).err == ""
        assert planned(folder, running).code == 0


def test_invisible_characters_are_written_as_escapes(tmp_path: Path) -> None:
    with service(tmp_path, {"Shop": [export("a\u202eb\u00a0c\u200b")]}) as running:
        folder = workspace(tmp_path)
        assert run(folder, running).code == 0
        text = (folder / "projects/shop.yaml").read_text()
        assert r'name: "a\u202eb\u00a0c\u200b"' in text
        assert planned(folder, running).code == 0


def test_a_deleted_export_is_created_again_with_its_secrets(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    assert run(folder, shop).code == 0
    identity = shop.exports()["Orders"]["id"]
    assert shop.call("DELETE", f"/api/projects/1/batch_exports/{identity}/").status_code == 204
    ran = planned(folder, shop)
    assert ran.code == 2
    assert "1 to create" in ran.out
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=shop.environ())
    assert applied.code == 1
    assert "set the environment variable RECONCILER_SECRET_ORDERS_PASSWORD" in applied.err
    secrets = {"RECONCILER_SECRET_ORDERS_PASSWORD": "p4ss", "RECONCILER_SECRET_ORDERS_USER": "u5er"}
    given = {**shop.environ(), **secrets}
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=given).code == 0
    assert planned(folder, shop).code == 0


def test_the_plan_is_empty_after_a_change_is_applied(shop: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    assert run(folder, shop).code == 0
    path = folder / "projects/shop.yaml"
    path.write_text(path.read_text().replace("interval: hour", "interval: day", 1))
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=shop.environ()).code == 0
    assert planned(folder, shop).code == 0
    assert [method for method, _ in shop.writes()] == ["PATCH"]


def test_an_import_without_live_objects_writes_nothing(tmp_path: Path) -> None:
    with service(tmp_path, {}) as running:
        folder = workspace(tmp_path)
        ran = run(folder, running)
        assert (ran.code, ran.out) == (0, "Imported: nothing\n")
        ran = run(folder, running, "--dry-run")
        assert (ran.code, ran.out) == (0, "")
        assert "Would import: nothing" in ran.err


def test_what_still_plans_a_change_is_left_out_whole_with_what_is_in_it(
    service_of: StartService, tmp_path: Path
) -> None:
    """A default that no line can undo: leaving the field out does not help, either."""
    body = seed({"Shop": [export("Orders")], "App": [export("Users")]})
    for project in body["organizations"][0]["projects"]:
        project["app_urls"] = None if project["name"] == "Shop" else []
    service = service_of(body)
    text = "version: 1\ndefaults: {project: {app_urls: ['https://x.example']}}\n"
    folder = workspace(tmp_path, text)
    ran = run(folder, service)
    assert ran.code == 1
    assert 'Not imported: project "Shop" (id 1): its plan would not be empty\n' in ran.err
    assert re.search(r'"Orders" \(id [^)]+\): its project is not imported\n', ran.err)
    assert "Field not imported" not in ran.err
    assert "ORDERS" not in ran.out
    assert files(folder) == ["projects/app.yaml", "reconciler.yaml"]
    assert list(declared(folder)["batch_exports"]) == ["users"]
    assert planned(folder, service).code == 0


def test_a_stop_before_a_file_is_written_writes_nothing(
    shop: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)

    def stopping() -> datetime:
        # The clock is read when all that is to be written is known.
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return datetime(2026, 1, 1, tzinfo=UTC)

    runtime = Runtime(shop.environ(), stopping)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(import_live(Workspace(folder, runtime=runtime)))
    assert files(folder) == ["reconciler.yaml"]
