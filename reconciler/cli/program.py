"""The program: its group of commands, its streams, and the exit code of an error."""

from __future__ import annotations

import errno
import sys

import click

from reconciler.cli.command import current
from reconciler.cli.group import LazyGroup
from reconciler.cli.signals import interrupt_on_signals
from reconciler.cli.streams import (
    ReaderGone,
    discard,
    open_closed_streams,
    write_message,
    write_usage_error,
)
from reconciler.errors import ExitCode, ReconcilerError, system_error
from reconciler.version import __version__

_OF_STREAMS = (errno.ENOSPC, errno.EIO, errno.EBADF)
"""Errors of a stream that can't be written: full, failing or closed."""

_CONTEXT = {
    # click would strip colours from a pipe, which FORCE_COLOR may want. We decide ourselves.
    "color": True,
    "max_content_width": 120,
}


@click.group(cls=LazyGroup, context_settings=_CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="reconciler")
def cli() -> None:
    """GitOps for data pipelines: plan and apply projects and batch exports from YAML files.

    Exit codes: 0 success, 1 error, 2 changes present (plan --detailed-exitcode), 3 partly applied,
    4 stale plan, 5 refused by policy, 64 bad usage, 130 interrupted.
    """


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code. Errors and bugs are printed without a traceback."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Characters outside the encoding of a terminal must not raise.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    interrupt_on_signals()
    try:
        result = cli.main(arguments, prog_name="reconciler", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - also a bug of ours
        return _failed(error)
    return int(result or 0)


def _failed(error: BaseException) -> ExitCode:
    """Report an error and return its exit code."""
    code = ExitCode.ERROR
    match error:
        case click.ClickException():
            write_usage_error(error)
            code = ExitCode.USAGE if isinstance(error, click.UsageError) else code
        case click.Abort() | KeyboardInterrupt():
            write_message("interrupted\n")
            code = ExitCode.INTERRUPTED
        case ReconcilerError():
            _print_error(error)
            code = error.exit_code
        case ReaderGone():
            discard(sys.stdout)
            code = ExitCode.FINE
        case OSError(errno=number, filename=None) if number in _OF_STREAMS:
            discard(sys.stdout)
            write_message(f"error: the standard output can't be written: {error.strerror}\n")
        case OSError():
            # The system refuses something that no use case expects, such as a full disk.
            _print_error(system_error(error))
        case _:
            _report_bug(error)
    return code


def _print_error(error: ReconcilerError) -> None:
    from reconciler.cli.output import style_of
    from reconciler.render.progress import error_as_text

    write_message(error_as_text(error, style_of(sys.stderr)))
    _print_stack(error)


def _report_bug(error: BaseException) -> None:
    from reconciler.render.progress import bug_as_text

    write_message(bug_as_text(error, __version__))
    _print_stack(error)


def _print_stack(error: BaseException) -> None:
    """Print where an error was raised, for --debug."""
    if current().debug:
        from reconciler.render.progress import stack_as_text

        write_message(stack_as_text(error))
