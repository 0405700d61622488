"""`mv` end to end: live state stays, comments stay, and the next plan recognizes every object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

WORKSPACE = "version: 1\ndefaults:\n  batch_export: {project: web} # where most are\n"
PROJECTS = "projects:\n  # The shop.\n  web: {name: Web} # live since 2020\n"
EXPORTS = (
    "# Exports\n"
    "batch_exports:\n"
    "  lake: # the lake\n"
    "    project: web # parent\n"
    "    name: Lake\n"
    "    interval: hour\n"
    "    destination: {type: NoOp, config: {}}\n"
    "  orders:\n"
    "    name: Orders\n"
    "    interval: day\n"
    "    destination: {type: NoOp, config: {}}\n"
)
FILES = {"reconciler.yaml": WORKSPACE, "projects.yaml": PROJECTS, "exports/web.yaml": EXPORTS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def mv(folder: Path, *words: str) -> Ran:
    return reconciler("mv", "-C", folder, *words)


def run(folder: Path, running: RunningEmulator, command: str, *words: str) -> Ran:
    return reconciler(command, "-C", folder, *words, environ=running.environ())


def apply(folder: Path, running: RunningEmulator) -> None:
    ran = run(folder, running, "apply", "--auto-approve")
    assert ran.code == 0, ran.err


def actions(folder: Path, running: RunningEmulator) -> dict[str, str]:
    """Return the actions of a plan by address."""
    ran = run(folder, running, "plan", "--format", "json")
    assert ran.code == 0, ran.err
    changes = json.loads(ran.out)["changes"]
    return {change["address"]: change["action"] for change in changes}


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in FILES}


@pytest.mark.parametrize("in_git", [False, True])
def test_a_renamed_key_changes_nothing_live(
    folder: Path, emulator: RunningEmulator, in_git: bool
) -> None:
    apply(folder, emulator)
    if in_git:
        Git.init(folder).commit()
    before = emulator.state()
    ran = mv(folder, "web", "shop")
    assert (ran.code, ran.out.count("+++ b/")) == (0, 3)
    assert ran.err == "Renamed project.web to project.shop in 3 files\n"
    assert mv(folder, "batch_export.lake", "batch_export.lake-2").code == 0
    assert reconciler("validate", "-C", folder).code == 0
    assert actions(folder, emulator) == {}
    apply(folder, emulator)
    assert emulator.state() == before
    assert texts(folder) == {
        "reconciler.yaml": WORKSPACE.replace("project: web", "project: shop"),
        "projects.yaml": PROJECTS.replace("  web:", "  shop:"),
        "exports/web.yaml": EXPORTS.replace("project: web", "project: shop").replace(
            "  lake:", "  lake-2:"
        ),
    }


def test_a_diff_writes_nothing(folder: Path) -> None:
    for option in ("--diff", "--dry-run"):
        ran = mv(folder, "Lake", "lake-2", option)
        assert ran.code == 0
        assert "-  lake: # the lake\n+  lake-2: # the lake\n" in ran.out
        assert ran.err == "Would rename batch_export.lake to batch_export.lake-2 in 1 file\n"
    assert texts(folder) == FILES


RULES = """\
version: 1
policy:
  rules:
    keep:
      match: {address: batch_export.lake, action: delete}
      message: the lake stays
    others:
      match:
        address: [batch_export.lake, "batch_export.pond*"]  # water
        project: web
        name: web
      message: hands off
environments:
  staging:
    policy:
      rules:
        web: {match: {address: project.web}, message: stop}
"""


def test_places_in_policies_stay_and_are_printed(folder: Path) -> None:
    """A rule that no longer matches would allow what it refused before."""
    write(folder, {"reconciler.yaml": RULES})
    (folder / "exports/web.yaml").write_text(
        EXPORTS.replace("    name: Orders", "    project: web\n    name: Orders")
    )
    ran = mv(folder, "lake", "sea")
    assert (ran.code, texts(folder)["reconciler.yaml"]) == (0, RULES)
    assert [line for line in ran.err.splitlines() if line.startswith("note: ")] == [
        f"note: check reconciler.yaml:{line}:{column}, which may mean batch_export.lake"
        for line, column in ((5, 15), (9, 19))
    ]
    assert mv(folder, "project.web", "shop").err.count("may mean project.web") == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("wbe", "shop"), "did you mean project.web?"),
        (("*", "shop"), "matches 3 resources"),
        (("lake", "orders"), "batch_export.orders exists already, at exports/web.yaml:8:3"),
        (("lake", "a b"), "invalid key 'a b'"),
        (("lake", "lake"), "exists already"),
    ],
)
def test_bad_usage_changes_nothing(folder: Path, words: tuple[str, ...], message: str) -> None:
    ran = mv(folder, *words)
    assert ran.code == 64
    assert message in ran.err
    assert texts(folder) == FILES


@pytest.mark.parametrize(
    ("files", "words", "message"),
    [
        (
            {
                "reconciler.yaml": "version: 1\nvars: {home: web}\n",
                "exports/web.yaml": EXPORTS.replace("project: web", "project: ${var:home}"),
            },
            ("web", "shop"),
            "exports/web.yaml:4:14: error: unknown project 'web'",
        ),
        ({"projects.yaml": "projects:\n  web: {nmae: Web}\n"}, ("lake", "l"), "nmae"),
    ],
)
def test_what_cannot_be_renamed_safely_changes_nothing(
    folder: Path, files: dict[str, str], words: tuple[str, ...], message: str
) -> None:
    write(folder, files)
    before = texts(folder)
    ran = mv(folder, *words)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert texts(folder) == before


def test_a_byte_order_mark_and_the_mode_of_a_file_are_kept(folder: Path) -> None:
    path = folder / "projects.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + PROJECTS.encode())
    path.chmod(0o640)
    assert mv(folder, "web", "shop").code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + PROJECTS.replace("  web:", "  shop:").encode()
    assert path.stat().st_mode & 0o777 == 0o640
