"""Backfills as Markdown, for comments and summaries of jobs."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.change import Severity
from reconciler.model.wording import several, shortened
from reconciler.render.backfills import counts, range_ends
from reconciler.render.markup import code, inline, marked_up, within
from reconciler.render.options import DEFAULTS, RenderOptions

_MARGIN = 200
_LONGEST_LINE = 500
_ALERTS = {Severity.DANGER: "CAUTION", Severity.WARNING: "WARNING", Severity.INFO: "NOTE"}


def backfills_as_markdown(plan: BackfillPlan, options: RenderOptions = DEFAULTS) -> str:
    """Return the counts, where it runs, what to know before, and a table of the ranges."""
    environment = inline(shortened(plan.source.environment, _LONGEST_LINE))
    lines = [f"### {environment}: {counts(plan)}", "", _place(plan, options)]
    for severity, alert in _ALERTS.items():
        messages = [item for item in plan.consequences if item.severity is severity]
        lines += ["", f"> [!{alert}]"] if messages else []
        for item in messages:
            message = marked_up(shortened(item.message, _LONGEST_LINE))
            lines.append(f"> - {message} {code(item.rule)}")
    if plan.backfills:
        lines += ["", "| from | to | runs | |", "|---|---|---|---|"]
    notes = [f"- {marked_up(shortened(note, _LONGEST_LINE))}" for note in plan.notes]
    used = sum(len(line) + 1 for line in (*lines, *notes))
    rows, missing = within(_rows(plan), options.limit - used - _MARGIN)
    lines += rows
    lines += ["", f"… and {several(missing, 'more backfill')} not in this table"] if missing else []
    lines += ["", *notes] if notes else []
    return "\n".join(lines) + "\n"


def _place(plan: BackfillPlan, options: RenderOptions) -> str:
    """Return what is exported again, where, and what starting it takes."""
    name = inline(shortened(plan.name, _LONGEST_LINE))
    parts = (plan.parent_name or "", plan.source.base_url, f"plan {plan.id[:8]}", options.cost)
    rest = inline(shortened(" · ".join(filter(None, parts)), _LONGEST_LINE))
    return f"{code(str(plan.address))} {name} · {rest}"


def _rows(plan: BackfillPlan) -> Iterator[str]:
    for item in plan.backfills:
        first, last = range_ends(item)
        yield f"| {first} | {last} | {item.runs:,} | {'tried first' if item.trial else ''} |"
