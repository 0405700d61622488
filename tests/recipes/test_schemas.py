"""The recipes comply with the published schemas of their hosts, which check-jsonschema has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.recipes.gitlab import filled
from tests.recipes.scripts import FOLDER, documents
from tests.support.limits import TIMEOUT


def texts(value: Any) -> Any:
    """Return a document with numbers and booleans as texts, as Azure's schema has them."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    return json.dumps(value) if isinstance(value, (bool, int)) else value


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("gitlab-ci", FOLDER / "gitlab/reconciler.yml"),
        ("gitlab-ci", FOLDER / "gitlab/environment.yml"),
        ("gitlab-ci", FOLDER / "gitlab/gitlab-ci.yml"),
        ("azure-pipelines", FOLDER / "azure/reconciler.yml"),
        ("github-actions", ROOT / "action.yml"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_a_recipe_complies_with_the_schema_of_its_host(
    tmp_path: Path, schema: str, path: Path
) -> None:
    program = shutil.which("check-jsonschema")
    if program is None:
        pytest.skip("check-jsonschema is not installed")
    files = []
    parts = documents(path)
    if "spec" in parts[0]:
        # The schema knows no inputs in the place of a list.
        parts = [parts[0], filled(*parts, {"image": "image@sha256:0"})]
    for number, document in enumerate(parts):
        files.append(tmp_path / f"{number}.json")
        value = texts(document) if schema == "azure-pipelines" else document
        files[-1].write_text(json.dumps(value), encoding="utf-8")
    # Azure's schema has a pattern that is invalid in the Unicode mode of ECMAScript.
    words = ["--builtin-schema", f"vendor.{schema}", "--regex-variant", "nonunicode"]
    ended = subprocess.run(
        [program, *words, *files], capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    assert ended.returncode == 0, ended.stdout
