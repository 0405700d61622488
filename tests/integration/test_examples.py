"""The examples: their files are valid, and their pages run as printed, up to an empty plan."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT, StartService
from tests.support.cli import reconciler
from tests.support.git import Git
from tests.support.tours import Tour

EXAMPLES = ROOT / "examples"
WORKSPACES = sorted(path.parent for path in EXAMPLES.rglob("reconciler.yaml"))
PAGES = sorted(EXAMPLES.glob("*/README.md"))


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that copies an example, and makes the copy the current folder."""

    def copied(name: str) -> Path:
        folder = shutil.copytree(EXAMPLES / name, tmp_path / name)
        monkeypatch.chdir(folder)
        return folder

    return copied


def _seed(example: Path) -> Mapping[str, object] | None:
    path = example / "seed.json"
    return json.loads(path.read_bytes()) if path.exists() else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_block_of_the_page_runs(
    page: Path, service_of: StartService, copy: Callable[[str], Path]
) -> None:
    service = service_of(_seed(page.parent))
    environ = service.environ() | {"POSTHOG_URL": service.base_url}
    if page.parent.name == "environments":
        # Its environments have keys of their own.
        environ.pop("RECONCILER_API_KEY")
    text = page.read_text(encoding="utf-8")
    Tour(copy(page.parent.name), environ, "http://127.0.0.1:8010").follow(text)
    assert "No changes. Live state matches" in text.partition("\nApplied: ")[2]


@pytest.mark.parametrize(
    "folder", WORKSPACES, ids=lambda folder: folder.relative_to(EXAMPLES).as_posix()
)
def test_every_workspace_is_valid(folder: Path) -> None:
    checked = reconciler("validate", "--strict", "-C", folder)
    assert checked.out == "The configuration is valid.\n"


def test_production_differs_from_staging_as_intended(copy: Callable[[str], Path]) -> None:
    folder = copy("environments")
    compared = reconciler("compare", "staging", "production", "lake", "warehouse", "web")
    assert compared.code == 0, compared.out
    path = folder / "resources.yaml"
    path.write_text(path.read_text().replace("      production: {interval: hour}\n", ""))
    changed = reconciler("compare", "staging", "production", "lake", "warehouse", "web")
    assert changed.code == 2
    assert "interval" in changed.out.partition("Intended")[0]


def test_the_adopted_organization_has_no_copy_any_more(
    service_of: StartService, copy: Callable[[str], Path]
) -> None:
    """Following the page changes what it names, and only that."""
    page = EXAMPLES / "adoption/README.md"
    service = service_of(_seed(page.parent))
    before = service.exports()
    Tour(copy("adoption"), service.environ(), "http://127.0.0.1:8010").follow(page.read_text())
    after = service.exports()
    assert before.keys() - after.keys() == {"Orders to the lake (copy)"}
    assert after["Orders to the lake"] == before["Orders to the lake"]
    assert after["Tickets"]["interval"] == "hour"


def test_the_workflows_of_the_monorepo_are_those_of_init(
    copy: Callable[[str], Path], golden: Callable[[Path, str], None]
) -> None:
    folder = copy("monorepo")
    workflows = folder / ".github/workflows"
    shutil.rmtree(workflows, ignore_errors=True)
    Git.init(folder)
    commands = re.findall(
        r"^reconciler (init .*)$", (folder / "README.md").read_text(), re.MULTILINE
    )
    for command in commands:
        ran = reconciler(*shlex.split(command))
        assert (ran.code, "POSTHOG_WRITE_KEY" in ran.err) == (0, True)
    committed = EXAMPLES / "monorepo/.github/workflows"
    for path in workflows.iterdir():
        # Without the place from which this program was installed.
        text = re.sub('SOURCE: ".*"', 'SOURCE: "ADDRESS-OF-RECONCILER"', path.read_text())
        golden(committed / path.name, re.sub('COMMIT: ".*"', 'COMMIT: "FULL-COMMIT-ID"', text))
    assert {path.name for path in committed.iterdir()} == {
        path.name for path in workflows.iterdir()
    }
