"""Run a use case with its progress on the screen, and print its result."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.command import current
from reconciler.commands.options import options_again
from reconciler.commands.process import (
    is_interactive,
    no_terminal,
    run,
    stop_on_signals,
    write_calls,
    write_message,
    write_note,
    write_plan,
    write_report,
    write_result,
)
from reconciler.commands.workspace import Reported, Workspace, in_each
from reconciler.diagnostics import Diagnostic, OfEnvironment
from reconciler.errors import ReconcilerError
from reconciler.exit_codes import ExitCode, worst_of
from reconciler.git.ci import job_url_of
from reconciler.model.text import estimate_as_text, printable, safe_output
from reconciler.render import writer_of
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.options import DEFAULT_WIDTH, Colour, RenderOptions, Style, colour_wanted

if TYPE_CHECKING:
    from reconciler.commands.sending import Applied
    from reconciler.commands.session import PlanResult
    from reconciler.editing.writing import FileChange
    from reconciler.model.event import Event, Report
    from reconciler.model.plan import Plan
    from reconciler.planning.approval import Approval
    from reconciler.render.progress import Progress

_T = TypeVar("_T")
_DIFFERENCES = {"@": Colour.CYAN, "-": Colour.RED, "+": Colour.GREEN}
_TICK = 0.5
"""Seconds between looks at the progress."""
SUMMARY_LIMIT = 1_024 * 1_024
"""Bytes of the summary of a step. GitHub discards a longer one."""
_SMALLEST = 4_096
"""Bytes that are left for another summary."""


def cost_of(result: PlanResult) -> str:
    """Return the number of calls that applying a plan takes, and how long; "" for none."""
    if result.plan.empty or result.plan.is_refused:
        return ""
    estimate = result.estimate
    return estimate_as_text(
        estimate.calls,
        estimate.seconds,
        limit=estimate.limit,
        beyond_hour=estimate.beyond_hour,
    )


def progress() -> Progress:
    """Return a listener that shows progress on stderr, as the common options say."""
    from reconciler.render.progress import Progress

    settings = current()
    return Progress(
        write_note,
        write_message,
        clock=monotonic,
        live=sys.stderr.isatty() and os.environ.get("TERM") != "dumb",
        width=width_of(sys.stderr),
        verbose=settings.verbose,
        debug=settings.debug,
    )


def run_shown(
    work: Callable[[Workspace], Awaitable[_T]],
    workspace: Workspace,
    listener: Progress | None = None,
) -> _T:
    """Run a use case and show its progress on stderr.

    When a run of changes or of backfills starts, signals begin to request a stop.
    """
    from reconciler.model.event import BackfillsPlanned, Planned

    shows, stop = listener or progress(), workspace.runtime.stop

    def listen(event: Event) -> None:
        if isinstance(event, Planned | BackfillsPlanned):
            stop_on_signals(stop)
        shows(event)

    runtime = replace(workspace.runtime, listen=listen)
    return run(shown(work(replace(workspace, runtime=runtime)), shows))


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
    import asyncio

    ticking = asyncio.create_task(_tick(listener))
    try:
        return await work
    finally:
        ticking.cancel()
        listener.clear()


async def _tick(listener: Progress) -> None:
    import asyncio

    while True:
        await asyncio.sleep(_TICK)
        listener.tick()


async def approved(approval: Approval) -> bool:
    """Ask on stderr, and return whether the line that is typed on stdin approves."""
    write_message(approval.question)
    return approval.is_given_by(await read_line(sys.stdin))


async def confirmed(question: str) -> bool:
    """Ask, and return whether the answer is yes. Raises BadUsage without a terminal."""
    from reconciler.planning import approval

    if not is_interactive():
        raise no_terminal()
    return await approved(approval.confirmed(question))


async def read_line(stream: TextIO) -> str:
    """Return a line that a thread reads, "" at the end of input.

    The event loop runs while it waits: a blocking read would hide a signal. The process does not
    wait for the thread if it is interrupted.
    """
    import asyncio

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


class Terminal(Struct, frozen=True):
    """Shows the plan and the report, and asks. With `is_json`, stdout has only events."""

    progress: Progress
    how: RenderOptions
    is_json: bool = False

    def show(self, result: PlanResult) -> None:
        """Show a plan, and what applying it takes."""
        from reconciler.render.plan_text import plan_as_text

        self.progress.clear()
        print_warnings(result.diagnostics)
        cost = cost_of(result)
        if not self.is_json:
            write_plan(plan_as_text(result.plan, replace(self.how, cost=cost)))
        elif cost:
            write_note(f"{cost}\n")

    async def approve(self, plan: Plan) -> bool:
        """Ask for approval."""
        from reconciler.planning.approval import approval_of

        self.progress.clear()
        write_message("\n")
        return await approved(approval_of(plan))

    def report(self, report: Report) -> None:
        """Show how the changes ended."""
        from reconciler.render.progress import report_as_text

        self.progress.clear()
        if not self.is_json:
            write_report(report_as_text(report))


def print_end(applied: Applied) -> None:
    """Print what remains after the report."""
    from reconciler.render.plan_text import unverified_as_text

    verification = applied.verification
    if verification.is_empty:
        write_note("Verified: the plan is empty.\n")
    write_calls(applied.calls)
    write_message(unverified_as_text(verification.left, passed=verification.passed is True))
    if verification.error is not None:
        error = verification.error
        _print_error(f"applied, but not verified: {error.message}", error)
    if applied.record_problem is not None:
        _print_error(applied.record_problem.message, applied.record_problem)
    for problem in applied.problems:
        write_message(f"warning: {problem}\n")


def _print_error(message: str, error: ReconcilerError) -> None:
    from reconciler.render.progress import error_as_text

    write_message(error_as_text(ReconcilerError(message, hint=error.hint)))


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


def write_differences(changes: Mapping[str, FileChange]) -> None:
    """Print the unified difference of files."""
    write_result(differences_as_text(changes, style_of(sys.stdout)))


def differences_as_text(changes: Mapping[str, FileChange], style: Style) -> str:
    """Return the unified difference of files, by name. Prints lines with secrets masked."""
    return "".join(
        line
        for name, change in changes.items()
        for line in _difference(printable(name), change, style)
    )


def _difference(name: str, change: FileChange, style: Style) -> Iterator[str]:
    from difflib import unified_diff

    before, after = (
        # Compared as they are, shown without secrets.
        [f"{shown}\0{line}" for shown, line in zip(side.shown, side.lines, strict=True)]
        for side in (change.before, change.after)
    )
    old = f"a/{name}" if before else "/dev/null"
    for number, text in enumerate(unified_diff(before, after, old, f"b/{name}", lineterm="")):
        shown, _, line = text.partition("\0")
        colour = Colour.BOLD if number < len(("---", "+++")) else _DIFFERENCES.get(shown[0])
        yield f"{style.paint(colour, shown) if colour else shown}\n"
        if line and not line.endswith(("\n", "\r")):
            yield "\\ No newline at end of file\n"


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
    style, verbose, page = style_of(sys.stdout), current().verbose, job_url_of(os.environ) or ""
    if folder is not None:
        options["root"] = path_in_repository(folder, os.environ)
    again = tuple(options_again())
    return RenderOptions(style, verbose=verbose, page=page, again=again, **options)


def path_in_repository(folder: Path, environ: Mapping[str, str]) -> str:
    """Return the path of a folder from the root of its repository, "" for the root itself.

    The root is GITHUB_WORKSPACE if it contains the folder; otherwise the nearest parent with a
    `.git`; otherwise the current folder.
    """
    here = folder.resolve()
    workflow = environ.get("GITHUB_WORKSPACE")
    roots = [Path(workflow).resolve()] if workflow else []
    roots += [parent for parent in (here, *here.parents) if (parent / ".git").exists()]
    for root in (*roots, Path.cwd()):
        if here.is_relative_to(root):
            return "" if here == root else here.relative_to(root).as_posix()
    return ""


def print_warnings(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print warnings about the files to stderr, unless the run is quiet."""
    write_note(diagnostics_as_text(diagnostics, style_of(sys.stderr)))


