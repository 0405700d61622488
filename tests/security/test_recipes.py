"""The recipes in the documentation parse and pin what they use; tests/recipes has the others."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from reconciler.commands.program import cli
from tests.conftest import ROOT

PAGES = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
RECIPES = [PAGES[name] for name in ("security.md", "pipelines.md", "reliability.md", "git.md")]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"(?<![\w/.-])reconciler (?:plan|apply|validate) [^'#\n]*")


@pytest.mark.parametrize("page", PAGES)
def test_actions_and_images_are_pinned(page: str) -> None:
    uses = re.findall(r"\buses: (\S+)", PAGES[page])
    assert all(re.search(r"@[0-9a-f]{40}$", action) for action in uses)
    images = re.findall(r"(?:container|image): ?'?([\w.-]+/\S+)", PAGES[page])
    assert all("@sha256:" in image for image in images)


def test_the_commands_of_the_recipes_have_options_that_exist() -> None:
    commands = _COMMAND.findall(
        "".join(text for page in RECIPES for _, text in _BLOCK.findall(page))
    )
    assert commands
    for words in map(shlex.split, commands):
        command = cli.get_command(click.Context(cli), words[1])
        assert command is not None
        known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known
