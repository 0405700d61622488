"""Each example names the schema that an editor checks it by, in the repository and installed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from reconciler.paths import WORKSPACE_FILE
from tests.conftest import ROOT

EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
LINE = "# yaml-language-server: $schema="


def named(path: Path) -> str:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(LINE)
    return first.removeprefix(LINE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_names_its_schema(path: Path) -> None:
    form = (path.parent / named(path)).resolve()
    assert form.parent == ROOT / "schemas/editor"
    title = "Workspace" if path.name == WORKSPACE_FILE else "Resources"
    assert json.loads(form.read_bytes())["title"] == title


def test_examples_and_schemas_are_installed_side_by_side() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    schemas = PurePosixPath(installed["schemas"])
    examples = {name: PurePosixPath(to) for name, to in installed.items() if "examples" in name}
    assert examples
    for name, to in examples.items():
        assert to.relative_to(schemas.parent) == PurePosixPath(name)
