"""Write to the standard streams, which may be closed, full, or without a reader."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

import click

from reconciler.commands.command import current
from reconciler.errors import ReconcilerError
from reconciler.model.text import printable, safe_output

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def is_interactive() -> bool:
    """Return whether a person runs the command: the input is a terminal."""
    return sys.stdin.isatty()


def open_closed_streams() -> None:
    """Replace standard streams that are closed, so that no other file gets their numbers.

    Writing to a closed stdout fails as on a full disk: a plan that cannot be shown is not applied.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)
        access = os.O_RDONLY if name == "stdout" else os.O_RDWR
        replacement = os.open(os.devnull, access)
        setattr(sys, name, open(replacement, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def discard(stream: TextIO) -> None:
    """Discard what is still written to a stream that failed, also at the end of the process."""
    with suppress(OSError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write_result(text: str) -> None:
    """Write to stdout. Raises OSError.

    A reader that has gone, as with `| head`, does not end a command: files that it saves and its
    exit code stay the same.
    """
    try:
        _write(text)
    except BrokenPipeError:
        discard(sys.stdout)


def write_message(text: str) -> None:
    """Write to stderr. A stream that fails does not end a command."""
    try:
        _write(text, err=True)
    except (OSError, ValueError):
        discard(sys.stderr)


def write_note(text: str) -> None:
    """Write what a reader may do without to stderr, unless the run is quiet."""
    if not current().quiet:
        write_message(text)


def write_calls(count: int | None) -> None:
    """Write how many requests a command sent, None for one that sends none."""
    if count is not None:
        write_note(f"{count} API calls\n")


def write_report(text: str) -> None:
    """Write a result that must not be lost to stdout, or to stderr if that fails."""
    try:
        _write(text)
    except (OSError, ValueError):
        discard(sys.stdout)
        write_message(text)


def write_plan(text: str) -> None:
    """Write a plan that is about to be applied to stdout.

    Raises ReconcilerError if that fails: nothing is applied that could not be shown.
    """
    try:
        _write(text)
    except (OSError, ValueError) as error:
        discard(sys.stdout)
        reason = error.strerror if isinstance(error, OSError) else error
        raise ReconcilerError(
            f"the standard output can't be written: {reason}; nothing was sent"
        ) from None


def write_usage_error(error: click.ClickException) -> None:
    """Write an error of click, which quotes arguments as they are."""
    shown = io.StringIO()
    error.show(shown)
    lines = shown.getvalue().expandtabs(2).splitlines()
    write_message("".join(f"{printable(line)}\n" for line in lines))


class ByteOutput:
    """The standard output for complete lines of UTF-8, whatever its encoding is."""

    def write(self, line: bytes) -> int:
        """Write complete lines. Raises OSError."""
        sys.stdout.buffer.write(safe_output(line.decode()).encode())
        return len(line)

    def flush(self) -> None:
        """Write what is buffered. Raises OSError."""
        sys.stdout.buffer.flush()


def _write(text: str, *, err: bool = False) -> None:
    """Write to a stream: the one place of the program that does."""
    click.echo(safe_output(text), nl=False, err=err, color=True)
