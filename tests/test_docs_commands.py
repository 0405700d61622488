"""The commands and messages in the documentation exist."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import click
import pytest

from reconciler.commands.command import COMMON
from reconciler.commands.program import COMMANDS, command_of
from tests.conftest import ROOT

PAGES = sorted(
    chain.from_iterable(ROOT.glob(f"{folder}*.md") for folder in ("", "docs/**/", "examples/**/"))
)
SUBCOMMANDS: Mapping[str, frozenset[str]] = {
    "git": frozenset(
        [
            "add",
            "apply",
            "branch",
            "checkout",
            "clone",
            "commit",
            "config",
            "diff",
            "fetch",
            "init",
            "log",
            "ls-remote",
            "merge-base",
            "mv",
            "push",
            "remote",
            "rev-parse",
            "show",
            "status",
            "switch",
            "tag",
            "update-ref",
            "worktree",
        ]
    ),
    "docker": frozenset(
        ["build", "buildx", "compose", "exec", "inspect", "load", "pull", "push", "run", "tag"]
    ),
    "kubectl": frozenset(
        ["apply", "create", "delete", "describe", "diff", "get", "kustomize", "logs"]
    ),
    "pipx": frozenset(["install", "inject", "run", "uninstall", "upgrade"]),
}
"""Sub-commands that pages may show."""

_BLOCK = re.compile(
    r"^```(sh|console|yaml|groovy|dockerfile)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_STEP = re.compile(
    r"^\s*(?:- )?(?:run: |sh ')?((?:reconciler|git|docker|kubectl|pipx) .*)$", re.MULTILINE
)
_PLACEHOLDER = re.compile(r"[A-Z_]+|.*[…$].*")
_OPERATORS = re.compile(r"[|&;()]+")


def shell_lines(language: str, block: str) -> Iterator[str]:
    """Yield the commands of a block that a shell runs, those of several lines as one."""
    text = block.replace("\\\n", " ")
    if language == "console":
        text = "\n".join(line.removeprefix("$ ") for line in _typed(text.splitlines()))
    elif language != "sh":
        text = "\n".join(_STEP.findall(text))
    pending = ""
    for line in text.splitlines():
        pending += line
        if _is_complete(pending):
            yield pending
            pending = ""
        else:
            pending += "\n"
    assert not pending, f"a quotation is not closed: {pending}"


def _typed(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines after a prompt, and those that end their quotations."""
    typed = ""
    for line in lines:
        if line.startswith("$ ") or not _is_complete(typed):
            typed = line if line.startswith("$ ") else f"{typed}\n{line}"
            yield line


def _is_complete(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return False
    return True


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of every simple command of a line, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    redirected = False
    for token in lexer:
        if _OPERATORS.fullmatch(token):
            yield words
            words = []
        elif redirected or re.fullmatch(r"[<>&]+", token):
            redirected = not redirected
        else:
            words.append(token)
    yield words


def problem_of(words: Sequence[str]) -> str | None:
    """Return what is wrong with a command that a page shows, None if nothing is known to be."""
    words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    program = Path(words[0]).name if words else ""
    if program == "reconciler":
        return _problem_of_reconciler(list(words[1:]))
    known = SUBCOMMANDS.get(program)
    names = [word for word in words[1:] if not word.startswith("-")]
    if known is not None and not known & {*names[:2]}:
        return f"unknown command of {program}"
    return None


def _problem_of_reconciler(words: list[str]) -> str | None:
    common = {name for option in COMMON for name in option.opts}
    while words and words[0] in common:
        words.pop(0)
    if not words or words[0] in ("--help", "--version", "-h") or _PLACEHOLDER.fullmatch(words[0]):
        return None
    if words[0] not in COMMANDS:
        return f"unknown command {words[0]!r}"
    command = command_of(words[0])
    context = click.Context(command, info_name=words[0])
    try:
        values, _, _ = command.make_parser(context).parse_args(words[1:])
    except click.UsageError as error:
        return error.format_message()
    choices = {
        param.name: param.type.choices
        for param in command.params
        if isinstance(param.type, click.Choice) and isinstance(param, click.Option)
    }
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            allowed = choices.get(name, (text,))
            known = {str(choice).lower() for choice in allowed}
            if str(text).lower() not in known and not _PLACEHOLDER.fullmatch(str(text)):
                return f"{text!r} is not one of {', '.join(map(str, allowed))}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_the_page_parses(page: Path) -> None:
    problems = [
        f"{line}: {problem}"
        for language, block in _BLOCK.findall(page.read_text(encoding="utf-8"))
        for line in shell_lines(language, block)
        for words in simple_commands(line)
        if (problem := problem_of(words)) is not None
    ]
    assert not problems


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("reconciler plan --out plan.json | tail -1", None),
        ("A=1 .venv/bin/reconciler -q apply plan.json && git push origin HEAD", None),
        ("reconciler plna", "unknown command 'plna'"),
        ("reconciler plan --ot x", "No such option"),
        ("reconciler plan --format jsn", "'jsn' is not one of"),
        ("git psuh", "unknown command of git"),
        ("kubectl -n jobs apply -k recipes", None),
        ("docker rn image", "unknown command of docker"),
    ],
)
def test_wrong_commands_are_reported(line: str, expected: str | None) -> None:
    problems = [problem for words in simple_commands(line) if (problem := problem_of(words))]
    assert (problems[0] if problems else None) == expected or (
        expected is not None and problems[0].startswith(expected)
    )


@cache
def _texts() -> str:
    """Return every text of the package, the variable parts of messages as …."""
    return "\n".join(
        text
        for path in (ROOT / "reconciler").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (text := _text_of(node)) is not None
    )


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        return "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def test_every_message_of_troubleshooting_exists() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (`.*)$", page, re.MULTILINE)
    quoted = [message for heading in headings for message in re.findall(r"`([^`]+)`", heading)]
    # Quotes around names cannot be in the code of a heading.
    texts = _texts().replace("`", "")
    missing = [text for text in quoted if not all(part in texts for part in _fixed(text))]
    assert quoted
    assert not missing


def _fixed(message: str) -> list[str]:
    return [part.strip() for part in message.split("…") if part.strip()]
