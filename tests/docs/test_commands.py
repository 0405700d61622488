"""The commands of reconciler that pages show parse."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reconciler.commands.command import COMMON
from reconciler.commands.program import COMMANDS, command_of
from tests.conftest import ROOT

PAGES = sorted(
    path for folder in ("", "docs/**/", "examples/**/") for path in ROOT.glob(f"{folder}*.md")
)
_BLOCK = re.compile(
    r"^```(?:sh|console|yaml|groovy|dockerfile)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_COMMAND = re.compile(
    r"(?:^ *|[|&;(] *|: )(?:\$ )?(?:[A-Z_]+=\S* )*(?:\S*/)?reconciler (?P<words>.*)$",
    re.MULTILINE,
)
_PLACEHOLDER = re.compile(r"[A-Z_]+|.*[…$].*")


def commands_of(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a page, without pipes and redirections."""
    for block in _BLOCK.findall(text):
        lines = re.sub(r"\bsh '(.*?)'", r"\n\1\n", block.replace("\\\n", " "))
        for match in _COMMAND.finditer(lines):
            lexer = shlex.shlex(match["words"], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = []
            for word in lexer:
                if re.fullmatch(r"[|&;()<>]+", word):
                    break
                words.append(word)
            yield words


def problem_of(words: list[str]) -> str | None:
    """Return what is wrong with the words of a command, None if nothing is."""
    common = {name for option in COMMON for name in option.opts}
    while words and words[0] in common:
        words.pop(0)
    if not words or words[0] in ("--help", "--version", "-h") or _PLACEHOLDER.fullmatch(words[0]):
        return None
    if words[0] not in COMMANDS:
        return f"unknown command {words[0]!r}"
    command = command_of(words[0])
    try:
        values, _, _ = command.make_parser(click.Context(command)).parse_args(words[1:])
    except click.UsageError as error:
        return error.format_message()
    for param in command.params:
        if isinstance(param.type, click.Choice) and isinstance(param, click.Option):
            value = values.get(param.name, [])
            for text in value if isinstance(value, list) else [value]:
                known = {str(choice).lower() for choice in param.type.choices}
                if str(text).lower() not in known and not _PLACEHOLDER.fullmatch(str(text)):
                    return f"{text!r} is not one of {', '.join(map(str, param.type.choices))}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_the_page_parses(page: Path) -> None:
    commands = list(commands_of(page.read_text(encoding="utf-8")))
    assert [(words, problem) for words in commands if (problem := problem_of([*words]))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_actions_and_images_of_the_page_are_pinned(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert all(re.search(r"@[0-9a-f]{40}$", it) for it in re.findall(r"\buses: (\S+)", text))
    images = re.findall(r"(?:container|image): ?'?([\w.-]+/\S+)", text)
    assert all("@sha256:" in image for image in images)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("A=1 .venv/bin/reconciler -q plan --out plan.json | tail -1", None),
        ("git push && reconciler plna", "unknown command 'plna'"),
        ("$ reconciler plan --ot x", "No such option"),
        ("- run: reconciler plan --format jsn > x", "'jsn' is not one of"),
    ],
)
def test_wrong_commands_are_reported(line: str, problem: str | None) -> None:
    ((words),) = commands_of(f"```sh\n{line}\n```\n")
    assert str(problem_of(words)).startswith(str(problem))
