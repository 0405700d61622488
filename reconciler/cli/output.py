"""Where results go: stdout for the result, stderr for the rest, secrets masked at the edge."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import click

from reconciler.commands.runtime import Runtime
from reconciler.errors import Diagnostic, ReconcilerError
from reconciler.model.event import Event
from reconciler.model.plan import Plan
from reconciler.planning.masking import masked
from reconciler.planning.planfile import decode, encode
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.plan.markdown import plan_as_markdown
from reconciler.render.plan.text import Style, plan_as_text

PLAN_FORMATS = ("text", "json", "markdown")


def now() -> datetime:
    """The one clock of the program."""
    return datetime.now(tz=UTC)  # noqa: TID251 - handed down from here to all who need it


def runtime(listen: Callable[[Event], None] | None = None) -> Runtime:
    """The world as the process sees it."""
    if listen is None:
        return Runtime(environ=os.environ, now=now)
    return Runtime(environ=os.environ, now=now, listen=listen)


def colour_wanted(stream: TextIO) -> bool:
    """Colour on a terminal, unless NO_COLOR says otherwise (https://no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def style(*, show_unmanaged: bool = False) -> Style:
    """How plans are drawn on this stdout."""
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100
    return Style(colour=colour_wanted(sys.stdout), width=width, show_unmanaged=show_unmanaged)


def plan_text(
    plan: Plan, plan_format: str, *, mask: Callable[[str], str] = str, show_unmanaged: bool = False
) -> str:
    """The plan in a format, drawn from its saved form: made now or loaded, it looks the same."""
    data = encode(masked(plan, mask))
    if plan_format == "json":
        return data.decode()
    saved = decode(data)
    if plan_format == "markdown":
        return plan_as_markdown(saved)
    return plan_as_text(saved, style(show_unmanaged=show_unmanaged))


def tell_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Warnings about the files, on stderr."""
    text = diagnostics_as_text(diagnostics, colour=colour_wanted(sys.stderr))
    click.echo(text, nl=False, err=True)


def write_private(path: Path, data: bytes) -> None:
    """A file that only its owner can read, replacing an older one whole."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_bytes(data)
        draft.replace(path)
    except OSError as error:
        raise ReconcilerError(
            f"{path} can't be written: {error.strerror}", hint="choose another file with --out"
        ) from None


def read_file(path: Path) -> bytes:
    """The bytes of a file that the caller names."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReconcilerError(f"{path} can't be read: {error.strerror}") from None
