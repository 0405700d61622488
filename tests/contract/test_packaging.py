"""What a release is made of: hashes, addresses, the page of the package, and the image."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reconciler.paths import WORKSPACE_FILE
from reconciler.version import REPOSITORY
from scripts.readme import absolute_readme, addresses
from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
HASHED = (ROOT / "requirements.txt").read_text(encoding="utf-8")


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
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: tested[name] for name in pins if name in tested}.items() <= pins.items()


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
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    needed = build["build"]["targets"]["wheel"]["force-include"]
    assert needed.keys() <= kept
    recipe = (ROOT / "recipes/container/Containerfile").read_text(encoding="utf-8")
    for label in ("source", "revision", "version"):
        assert f'org.opencontainers.image.{label}="${label.upper()}"' in recipe


def test_security_21_every_dependency_has_an_exact_version_that_is_allowed() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert list(pins) == sorted(pins)
    extras = [text for texts in PROJECT["optional-dependencies"].values() for text in texts]
    for required in map(Requirement, (*PROJECT["dependencies"], *extras)):
        if required.name != "posthog-reconciler":
            assert required.specifier.contains(pins[canonicalize_name(required.name)])


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


def test_examples_and_schemas_are_installed_side_by_side() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    schemas = PurePosixPath(installed["schemas"])
    examples = {name: PurePosixPath(to) for name, to in installed.items() if "examples" in name}
    assert examples
    for name, to in examples.items():
        assert to.relative_to(schemas.parent) == PurePosixPath(name)
