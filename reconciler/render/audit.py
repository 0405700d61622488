"""Runs of an audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import asdict

from reconciler.model.address import Address
from reconciler.model.audit_log import Audit, Ending, LoggedChange, LoggedRun
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.plan import Plan
from reconciler.model.public import Public, as_json
from reconciler.model.text import several
from reconciler.render.document import Cell, Column, Document, Facts, Lines, Row, Table
from reconciler.render.options import DEFAULTS, Colour, RenderOptions
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
_UNKNOWN = """\
The outcome of {} is unknown. `reconciler plan` shows what is left to do.
"""
_UNKNOWN_REQUESTS = """\
The outcome of {} is unknown. Look at the backfills and runs before you start one again.
"""


class PublicChange(Public, frozen=True):
    """A change of a run."""

    address: Address
    """The resource."""
    action: str
    """What was to be done."""
    name: str
    """The name of the object."""
    ending: Ending
    """How it ended."""
    id: str | None
    """The object that it created or changed; null if unknown."""
    detail: str | None
    """The error, or why it was skipped."""


class PublicRequest(Public, frozen=True):
    """A request that writes and has no clear answer."""

    method: str
    """The HTTP method."""
    path: str
    """The path."""
    change_id: str | None
    """The change that it belongs to."""
    statuses: tuple[int | None, ...]
    """The status of each attempt; null without an answer."""


class PublicRun(Public, frozen=True, kw_only=True):
    """A run of an audit log. Times are ISO 8601."""

    id: str
    """Its id."""
    tool_version: str
    """The version of the program."""
    host: str
    """The machine."""
    user: str | None
    """The user of the machine."""
    actor: str | None
    """The user of the CI job."""
    job_url: str | None
    """The page of the CI job."""
    reason: str | None
    """What the user gave as the reason."""
    started_at: str
    """The start."""
    last_event_at: str
    """The last line."""
    environment: str
    """The environment."""
    base_url: str
    """The address of the service."""
    organization: str
    """The organization."""
    head: str | None
    """The commit."""
    plan_id: str
    """The id of the plan."""
    exit_code: int | None
    """Null if the run was killed."""
    verified: bool | None
    """Whether the plan afterwards was empty; null if there was none."""
    changes: tuple[PublicChange, ...]
    """The changes, in the order of the plan."""
    requests_without_answer: tuple[PublicRequest, ...]
    """Requests whose outcome is unknown."""


class PublicAudit(Public, frozen=True):
    """The runs of an audit log: `show FILE --format json`."""

    version = 1
    schema = "audit"

    runs: tuple[PublicRun, ...]
    """The oldest first."""


def audit_document(audit: Audit, _: RenderOptions) -> Document:
    """Return a line for each run if there are several, and one run in full."""
    shown = audit.shown
    runs = [
        f"{run.started_at}  {run.info.id}  {_who(run)}: {_counts(run)}; {_end(run)}"
        for run in audit.runs
    ]
    unclear = (
        (_UNKNOWN_REQUESTS, shown.unknown_requests, "request"),
        (_UNKNOWN, shown.unknown, "change"),
    )
    paragraphs = [text.format(several(len(items), noun)) for text, items, noun in unclear if items]
    return Document(
        (Cell(f"Run {shown.info.id}"),),
        (),
        (
            Lines(tuple(runs) if len(runs) > 1 else ()),
            Facts(tuple(_head(shown)), indent=0),
            Table(_COLUMNS, tuple(map(_change, shown.changes)), headed=False, noun="change"),
            Lines(tuple(_requests(shown))),
            *(Lines(tuple(text.splitlines())) for text in paragraphs),
        ),
    )


def audit_as_json(audit: Audit, _: RenderOptions = DEFAULTS) -> str:
    """Return the public JSON of an audit log."""
    return as_json(PublicAudit(tuple(map(_run, audit.runs))))


def _head(run: LoggedRun) -> Iterator[tuple[str, Cell]]:
    source, plan = run.plan.source, run.plan
    if isinstance(plan, Plan):
        contents = summary(plan).removeprefix("Plan: ")
    else:
        contents = f"{several(len(plan.backfills), 'backfill')}, {several(plan.runs, 'run')}."
    facts = {
        "Run": f"{run.info.id}, reconciler {run.info.tool_version}",
        "Started by": _who(run),
        "Job": run.info.job_url,
        "Reason": run.info.reason,
        "Time": f"{run.started_at} to {run.last_event_at}",
        "Environment": environment_as_text(source, full=True),
        "Commit": source.head,
        "Plan": f"{run.plan_id[:8]} · {contents}",
        "End": _end(run),
    }
    yield from ((name, Cell(text)) for name, text in facts.items() if text is not None)


def _who(run: LoggedRun) -> str:
    machine = f"{run.info.user or 'an unknown user'} on {run.info.host}"
    return f"{run.info.actor} ({machine})" if run.info.actor is not None else machine


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


def _requests(run: LoggedRun) -> Iterator[str]:
    listed = dict.fromkeys((*run.unanswered, *run.unknown_requests))
    if listed:
        yield "Requests without a clear answer:"
    for request in listed:
        attempts = f", {len(request.statuses)} attempts" if len(request.statuses) > 1 else ""
        change = f" ({request.change_id}{attempts})" if request.change_id is not None else ""
        yield f"  {request.method} {request.path}{change}"


def _run(run: LoggedRun) -> PublicRun:
    source = run.plan.source
    return PublicRun(
        **asdict(run.info),
        started_at=run.started_at,
        last_event_at=run.last_event_at,
        environment=source.environment,
        base_url=source.base_url,
        organization=source.organization,
        head=source.head,
        plan_id=run.plan_id,
        exit_code=run.exit_code,
        verified=run.verified,
        changes=tuple(
            PublicChange(
                address=logged.change.address,
                action=logged.change.action.value,
                name=logged.change.name,
                ending=logged.ending,
                id=logged.live_id,
                detail=logged.detail,
            )
            for logged in run.changes
        ),
        requests_without_answer=tuple(
            PublicRequest(**asdict(request)) for request in run.unanswered
        ),
    )
