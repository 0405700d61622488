"""The program: its commands by section, its streams, and the exit code of an error."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import click

from reconciler.commands.command import HasCommonOptions, begin, current, refuse_removed
from reconciler.commands.process import (
    discard,
    interrupt_on_signals,
    open_closed_streams,
    write_message,
    write_usage_error,
)
from reconciler.errors import ReconcilerError, system_error
from reconciler.exit_codes import ExitCode, worst_of
from reconciler.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Plan and apply": {
        "plan": "show what would change",
        "apply": "apply a plan after showing it",
        "drift": "show what changed in live state, and who changed it",
        "show": "show a saved plan, an audit log, or a resource with its origins",
    },
    "Files": {
        "init": "create a workspace, optionally from live state",
        "validate": "check the files without a network",
        "import": "write live objects into files",
        "mv": "rename the key of a resource in all files",
        "compare": "show how two environments differ",
        "promote": "give an environment the values of another",
    },
    "Operations": {
        "status": "show the state of exports, the worst first",
        "runs": "show the runs of exports, or one run",
        "logs": "show the log of an export or of a run",
        "gaps": "show intervals that were not exported",
        "backfill": "run an export again for a past range",
        "pause": "pause exports",
        "unpause": "unpause exports",
        "projects": "list projects, show one, reset its token",
    },
    "Other": {
        "doctor": "check the set-up: network, API key, git, destinations",
        "explain": "explain a field, a code or a consequence",
        "emulator": "serve the interface on loopback for trials and tests",
        "demo": "run an end-to-end demo on the embedded service",
        "completion": "print the completion script of a shell",
    },
}
COMMANDS: Mapping[str, str] = {
    name: meaning for section in SECTIONS.values() for name, meaning in section.items()
}
_MODULES = {"import": "import_", "unpause": "pause"}
"""The modules whose name is not that of their command."""
_OF_OTHER_TOOLS = {
    "diff": "plan",
    "history": "show",
    "rename": "mv",
    "version": "reconciler --version",
}
"""What other tools name a command that exists here, with its name."""
_OF_STREAMS = (errno.ENOSPC, errno.EIO, errno.EBADF)
"""Errors of a stream that can't be written: full, failing or closed."""
_CONTEXT = {
    # click would strip colours from a pipe, which FORCE_COLOR may want. We decide ourselves.
    "color": True,
    "max_content_width": 120,
}


def command_of(name: str) -> click.Command:
    """Return the command of a name, from its own module: `commands.NAME`."""
    module = import_module(f"reconciler.commands.{_MODULES.get(name, name)}")
    command: click.Command = getattr(module, f"{name}_command")
    return command


class LazyGroup(HasCommonOptions, click.Group):
    """The program: the common options, the commands by section, and names close to a wrong one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the sections."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None for an unknown name."""
        try:
            return command_of(cmd_name) if cmd_name in COMMANDS else None
        except ReconcilerError:
            # Completion prints nothing about an extra that is not installed.
            if ctx.resilient_parsing:
                return None
            raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Begin a run with the default settings, then parse."""
        begin()
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin with a text, importing no command."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=meaning)
            for name, meaning in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
        del ctx
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{width}}", text) for name, text in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where commands are compared."""
        del ctx
        formatter.write("\nWhich command when: docs/commands.md\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. Raises UsageError with a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            refuse_removed(args[0], "commands")
            similar = get_close_matches(args[0], [*COMMANDS], n=1)
            close = _OF_OTHER_TOOLS.get(args[0]) or "".join(similar)
            suggestion = f" Did you mean '{close}'?" if close else ""
            message = f"No such command '{args[0]}'.{suggestion}"
            raise click.UsageError(message, error.ctx) from None


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
    # What was left out did not end the run. Environments may have the same errors.
    left_out = {error.message: error for error in current().left_out.values()}
    return worst_of([ExitCode(result or 0), *map(_failed, left_out.values())])


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
            _report(error)
            code = error.exit_code
        case OSError(errno=number, filename=None) if number in _OF_STREAMS:
            discard(sys.stdout)
            write_message(f"error: the standard output can't be written: {error.strerror}\n")
        case OSError():
            # The system refuses something that no use case expects, such as a full disk.
            _report(system_error(error))
        case _:
            _report(error)
    # Also for errors after the connection was closed, such as those of files and streams.
    return code.after(sent=bool(current().sent))


def _report(error: BaseException) -> None:
    """Print an error or a bug, for --debug also where it was raised."""
    from reconciler.commands.screen import style_of
    from reconciler.render.progress import bug_as_text, error_as_text, stack_as_text

    if isinstance(error, ReconcilerError):
        write_message(error_as_text(error, style_of(sys.stderr)))
    else:
        write_message(bug_as_text(error, __version__))
    if current().debug:
        write_message(stack_as_text(error))
