"""`init`: a new workspace that is valid, formatted and has schemas, or holds live state."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_new_workspace_is_valid_and_formatted(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    ran = reconciler("init", "-C", folder)
    assert ran.code == 0
    files = [
        ".reconciler/.gitignore",
        ".reconciler/resources.schema.json",
        ".reconciler/workspace.schema.json",
        "reconciler.yaml",
        "resources.yaml",
    ]
    assert names(folder) == files
    assert sorted(ran.out.splitlines()) == [f"+ {name}" for name in files]
    assert f"`reconciler plan --workspace={folder}`" in ran.err
    checked = reconciler("validate", "-C", folder, "--strict")
    assert (checked.code, checked.out) == (0, "The configuration is valid.\n")


def test_x12_git_leaves_the_schemas_out(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    reconciler("init", "-C", tmp_path)
    git.run("add", ".")
    assert git.run("ls-files").split() == ["reconciler.yaml", "resources.yaml"]


def test_commented_examples_are_valid(tmp_path: Path) -> None:
    reconciler("init", "-C", tmp_path)
    for name in ("reconciler.yaml", "resources.yaml"):
        path = tmp_path / name
        kept = [
            re.sub(r"^(\s*)# ", r"\1", line)
            for line in path.read_text().splitlines()
            if re.match(r"\s*# +(?:-|[\w-]+:(?!//))|[^#]*$", line) and "$schema" not in line
        ]
        path.write_text("".join(f"{line}\n" for line in kept if not line.startswith("#")))
    (tmp_path / "projects").mkdir()
    (tmp_path / "resources.yaml").rename(tmp_path / "projects/web.yaml")
    checked = reconciler(
        "validate", "-C", tmp_path, "--strict", environ={"RECONCILER_API_KEY": "x"}
    )
    assert (checked.code, checked.out) == (0, "The configuration is valid.\n")
    assert "web-events" in (tmp_path / "projects/web.yaml").read_text()


@pytest.mark.parametrize("name", ["reconciler.yaml", "resources.yaml"])
def test_files_refer_to_the_schema_beside_them(tmp_path: Path, name: str) -> None:
    reconciler("init", "-C", tmp_path)
    first = (tmp_path / name).read_text().splitlines()[0]
    (schema,) = re.findall(r"^# yaml-language-server: \$schema=(\S+)$", first)
    assert json.loads((tmp_path / schema).read_text())["$schema"].endswith("2020-12/schema")


def test_the_base_url_and_the_names_round_trip_through_yaml(tmp_path: Path) -> None:
    ran = reconciler(
        *("init", "-C", tmp_path, "-e", "no", "--base-url", "https://x.example"),
        *("--organization", "1e3"),
    )
    assert ran.code == 0, ran.err
    text = (tmp_path / "reconciler.yaml").read_text()
    assert "  'no':\n    base_url: https://x.example\n    organization: '1e3'\n" in text
    assert "api_key: ${env:RECONCILER_API_KEY} " in text
    assert reconciler("validate", "-C", tmp_path, "-e", "no").code == 0


def test_an_existing_workspace_is_not_changed(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("init", "-C", tmp_path)
    assert ran.code == 1
    assert "a workspace already exists" in ran.err
    assert names(tmp_path) == ["reconciler.yaml"]


def test_the_schemas_are_overwritten_after_an_upgrade(tmp_path: Path) -> None:
    assert reconciler("init", "--schemas", "-C", tmp_path).code == 1
    write(tmp_path, {"reconciler.yaml": "version: 1\n", ".reconciler/resources.schema.json": "{}"})
    assert reconciler("init", "--schemas", "-C", tmp_path).code == 0
    schemas = [json.loads(path.read_text()) for path in (tmp_path / ".reconciler").iterdir()]
    assert {schema["title"] for schema in schemas} == {"Resources", "Workspace", "Plan", "Event"}
    assert (tmp_path / "reconciler.yaml").read_text() == "version: 1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--base-url", "http//x"], 64, "invalid --base-url 'http//x'"),
        (["-e", "a b"], 64, "invalid environment name 'a b'"),
    ],
)
def test_wrong_options_are_reported_before_anything_is_written(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    folder = tmp_path / "new"
    ran = reconciler("init", "-C", folder, *arguments)
    assert ran.code == code
    assert message in ran.err
    assert not folder.exists()


def test_a_folder_with_invalid_resource_files_is_refused_with_a_hint(tmp_path: Path) -> None:
    write(tmp_path, {"old.yaml": "batch_export: {}\n"})
    ran = reconciler("init", "-C", tmp_path)
    assert ran.code == 1
    assert "old.yaml" in ran.err
    assert "reconciler init -C pipelines" in ran.err
    assert names(tmp_path) == ["old.yaml"]


def test_files_of_other_tools_do_not_prevent_a_workspace(tmp_path: Path) -> None:
    write(tmp_path, {"compose.yaml": "services: {}\n"})
    assert reconciler("init", "-C", tmp_path).code == 0


def test_a_new_workspace_from_live_state(emulator: RunningEmulator, tmp_path: Path) -> None:
    path = f"/api/projects/{emulator.project_id}/batch_exports/"
    destination = {"type": "NoOp", "config": {}}
    body = {"name": "Lake", "interval": "hour", "destination": destination}
    assert emulator.call("POST", path, body).status_code == 201
    folder = tmp_path / "new"
    assert reconciler("init", "-C", folder, environ=emulator.environ()).code == 0
    ran = reconciler("import", "-C", folder, environ=emulator.environ())
    assert ran.code == 0, ran.err
    assert "Imported: 1 project, 1 batch_export into 1 file" in ran.out
    assert "projects/default-project.yaml" in names(folder)
    text = (folder / "projects/default-project.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../.reconciler/resources.schema.json\n")
    assert emulator.api_key not in "".join(
        path.read_text() for path in folder.rglob("*") if path.is_file()
    )
    # The file has the address now: only the key is needed.
    environ = {"RECONCILER_API_KEY": emulator.api_key}
    planned = reconciler("plan", "-C", folder, "--detailed-exitcode", environ=environ)
    assert planned.code == 0, planned.out
