"""The trace of the command that runs, begun when it first needs a listener."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.cli.streams import write_note
from reconciler.errors import ExitCode, ReconcilerError

if TYPE_CHECKING:
    from reconciler.client.tracing import Trace
    from reconciler.model.event import Listener


class Traced(Struct):
    """The command that runs, its exit code once it is known, and its trace if it has one."""

    command: str
    exit_code: int = ExitCode.ERROR
    trace: Trace | None = None


_CURRENT: ContextVar[Traced | None] = ContextVar("traced", default=None)


@contextmanager
def traced(command: str) -> Iterator[Traced]:
    """Let a command begin a trace, and export it at the end, however it ends."""
    running = Traced(command)
    before = _CURRENT.set(running)
    try:
        yield running
    except ReconcilerError as error:
        running.exit_code = error.exit_code
        raise
    except KeyboardInterrupt:
        running.exit_code = ExitCode.INTERRUPTED
        raise
    finally:
        _CURRENT.reset(before)
        if running.trace is not None:
            lost = running.trace.close(running.exit_code)
            if lost is not None:
                write_note(f"warning: {lost}\n")


def trace_listener() -> Listener | None:
    """Return the listener that traces the command, None if no trace is wanted."""
    from reconciler.client.tracing import is_traced, open_trace

    running = _CURRENT.get()
    if running is None or not is_traced(os.environ):
        return None
    if running.trace is None:
        try:
            running.trace = open_trace(running.command, os.environ)
        except ReconcilerError as error:
            write_note(f"warning: no traces: {error.message} ({error.hint})\n")
    return running.trace
