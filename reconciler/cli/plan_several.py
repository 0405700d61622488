"""`reconciler plan` of several environments in one run."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from reconciler.cli.exit_codes import exit_code_of_plan, worst_of
from reconciler.cli.output import print_warnings, style_of
from reconciler.cli.streams import write_message, write_note, write_result
from reconciler.commands.plan_request import PlanRequest
from reconciler.diagnostics import Diagnostic
from reconciler.errors import ExitCode, system_error
from reconciler.model.text import printable
from reconciler.render.formats import writer_of
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.commands.planning_many import PlannedEnvironment
    from reconciler.model.planned import EnvironmentPlan


def plan_several(
    request: PlanRequest,
    names: Sequence[str],
    output_format: str,
    how: RenderOptions,
    *,
    out: Path | None,
    detailed: bool,
) -> ExitCode:
    """Plan environments, print one document, save a plan for each into the folder `out`."""
    from reconciler.cli.running import run_shown, runtime
    from reconciler.commands.planning_many import chosen_environments, plan_many

    write = writer_of(output_format, "plans")
    environments = chosen_environments(request.workspace.folder, names)
    planned = run_shown(lambda world: plan_many(request, environments, world), runtime())
    print_warnings(_once(item.result.diagnostics for item in planned if item.result is not None))
    plans = [_shown(item, detailed=detailed) for item in planned]
    write_result(write(plans, how))
    _print_errors(planned)
    if out is not None:
        _save(plans, out)
    calls = sum(item.result.calls for item in planned if item.result is not None)
    write_note(f"{calls} API calls\n")
    return worst_of([item.exit_code for item in plans])


def _shown(item: PlannedEnvironment, *, detailed: bool) -> EnvironmentPlan:
    from reconciler.cli.running import cost_of
    from reconciler.model.planned import EnvironmentPlan

    if item.result is None:
        code = item.error.exit_code if item.error is not None else ExitCode.ERROR
        return EnvironmentPlan(item.environment, code, error=item.error)
    code = exit_code_of_plan(item.result.plan, detailed=detailed)
    return EnvironmentPlan(item.environment, code, item.result.plan, cost=cost_of(item.result))


def _once(groups: Iterable[Sequence[Diagnostic]]) -> tuple[Diagnostic, ...]:
    """Return warnings without repetition, since environments share the files."""
    return tuple(dict.fromkeys(diagnostic for group in groups for diagnostic in group))


def _print_errors(planned: Sequence[PlannedEnvironment]) -> None:
    """Print each error once, with the environments that have it."""
    from reconciler.render.progress import error_as_text

    texts: dict[str, list[str]] = defaultdict(list)
    for item in planned:
        if item.error is not None:
            texts[error_as_text(item.error, style_of(sys.stderr))].append(item.environment)
    for text, environments in texts.items():
        write_message(f"{text}  in {printable(', '.join(environments))}\n")


def _save(plans: Sequence[EnvironmentPlan], out: Path) -> None:
    """Write the plan of each environment, and remove an earlier one where there is none now."""
    from reconciler.commands.files import write_private
    from reconciler.model.codec.plan import encode

    try:
        out.mkdir(parents=True, exist_ok=True)
        for item in plans:
            if item.plan is None:
                _file(out, item).unlink(missing_ok=True)
    except OSError as error:
        raise system_error(error) from None
    saved = [item for item in plans if item.plan is not None]
    for item in saved:
        if item.plan is not None:
            write_private(_file(out, item), encode(item.plan))
    if saved:
        first = f"-e {saved[0].environment} {_file(out, saved[0])}"
        where = f"saved to {out}; apply one with: reconciler apply {first}"
        write_note(f"{printable(where)}\n")


def _file(out: Path, item: EnvironmentPlan) -> Path:
    # The name of an environment may have a slash.
    return out / f"{quote(item.environment, safe='')}.json"
