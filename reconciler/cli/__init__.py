"""The command line: options to a request, the use case, the writer of its result."""

from __future__ import annotations

import errno
import sys
from importlib import import_module
from keyword import iskeyword
from typing import NoReturn

import click

from reconciler.cli.signals import interrupt_on_signals
from reconciler.cli.streams import (
    discard,
    open_closed_streams,
    write_message,
    write_usage_error,
)
from reconciler.errors import ExitCode, ReconcilerError, system_error
from reconciler.version import __version__

_COMMANDS = {
    "init": "create a workspace, optionally from live state",
    "plan": "show what would change",
    "apply": "apply a plan after showing it",
    "validate": "check the files without a network",
    "fmt": "format the files",
    "import": "write live objects into files",
    "show": "show a saved plan, or a resource with its origins",
    "backfill": "run an export again for a past range",
    "audit": "show who applied what, from an audit log",
    "schema": "print a JSON Schema of the files",
    "emulator": "serve the interface on loopback for trials and tests",
    "demo": "run an end-to-end demo on the embedded service",
}
_OF_STREAMS = (errno.ENOSPC, errno.EIO, errno.EBADF)
"""Errors of a stream that can't be written: full, failing or closed."""


class _LazyGroup(click.Group):
    """Imports a sub-command when it is called: start-up stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        # A module can't have the name of a keyword.
        module = import_module(f"reconciler.cli.{cmd_name}{'_' * iskeyword(cmd_name)}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], list(_COMMANDS), n=1)
            suggestion = f" Did you mean '{close[0]}'?" if close else ""
            message = f"No such command '{args[0]}'.{suggestion}"
            raise click.UsageError(message, error.ctx) from None


# `color`: click would strip colours from a pipe, which FORCE_COLOR may want. We decide ourselves.
@click.group(
    cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "color": True}
)
@click.version_option(__version__, prog_name="reconciler")
def cli() -> None:
    """GitOps for data pipelines: plan and apply projects and batch exports from YAML files.

    Exit codes: 0 success, 1 error, 2 changes present (plan --detailed-exitcode), 3 partly applied,
    4 stale plan, 5 refused by policy, 64 bad usage, 130 interrupted.
    """


def main() -> NoReturn:
    """Run the command line. Errors and bugs are printed without a traceback."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
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
        case BrokenPipeError():
            # The reader of the output has gone, as with `| head`.
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


def _report_bug(error: BaseException) -> None:
    from reconciler.render.progress import bug_as_text

    write_message(bug_as_text(error, __version__))
