"""Run a use case in several environments, for one report with a part for each."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from reconciler.cli.exit_codes import worst_of
from reconciler.cli.output import style_of
from reconciler.cli.streams import write_message
from reconciler.errors import ExitCode
from reconciler.model.text import printable

if TYPE_CHECKING:
    from reconciler.commands.environments import OfEnvironment
    from reconciler.commands.runtime import Reported, Runtime
    from reconciler.diagnostics import Diagnostic
    from reconciler.model.plan import EnvironmentPlan, EnvironmentReport

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


class Reporting(Struct, frozen=True):
    """Makes the report of the environment of a request, or of each one that `names` select."""

    work: Callable[[Any, Runtime], Awaitable[Reported[Any]]]
    request: Any
    names: Sequence[str]
    code_of: Callable[[Any], ExitCode]

    async def report(self, world: Runtime) -> Reported[Any]:
        """Return the report, of several environments a report or an error for each."""
        from reconciler.commands.runtime import Reported
        from reconciler.model.plan import EnvironmentReport

        if not self.names:
            return await self.work(self.request, world)
        done = await run_in_each(self.work, self.request, self.names, world)
        reports = tuple(
            EnvironmentReport(item.environment, exit_code_of_error(item), error=item.error)
            if item.result is None
            else EnvironmentReport(
                item.environment, self.code_of(item.result.report), report=item.result.report
            )
            for item in done
        )
        return Reported(reports, diagnostics_of(done), calls_of(done))

    def exit_code(self, report: Any) -> ExitCode:
        """Print the errors of a report of several environments, and return the worst exit code."""
        if not self.names:
            return self.code_of(report)
        print_errors(report)
        return worst_of(item.exit_code for item in report)


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
