"""Runs of an audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reconciler.errors import ExitCode
from reconciler.model.audit_log import Audit, Ending, LoggedChange, LoggedRun
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.plan import Plan
from reconciler.model.text import several
from reconciler.render.document import Cell, Column, Document, Facts, Lines, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.plan_document import environment_as_text
from reconciler.render.words import SIGNS, summary, title

_COLOURS = {
    Ending.DONE: Colour.GREEN,
    Ending.ADOPTED: Colour.GREEN,
    Ending.FAILED: Colour.RED,
    Ending.STALE: Colour.RED,
    Ending.UNKNOWN: Colour.BOLD_RED,
}
_COLUMNS = Column("ending"), Column("change", padded=False)
_UNKNOWN = "The outcome of {} is unknown. `reconciler plan` shows what is left to do."
_BACKFILLS = "Look at the backfills and runs before you start a backfill again."


def audit_document(audit: Audit, _: RenderOptions) -> Document:
    """Return a line for each run if there are several, and one run in full."""
    shown = audit.shown
    runs = [
        f"{run.started_at}  {run.started_by.id}  {_who(run)}: {_counts(run)}; {_end(run)}"
        for run in audit.runs
    ]
    unknown = sum(logged.ending is Ending.UNKNOWN for logged in shown.changes)
    advice = _UNKNOWN.format(several(unknown, "change")) if unknown else ""
    if isinstance(shown.plan, BackfillPlan) and shown.exit_code != ExitCode.FINE:
        advice = _BACKFILLS
    return Document(
        (Cell(f"Run {shown.started_by.id}"),),
        (),
        (
            Lines(tuple(runs) if len(runs) > 1 else ()),
            Facts(tuple(_head(shown)), indent=0),
            Table(_COLUMNS, tuple(map(_change, shown.changes)), headed=False, noun="change"),
            Lines((advice,) if advice else ()),
        ),
    )


def _head(run: LoggedRun) -> Iterator[tuple[str, Cell]]:
    source, plan = run.plan.source, run.plan
    if isinstance(plan, Plan):
        contents = summary(plan).removeprefix("Plan: ")
    else:
        contents = f"{several(len(plan.backfills), 'backfill')}, {several(plan.runs, 'run')}."
    facts = {
        "Run": f"{run.started_by.id}, reconciler {run.started_by.tool_version}",
        "Started by": _who(run),
        "Job": run.started_by.job_url,
        "Reason": run.started_by.reason,
        "Time": f"{run.started_at} to {run.last_event_at}",
        "Environment": environment_as_text(source, full=True),
        "Commit": source.head,
        "Plan": f"{run.plan_id[:8]} · {contents}",
        "End": _end(run),
    }
    yield from ((name, Cell(text)) for name, text in facts.items() if text is not None)


def _who(run: LoggedRun) -> str:
    machine = f"{run.started_by.user or 'an unknown user'} on {run.started_by.host}"
    return f"{run.started_by.actor} ({machine})" if run.started_by.actor is not None else machine


def _end(run: LoggedRun) -> str:
    """Return how a run ended."""
    if run.exit_code is None:
        return "no end is recorded: it was killed, or it is still running"
    if isinstance(run.plan, BackfillPlan):
        return f"exit code {run.exit_code}"
    verified = {True: "verified", False: "verification failed", None: "not verified"}
    return f"exit code {run.exit_code}, {verified[run.verified]}"


def _counts(run: LoggedRun) -> str:
    if isinstance(run.plan, BackfillPlan):
        return several(len(run.plan.backfills), "backfill")
    counts = Counter(logged.ending for logged in run.changes)
    parts = [f"{counts[ending]} {ending}" for ending in Ending if counts[ending]]
    return ", ".join(parts) or "no changes"


def _change(logged: LoggedChange) -> Row:
    change = logged.change
    text = f"{change.action} {title(change)}"
    text += f" (id {logged.live_id})" if logged.live_id is not None else ""
    text += f": {logged.detail}" if logged.detail else ""
    ending = Cell(logged.ending.value, _COLOURS.get(logged.ending))
    return Row((ending, Cell(text)), SIGNS[change.action].text)
