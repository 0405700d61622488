"""Write the manual pages, one for the program and one for each command, to man/man1/.

hatch_build.py runs it when the package is built; the files are not committed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.commands.command import Command  # noqa: E402
from reconciler.commands.program import (  # noqa: E402
    SECTIONS,
    cli,
    command_of,
)
from reconciler.version import __version__  # noqa: E402

FOLDER = "man/man1"
_PROGRAM = "reconciler"


def manual_pages() -> Mapping[str, str]:
    """Return the text of every page by its path in the repository."""
    root = click.Context(cli, info_name=_PROGRAM, **cli.context_settings)
    pages = {f"{FOLDER}/{_PROGRAM}.1": _program_page(root)}
    for section in SECTIONS.values():
        for name, meaning in section.items():
            command = command_of(name)
            context = click.Context(command, info_name=name, parent=root)
            pages[f"{FOLDER}/{_PROGRAM}-{name}.1"] = _command_page(command, context, meaning)
    return pages


def _program_page(context: click.Context) -> str:
    lines = [*_head(_PROGRAM, "GitOps for data pipelines"), *_synopsis(context)]
    lines += [".SH DESCRIPTION", *_paragraphs(cli.help or "")]
    for section, commands in SECTIONS.items():
        lines.append(f".SH {_quoted(section.upper())}")
        for name, meaning in commands.items():
            lines += [".TP", rf"\fB{_PROGRAM}\-{_text(name)}\fR(1)", _line(meaning)]
    lines += _options(context)
    return _joined(lines)


def _command_page(command: click.Command, context: click.Context, meaning: str) -> str:
    lines = [*_head(f"{_PROGRAM}-{command.name}", meaning), *_synopsis(context)]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help or ""), *_options(context)]
    if isinstance(command, Command):
        lines.append(".SH EXAMPLES")
        for example, purpose in command.examples:
            lines += [".PP", _line(f"{purpose}:"), ".PP", ".nf", ".RS"]
            lines += [_line(f"{_PROGRAM} {example}"), ".RE", ".fi"]
        lines += [".SH DOCUMENTATION", _line(command.page)]
    lines += [".SH SEE ALSO", rf"\fB{_PROGRAM}\fR(1)"]
    return _joined(lines)


def _head(title: str, meaning: str) -> Iterator[str]:
    # Without a date, the same source gives the same page.
    yield f'.TH {_quoted(title.upper())} 1 "" {_quoted(f"{_PROGRAM} {__version__}")}'
    yield ".SH NAME"
    yield rf"{_text(title)} \- {_text(meaning)}"


def _synopsis(context: click.Context) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    pieces = " ".join(context.command.collect_usage_pieces(context))
    yield rf"\fB{_text(context.command_path)}\fR {_text(pieces)}"


def _options(context: click.Context) -> Iterator[str]:
    for heading, records in _records(context).items():
        yield f".SH {_quoted(heading.upper())}"
        for names, description in records:
            yield ".TP"
            yield rf"\fB{_text(names)}\fR"
            yield _line(description)


def _records(context: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the names and descriptions of parameters by heading."""
    command = context.command
    if isinstance(command, Command):
        return command.records(context)
    records = [param.get_help_record(context) for param in command.get_params(context)]
    return {"Options": [record for record in records if record is not None]}


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring."""
    for paragraph in text.split("\n\n"):
        yield ".PP"
        yield _line(" ".join(paragraph.replace("\b", "").split()))


def _line(text: str) -> str:
    """Return a line of text: a dot or a quote at its start is no request."""
    escaped = _text(text)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _text(text: str) -> str:
    r"""Return text for roff: `\(aq` is the quote and `\-` the hyphen that can be copied."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    escaped = escaped.replace("`", r"\(ga").replace("~", r"\(ti").replace("^", r"\(ha")
    return re.sub("[^\x20-\x7e]", lambda match: rf"\[u{ord(match[0]):04X}]", escaped)


def _quoted(text: str) -> str:
    return f'"{_text(text)}"'


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Write the pages."""
    for name, text in manual_pages().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