def write_runner_files(plan: Plan, options: RenderOptions, *, saved: Path | None) -> None:
    """Append the outputs and the summary of a plan to the files that the runner names.

    `saved` is the file of the plan. Raises ReconcilerError.
    """
    from secrets import token_hex

    write = writer_of("markdown", "plan")
    outputs, summary = os.environ.get("GITHUB_OUTPUT"), os.environ.get("GITHUB_STEP_SUMMARY")
    if outputs:
        lines = ""
        for name, value in outputs_of(plan, saved).items():
            # A value cannot contain a delimiter that it does not know.
            end = f"end_{token_hex(16)}"
            lines += f"{name}<<{end}\n{value}\n{end}\n"
        _append(Path(outputs), lines.encode(errors="surrogateescape"))
    if summary and not _summarized(
        Path(summary), lambda limit: write(plan, replace(options, limit=limit))
    ):
        write_message("warning: the job summary of this step is full; the plan is not in it\n")


def outputs_of(plan: Plan, saved: Path | None) -> dict[str, str]:
    """Return the outputs of a step by name."""
    from reconciler.render.plan_entries import totals_of

    totals = zip(("to_add", "to_change", "to_destroy"), totals_of(plan), strict=True)
    outputs = {"changes": str(not plan.empty).lower()}
    outputs |= {name: str(number) for name, number in totals} | {"plan_id": plan.plan_id}
    return outputs if saved is None else {**outputs, "json_plan_path": str(saved)}


def _summarized(file: Path, markdown: Callable[[int], str]) -> bool:
    """Append the plan as far as it fits into what the step has left. Return False if it is full."""
    space = SUMMARY_LIMIT - (file.stat().st_size if file.exists() else 0) - 1
    if space < _SMALLEST:
        return False
    limit = space
    while len(text := safe_output(markdown(limit)).encode()) > space:
        # Characters outside of ASCII have several bytes.
        limit = min(limit * space // len(text), limit - 1)
    _append(file, text + b"\n")
    return True


def _append(file: Path, content: bytes) -> None:
    try:
        with file.open("ab") as stream:
            stream.write(content)
    except OSError as error:
        raise ReconcilerError(f"{file} can't be written: {error.strerror}") from None
