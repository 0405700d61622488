"""Test which files belong to a workspace, and what is reported about the others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.diagnostics import Diagnostic, InvalidConfiguration, Level
from reconciler.files.loading import LoadOptions, load, load_all, load_at
from reconciler.files.resource_files import fits_path
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import ParsedFiles
from reconciler.git.repository import GitSource, Objects, Repository
from reconciler.model.settings import Readable
from tests.support.cli import reconciler, write
from tests.support.git import Git
from tests.support.workspaces import VERSION, codes, told


def project(key: str) -> str:
    return f"projects:\n  {key}: {{name: {key.upper()}}}\n"


def resources(*globs: str) -> str:
    return f"{VERSION}resources:\n" + "".join(f"  - '{glob}'\n" for glob in globs)


def reported(folder: Path, files: Mapping[str, str], *, strict: bool = False) -> list[Diagnostic]:
    return [*load_all(write(folder, files), environ={}, strict=strict)]


def source_of(git: Git) -> GitSource:
    repository = Repository.containing(git.folder)
    assert repository is not None
    return GitSource(Objects(repository), git.head())


def keys(folder: Path, options: LoadOptions | None = None) -> set[str]:
    loaded = load(folder, environment=None, environ={}, options=options)
    return {address.key for address in loaded.desired.resources}


@pytest.mark.parametrize(
    ("glob", "fitting", "others"),
    [
        ("*.yaml", ["a.yaml", ".yaml"], ["a/b.yaml", "a.yaml/b"]),
        ("?.yaml", ["a.yaml"], [".yaml", "ab.yaml", "a/.yaml"]),
        ("**/*.yaml", ["a.yaml", "a/b.yaml", "a/b/c.yaml"], ["a.yml"]),
        ("a/**", ["a/b.yaml", "a/b/c.yaml"], ["b/a/c.yaml"]),
        ("a**", ["a.yaml", "a/b/c.yaml", "ab/c.yaml"], ["b/a.yaml"]),
        ("a/**/b/*.yaml", ["a/b/c.yaml", "a/x/b/b/c.yaml"], ["a/c.yaml", "a/b/x/c.yaml"]),
        ("[a].yaml", ["[a].yaml"], ["a.yaml"]),
    ],
)
def test_a_pattern_fits_whole_paths(glob: str, fitting: list[str], others: list[str]) -> None:
    assert [path for path in (*fitting, *others) if fits_path(path, glob)] == fitting


@pytest.mark.parametrize(
    ("glob", "hint"),
    [
        ("exports/**/*.yml", "did you mean 'exports/**/*.yaml'?"),
        ("exports", "did you mean 'exports/**/*.yaml'?"),
        ("exports/lakes.yaml", "did you mean 'exports/lake.yaml'?"),
        ("exports\\*.yaml", "did you mean 'exports/*.yaml'?"),
        ("lake.yaml", "did you mean 'exports/lake.yaml'?"),
        (".", "did you mean '**/*.yaml'?"),
        ("exports/.lake.yaml", ".lake.yaml is not read"),
        ("other/exports/*.yaml", "other is another workspace"),
    ],
)
def test_configuration_1_a_pattern_without_a_match_is_an_error_with_a_suggestion(
    tmp_path: Path, glob: str, hint: str
) -> None:
    names = ("projects", "exports/lake", "exports/.lake")
    files = {f"{name}.yaml": project(f"p{number}") for number, name in enumerate(names)}
    other = {"other/reconciler.yaml": VERSION, "other/exports/lake.yaml": project("other")}
    own = {"reconciler.yaml": resources("projects.yaml", glob)}
    (diagnostic,) = reported(tmp_path, {**files, **other, **own})
    assert (diagnostic.code, diagnostic.level) == ("no-files", Level.ERROR)
    assert str(diagnostic.at).startswith("reconciler.yaml:4:")
    assert f"'{glob}'" in diagnostic.message
    assert hint in (diagnostic.hint or "")


@pytest.mark.parametrize("name", ["lake.YAML", "lake.Yml"])
def test_configuration_1_dots_and_the_case_of_extensions_have_no_meaning(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, {"reconciler.yaml": VERSION, f"exports/{name}": project("lake")})
    assert keys(tmp_path) == {"lake"}
    for start in ("./exports/*", "exports/./*", "exports//*"):
        write(tmp_path, {"reconciler.yaml": resources(f"{start}{name[4:].lower()}")})
        assert keys(tmp_path) == {"lake"}


def test_configuration_1_patterns_of_an_older_commit_do_not_make_it_unreadable(
    tmp_path: Path,
) -> None:
    files = {"reconciler.yaml": resources("a.yaml", "gone/*.yaml"), "a.yaml": project("a")}
    git = Git.init(write(tmp_path, files))
    git.commit("with a mistake")
    source, parsed = source_of(git), ParsedFiles()
    found = load_at(source, environment="default", environ={}, parsed=parsed, trusted=Readable())
    assert {address.key for address in found.resources} == {"a"}


def test_experience_7_a_folder_with_a_workspace_file_is_another_workspace(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": VERSION,
        "a.yaml": project("a"),
        ".h.yaml": "x: 1\n",
        ".h/a.yaml": "x: 1\n",
        "p/reconciler.yaml": f"{VERSION}vars: {{x: 1}}\n",
        "p/b.yaml": "not: [valid\n",
        "p/q/c.yaml": project("a"),
    }
    assert reported(tmp_path, files) == []
    assert keys(tmp_path) == {"a"}
    git = Git.init(tmp_path)
    git.commit("two workspaces")
    names = ["a.yaml", "p/reconciler.yaml", "reconciler.yaml"]
    assert source_of(git).names() == FolderSource(git.folder).names() == names


def test_experience_7_files_of_other_tools_are_skipped_with_one_note(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": VERSION,
        "a.yaml": project("a"),
        "docker-compose.yml": "services:\n  web: {image: nginx}\nvolumes: {}\n",
        "k8s/all.yaml": "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Pod\n",
        "chart/templates/web.yaml": "{{- if .Values.web }}\nname: {{ .Values.name }}\n{{- end }}\n",
        "playbook.yaml": "- hosts: all\n  tasks: []\n",
        "hooks.yaml": "repos:\n  - repo: local\n    hooks: [{id: x, entry: no}]\n",
        "values.yaml": "{web: {a: 1}}\n",
        ".github/workflows/ci.yml": "on: push\n",
    }
    (note,) = reported(tmp_path, files, strict=True)
    assert (note.code, note.level) == ("skipped-files", Level.NOTE)
    assert note.message.startswith("6 files are not resource files: chart/templates/web.yaml, ")
    assert keys(tmp_path, LoadOptions(strict=True)) == {"a"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("batchexports:\n  a: {name: A}\n", "unknown-field"),
        ("projcts:\n  a: {name: A}\n", "unknown-field"),
        ('{"project": {"a": {}}}\n', "unknown-field"),
        ("x: 1\nprojects: {a: {name: A}}\n", "unknown-field"),
        ("  x: 1\n  projects: [\n", "bad-yaml"),
        ("- projects:\n    a: {name: A}\n", "not-a-mapping"),
        ("\ufeffproject: {}\n", "unknown-field"),
        ("<html>404: Not found</html>\n", "unknown-field"),
        ("batch_exprts:\n  a: [\n", "bad-yaml"),
        ("lake:\n\tname: Lake\n", "tab-indent"),
    ],
)
def test_experience_7_a_mistake_in_a_resource_file_is_not_skipped(
    tmp_path: Path, text: str, code: str
) -> None:
    found = told(tmp_path, text)
    assert code in codes(found)
    assert all(diagnostic.level is not Level.NOTE for diagnostic in found)


@pytest.mark.parametrize(
    ("settings", "text", "level"),
    [
        ("", "lake: [\n", Level.WARNING),
        ("resources: ['*.yml']\n", "lake: [\n", Level.ERROR),
        ("", "  batch_exprts: [\n", Level.WARNING),
        ("", "batch_exprts: [\n", Level.ERROR),
        ("resources: ['*.yml']\n", "lake: [{{ x }}\n", Level.NOTE),
        ("resources: ['*.yml']\n", "lake: !x 1\n", Level.NOTE),
    ],
)
def test_op3_a_broken_file_without_a_known_key_is_reported(
    tmp_path: Path, settings: str, text: str, level: Level
) -> None:
    files = {"reconciler.yaml": VERSION + settings, "a.yml": text}
    assert [item.level for item in reported(tmp_path, files)] == [level]


def test_the_only_workspace_file_has_another_name(tmp_path: Path) -> None:
    (found,) = reported(tmp_path, {"reconciler.yml": VERSION})
    assert (found.code, found.hint) == ("no-workspace", "rename reconciler.yml to reconciler.yaml")


def test_an_import_may_create_the_first_file_of_a_pattern(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": resources("exports/*.yaml")})
    with pytest.raises(InvalidConfiguration):
        load(tmp_path, environment=None, environ={})
    options = LoadOptions(lenient=frozenset({"no-files"}))
    loaded = load(tmp_path, environment=None, environ={}, options=options)
    assert [item.level for item in loaded.diagnostics] == [Level.WARNING]


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a workspace that commands without -C are run below of."""
    write(tmp_path, {"reconciler.yaml": VERSION, "exports/a.yaml": project("a")})
    monkeypatch.chdir(tmp_path / "exports")
    return tmp_path


@pytest.mark.usefixtures("below")
def test_experience_32_the_nearest_workspace_is_used_and_printed_once() -> None:
    ran = reconciler("validate")
    assert (ran.code, ran.err) == (0, "using ../reconciler.yaml\n")
    assert reconciler("validate", "--quiet").err == ""
    in_job = reconciler("validate", environ={"CI": "true"})
    assert in_job.code == 1
    assert "use -C ..: it has one" in in_job.out
    write(Path(), {"b.yaml": project("a")})
    assert reconciler("validate").out.startswith("exports/b.yaml:2:3: error: ")


def test_the_search_ends_at_the_root_of_a_repository(below: Path) -> None:
    (below / "exports/.git").mkdir()
    assert "reconciler init" in reconciler("validate").out


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners of files")
@pytest.mark.usefixtures("below")
def test_a_workspace_of_another_user_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    assert reconciler("validate").code == 1
