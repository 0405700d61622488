"""Run a use case, also in several environments: the runtime, progress on stderr, and input."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from msgspec.structs import replace

from reconciler.commands.command import current
from reconciler.commands.output import (
    print_warnings,
    render_options,
    style_of,
    width_of,
    worst_of,
)
from reconciler.commands.plan.work import PlanResult
from reconciler.commands.runtime import Reported, Workspace
from reconciler.commands.signals import run
from reconciler.commands.streams import write_calls, write_message, write_note, write_result
from reconciler.diagnostics import OfEnvironment
from reconciler.errors import ExitCode
from reconciler.model.text import estimate_as_text, printable
from reconciler.render import writer_of
from reconciler.render.options import RenderOptions
from reconciler.render.progress import Progress

if TYPE_CHECKING:
    from reconciler.planning.approval import Approval
    from reconciler.service.pace import Estimate

_T = TypeVar("_T")
_TICK = 0.5
"""Seconds between looks at the progress."""


def cost_of(result: PlanResult) -> str:
    """Return what applying a plan takes, "" for one that is empty."""
    return "" if result.plan.empty else calls_and_time(result.estimate)


def calls_and_time(estimate: Estimate) -> str:
    """Return the number of some calls, and how long they take."""
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
        write_message,
        clock=monotonic,
        live=sys.stderr.isatty() and os.environ.get("TERM") != "dumb",
        width=width_of(sys.stderr),
        verbose=settings.verbose or settings.debug,
        debug=settings.debug,
    )


def run_shown(
    work: Callable[[Workspace], Awaitable[_T]],
    workspace: Workspace,
    listener: Progress | None = None,
) -> _T:
    """Run a use case and show its progress on stderr."""
    listener = listener or progress()
    runtime = replace(workspace.runtime, listen=listener)
    return run(shown(work(replace(workspace, runtime=runtime)), listener))


def show_report(
    name: str,
    output_format: str,
    work: Callable[[Workspace], Awaitable[_T]],
    workspace: Workspace,
    options: RenderOptions | None = None,
    listener: Progress | None = None,
) -> _T:
    """Run a use case, print its report, warnings and calls, and return its result."""
    result = run_shown(work, workspace, listener)
    done: Reported[Any] = result if isinstance(result, Reported) else Reported(result)
    print_warnings(done.diagnostics)
    write_result(writer_of(output_format, name)(done.report, options or render_options()))
    write_calls(done.calls)
    return result


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


async def approved(approval: Approval) -> bool:
    """Ask on stderr, and return whether the line that is typed on stdin approves."""
    write_message(approval.question)
    return approval.is_given_by(await read_line(sys.stdin))


async def read_line(stream: TextIO) -> str:
    """Return a line that a thread reads, "" at the end of input.

    The event loop runs while it waits: a blocking read would hide a signal. The process does not
    wait for the thread if it is interrupted.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def deliver(text: str) -> None:
        if not line.done():
            line.set_result(text)

    def read() -> None:
        text = stream.readline()
        # The loop is closed after an interruption.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, text)

    threading.Thread(target=read, name="prompt", daemon=True).start()
    text = await line
    # Ctrl-D ends no line, so that the next message would continue it.
    if not text.endswith("\n"):
        write_message("\n")
    return text


def report_each(
    work: Callable[[Workspace], Awaitable[Reported[_T]]],
    workspace: Workspace,
    names: Sequence[str],
    code_of: Callable[[_T], ExitCode],
    show: Callable[[Sequence[OfEnvironment[_T]]], object],
) -> ExitCode:
    """Run a use case in the environments that `names` select, without names in that of `workspace`.

    Print warnings once, what `show` writes about the reports, each error once with the environments
    that have it, and the number of calls. Return the worst exit code. Without names an error is
    raised.
    """
    from reconciler.commands.environments import in_each
    from reconciler.render.progress import error_as_text

    one = () if names else (OfEnvironment("", run_shown(work, workspace)),)
    done = one or run_shown(lambda world: in_each(work, world, names), workspace)
    results = [item.result for item in done if item.result is not None]
    # Environments share the files.
    print_warnings(tuple(dict.fromkeys(text for item in results for text in item.diagnostics)))
    items = [
        OfEnvironment(item.environment, item.result.report, exit_code=code_of(item.result.report))
        if item.result is not None
        else OfEnvironment[_T](item.environment, error=item.error, exit_code=item.exit_code)
        for item in done
    ]
    show(items)
    errors: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.error is not None:
            errors[error_as_text(item.error, style_of(sys.stderr))].append(item.environment)
    for text, environments in errors.items():
        write_message(f"{text}  in {printable(', '.join(environments))}\n")
    write_calls(sum(item.calls or 0 for item in results))
    return worst_of(item.exit_code for item in items)
