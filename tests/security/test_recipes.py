"""The recipes in the documentation parse, pin what they use, and keep the writing key apart."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click
import pytest
import yaml

from reconciler.cli import cli
from tests.conftest import ROOT

PAGES = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
SECURITY = PAGES["security.md"]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"(?<![\w/.-])reconciler (?:plan|apply|validate) [^'#\n]*")


def _recipe(first_line: str) -> Any:
    """Return the YAML of the block of a page whose first line contains a text."""
    (text,) = [
        text for _, text in _BLOCK.findall(SECURITY) if first_line in text.partition("\n")[0]
    ]
    return yaml.safe_load(text)


@pytest.mark.parametrize("page", PAGES)
def test_actions_and_images_are_pinned(page: str) -> None:
    uses = re.findall(r"uses: (\S+)", PAGES[page])
    assert all(re.search(r"@[0-9a-f]{40}$", action) for action in uses)
    images = re.findall(r"(?:container|image): ?'?([\w.-]+/\S+)", PAGES[page])
    assert all("@sha256:" in image for image in images)


def test_the_commands_of_the_recipes_have_options_that_exist() -> None:
    commands = _COMMAND.findall("".join(text for _, text in _BLOCK.findall(SECURITY)))
    assert len(commands) > 8
    for words in map(shlex.split, commands):
        command = cli.get_command(click.Context(cli), words[1])
        assert command is not None
        known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known


def test_jobs_on_github_are_separated() -> None:
    plan, apply = _recipe("workflows/plan.yml"), _recipe("workflows/apply.yml")
    # YAML 1.1 reads the key `on` as true.
    assert list(plan[True]) == ["pull_request"]
    assert apply[True]["push"]["branches"] == ["main"]
    assert plan["permissions"] == apply["permissions"] == {"contents": "read"}
    assert "head.repo.full_name == github.repository" in plan["jobs"]["plan"]["if"]
    assert apply["jobs"]["apply"]["environment"] == "production"
    assert "cancel-in-progress" not in apply["concurrency"]
    assert _keys(plan) == _keys(apply["jobs"]["plan"]) == {"POSTHOG_READ_KEY"}
    assert _keys(apply["jobs"]["apply"]) == {"POSTHOG_WRITE_KEY"}
    for job in (*plan["jobs"].values(), *apply["jobs"].values()):
        checkout = job["steps"][0]
        assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


def test_jobs_on_gitlab_and_azure_are_separated() -> None:
    gitlab = _recipe(".gitlab-ci.yml")
    apply = gitlab["apply"]
    assert (apply["environment"], apply["resource_group"]) == ("production", "production")
    assert "CI_DEFAULT_BRANCH" in apply["rules"][0]["if"]
    assert _keys(gitlab["plan"]) == _keys(gitlab["plan-main"]) == {"POSTHOG_READ_KEY"}
    assert _keys(apply) == {"POSTHOG_WRITE_KEY"}
    plan, apply = _recipe("azure-pipelines.yml")["stages"]
    assert "'refs/heads/main'" in apply["condition"]
    assert (_keys(plan), _keys(apply)) == ({"POSTHOG_READ_KEY"}, {"POSTHOG_WRITE_KEY"})


def _keys(part: Any) -> set[str]:
    return set(re.findall(r"POSTHOG_\w+_KEY", repr(part)))
