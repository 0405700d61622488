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

WORKSPACE = "version: 1\n"
COMPOSE = "services:\n  web: {image: nginx}\nvolumes: {}\n"
MANIFESTS = "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Pod\n"
TEMPLATE = "{{- if .Values.web }}\nname: {{ .Values.name }}\n{{- end }}\n"
PLAYBOOK = "- hosts: all\n  tasks: []\n"
HOOKS = "repos:\n  - repo: local\n    hooks: [{id: x, entry: no}]\n"


def project(key: str) -> str:
    return f"projects:\n  {key}: {{name: {key.upper()}}}\n"


def reported(folder: Path, files: Mapping[str, str], *, strict: bool = False) -> list[Diagnostic]:
    write(folder, dict(files))
    return list(load_all(folder, environ={}, strict=strict))


def source_of(git: Git, ref: str = "HEAD") -> GitSource:
    repository = Repository.containing(git.folder)
    assert repository is not None
    return GitSource(Objects(repository), git.head(ref))


def only(diagnostics: list[Diagnostic], code: str) -> list[Diagnostic]:
    assert {diagnostic.code for diagnostic in diagnostics} <= {code}, diagnostics
    return diagnostics


def keys(folder: Path) -> set[str]:
    loaded = load(folder, environment=None, environ={})
    return {address.key for address in loaded.desired.resources}


@pytest.mark.parametrize(
    ("glob", "fitting", "others"),
    [
        ("*.yaml", ["a.yaml", ".yaml"], ["a/b.yaml", "a.yaml/b"]),
        ("?.yaml", ["a.yaml"], [".yaml", "ab.yaml", "a/.yaml"]),
        ("**/*.yaml", ["a.yaml", "a/b.yaml", "a/b/c.yaml"], ["a.yml"]),
        ("**.yaml", ["a.yaml", "a/b.yaml"], ["a.yml"]),
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
        ("export/*.yaml", "did you mean 'exports/*.yaml'?"),
        ("exports/**/*.yml", "did you mean 'exports/**/*.yaml'?"),
        ("exports", "did you mean 'exports/**/*.yaml'?"),
        ("exports/", "did you mean 'exports/**/*.yaml'?"),
        ("exports/lakes.yaml", "did you mean 'exports/lake.yaml'?"),
        ("exports\\*.yaml", "did you mean 'exports/*.yaml'?"),
        ("lake.yaml", "did you mean 'exports/lake.yaml'?"),
        (".", "did you mean '**/*.yaml'?"),
        (".hidden/*.yaml", ".hidden is not read"),
        ("exports/.lake.yaml", ".lake.yaml is not read"),
        ("node_modules/*.yaml", "node_modules is not read"),
        ("other/exports/*.yaml", "other is another workspace"),
        ("zzz/*.yaml", "patterns are relative to the folder of reconciler.yaml"),
    ],
)
def test_configuration_1_a_pattern_without_a_match_is_an_error_with_a_suggestion(
    tmp_path: Path, glob: str, hint: str
) -> None:
    files = {
        "reconciler.yaml": f"{WORKSPACE}resources:\n  - projects.yaml\n  - '{glob}'\n",
        "projects.yaml": project("web"),
        "exports/lake.yaml": project("lake"),
        "exports/.lake.yaml": project("hidden"),
        ".hidden/lake.yaml": project("hidden"),
        "node_modules/lake.yaml": project("vendored"),
        "other/reconciler.yaml": WORKSPACE,
        "other/exports/lake.yaml": project("other"),
    }
    (diagnostic,) = only(reported(tmp_path, files), "no-files")
    assert diagnostic.level is Level.ERROR
    assert diagnostic.at is not None
    assert (diagnostic.at.file, diagnostic.at.line) == ("reconciler.yaml", 4)
    assert repr(glob)[1:-1].replace("\\\\", "\\") in diagnostic.message
    assert diagnostic.hint is not None
    assert hint in diagnostic.hint


