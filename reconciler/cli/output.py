"""Streams of the process: stdout for the result, stderr for the rest."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from reconciler.cli.command import current
from reconciler.cli.streams import write_note
from reconciler.diagnostics import Diagnostic
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.options import DEFAULT_WIDTH, RenderOptions, Style, colour_wanted

_ADDRESS = re.compile(r"https?://[\w.:/-]+")


def is_interactive() -> bool:
    """Return whether a person runs the command: the input is a terminal."""
    # Standard input is None if it is closed.
    return sys.stdin is not None and sys.stdin.isatty()


def style_of(stream: TextIO) -> Style:
    """Return the colours and the width that a stream takes."""
    wanted = not current().no_colour and colour_wanted(os.environ, terminal=stream.isatty())
    return Style(wanted, width_of(stream), stream.isatty())


def width_of(stream: TextIO) -> int:
    """Return the number of columns of a stream."""
    # Shells do not export it, so a job that sets it wants it also in a pipe.
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    if not stream.isatty():
        return DEFAULT_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    except OSError:
        return DEFAULT_WIDTH


def render_options(
    *,
    show_unmanaged: bool = False,
    summary: bool = False,
    root: str = "",
    links: bool = False,
    since: Path | None = None,
) -> RenderOptions:
    """Return how to write a result to stdout."""
    return RenderOptions(
        style_of(sys.stdout),
        show_unmanaged=show_unmanaged,
        root=root,
        verbose=current().verbose,
        summary=summary,
        links=links,
        page=job_page(os.environ),
        since=_text_of(since),
    )


def _text_of(path: Path | None) -> str:
    """Return the text of comments, "" for a file that cannot be read: nothing depends on it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path is not None else ""
    except OSError:
        return ""


def job_page(environ: Mapping[str, str]) -> str:
    """Return the address of the CI job, "" if unknown."""
    server, repository, run_id = (
        environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")
    )
    address = f"{server}/{repository}/actions/runs/{run_id}" if run_id else ""
    address = address or environ.get("CI_JOB_URL", "")
    return address if _ADDRESS.fullmatch(address) else ""


def print_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print warnings about the files to stderr, unless the run is quiet."""
    write_note(diagnostics_as_text(diagnostics, style_of(sys.stderr)))
