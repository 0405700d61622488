"""The page docs/commands.md, from the commands themselves."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from pathlib import Path
from posixpath import relpath
from typing import cast

import click

from reconciler.commands.command import COMMON, Command
from reconciler.commands.program import SECTIONS, command_of

_ROOT = Path(__file__).resolve().parents[1]
_PAGE = "docs/commands.md"
_NOTE = "<!-- Generated from the command by scripts/reference.py: change it there. -->\n"
_HEAD = """\

# Commands

Options, arguments and examples of every command, as in `reconciler COMMAND --help`.
"""
_EVERY = (
    "\n## Options of every command\n\nThey can stand before or after the name of the command.\n\n"
)
_SHARED = "\n## Shared options\n\nEach command names those that it takes.\n"
_WHEN = """\

## Which command when

- see what `apply` would do: [`plan`](#plan)
- see what changed in the service since the apply: [`drift`](#drift)
- keep that in the files: `drift --write`; undo it: [`apply`](#apply)
- manage an object that no file declares: [`import`](#import)
- see how two environments differ: [`compare`](#compare)
- give one the values of the other: [`promote`](#promote)
- check files without a network: [`validate`](#validate)
- know whether credentials work: [`doctor NAME`](#doctor)
- know whether exports run: [`status`](#status)
- know why the tool does not work here: [`doctor`](#doctor)

`apply`, `pause`, `unpause`, `backfill` and `projects reset-token` change the service. `init`,
`import`, `drift --write`, `mv` and `promote` change files. `doctor NAME` lets the service connect
to destinations.
"""
_OWN = "Options"
_FEW = 2
"""The most commands of which each lists an option of its own that they share."""
_CODE = re.compile(r"(`[^`]*`)")


def command_pages() -> Mapping[str, str]:
    """Return the text of the page, by its path."""
    parts = [_NOTE, _HEAD, _WHEN]
    for section, commands in SECTIONS.items():
        parts.append(f"\n## {section}\n")
        for name in commands:
            parts += [f"\n### {name}\n\n", *_described(name)]
    parts += [_EVERY, _listed(_common()), _SHARED]
    for heading, records in _shared().items():
        parts.append(f"\n### {_title_of(heading)} options\n\n{_listed(records.items())}")
    return {_PAGE: "".join(parts)}


@cache
def _shared() -> Mapping[str, Mapping[str, str]]:
    """Return the descriptions of options that several commands have, by heading and names.

    Where two options have the same names, it is that of more commands.
    """
    counts = Counter(
        (heading, *record)
        for commands in SECTIONS.values()
        for name in commands
        for heading, records in _records(_command(name)).items()
        for record in records
    )
    shared: dict[str, dict[str, str]] = defaultdict(dict)
    for (heading, names, text), count in counts.most_common():
        if count > (1 if heading != _OWN else _FEW):
            shared[heading].setdefault(names, text)
    return shared


def _command(name: str) -> Command:
    return cast("Command", command_of(name))


def _records(command: Command) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the options of a command by heading, without those of every command."""
    common = {*(names for names, _ in _common()), "-h, --help"}
    return {
        heading: [record for record in records if record[0] not in common]
        for heading, records in command.records(click.Context(command)).items()
    }


def _common() -> list[tuple[str, str]]:
    context = click.Context(click.Command("reconciler"))
    return [record for option in COMMON if (record := option.get_help_record(context))]


def _described(name: str) -> Iterator[str]:
    """Yield the usage, the help, the options and the examples of a command."""
    command = _command(name)
    context = click.Context(command, info_name=f"reconciler {name}")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"`{usage}`\n\n{_prose(cleandoc(command.help or ''))}\n"
    own: list[tuple[str, str]] = []
    shared: list[str] = []
    for heading, records in _records(command).items():
        once = _shared().get(heading, {})
        own += [record for record in records if record not in once.items()]
        if taken := [_short(names) for names, text in records if once.get(names) == text]:
            listed = "" if len(taken) == len(once) else f" ({', '.join(taken)})"
            title = _title_of(heading)
            shared.append(f"[{title}](#{title.lower()}-options){listed}")
    if own:
        yield f"\n{_listed(own)}"
    if shared:
        yield f"\nAlso: {' · '.join(shared)}.\n"
    lines = "\n\n".join(f"# {text}\nreconciler {line}" for line, text in command.examples)
    title = title_of((_ROOT / command.page).read_text(encoding="utf-8"))
    page = relpath(command.page, "docs")
    yield f"\n```sh\n{lines}\n```\n\n[{title}]({page})\n"


def _title_of(heading: str) -> str:
    return "Common" if heading == _OWN else heading


def _short(names: str) -> str:
    """Return the long name of an option, without what it takes."""
    return f"`{re.findall(r'--[a-z-]+', names)[0]}`"


def _listed(records: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- `{names}`: {_prose(' '.join(text.split()))}\n" for names, text in records)


def _prose(text: str) -> str:
    """Return the text of a help as Markdown: characters with a meaning are escaped."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"[*<|\[\]]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def title_of(text: str) -> str:
    """Return the title of a page."""
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))
