"""A release collects the fragments of changelog.d/ in CHANGELOG.md, and checks its tag."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.version import __version__
from scripts.release_notes import release_notes
from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

TAG = f"v{__version__}"
FRAGMENTS = {"1.feature.md": "A feature\nin two lines.\n\nAnother one.\n", "2.fix.md": "A fix.\n"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of what a release reads, with the fragments of this test and no releases."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(changelog.split("## ")[0], encoding="utf-8")
    for name in ("pyproject.toml", "changelog.d/template.md.jinja"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "reconciler").mkdir()
    for name in ("__init__.py", "version.py"):
        shutil.copy(ROOT / "reconciler" / name, tmp_path / "reconciler" / name)
    for name, text in FRAGMENTS.items():
        (tmp_path / "changelog.d" / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=TIMEOUT)
    return tmp_path


def towncrier(folder: Path, *words: str) -> str:
    """Run towncrier in a folder, and return what it prints."""
    command = [sys.executable, "-m", "towncrier", "build", *words]
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", check=True, timeout=TIMEOUT
    )
    return ended.stdout


def test_the_section_of_a_release_is_what_the_fragments_say(copy: Path) -> None:
    with pytest.raises(ValueError, match=r"not in CHANGELOG.md: 1.feature.md, 2.fix.md"):
        release_notes(copy, TAG)
    with pytest.raises(ValueError, match=f"tag v99.0.0 is not the version {__version__}"):
        release_notes(copy, "v99.0.0")
    towncrier(copy, "--yes", "--date", "2026-01-02")
    section = "### Added\n\n- A feature\n  in two lines.\n- Another one.\n\n### Fixed\n\n- A fix.\n"
    assert release_notes(copy, TAG) == section
    (copy / "changelog.d/3.breaking.md").write_text("A change.\n", encoding="utf-8")
    towncrier(copy, "--yes", "--version", "99.0.0", "--date", "2026-01-03")
    changelog = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    former = f"## {__version__} - 2026-01-02\n\n{section}"
    assert f"\n\n### Breaking\n\n- A change.\n\n{former}" in changelog
    assert not list(copy.glob("changelog.d/*.md"))
    (copy / "CHANGELOG.md").write_text("# Changelog\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"no section for {__version__}"):
        release_notes(copy, TAG)


def test_every_fragment_of_the_repository_is_in_the_next_release() -> None:
    draft = towncrier(ROOT, "--draft")
    for path in ROOT.glob("changelog.d/[0-9]*.md"):
        for paragraph in path.read_text(encoding="utf-8").strip().split("\n\n"):
            assert "- " + paragraph.replace("\n", "\n  ") in draft, path.name
