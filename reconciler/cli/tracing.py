"""The trace of the command that runs, begun when it first needs a listener."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
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


_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
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
    running = _CURRENT.get()
    if running is None or not _is_traced(os.environ):
        return None
    from reconciler.client.tracing import open_trace

    if running.trace is None:
        try:
            running.trace = open_trace(running.command, os.environ)
        except ReconcilerError as error:
            write_note(f"warning: no traces: {error.message} ({error.hint})\n")
    return running.trace


def _is_traced(environ: Mapping[str, str]) -> bool:
    """Return whether the standard variables ask for traces."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if "otlp" not in [name.strip() for name in exporters.split(",")]:
        return False
    return any(environ.get(name) for name in _ENDPOINTS)