@pytest.mark.parametrize(
    "glob", ["./exports/*.yaml", "exports/./*.yaml", "exports//*.yaml", "exports/*.YAML"]
)
@pytest.mark.parametrize("name", ["lake.yaml", "lake.YAML", "lake.Yaml"])
def test_configuration_1_dots_and_the_case_of_extensions_have_no_meaning(
    tmp_path: Path, glob: str, name: str
) -> None:
    workspace = f"{WORKSPACE}resources: ['{glob}']\n"
    write(tmp_path, {"reconciler.yaml": workspace, f"exports/{name}": project("lake")})
    assert keys(tmp_path) == {"lake"}


def test_configuration_1_the_default_selects_extensions_in_upper_case(tmp_path: Path) -> None:
    files = {"reconciler.yaml": WORKSPACE, "a.YAML": project("a"), "b.Yml": project("b")}
    write(tmp_path, files)
    assert keys(tmp_path) == {"a", "b"}


def test_configuration_1_patterns_of_an_older_commit_do_not_make_it_unreadable(
    tmp_path: Path,
) -> None:
    git = Git.init(tmp_path)
    write(git.folder, {"reconciler.yaml": f"{WORKSPACE}resources: [a.yaml, gone/*.yaml]\n"})
    write(git.folder, {"a.yaml": project("a")})
    git.commit("with a mistake")
    write(git.folder, {"reconciler.yaml": f"{WORKSPACE}resources: [a.yaml]\n"})
    git.commit("corrected")
    desired = load_at(
        source_of(git, "HEAD~1"),
        environment="default",
        environ={},
        parsed=ParsedFiles(),
        trusted=Readable(),
    )
    assert {address.key for address in desired.resources} == {"a"}


def test_experience_7_a_folder_with_a_workspace_file_is_another_workspace(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": WORKSPACE,
        "a.yaml": project("a"),
        "pipelines/reconciler.yaml": f"{WORKSPACE}vars: {{x: 1}}\n",
        "pipelines/b.yaml": "not: [valid\n",
        "pipelines/deep/c.yaml": project("a"),
    }
    assert reported(tmp_path, files) == []
    assert keys(tmp_path) == {"a"}


