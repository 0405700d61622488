"""Streams of the process: stdout for the result, stderr for the rest."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TextIO

import click

from reconciler.commands.runtime import Runtime
from reconciler.errors import Diagnostic
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.options import RenderOptions
from reconciler.render.progress import Progress
from reconciler.render.style import DEFAULT_WIDTH, Style, colour_wanted


def now() -> datetime:
    """Return the current time. This is the only clock of the program."""
    return datetime.now(tz=UTC)  # noqa: TID251 - passed down from here


def runtime() -> Runtime:
    """Return the environment and the clock of this process."""
    return Runtime(environ=os.environ, now=now)


def style_of(stream: TextIO) -> Style:
    """Return the colours and the width that a stream takes."""
    return Style(colour_wanted(os.environ, terminal=stream.isatty()), _width_of(stream))


def _width_of(stream: TextIO) -> int:
    if not stream.isatty():
        return DEFAULT_WIDTH
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    except OSError:
        return DEFAULT_WIDTH


def render_options(*, show_unmanaged: bool = False, root: str = "") -> RenderOptions:
    """Return how to write a result to stdout."""
    return RenderOptions(style_of(sys.stdout), show_unmanaged=show_unmanaged, root=root)


def progress() -> Progress:
    """Return a listener that shows progress on stderr."""
    return Progress(
        lambda text: click.echo(text, nl=False, err=True, color=True),
        live=sys.stderr.isatty() and os.environ.get("TERM") != "dumb",
        width=_width_of(sys.stderr),
    )


def print_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print warnings about the files to stderr."""
    click.echo(diagnostics_as_text(diagnostics, style_of(sys.stderr)), nl=False, err=True)
