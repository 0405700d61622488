"""The recipe of a host in a repository: filled in for the workspace, and never overwritten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.commands.init import RECIPES, InitOptions, write_recipe
from reconciler.errors import BadUsage
from reconciler.version import REPOSITORY
from tests.recipes.scripts import documents
from tests.support.cli import reconciler, write
from tests.support.git import Git


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git.init(tmp_path / "repo")


@pytest.mark.parametrize("host", RECIPES)
def test_every_recipe_is_filled_in(git: Git, host: str) -> None:
    folder = git.folder / "data/web pipelines"
    folder.mkdir(parents=True)
    done = write_recipe(host, InitOptions(folder, "staging"))
    assert (set(done.written), done.kept) == (set(RECIPES[host]), ())
    for name in done.written:
        assert not re.search("@[A-Z_]+@", (git.folder / name).read_text())
    if host == "github":
        (apply,) = documents(git.folder / ".github/workflows/reconciler-apply.yml")
        assert apply["env"]["WORKSPACE"] == "data/web pipelines"
        assert (apply["env"]["ENVIRONMENT"], apply["env"]["SOURCE"]) == ("staging", REPOSITORY)
        assert apply["jobs"]["apply"]["environment"] == "staging"


def test_the_option_creates_a_workspace_or_uses_the_existing_one(git: Git) -> None:
    first = reconciler("init", "-C", git.folder / "w", "--ci", "github")
    assert first.code == 0, first.err
    assert {"+ reconciler.yaml", "+ .github/workflows/reconciler-apply.yml"} <= set(
        first.out.splitlines()
    )
    again = reconciler("init", "-C", git.folder / "w", "--ci", "github")
    assert (again.code, again.out) == (0, "")
    assert "kept .github/workflows/reconciler-apply.yml" in again.err


def test_existing_files_are_kept_and_an_unknown_environment_gets_none(git: Git) -> None:
    files = {
        ".gitlab-ci.yml": "mine: {}\n",
        "reconciler.yaml": "version: 1\nenvironments: {production: {}}\n",
    }
    write(git.folder, files)
    # Ecosystem 1: without a default branch it is the current one.
    git.run("symbolic-ref", "HEAD", "refs/heads/master")
    words = ("init", "-C", git.folder, "--ci", "gitlab", "-e")
    refused = reconciler(*words, "prod")
    assert (refused.code, "unknown environment 'prod'" in refused.err) == (64, True)
    assert not (git.folder / ".gitlab").exists()
    done = write_recipe("gitlab", InitOptions(git.folder, "production"))
    written = (".gitlab/reconciler.yml", ".gitlab/reconciler-component.yml")
    assert (done.written, done.kept) == (written, (".gitlab-ci.yml",))
    assert (git.folder / ".gitlab-ci.yml").read_text() == files[".gitlab-ci.yml"]
    write_recipe("azure", InitOptions(git.folder, "production"))
    text = (git.folder / ".azure-pipelines/reconciler.yml").read_text()
    assert "refs/remotes/origin/master" in text
    assert not re.search(r"\bmain\b", text)


def test_a_second_environment_gets_workflows_of_its_own(git: Git) -> None:
    for team in ("data", "shop"):
        (git.folder / team).mkdir()
    cases = [
        ("shop", "production", ""),
        ("shop", "staging", "-staging"),
        ("data", "staging", "-data-staging"),
    ]
    for team, environment, suffix in cases:
        done = write_recipe("github", InitOptions(git.folder / team, environment))
        assert f".github/workflows/reconciler-apply{suffix}.yml" in done.written
        again = write_recipe("github", InitOptions(git.folder / team, environment))
        assert (again.written, set(again.kept)) == ((), set(done.written))
    folder = git.folder / ".github/workflows"
    (plan,) = documents(folder / "reconciler-plan-data-staging.yml")
    (comment,) = documents(folder / "reconciler-comment-data-staging.yml")
    # YAML 1.1 reads the key `on` as a boolean.
    assert comment[True]["workflow_run"]["workflows"] == [plan["name"]]
    names = [documents(path)[0]["name"] for path in folder.iterdir()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("folder", "environment", "base_url", "branch"),
    [
        ("${{ secrets.KEY }}", "production", None, "main"),
        ("w", 'a"\n- b', None, "main"),
        ("w", "production", "https://x.example/${{ secrets.A }}", "main"),
        ("w", "production", None, "a}}b"),
    ],
)
def test_texts_with_syntax_of_a_pipeline_are_refused(
    git: Git, folder: str, environment: str, base_url: str | None, branch: str
) -> None:
    (git.folder / folder).mkdir()
    git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    with pytest.raises(BadUsage):
        write_recipe("github", InitOptions(git.folder / folder, environment, base_url))
    assert not (git.folder / ".github").exists()


def test_the_address_may_come_from_a_variable_or_stay_to_be_set(git: Git) -> None:
    text = "version: 1\nenvironments: {a: {base_url: '${env:X}'}, b: {}}\n"
    write(git.folder, {"reconciler.yaml": text})
    words = ("init", "-C", git.folder, "--ci", "github", "-e")
    unknown = reconciler(*words, "a")
    assert "the address of the service, if it is not https://eu.posthog.com\n" in unknown.err
    known = reconciler(*words, "b", environ={"RECONCILER_BASE_URL": "https://us.posthog.com/"})
    assert "the address" not in known.err
    (apply,) = documents(git.folder / ".github/workflows/reconciler-apply-b.yml")
    assert apply["env"]["RECONCILER_BASE_URL"] == "https://us.posthog.com"
