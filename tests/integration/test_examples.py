"""Examples, and the pages that show how to work: they run as printed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, StartService
from tests.support.cli import reconciler
from tests.support.declared import seed
from tests.support.git import Git
from tests.support.simulated import no_op_export
from tests.support.tours import Tour

EXAMPLES = ROOT / "examples"
WORKSPACES = sorted(path.parent for path in EXAMPLES.rglob("reconciler.yaml"))
PAGES = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
ADDRESS = "http://127.0.0.1:8010"


def _export(name: str, interval: str, prefix: str) -> dict[str, object]:
    config = {"bucket_name": "acme", "region": "eu-central-1", "prefix": prefix}
    config |= {"aws_access_key_id": "AKIA1", "aws_secret_access_key": "s3cr3t-of-the-lake"}
    return no_op_export(name, interval, destination={"type": "S3", "config": config})


ADOPTED = seed(
    {
        "name": "Web shop",
        "timezone": "Europe/Berlin",
        "batch_exports": [
            _export("Orders to the lake", "hour", "orders/"),
            _export("Carts to the lake", "day", "carts/"),
        ],
    },
    {"name": "Back office", "batch_exports": [no_op_export("Tickets", "day")]},
    scopes=["project:read", "batch_export:read"],
)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that copies an example, and makes the copy the current folder."""

    def copied(name: str) -> Path:
        folder = shutil.copytree(EXAMPLES / name, tmp_path / name)
        monkeypatch.chdir(folder)
        return folder

    return copied


@pytest.mark.parametrize(
    ("page", "given", "options"),
    [
        pytest.param("quickstart", None, (), id="quickstart"),
        pytest.param("quickstart", None, ("--dialect", "2025"), id="quickstart 2025"),
        pytest.param("quickstart", None, ("--dialect", "2026"), id="quickstart 2026"),
        pytest.param("read-a-plan", None, (), id="read-a-plan"),
        pytest.param("output", None, (), id="output"),
        pytest.param("adopt", ADOPTED, (), id="adopt"),
        pytest.param("on-call", ..., ("--dialect", "2026"), id="on-call"),
    ],
)
def test_issue_32_every_block_of_the_page_runs(
    page: str,
    given: object,
    options: tuple[str, ...],
    service_of: StartService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the page on operations (apply P2), only what one practises with the seed in it."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    if given is ...:
        text = text.partition("\n## Practise operations\n")[2].partition("\n## ")[0]
        given = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    tour = Tour(tmp_path, service_of(given, *options).environ(), ADDRESS)
    tour.follow(text)
    if page == "on-call":
        assert tour.code == 0


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_an_example_runs(
    name: str, service_of: StartService, copy: Callable[[str], Path]
) -> None:
    """Following the page changes what it names, and only that."""
    folder = copy(name)
    given = folder / "seed.json"
    service = service_of(json.loads(given.read_bytes()) if given.exists() else None)
    environ = service.environ() | {"POSTHOG_URL": service.base_url}
    if name == "environments":
        # Its environments have keys of their own.
        environ.pop("RECONCILER_API_KEY")
    before = service.exports()
    text = (folder / "README.md").read_text(encoding="utf-8")
    Tour(folder, environ, ADDRESS).follow(text)
    assert "No changes. Live state matches" in text.partition("\nApplied: ")[2]
    after = service.exports()
    if name == "adoption":
        assert before.keys() - after.keys() == {"Orders to the lake (copy)"}
        assert after["Orders to the lake"] == before["Orders to the lake"]
        assert after["Tickets"]["interval"] == "hour"


@pytest.mark.parametrize(
    "folder", WORKSPACES, ids=lambda folder: folder.relative_to(EXAMPLES).as_posix()
)
def test_every_workspace_is_valid(folder: Path) -> None:
    checked = reconciler("validate", "--strict", "-C", folder)
    assert checked.out == "The configuration is valid.\n"


def test_the_workflows_of_the_monorepo_are_those_of_init(
    copy: Callable[[str], Path], golden: Callable[[Path, str], None]
) -> None:
    folder = copy("monorepo")
    workflows, committed = (at / ".github/workflows" for at in (folder, EXAMPLES / "monorepo"))
    shutil.rmtree(workflows, ignore_errors=True)
    Git.init(folder)
    page = (folder / "README.md").read_text()
    for command in re.findall(r"^reconciler (init .*)$", page, re.MULTILINE):
        ran = reconciler(*shlex.split(command))
        assert (ran.code, "POSTHOG_WRITE_KEY" in ran.err) == (0, True)
    for path in workflows.iterdir():
        # Without the place from which this program was installed.
        text = re.sub('SOURCE: ".*"', 'SOURCE: "ADDRESS-OF-RECONCILER"', path.read_text())
        golden(committed / path.name, re.sub('COMMIT: ".*"', 'COMMIT: "FULL-COMMIT-ID"', text))
    assert {path.name for path in committed.iterdir()} == {it.name for it in workflows.iterdir()}


def test_experience_22_the_demo_runs_to_its_end_without_colours_in_a_file() -> None:
    ran = reconciler("demo")
    assert ran.code == 0, ran.err
    assert "No changes" in ran.out
    assert "destination-moved" in ran.out
    assert "Applied: 1 updated, 1 unpaused" in ran.out
    assert "\x1b" not in ran.out
