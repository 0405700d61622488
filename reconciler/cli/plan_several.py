"""`reconciler plan` of several environments in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from reconciler.cli.exit_codes import exit_code_of_plan, worst_of
from reconciler.cli.output import print_warnings
from reconciler.cli.several import (
    calls_of,
    diagnostics_of,
    exit_code_of_error,
    print_errors,
    run_in_each,
)
from reconciler.cli.streams import write_note, write_result
from reconciler.commands.plan_request import PlanRequest
from reconciler.errors import ExitCode, system_error
from reconciler.model.text import printable
from reconciler.render.formats import writer_of
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.commands.environments import OfEnvironment
    from reconciler.commands.planning import PlanResult
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
    from reconciler.commands.planning import plan

    write = writer_of(output_format, "plans")
    planned = run_shown(lambda world: run_in_each(plan, request, names, world), runtime())
    print_warnings(diagnostics_of(planned))
    plans = [_shown(item, detailed=detailed) for item in planned]
    write_result(write(plans, how))
    print_errors(plans)
    if out is not None:
        _save(plans, out)
    write_note(f"{calls_of(planned)} API calls\n")
    return worst_of([item.exit_code for item in plans])


def _shown(item: OfEnvironment[PlanResult], *, detailed: bool) -> EnvironmentPlan:
    from reconciler.cli.running import cost_of
    from reconciler.model.planned import EnvironmentPlan

    if item.result is None:
        return EnvironmentPlan(item.environment, exit_code_of_error(item), error=item.error)
    code = exit_code_of_plan(item.result.plan, detailed=detailed)
    return EnvironmentPlan(item.environment, code, plan=item.result.plan, cost=cost_of(item.result))


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
