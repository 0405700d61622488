"""What a release is made of: hashes, addresses, pages, the image, and its part of CHANGELOG.md."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reconciler.paths import WORKSPACE_FILE
from reconciler.version import REPOSITORY, __version__
from scripts.readme import absolute_readme, addresses
from scripts.release_notes import release_notes
from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
INSTALLED = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
HASHED = (ROOT / "requirements.txt").read_text(encoding="utf-8")
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = dict(line.split("==") for line in CONSTRAINTS if not line.startswith("#"))
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


def test_security_s7_everything_that_pipelines_install_has_hashes() -> None:
    entries = re.findall(
        r"^([\w.-]+==[^\n]*?) \\\n((?:    --hash=sha256:\w{64}.*\n?)+)", HASHED, re.MULTILINE
    )
    pins = {}
    for text, _ in entries:
        required = Requirement(text)
        (specifier,) = required.specifier
        pins[canonicalize_name(required.name)] = specifier.version
    assert len(pins) == len(re.findall(r"^[^# ]", HASHED, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]["emulator"]
    for text in (*PROJECT["dependencies"], *extras, "hatchling>=1.27"):
        required = Requirement(text)
        assert required.specifier.contains(pins[canonicalize_name(required.name)])
    assert {name: PINS[name] for name in pins if name in PINS}.items() <= pins.items()


def test_security_s7_no_release_has_the_placeholder(tmp_path: Path) -> None:
    assert "OWNER" in REPOSITORY
    ended = subprocess.run(
        [ROOT / "scripts/release", "v0.1.0", tmp_path / "release"],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "error: REPOSITORY in reconciler/version.py is a placeholder\n"
    assert not (tmp_path / "release").exists()


def test_the_placeholder_is_in_one_place() -> None:
    folders = ("reconciler", "recipes", "docs", "scripts", ".github")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "pyproject.toml")]
    texts = {path: path.read_bytes() for path in files if path.suffix != ".pyc"}
    assert [path for path, text in texts.items() if REPOSITORY.encode() in text] == [
        ROOT / "reconciler/version.py"
    ]


def test_ecosystem_4_links_of_the_readme_are_absolute() -> None:
    repository = "https://forge.example/team/reconciler"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = absolute_readme(text, repository, "v1.0.0")
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert all(re.match(r"https://|#", link) for link in links)
    assert f"({repository}/blob/v1.0.0/docs/security.md)" in page
    for link in links:
        if link.startswith(repository):
            path = re.sub(rf"{repository}/\w+/v1.0.0/|#.*", "", link)
            assert (ROOT / path).exists(), path
    assert PROJECT["authors"] == [{"name": "The reconciler authors"}]
    assert {"readme", "urls"} <= set(PROJECT["dynamic"])
    assert all(url.startswith(repository) for url in addresses(repository, "v1.0.0").values())


def test_ecosystem_5_the_lowest_versions_have_wheels_for_every_python() -> None:
    floors = {
        Requirement(text).name: str(Requirement(text).specifier) for text in PROJECT["dependencies"]
    }
    assert (floors["orjson"], floors["PyYAML"]) == (">=3.11.4", ">=6.0.3")


def test_ecosystem_9_the_image_is_built_from_the_package_only() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert lines[1] == "*"
    assert all((ROOT / name).exists() for name in kept)
    assert INSTALLED.keys() <= kept
    recipe = (ROOT / "recipes/container/Containerfile").read_text(encoding="utf-8")
    for label in ("source", "revision", "version"):
        assert f'org.opencontainers.image.{label}="${label.upper()}"' in recipe


def test_security_21_every_dependency_has_an_exact_version_that_is_allowed() -> None:
    assert list(PINS) == sorted(PINS)
    extras = [text for texts in PROJECT["optional-dependencies"].values() for text in texts]
    for required in map(Requirement, (*PROJECT["dependencies"], *extras)):
        if required.name != "posthog-reconciler":
            assert required.specifier.contains(PINS[canonicalize_name(required.name)])


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "examples").rglob("*.yaml")),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_an_example_names_its_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    _, _, name = first.partition("# yaml-language-server: $schema=")
    form = (path.parent / name).resolve()
    assert form.parent == ROOT / "schemas/editor"
    title = "Workspace" if path.name == WORKSPACE_FILE else "Resources"
    assert json.loads(form.read_bytes())["title"] == title


def test_pages_examples_and_schemas_are_installed_side_by_side() -> None:
    schemas = PurePosixPath(INSTALLED["schemas"])
    examples = {name: PurePosixPath(to) for name, to in INSTALLED.items() if "examples" in name}
    assert examples
    assert INSTALLED["docs/reference"] == "reconciler/docs/reference"
    for name in ("docs/consequences.md", "docs/glossary.md"):
        assert INSTALLED[name] == f"reconciler/{name}"
    for name, to in examples.items():
        assert to.relative_to(schemas.parent) == PurePosixPath(name)
