"""Plans and reports of several environments as one: a part for each, then a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.planned import EnvironmentPlan, EnvironmentReport
from reconciler.model.public import as_json
from reconciler.model.text import plain_json, printable, several
from reconciler.render.diagnostics import diagnostic_as_json
from reconciler.render.document import Block, Cell, Document, Facts, Heading, Lines
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
    encoded = [item.plan and orjson.loads(plan_as_json(item.plan)) for item in plans]
    return _as_json("plan", plans, encoded)


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


def plan_as_json(plan: Plan, _: RenderOptions = DEFAULTS) -> str:
    """Return a plan as public JSON."""
    # The codec takes 40 ms to import, which other results do not need.
    from reconciler.model.codec.plan import encode

    return encode(plan).decode()


def reports_as_json(reports: Sequence[EnvironmentReport], _: RenderOptions) -> str:
    """Return a list with an object for each environment: `report` or `error` is null."""
    encoded = [item.report and orjson.loads(as_json(item.report)) for item in reports]
    return _as_json("report", reports, encoded)


def _as_json(
    name: str, items: Sequence[EnvironmentPlan | EnvironmentReport], values: Sequence[Any]
) -> str:
    content = [
        {
            "environment": item.environment,
            "exit_code": int(item.exit_code),
            name: value,
            "error": error_as_json(item.error),
        }
        for item, value in zip(items, values, strict=True)
    ]
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    return plain_json(text)


def reports_document(
    title: str, reports: Sequence[EnvironmentReport], document_of: Callable[[Any], Document]
) -> Document:
    """Return the documents of all environments as one."""
    documents = {
        item.environment: document_of(item.report) for item in reports if item.report is not None
    }
    parts = [block for item in reports for block in _part(item, documents.get(item.environment))]
    failed = Cell("error", Colour.RED)
    totals = tuple(
        (name, Cell(documents[name].summary) if name in documents else failed)
        for name in (item.environment for item in reports)
    )
    count = several(len(reports), "environment")
    failures = len(reports) - len(documents)
    heading = Heading((Cell(f"{count}, {failures} with an error" if failures else count),))
    end = heading, Facts(totals, attached=True)
    hint = ("hint: for a command above, select its environment: -e NAME",) * bool(documents)
    return Document((Cell(f"{title} of {count}"),), (), (*parts, *end), after=hint)


def _part(item: EnvironmentReport, document: Document | None) -> Iterator[Block]:
    if document is None:
        yield Heading((Cell(f"Environment {item.environment}"),))
        yield Lines(tuple(f"error: {problem}" for problem in item.problems), attached=True)
        return
    yield Heading(document.where)
    yield from document.blocks
    yield Lines(tuple(filter(None, (document.summary, *document.after))))
