"""The process: its standard streams, its signals, and the files that options name."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from reconciler.commands.command import current
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.exit_codes import ExitCode
from reconciler.model.text import printable, safe_output

if TYPE_CHECKING:
    from reconciler.service.pace import Stop

_T = TypeVar("_T")
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_CLEAN_UP_SECONDS = 2.0
"""Time to close connections and remove temporary files after a signal."""
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def is_interactive() -> bool:
    """Return whether a person runs the command: the input is a terminal."""
    return sys.stdin.isatty()


def no_terminal(others: str = "") -> BadUsage:
    """Return the error of a run that needs approval and has no way to ask for it."""
    return BadUsage(
        "no terminal to ask for approval; nothing was sent", hint=f"pass --auto-approve{others}"
    )


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


def interrupt_on_signals() -> None:
    """Let every signal raise KeyboardInterrupt, so that it ends a command with a message."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _handled():
        signal.signal(number, _interrupt)


def run(work: Awaitable[_T]) -> _T:
    """Return the result of some work. A signal cancels it, and raises KeyboardInterrupt.

    The second signal ends the process.
    """
    # asyncio takes 50 ms to import, and every command imports this module.
    import asyncio

    async def cancellable() -> _T:
        task, is_requested = asyncio.current_task(), False

        def cancel() -> None:
            nonlocal is_requested
            if is_requested:
                os._exit(ExitCode.INTERRUPTED)
            is_requested = True
            _limit_clean_up()
            if task is not None:
                task.cancel()

        _call_on_signals(cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        interrupt_on_signals()


def stop_on_signals(stop: Stop) -> None:
    """Let signals request a stop of the run in this event loop; the second one forces it."""
    _call_on_signals(stop.request)


def _call_on_signals(callback: Callable[[], object]) -> None:
    """Call a function in the running event loop at every signal."""
    import asyncio

    loop = asyncio.get_running_loop()
    _current.callback = callback
    for number in _handled():
        try:
            loop.add_signal_handler(number, _current)
        except NotImplementedError:
            # The event loop of Windows.
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(_current))


class _Current:
    """Calls the function for signals. One that arrived before the last change calls the new one."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] = lambda: None

    def __call__(self) -> None:
        self.callback()


_current = _Current()


def _handled() -> list[signal.Signals]:
    """Return the signals to handle: `nohup` starts a process with SIGHUP ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    for further in _handled():
        signal.signal(further, _exit_at_once)
    _limit_clean_up()
    raise KeyboardInterrupt


def _limit_clean_up() -> None:
    """End the process soon: a thread that resolves a host name can't be cancelled."""
    watchdog = threading.Timer(_CLEAN_UP_SECONDS, os._exit, [int(ExitCode.INTERRUPTED)])
    watchdog.daemon = True
    watchdog.start()


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    del number, frame
    os._exit(ExitCode.INTERRUPTED)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises ReconcilerError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReconcilerError(f"{path} can't be read: {error.strerror}") from None


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, or nothing. Raises ReconcilerError."""
    from reconciler.editing import writing

    try:
        writing.write_private(path, data)
    except OSError as error:
        raise ReconcilerError(
            f"{path} can't be written: {error.strerror}",
            hint="choose another file",
        ) from None
