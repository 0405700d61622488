"""The plans of several environments as one document: text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.planned import EnvironmentPlan
from reconciler.model.text import plain_json, printable, several
from reconciler.render.diagnostics import diagnostic_as_json
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.text import plan_as_text
from reconciler.render.plan.words import counted
from reconciler.render.style import Colour


def plans_as_text(plans: Sequence[EnvironmentPlan], options: RenderOptions = DEFAULTS) -> str:
    """Return a section for each environment, then a line for each."""
    parts = [_section(item, options) for item in plans]
    names = max(len(printable(item.environment)) for item in plans)
    lines = [f"{several(len(plans), 'environment')}:"]
    lines += [f"  {printable(item.environment):{names}}  {counts_of(item)}" for item in plans]
    return "\n".join([*parts, "\n".join(lines) + "\n"])


def plans_as_json(plans: Sequence[EnvironmentPlan], _: RenderOptions = DEFAULTS) -> str:
    """Return a list with an object for each environment: `plan` is null if there is an `error`."""
    content = [
        {
            "environment": item.environment,
            "exit_code": int(item.exit_code),
            "plan": _encoded(item.plan) if item.plan is not None else None,
            "error": error_as_json(item.error),
        }
        for item in plans
    ]
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    return plain_json(text)


def counts_of(item: EnvironmentPlan) -> str:
    """Return `2 to create, 1 to delete`, `no changes`, or that there is an error."""
    if item.plan is None:
        return "error"
    refused = any(not refusal.after_merge for refusal in item.plan.refusals)
    counts = ", ".join(counted(item.plan).values()) or "no changes"
    return f"{counts}; refused by policy" if refused else counts


def _section(item: EnvironmentPlan, options: RenderOptions) -> str:
    if item.plan is not None:
        return plan_as_text(item.plan, replace(options, cost=item.cost))
    name = options.style.paint(Colour.DIM, "Environment ") + printable(item.environment)
    number = several(len(item.problems), "error") if len(item.problems) > 1 else "error"
    first = printable(next(iter(item.problems), ""))
    return f"{name}\n{options.style.paint(Colour.BOLD_RED, number)}: {first}\n"


def _encoded(plan: Plan) -> Any:
    # The codec takes 40 ms to import, which other results do not need.
    from reconciler.model.codec.plan import encode

    return orjson.loads(encode(plan))


def error_as_json(error: ReconcilerError | None) -> dict[str, Any] | None:
    """Return an error that prevented the plan or the report of an environment."""
    if error is None:
        return None
    diagnostics = error.diagnostics if isinstance(error, InvalidConfiguration) else ()
    return {
        "message": error.message,
        "hint": error.hint,
        "diagnostics": [diagnostic_as_json(diagnostic) for diagnostic in diagnostics],
    }


def plan_as_json(plan: Plan, _: RenderOptions) -> str:
    """Return a plan as public JSON."""
    from reconciler.model.codec.plan import encode

    return encode(plan).decode()
