"""Streams of the process: stdout for the result, stderr for the rest."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import TextIO, TypeVar

from reconciler.cli.settings import current
from reconciler.cli.signals import run
from reconciler.cli.streams import write_note
from reconciler.cli.tracing import trace_listener
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import Runtime
from reconciler.errors import Diagnostic
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.durations import estimate_as_text
from reconciler.render.options import RenderOptions
from reconciler.render.progress import Progress
from reconciler.render.style import DEFAULT_WIDTH, Style, colour_wanted

_T = TypeVar("_T")
_ADDRESS = re.compile(r"https?://[\w.:/-]+")
_TICK = 0.5
"""Seconds between looks at the progress."""


def now() -> datetime:
    """Return the current time. This is the only clock of the program."""
    return datetime.now(tz=UTC)  # noqa: TID251 - passed down from here


def runtime() -> Runtime:
    """Return the environment and the clock of this process."""
    # Standard input is None if it is closed.
    interactive = sys.stdin is not None and sys.stdin.isatty()
    return Runtime(environ=os.environ, now=now, interactive=interactive)


def style_of(stream: TextIO) -> Style:
    """Return the colours and the width that a stream takes."""
    wanted = not current().no_colour and colour_wanted(os.environ, terminal=stream.isatty())
    return Style(wanted, _width_of(stream), stream.isatty())


def _width_of(stream: TextIO) -> int:
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
    )


def job_page(environ: Mapping[str, str]) -> str:
    """Return the address of the CI job, "" if unknown."""
    server, repository, run_id = (
        environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")
    )
    address = f"{server}/{repository}/actions/runs/{run_id}" if run_id else ""
    address = address or environ.get("CI_JOB_URL", "")
    return address if _ADDRESS.fullmatch(address) else ""


def cost_of(result: PlanResult) -> str:
    """Return what applying a plan takes, "" for one that is empty."""
    estimate = result.estimate
    if result.plan.empty:
        return ""
    return estimate_as_text(
        estimate.calls,
        estimate.seconds,
        limit=estimate.limit,
        beyond_hour=estimate.beyond_hour,
    )


def progress() -> Progress:
    """Return a listener that shows progress on stderr, as the common options say."""
    settings = current()
    return Progress(
        write_note,
        clock=monotonic,
        live=sys.stderr.isatty() and os.environ.get("TERM") != "dumb",
        width=_width_of(sys.stderr),
        verbose=settings.verbose or settings.debug,
        debug=settings.debug,
        forward=trace_listener(),
    )


def run_shown(work: Callable[[Runtime], Awaitable[_T]], world: Runtime) -> _T:
    """Run some work and show its progress on stderr."""
    listener = progress()
    return run(shown(work(replace(world, listen=listener)), listener))


async def shown(work: Awaitable[_T], listener: Progress) -> _T:
    """Return the result of some work, and keep its progress current until then."""
    ticking = asyncio.create_task(_tick(listener))
    try:
        return await work
    finally:
        ticking.cancel()
        listener.clear()


async def _tick(listener: Progress) -> None:
    while True:
        await asyncio.sleep(_TICK)
        listener.tick()


async def read_line(stream: TextIO) -> str:
    """Return a line from a terminal, "" at the end of input.

    The event loop runs while it waits: a blocking read would hide a signal.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(stream, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(stream)
    return stream.readline()


def print_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print warnings about the files to stderr, unless the run is quiet."""
    write_note(diagnostics_as_text(diagnostics, style_of(sys.stderr)))
