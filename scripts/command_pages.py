"""The pages of docs/commands/, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from posixpath import relpath

import click

from reconciler.cli.command import COMMON, CONNECTION, Command, GroupedOption
from reconciler.cli.program import SECTIONS, command_of

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
_CONNECTED = """\

## Connection

These options belong to every command that calls the service.

"""
_CONNECTION = "README.md#connection"
_WHEN = """\

## Which command when

| You want to | Command | It compares | Changes |
|---|---|---|---|
| see what `apply` would do | [`plan`](plan.md) | files with live state | nothing |
| see what changed in the service | [`drift`](drift.md) | live state with the git base | nothing |
| keep what changed in the service | [`pull`](pull.md) | live state with the git base | files |
| undo what changed in the service | [`apply`](apply.md) | files with live state | live state |
| manage an object that no file declares | [`import`](import.md) | nothing | files |
| see how two environments differ | [`compare`](compare.md) | A with B | nothing |
| bring a tested change to production | [`promote`](promote.md) | A with B | files of B |
| check files without a network | [`validate`](validate.md) | nothing | nothing |
| know whether credentials work | [`preflight`](preflight.md) | nothing | nothing |
| know why the tool does not work here | [`doctor`](doctor.md) | nothing | nothing |
| know whether exports run | [`status`](status.md) | nothing | nothing |
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
    return "".join([*parts, _WHEN, _EVERY, _table(_common()), _CONNECTED, _table(_connection())])


def _connection() -> Sequence[tuple[str, str]]:
    context = click.Context(command_of("plan"))
    options = [item for item in context.command.params if isinstance(item, GroupedOption)]
    connection = [item.get_help_record(context) for item in options if item.group == CONNECTION]
    return [record for record in connection if record is not None]


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
            if heading == CONNECTION:
                yield f"\n{level} {heading}\n\nThe [options of the connection]({_CONNECTION}).\n"
            elif own:
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
