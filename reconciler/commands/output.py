"""What a command returns: its result as the standard output takes it, and its exit code.

An error has the exit code of its class (`errors.py`), and a run that of its last event
(`model/event.py`), one of `apply` unless resources were left out or the inventory was not written.
What a plan, diagnostics or an audit exits with is decided here; other reports are judged by their
command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from reconciler.commands.command import current
from reconciler.commands.options import options_again
from reconciler.commands.streams import write_note
from reconciler.diagnostics import Diagnostic, Level
from reconciler.errors import ExitCode
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.options import DEFAULT_WIDTH, RenderOptions, Style, colour_wanted

if TYPE_CHECKING:
    from reconciler.commands.apply.run import Applied
    from reconciler.model.decoding import LoggedRun
    from reconciler.model.plan import Plan


_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.ERROR,
    ExitCode.USAGE,
    ExitCode.PARTLY_APPLIED,
    ExitCode.STALE,
    ExitCode.REFUSED,
    ExitCode.CHANGES,
    ExitCode.FINE,
)


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


def render_options(folder: Path | None = None, **options: Any) -> RenderOptions:
    """Return how to write a result to stdout.

    `folder` is that of the workspace, if its files are shown. `options` are others of
    RenderOptions.
    """
    from reconciler.git.ci import job_url_of

    style, verbose, page = style_of(sys.stdout), current().verbose, job_url_of(os.environ) or ""
    if folder is not None:
        from reconciler.commands.files import path_in_repository

        options["root"] = path_in_repository(folder, os.environ)
    again = tuple(options_again())
    return RenderOptions(style, verbose=verbose, page=page, again=again, **options)


def print_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print warnings about the files to stderr, unless the run is quiet."""
    write_note(diagnostics_as_text(diagnostics, style_of(sys.stderr)))


def worst_of(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the most important of several exit codes."""
    return min(codes, key=_WORST_FIRST.index, default=ExitCode.FINE)


def exit_code_of_plan(plan: Plan, *, detailed: bool) -> ExitCode:
    """Return REFUSED, CHANGES (only if `detailed`) or FINE."""
    if any(not refusal.after_merge for refusal in plan.refusals):
        return ExitCode.REFUSED
    return ExitCode.CHANGES if detailed and not plan.empty else ExitCode.FINE


def exit_code_of_apply(applied: Applied) -> ExitCode:
    """Return the code of a run, of the plan that verified it, and of its mark."""
    code = applied.ended.exit_code
    incomplete = applied.record_problem is not None
    return ExitCode.PARTLY_APPLIED if incomplete and code is ExitCode.FINE else code


def exit_code_of_diagnostics(diagnostics: Iterable[Diagnostic]) -> ExitCode:
    """Return ERROR if any of them is an error."""
    is_failed = any(diagnostic.level is Level.ERROR for diagnostic in diagnostics)
    return ExitCode.ERROR if is_failed else ExitCode.FINE


def exit_code_of_run(run: LoggedRun) -> int:
    """Return the code of a run of an audit log, PARTLY_APPLIED if its log has no end."""
    return ExitCode.PARTLY_APPLIED if run.exit_code is None else run.exit_code
