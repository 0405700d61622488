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


def test_x12_a_new_workspace_is_valid_and_refers_to_its_schemas(tmp_path: Path) -> None:
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
    assert f"`reconciler plan --workspace={folder}`" in ran.err
    for name in ("reconciler.yaml", "resources.yaml"):
        first = (folder / name).read_text().splitlines()[0]
        (schema,) = re.findall(r"^# yaml-language-server: \$schema=(\S+)$", first)
        assert json.loads((folder / schema).read_text())["$schema"].endswith("2020-12/schema")
    checked = reconciler("validate", "-C", folder, "--strict")
    assert (checked.code, checked.out) == (0, "The configuration is valid.\n")
    # Git leaves the schemas out.
    git = Git.init(folder)
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


def test_the_schemas_are_overwritten_after_an_upgrade(tmp_path: Path) -> None:
    assert reconciler("init", "--schemas", "-C", tmp_path).code == 1
    write(tmp_path, {"reconciler.yaml": "version: 1\n", ".reconciler/resources.schema.json": "{}"})
    assert reconciler("init", "--schemas", "-C", tmp_path).code == 0
    schemas = [json.loads(path.read_text()) for path in (tmp_path / ".reconciler").iterdir()]
    assert {schema["title"] for schema in schemas} == {"Resources", "Workspace", "Plan", "Event"}
    assert (tmp_path / "reconciler.yaml").read_text() == "version: 1\n"


OLD = {"old.yaml": "batch_export: {}\n"}


@pytest.mark.parametrize(
    ("words", "files", "code", "message"),
    [
        (("--base-url", "http//x"), {}, 64, "invalid --base-url 'http//x'"),
        (("-e", "a b"), {}, 64, "invalid environment name 'a b'"),
        ((), {"reconciler.yaml": "version: 1\n"}, 1, "a workspace already exists"),
        ((), OLD, 1, "an existing YAML file below the workspace is not valid: old.yaml"),
        ((), OLD, 1, "reconciler init -C pipelines"),
        ((), {"compose.yaml": "services: {}\n"}, 0, "next: "),
    ],
)
def test_what_is_wrong_is_reported_before_anything_is_written(
    tmp_path: Path, words: tuple[str, ...], files: dict[str, str], code: int, message: str
) -> None:
    folder = write(tmp_path / "new", files) if files else tmp_path / "new"
    ran = reconciler("init", "-C", folder, *words)
    assert ran.code == code
    assert message in ran.err
    if code:
        assert names(folder) == list(files)
        assert folder.exists() == bool(files)


def test_the_connection_of_the_variables_is_written(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    """Then only the key is needed. docs/adopt.md imports into a new workspace."""
    assert reconciler("init", "-C", tmp_path, environ=emulator.environ()).code == 0
    assert reconciler("import", "-C", tmp_path, environ=emulator.environ()).code == 0
    text = (tmp_path / "projects/default-project.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../.reconciler/resources.schema.json\n")
    environ = {"RECONCILER_API_KEY": emulator.api_key}
    planned = reconciler("plan", "-C", tmp_path, "--detailed-exitcode", environ=environ)
    assert planned.code == 0, planned.out
