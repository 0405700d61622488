"""The pages of docs/commands/, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from posixpath import relpath

import click

from reconciler.cli.command import COMMON, Command
from reconciler.cli.group import SECTIONS, command_of

_ROOT = Path(__file__).resolve().parents[1]
_FOLDER = "docs/commands"
_NOTE = "<!-- Generated from the command by scripts/reference.py: change it there. -->\n"
_INDEX = """\

# Commands

The options, arguments and examples of every command, as in `reconciler help COMMAND`.
"""
_EVERY = """\

## Options of every command

They can be placed before or after the name of the command.

"""
_CODE = re.compile(r"(`[^`]*`)")


def command_pages() -> Mapping[str, str]:
    """Return the text of the index and of the page of every command, by path."""
    names = [name for section in SECTIONS.values() for name in section]
    pages = {f"{_FOLDER}/{name}.md": _page(name, command_of(name)) for name in names}
    return {f"{_FOLDER}/README.md": _index(), **pages}


def _index() -> str:
    parts = [_NOTE, _INDEX]
    for section, commands in SECTIONS.items():
        parts.append(f"\n## {section}\n\n")
        parts += (f"- [{name}]({name}.md): {text}\n" for name, text in commands.items())
    return "".join([*parts, _EVERY, _table(_common())])


def _common() -> list[tuple[str, str]]:
    context = click.Context(click.Command("reconciler"))
    records = [option.get_help_record(context) for option in COMMON]
    return [record for record in records if record is not None]


def _page(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"reconciler {name}")
    return f"{_NOTE}\n# {name}\n\n{''.join(_described(context, '##'))}"


def _described(context: click.Context, level: str) -> Iterator[str]:
    """Yield the usage, the help, the options and the examples of a command and those below it."""
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```\n\n{_prose(cleandoc(command.help or ''))}\n"
    if isinstance(command, Command):
        common = {names for names, _ in _common()}
        for heading, records in command.records(context).items():
            own = [item for item in records if item[0] not in common and "--help" not in item[0]]
            if own:
                yield f"\n{level} {heading}\n\n{_table(own)}"
        lines = "\n\n".join(f"# {text}\nreconciler {line}" for line, text in command.examples)
        yield f"\n{level} Examples\n\n```sh\n{lines}\n```\n"
        yield f"\nMore: [{_title(command.page)}]({relpath(command.page, _FOLDER)})\n"
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield f"\n{level} {name}\n\n"
            yield from _described(click.Context(below, context, name), f"{level}#")


def _table(records: Iterable[tuple[str, str]]) -> str:
    rows = (
        f"| `{names.replace('|', chr(92) + '|')}` | {_prose(' '.join(text.split()))} |\n"
        for names, text in records
    )
    return f"| option | |\n|---|---|\n{''.join(rows)}"


def _prose(text: str) -> str:
    """Return the text of a help as Markdown: characters with a meaning are escaped."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"[*<|\[\]]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def _title(page: str) -> str:
    text = (_ROOT / page).read_text(encoding="utf-8")
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))