def test_experience_7_the_same_holds_at_a_commit(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    write(git.folder, {"reconciler.yaml": WORKSPACE, "a.yaml": project("a"), ".h.yaml": "x: 1\n"})
    write(git.folder, {"p/reconciler.yaml": WORKSPACE, "p/q/b.yaml": "not: [valid\n"})
    git.commit("two workspaces")
    names = ["a.yaml", "p/reconciler.yaml", "reconciler.yaml"]
    assert source_of(git).names() == FolderSource(git.folder).names() == names


def test_experience_7_files_of_other_tools_are_skipped_with_one_note(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": WORKSPACE,
        "a.yaml": project("a"),
        "docker-compose.yml": COMPOSE,
        "k8s/all.yaml": MANIFESTS,
        "chart/templates/web.yaml": TEMPLATE,
        "playbook.yaml": PLAYBOOK,
        "hooks.yaml": HOOKS,
        "values.yaml": "{web: {a: 1}}\n",
        ".github/workflows/ci.yml": "on: push\n",
        ".pre-commit-config.yaml": HOOKS,
    }
    (note,) = only(reported(tmp_path, files, strict=True), "skipped-files")
    assert note.level is Level.NOTE
    assert note.message.startswith("6 files are not resource files: chart/templates/web.yaml, ")
    assert note.message.endswith(", playbook.yaml and 1 more")
    loaded = load(tmp_path, environment=None, environ={}, options=LoadOptions(strict=True))
    assert len(loaded.skipped) == 6
    assert {address.key for address in loaded.desired.resources} == {"a"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("batch_export:\n  a: {name: A}\n", "unknown-field"),
        ("batchexports:\n  a: {name: A}\n", "unknown-field"),
        ("Batch-Exports:\n  a: {name: A}\n", "unknown-field"),
        ("exports:\n  a: {name: A}\n", "unknown-field"),
        ("project:\n  a: {name: A}\n", "unknown-field"),
        ("projcts:\n  a: {name: A}\n", "unknown-field"),
        ('{"project": {"a": {}}}\n', "unknown-field"),
        ("x: 1\nprojects: {a: {name: A}}\n", "unknown-field"),
        ("x: 1\nprojects: [\n", "bad-yaml"),
        ("  x: 1\n  projects: [\n", "bad-yaml"),
        ("- projects:\n    a: {name: A}\n", "not-a-mapping"),
        ("\ufeffproject: {}\n", "unknown-field"),
        ("projects: {a: {name: A}}\n---\nprojects: {}\n", "several-documents"),
        ("just text\n", "not-a-mapping"),
        ("<html>404: Not found</html>\n", "unknown-field"),
    ],
)
def test_experience_7_a_mistake_in_a_resource_file_is_not_skipped(
    tmp_path: Path, text: str, code: str
) -> None:
    found = reported(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": text})
    assert code in {diagnostic.code for diagnostic in found}
    assert all(diagnostic.level is not Level.NOTE for diagnostic in found)


def test_comments_and_empty_files_are_no_files_of_other_tools(tmp_path: Path) -> None:
    files = {"reconciler.yaml": WORKSPACE, "a.yaml": "# later: projects\n", "b.yaml": "---\n"}
    found = reported(tmp_path, files)
    assert [(item.code, item.level) for item in found] == [("empty-file", Level.WARNING)]


def test_the_only_workspace_file_has_another_name(tmp_path: Path) -> None:
    (diagnostic,) = only(reported(tmp_path, {"reconciler.yml": WORKSPACE}), "no-workspace")
    assert diagnostic.hint == "rename reconciler.yml to reconciler.yaml"


def test_hidden_files_are_not_read(tmp_path: Path) -> None:
    files = {"reconciler.yaml": WORKSPACE, ".hidden.yaml": "x: 1\n", ".h/a.yaml": "x: 1\n"}
    assert reported(tmp_path, files) == []


def test_an_import_may_create_the_first_file_of_a_pattern(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": f"{WORKSPACE}resources: ['exports/*.yaml']\n"})
    with pytest.raises(InvalidConfiguration):
        load(tmp_path, environment=None, environ={})
    lenient = frozenset({"no-files"})
    loaded = load(tmp_path, environment=None, environ={}, options=LoadOptions(lenient=lenient))
    assert [item.level for item in loaded.diagnostics] == [Level.WARNING]


class TestTheNearestWorkspace:
    """Commands without -C, run in a folder below a workspace."""

    @pytest.fixture
    def below(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        write(tmp_path, {"reconciler.yaml": WORKSPACE, "exports/a.yaml": project("a")})
        monkeypatch.chdir(tmp_path / "exports")
        return tmp_path

    @pytest.mark.usefixtures("below")
    def test_experience_32_it_is_used_and_printed_once(self) -> None:
        ran = reconciler("validate")
        assert (ran.code, ran.out) == (0, "The configuration is valid.\n")
        assert ran.err == "using ../reconciler.yaml\n"
        assert reconciler("validate", "--quiet").err == ""

    @pytest.mark.usefixtures("below")
    def test_experience_32_names_of_files_stay_relative_to_the_workspace(self) -> None:
        write(Path(), {"b.yaml": project("a")})
        ran = reconciler("validate")
        assert ran.code == 1
        assert ran.out.startswith("exports/b.yaml:2:3: error: ")

    @pytest.mark.usefixtures("below")
    def test_experience_32_a_ci_job_is_told_where_it_is(self) -> None:
        ran = reconciler("validate", environ={"CI": "true"})
        assert ran.code == 1
        assert "no reconciler.yaml in this folder" in ran.out
        assert "use -C ..: it has one" in ran.out

    def test_the_search_ends_at_the_root_of_a_repository(self, below: Path) -> None:
        (below / "exports/.git").mkdir()
        ran = reconciler("validate")
        assert ran.code == 1
        assert "reconciler init" in ran.out

    @pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners of files")
    def test_a_workspace_of_another_user_does_not_count(
        self, below: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert below.exists()
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
        assert reconciler("validate").code == 1
