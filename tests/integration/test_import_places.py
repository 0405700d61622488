"""`import`: where resources are written, and what defaults already give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler
from tests.support.emulator import RunningEmulator
from tests.support.importing import an_export, new_workspace, resources
from tests.support.importing import run_import as run
from tests.support.importing import run_plan as plan

SIBLINGS = (
    "batch_exports:\n"
    "  orders: # the first\n"
    "    project: home\n"
    "    name: Orders\n"
    "    interval: hour\n"
    "    destination: {type: NoOp, config: {}}\n"
)


@pytest.fixture
def populated(emulator: RunningEmulator) -> RunningEmulator:
    """Run a service with the exports Orders and Lake in one project."""
    path = f"/api/projects/{emulator.project_id}/batch_exports/"
    noop = {"type": "NoOp", "config": {}}
    for export in (an_export("Lake", model="events"), an_export("Orders", destination=noop)):
        assert emulator.call("POST", path, export).status_code == 201
    return emulator


def workspace(folder: Path, running: RunningEmulator, text: str = "version: 1\n") -> Path:
    """Write a workspace with the project, and with Orders in a file for exports."""
    name = running.state()["projects"][0]["name"]
    project = json.dumps({"projects": {"home": {"name": name}}})
    files = {"projects.yaml": f"{project}\n", "exports/web.yaml": SIBLINGS}
    return new_workspace(folder, text, **files)


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))


def test_experience_31_an_export_goes_to_the_file_of_its_siblings(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path, populated)
    before = files_of(folder)
    ran = run(folder, populated)
    assert ran.code == 0, ran.err
    assert '"Lake" in exports/web.yaml' in ran.out
    assert files_of(folder) == before
    assert (folder / "exports/web.yaml").read_text().startswith(SIBLINGS)
    assert plan(folder, populated).code == 0


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (("--into", "more"), "more/projects/home.yaml"),
        (("--into", "exports/lake.yml"), "exports/lake.yml"),
        (("--into", "exports/web.yaml"), "exports/web.yaml"),
    ],
)
def test_experience_31_options_select_another_file(
    populated: RunningEmulator, tmp_path: Path, options: tuple[str, ...], file: str
) -> None:
    folder = workspace(tmp_path, populated)
    ran = run(folder, populated, *options)
    assert ran.code == 0, ran.err
    assert f'"Lake" in {file}' in ran.out
    assert plan(folder, populated).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--into", "reconciler.yaml"), "contains no resources"),
        (("--into", "inner/a.yaml"), "inner/a.yaml would not be read: "),
        (("--into", "inner"), "inner/projects/home.yaml would not be read: "),
        (("--into", "../a.yaml"), "outside the workspace"),
    ],
)
def test_a_file_that_cannot_be_imported_into_is_refused(
    populated: RunningEmulator,
    tmp_path: Path,
    options: tuple[str, ...],
    message: str,
) -> None:
    folder = workspace(tmp_path, populated)
    new_workspace(folder / "inner")
    before = files_of(folder)
    ran = run(folder, populated, *options)
    assert ran.code == (1 if "read" in message else 64)
    assert message in ran.err
    assert files_of(folder) == before


def test_experience_31_values_of_defaults_are_not_written(
    populated: RunningEmulator, tmp_path: Path
) -> None:
    text = (
        "version: 1\n"
        "defaults:\n"
        "  batch_export:\n"
        "    project: home\n"
        "    model: events\n"
        "    interval: hour\n"
        "    paused: true\n"
        "    destination: {type: Postgres, config: {port: 5432, database: d, host: other}}\n"
    )
    folder = workspace(tmp_path, populated, text)
    sibling = folder / "exports/web.yaml"
    sibling.write_text(sibling.read_text().replace("hour\n", "hour\n    paused: false\n"))
    ran = run(folder, populated)
    assert ran.code == 0, ran.err
    lake = resources(folder)["batch_exports"]["lake"]
    assert not {"project", "model", "interval"} & lake.keys()
    assert lake["paused"] is False
    config = lake["destination"]["config"]
    assert lake["destination"]["type"] == "Postgres"
    assert not {"port", "database"} & config.keys()
    assert config["host"] == "h.example.com"
    assert plan(folder, populated).code == 0


def test_experience_20_the_help_lists_the_kinds() -> None:
    assert "kinds: project, batch_export" in " ".join(reconciler("import", "--help").out.split())


@pytest.mark.parametrize("into", [(), ("--into", "sub"), ("--into", "projects")])
def test_i1_no_derived_name_hides_a_folder(
    into: tuple[str, ...], tmp_path: Path, service_of: StartService
) -> None:
    """I1: a project "Reconciler" was written to `projects/reconciler.yaml`, another workspace."""
    exports = [an_export(name, destination={"type": "NoOp", "config": {}}) for name in NAMES]
    projects = [
        {"id": number, "name": name, "batch_exports": exports}
        for number, name in enumerate(NAMES, start=1)
    ]
    organization = {"id": "o", "name": "O", "projects": projects}
    running = service_of({"organizations": [organization], "keys": [{"value": "phx_key"}]})
    folder = new_workspace(tmp_path)
    ran = run(folder, running, *into)
    assert ran.code == 0, ran.err
    assert not {"reconciler", "con"} & {Path(name).stem for name in files_of(folder)[1:-1]}
    assert plan(folder, running).code == 0
    assert len(resources(folder)["projects"]) == len(NAMES)


NAMES = ("Reconciler", "Con", "Web")


@pytest.mark.parametrize("name", ["reconciler.yaml", "sub/Reconciler.YAML", "sub/reconciler.yml"])
def test_i1_the_name_of_a_workspace_file_is_refused(
    name: str, emulator: RunningEmulator, tmp_path: Path
) -> None:
    ran = run(new_workspace(tmp_path), emulator, "--into", name)
    assert (ran.code, "use another file" in ran.err) == (64, True), ran.err
