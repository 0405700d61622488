"""The pages of docs/commands/, from the commands themselves."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from pathlib import Path
from posixpath import relpath

import click

from reconciler.cli.command import COMMON, Command
from reconciler.cli.program import SECTIONS, command_of

_ROOT = Path(__file__).resolve().parents[1]
_FOLDER = "docs/commands"
_NOTE = "<!-- Generated from the command by scripts/reference.py: change it there. -->\n"
_INDEX = """\

# Commands

The options, arguments and examples of every command, as in `reconciler COMMAND --help`.
"""
_EVERY = """\

## Options of every command

They can be placed before or after the name of the command.

"""
_SHARED = """\

## Shared options

The page of a command names those that it takes.
"""
_WHEN = """\

## Which command when

- see what `apply` would do: [`plan`](plan.md)
- see what changed in the service since the apply: [`drift`](drift.md)
- keep that in the files: `drift --write`; undo it: [`apply`](apply.md)
- manage an object that no file declares: [`import`](import.md)
- see how two environments differ: [`compare`](compare.md)
- give one the values of the other: [`promote`](promote.md)
- check files without a network: [`validate`](validate.md)
- know whether credentials work: [`doctor NAME`](doctor.md)
- know whether exports run: [`status`](status.md)
- know why the tool does not work here: [`doctor`](doctor.md)

`apply`, `pause`, `unpause`, `backfill` and `projects reset-token` change the service. `init`,
`import`, `drift --write`, `mv` and `promote` change files. `doctor NAME` lets the service connect
to destinations.
"""
_OWN = "Options"
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
    parts += [_WHEN, _EVERY, _listed(_common()), _SHARED]
    for heading, records in _shared().items():
        parts.append(f"\n### {heading}\n\n{_listed(records.items())}")
    return "".join(parts)


@cache
def _shared() -> Mapping[str, Mapping[str, str]]:
    """Return the descriptions of options that several commands have, by heading and names.

    Where two options have the same names, it is that of more commands.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for name in (name for section in SECTIONS.values() for name in section):
        command = command_of(name)
        if isinstance(command, Command):
            for heading, records in _records(command, click.Context(command)).items():
                counts.update((heading, *record) for record in records if heading != _OWN)
    shared: dict[str, dict[str, str]] = defaultdict(dict)
    for (heading, names, text), count in counts.most_common():
        if count > 1:
            shared[heading].setdefault(names, text)
    return shared


def _records(command: Command, context: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the options of a command by heading, without those of every command."""
    common = {*(names for names, _ in _common()), "-h, --help"}
    return {
        heading: [record for record in records if record[0] not in common]
        for heading, records in command.records(context).items()
    }


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
        shared: list[str] = []
        for heading, records in _records(command, context).items():
            once = _shared().get(heading, {})
            own = [(names, text) for names, text in records if once.get(names) != text]
            if own:
                yield f"\n{level} {heading}\n\n{_listed(own)}"
            taken = [names for names, _ in records if names in once] if once else []
            if len(own) < len(records):
                listed = "" if len(taken) == len(once) else f": `{'`, `'.join(taken)}`"
                shared.append(f"- [{heading}](README.md#{heading.lower()}){listed}\n")
        if shared:
            yield f"\n{level} Shared options\n\n{''.join(shared)}"
        lines = "\n\n".join(f"# {text}\nreconciler {line}" for line, text in command.examples)
        yield f"\n{level} Examples\n\n```sh\n{lines}\n```\n"
        yield f"\nMore: [{_title(command.page)}]({relpath(command.page, _FOLDER)})\n"
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield f"\n{level} {name}\n\n"
            yield from _described(click.Context(below, context, name), f"{level}#")


def _listed(records: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- `{names}`: {_prose(' '.join(text.split()))}\n" for names, text in records)


def _prose(text: str) -> str:
    """Return the text of a help as Markdown: characters with a meaning are escaped."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"[*<|\[\]]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def _title(page: str) -> str:
    text = (_ROOT / page).read_text(encoding="utf-8")
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))
