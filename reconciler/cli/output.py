"""Where results go: stdout for the result, stderr for the rest, secrets masked at the edge."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import click

from reconciler.commands.runtime import Runtime
from reconciler.config import writing
from reconciler.errors import Diagnostic, ReconcilerError
from reconciler.model.event import Event
from reconciler.model.plan import Plan
from reconciler.planning.masking import masked
from reconciler.planning.planfile import decode, encode
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.plan.markdown import plan_as_markdown
from reconciler.render.plan.text import Style, plan_as_text
from reconciler.render.progress import Progress

PLAN_FORMATS = ("text", "json", "markdown")
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
_PIPED = 100


def now() -> datetime:
    """The one clock of the program."""
    return datetime.now(tz=UTC)  # noqa: TID251 - handed down from here to all who need it


def runtime(listen: Callable[[Event], None] | None = None) -> Runtime:
    """The world as the process sees it."""
    if listen is None:
        return Runtime(environ=os.environ, now=now)
    return Runtime(environ=os.environ, now=now, listen=listen)


def colour_wanted(stream: TextIO) -> bool:
    """Colour on a terminal. NO_COLOR forbids it, FORCE_COLOR wants it in a pipe as well.

    https://no-color.org, https://force-color.org; CLICOLOR=0 and CLICOLOR_FORCE say the same.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in _FORCING):
        return True
    if os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def width_of(stream: TextIO) -> int:
    """How many cells a line of this stream has; 100 where it is no terminal."""
    if not stream.isatty():
        return _PIPED
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _PIPED
    except OSError:
        return _PIPED


def progress() -> Progress:
    """What listens to changes being made, on stderr."""
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return Progress(
        lambda text: click.echo(text, nl=False, err=True, color=True),
        live=live,
        width=width_of(sys.stderr),
    )


def style(*, show_unmanaged: bool = False) -> Style:
    """How plans are drawn on this stdout."""
    return Style(
        colour=colour_wanted(sys.stdout),
        width=width_of(sys.stdout),
        show_unmanaged=show_unmanaged,
    )


def diagnostics_text(diagnostics: Sequence[Diagnostic], stream: TextIO) -> str:
    """Diagnostics as the stream can show them."""
    return diagnostics_as_text(diagnostics, colour=colour_wanted(stream), width=width_of(stream))


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


def place_in_repository(folder: Path) -> str:
    """The path of a folder from the root of its repository, "" for the root itself.

    The root is the folder that a workflow runs in, as far as it holds the other; otherwise the
    nearest one above with a `.git`; otherwise the current one. Annotations and code scanning find
    files from there.
    """
    here = folder.resolve()
    told = os.environ.get("GITHUB_WORKSPACE")
    roots = [Path(told).resolve()] if told else []
    roots += [each for each in (here, *here.parents) if (each / ".git").exists()]
    for root in (*roots, Path.cwd()):
        if here.is_relative_to(root):
            return "" if here == root else here.relative_to(root).as_posix()
    return ""


def tell_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Warnings about the files, on stderr."""
    click.echo(diagnostics_text(diagnostics, sys.stderr), nl=False, err=True)


def write_private(path: Path, data: bytes) -> None:
    """A file that only its owner can read, replacing an older one whole."""
    try:
        writing.write_private(path, data)
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
