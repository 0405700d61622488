"""Run a use case in several environments, for one report with a part for each."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.cli.output import style_of
from reconciler.cli.streams import write_message
from reconciler.errors import ExitCode
from reconciler.model.text import printable

if TYPE_CHECKING:
    from reconciler.commands.environments import OfEnvironment
    from reconciler.commands.runtime import Reported, Runtime
    from reconciler.diagnostics import Diagnostic
    from reconciler.model.planned import EnvironmentPlan, EnvironmentReport

_R = TypeVar("_R")


async def run_in_each(
    work: Callable[[Any, Runtime], Awaitable[_R]],
    request: Any,
    names: Sequence[str],
    world: Runtime,
) -> tuple[OfEnvironment[_R], ...]:
    """Run a use case in the environments that names and globs select."""
    from reconciler.commands.environments import chosen_environments, in_each

    environments = chosen_environments(request.workspace.folder, names)
    return await in_each(work, request, environments, world)


async def report_each(
    work: Callable[[Any, Runtime], Awaitable[Reported[Any]]],
    request: Any,
    names: Sequence[str],
    world: Runtime,
    code_of: Callable[[Any], ExitCode],
) -> Reported[tuple[EnvironmentReport, ...]]:
    """Return the report of each environment with its exit code, or its error."""
    from reconciler.commands.runtime import Reported
    from reconciler.model.planned import EnvironmentReport

    done = await run_in_each(work, request, names, world)
    reports = tuple(
        EnvironmentReport(item.environment, exit_code_of_error(item), error=item.error)
        if item.result is None
        else EnvironmentReport(
            item.environment, code_of(item.result.report), report=item.result.report
        )
        for item in done
    )
    return Reported(reports, diagnostics_of(done), calls_of(done))


def diagnostics_of(done: Sequence[OfEnvironment[Any]]) -> tuple[Diagnostic, ...]:
    """Return warnings without repetition, since environments share the files."""
    results = (item.result for item in done if item.result is not None)
    return tuple(dict.fromkeys(warning for result in results for warning in result.diagnostics))


def calls_of(done: Sequence[OfEnvironment[Any]]) -> int:
    """Return the number of calls of all environments."""
    return sum(item.result.calls or 0 for item in done if item.result is not None)


def exit_code_of_error(item: OfEnvironment[Any]) -> ExitCode:
    """Return the exit code of an environment without a result."""
    return item.error.exit_code if item.error is not None else ExitCode.ERROR


def print_errors(items: Sequence[EnvironmentPlan | EnvironmentReport]) -> None:
    """Print each error once, with the environments that have it."""
    from reconciler.render.progress import error_as_text

    texts: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.error is not None:
            texts[error_as_text(item.error, style_of(sys.stderr))].append(item.environment)
    for text, environments in texts.items():
        write_message(f"{text}  in {printable(', '.join(environments))}\n")
