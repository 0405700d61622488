"""Audit logs: events as lines of JSON, and the runs that are read from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from msgspec import Meta, Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.change import Change
from reconciler.model.codec.backfill_plan import BackfillPlanForm, ObjectBackfillsForm, decode_form
from reconciler.model.codec.base import AddressText, Form, copied
from reconciler.model.codec.forms import FORMAT_VERSION, PlanForm
from reconciler.model.codec.plan import InvalidPlanFile, check_version, decode_content, problem
from reconciler.model.event import (
    BackfillsEnded,
    BackfillsPlanned,
    Done,
    Ended,
    Event,
    Failed,
    Interrupting,
    Planned,
    Reading,
    Record,
    RunInfo,
    Sending,
    Sent,
    Skipped,
    Started,
    Twins,
    Verifying,
    Waiting,
    Withdrawing,
    Withdrawn,
)
from reconciler.model.logged_run import Ending, LoggedChange, LoggedRequest, LoggedRun
from reconciler.model.plan import Plan
from reconciler.model.public import Count
from reconciler.model.text import plain_json

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE", "PUT"]
ChangeId: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": r"^[^.]+\..+:[a-z-]+$"})]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
_STARTS = ("planned", "backfills_planned")
"""The events that start a run."""
_MOST_BROKEN = 10
"""Lines at the start of an audit log of which one must be an event."""


class RunForm(Form, frozen=True, kw_only=True):
    """Who started a run, where, and with which version."""

    id: str
    """Id of the run."""
    tool_version: str
    """Version of reconciler."""
    host: str
    """Name of the machine."""
    user: str | None
    """User of the machine, null if unknown."""
    actor: str | None
    """User that started the CI job, null outside of CI."""
    job_url: str | None
    """Page of the CI job, null outside of CI."""
    reason: str | None = None
    """Why the run was started, as its user wrote it, null if not given."""


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="event"):
    """One line of an audit log."""

    format_version: Literal[1]
    """Version of this format."""
    run: str
    """Id of the run. Several runs can append to one file at once."""
    sequence: Positive
    """Number of the event in its run, from 1."""
    time: str
    """Time of the event, ISO 8601."""


class ChangeLine(Line, frozen=True, kw_only=True):
    """A line about one change."""

    address: AddressText
    action: Action
    """Action."""

    @property
    def change_id(self) -> str:
        """The id of the change in the plan."""
        return f"{self.address}:{self.action}"


class RequestLine(Line, frozen=True, kw_only=True):
    """A line about one request."""

    method: Method
    """HTTP method."""
    path: str
    """Path below the base URL, without a query."""
    attempt: Positive
    """Number of the attempt, from 1."""
    change: ChangeId | None
    """ADDRESS:ACTION of the change that sends it, null if it belongs to no single change."""


class PlannedLine(Line, frozen=True, kw_only=True, tag="planned"):
    """The first line of a run, with the plan that is about to be applied."""

    started_by: RunForm
    """Who started the run, where, and with which version."""
    plan: PlanForm
    """The plan, with known secrets masked."""


class BackfillsPlannedLine(Line, frozen=True, kw_only=True, tag="backfills_planned"):
    """The first line of a run that starts backfills, with their plan."""

    started_by: RunForm
    """Who started the run, where, and with which version."""
    plan: BackfillPlanForm
    """The plan, with known secrets masked."""


class StartedLine(ChangeLine, frozen=True, kw_only=True, tag="started"):
    """A change is about to send its first request."""


class SendingLine(RequestLine, frozen=True, kw_only=True, tag="sending"):
    """A request is about to be sent."""


class SentLine(RequestLine, frozen=True, kw_only=True, tag="sent"):
    """A request was answered, or ended without an answer."""

    status: int | None
    """HTTP status, null without an answer."""
    seconds: Seconds
    """Duration."""
    error: str | None
    """Why there was no answer."""


class WaitingLine(Line, frozen=True, kw_only=True, tag="waiting"):
    """Nothing is sent for some time."""

    seconds: Seconds
    """Duration."""
    reason: str
    """Reason."""
    change: ChangeId | None
    """ADDRESS:ACTION of the change that waits, null if all wait."""


class ReadingLine(Line, frozen=True, kw_only=True, tag="reading"):
    """A part of a list was read."""

    collection: str
    """What is listed."""
    read: Count
    """Objects read."""
    total: Count | None
    """Objects in the list, null if unknown."""


class DoneLine(ChangeLine, frozen=True, kw_only=True, tag="done"):
    """A change was made."""

    id: str | None
    """Id of the object."""
    adopted: bool
    """Whether the outcome of the create was unknown, and its object was seen afterwards."""
    notices: tuple[str, ...]
    """Values that the server altered or ignored."""
    stamp: str | None = None
    """`created_at` or `uuid` of a created object, which another one with its id does not have."""


class FailedLine(ChangeLine, frozen=True, kw_only=True, tag="failed"):
    """A change was not made, or only in part."""

    id: str | None
    """Id of the object that was created before the failure, null without one."""
    error: str
    """Reason."""
    hint: str | None
    """What to do, null without a hint."""
    unknown: bool
    """Whether a request may have taken effect."""
    unexpected: bool
    """Whether it is an error of reconciler."""
    stale: bool
    """Whether the object was modified since the plan was made, and nothing was sent."""
    adopted: bool = False
    """Whether the create had no clear answer, and its object was seen afterwards."""
    stamp: str | None = None
    """`created_at` or `uuid` of the created object, null if unknown."""


class SkippedLine(ChangeLine, frozen=True, kw_only=True, tag="skipped"):
    """A change was not started."""

    because: str
    """Reason."""


class _TwinLine(ChangeLine, frozen=True, kw_only=True):
    """A line about a new object whose twin was created by another client."""

    id: str
    """Id of the object that this run created."""
    twin_id: str
    """Id of the object that stays."""


class WithdrawingLine(_TwinLine, frozen=True, kw_only=True, tag="withdrawing"):
    """The new object is about to be deleted, because an older twin exists."""


class WithdrawnLine(_TwinLine, frozen=True, kw_only=True, tag="withdrawn"):
    """The new object was deleted again."""


class TwinsLine(ChangeLine, frozen=True, kw_only=True, tag="twins"):
    """Two objects have the same name and scope, and both stay."""

    id: str
    """Id of the object that this run created."""
    twin_ids: tuple[str, ...]
    """Ids of the other objects."""
    because: str
    """Why both stay."""
    hint: str
    """What to do."""


class InterruptingLine(Line, frozen=True, kw_only=True, tag="interrupting"):
    """A stop was requested: nothing new is sent."""

    forced: bool
    """Whether requests in flight are abandoned."""


class VerifyingLine(Line, frozen=True, kw_only=True, tag="verifying"):
    """All changes ended; live state is read and planned again."""


class EndedLine(Line, frozen=True, kw_only=True, tag="ended"):
    """The last line of a run. A run that was killed has none."""

    done: Count
    """Changes that were made."""
    adopted: Count
    """Those of them whose outcome was unknown at first."""
    failed: Count
    """Changes that were not made, or only in part."""
    unknown: Count
    """Those of them that may have taken effect."""
    skipped: Count
    """Changes that were not started."""
    withdrawn: Count
    """Creates whose object was deleted again."""
    twins: Count
    """Creates with a twin that stays."""
    interrupted: bool
    """Whether a stop was requested."""
    verified: bool | None
    """Whether the plan after the run was made and is empty, null if it was not requested."""
    exit_code: Literal[0, 1, 3, 130]
    """0: everything was done. 1: it could not be verified. 3: something failed, was skipped or has
    a twin. 130: interrupted."""


class BackfillsEndedLine(Line, frozen=True, kw_only=True, tag="backfills_ended"):
    """The last line of a run that starts backfills. A run that was killed has none."""

    objects: tuple[ObjectBackfillsForm, ...]
    """The backfills of each object, and how they ended."""
    interrupted: bool
    """Whether a stop was requested."""
    exit_code: Literal[0, 3, 130]
    """0: everything was started. 3: something was not, or its outcome is unknown. 130:
    interrupted."""


AnyLine: TypeAlias = (
    PlannedLine
    | BackfillsPlannedLine
    | StartedLine
    | SendingLine
    | SentLine
    | WaitingLine
    | ReadingLine
    | DoneLine
    | FailedLine
    | SkippedLine
    | WithdrawingLine
    | WithdrawnLine
    | TwinsLine
    | InterruptingLine
    | VerifyingLine
    | EndedLine
    | BackfillsEndedLine
)


_LINES: Mapping[type[Event], type[AnyLine]] = {
    Planned: PlannedLine,
    BackfillsPlanned: BackfillsPlannedLine,
    Started: StartedLine,
    Sending: SendingLine,
    Sent: SentLine,
    Waiting: WaitingLine,
    Reading: ReadingLine,
    Done: DoneLine,
    Failed: FailedLine,
    Skipped: SkippedLine,
    Withdrawing: WithdrawingLine,
    Withdrawn: WithdrawnLine,
    Twins: TwinsLine,
    Interrupting: InterruptingLine,
    Verifying: VerifyingLine,
    Ended: EndedLine,
    BackfillsEnded: BackfillsEndedLine,
}


def encode_line(record: Record) -> bytes:
    """Return the line of an event, whose secrets must be masked already."""
    line = orjson.dumps(to_builtins(_line(record)))
    return plain_json(line.decode()).encode() + b"\n"


def _line(record: Record) -> AnyLine:
    event = record.event
    parts: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run": record.run.id,
        "sequence": record.sequence,
        "time": record.time,
    }
    match event:
        case Planned(plan):
            parts["plan"] = PlanForm.of(plan)
            parts["started_by"] = copied(RunForm, record.run)
        case BackfillsPlanned(backfills):
            parts["plan"] = BackfillPlanForm.of(backfills)
            parts["started_by"] = copied(RunForm, record.run)
        case BackfillsEnded(ended):
            parts["objects"] = tuple(ObjectBackfillsForm.of(it.object, it.ends) for it in ended)
            parts["exit_code"] = int(event.exit_code)
        case Sending():
            parts["change"] = event.change_id
        case Sent() | Waiting():
            parts |= {"change": event.change_id, "seconds": round(event.seconds, 3)}
        case Started(change) | Skipped(change):
            parts |= {"address": str(change.address), "action": change.action}
        case (
            Done(change, live_id)
            | Failed(change, live_id=live_id)
            | Withdrawing(change, live_id)
            | Withdrawn(change, live_id)
            | Twins(change, live_id)
        ):
            parts |= {"address": str(change.address), "action": change.action, "id": live_id}
        case Ended():
            parts |= _counts(event)
    return copied(_LINES[type(event)], event, **parts)


def _counts(ended: Ended) -> dict[str, Any]:
    report = ended.report
    return {
        "done": len(report.done),
        "adopted": sum(done.adopted for done in report.done),
        "failed": len(report.failed),
        "unknown": sum(failed.unknown for failed in report.failed),
        "skipped": len(report.skipped),
        "withdrawn": len(report.withdrawn),
        "twins": len(report.twins),
        "interrupted": report.interrupted,
        "exit_code": int(ended.exit_code),
    }


def read_log(data: bytes, *, name: str = "<log>") -> tuple[LoggedRun, ...] | None:
    """Return the runs of an audit log, in the order in which they started.

    None if the data is not an audit log. A run that was killed, or on a full disk, may leave an
    incomplete line: the last of the file, or one before a run starts, also the first of the file.
    Raises InvalidPlanFile.
    """
    lines = data.splitlines()
    first = next((event for event in map(_event, lines[:_MOST_BROKEN]) if event is not None), None)
    if first is None or not (_starts_run(first) or _event(lines[0]) is not None):
        return None
    runs: dict[str, list[AnyLine]] = {}
    plans: dict[str, Plan | BackfillPlan] = {}
    events = [_event(line) for line in lines]
    for number, event in enumerate(events, start=1):
        where = f"{name}:{number}"
        if event is None:
            following = next((later for later in events[number:] if later is not None), None)
            if following is not None and not _starts_run(following):
                raise InvalidPlanFile(f"{where}: not a line of an audit log")
            continue
        if _starts_run(event):
            check_version(event, name=where)
        line = _decoded(event, name=where)
        if isinstance(line, PlannedLine):
            plans[line.run] = decode_content(event["plan"], name=where)
        elif isinstance(line, BackfillsPlannedLine):
            plans[line.run] = decode_form(line.plan, name=where)
        elif line.run not in plans:
            raise InvalidPlanFile(f"{where}: this audit log contains no plan of run {line.run}")
        runs.setdefault(line.run, []).append(line)
    return tuple(_run(lines, plans[run]) for run, lines in runs.items())


def _event(line: bytes) -> dict[str, Any] | None:
    """Return a line as a value, None if it is not an event."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return content if isinstance(content, dict) and "event" in content else None


def _starts_run(event: Mapping[str, Any] | None) -> bool:
    return event is not None and event["event"] in _STARTS


def _decoded(event: dict[str, Any], *, name: str) -> AnyLine:
    try:
        line: AnyLine = convert(event, AnyLine)
    except ValidationError as error:
        raise InvalidPlanFile(f"{name}: invalid event: {problem(error)}") from None
    return line


def _run(lines: Sequence[AnyLine], plan: Plan | BackfillPlan) -> LoggedRun:
    planned, *rest = lines
    # read_log refuses any other first line
    assert isinstance(planned, PlannedLine | BackfillsPlannedLine)  # noqa: S101
    requests = _writes(rest)
    changes = _changes(plan, rest, requests) if isinstance(plan, Plan) else ()
    info = copied(RunInfo, planned.started_by)
    run = LoggedRun(info, plan, planned.time, lines[-1].time, changes, requests)
    for line in rest:
        match line:
            case EndedLine():
                run = replace(run, exit_code=line.exit_code, verified=line.verified)
            case BackfillsEndedLine():
                run = replace(run, exit_code=line.exit_code)
    return run


def _changes(
    plan: Plan, lines: Iterable[AnyLine], requests: Iterable[LoggedRequest]
) -> tuple[LoggedChange, ...]:
    """Return how each change of a plan ended."""
    writing = {request.change_id for request in requests if not request.refused}
    inside = plan.deleted_inside
    writing |= {change.id for deletion in inside.keys() & writing for change in inside[deletion]}
    by_change: dict[str, list[ChangeLine]] = {}
    for line in lines:
        if isinstance(line, ChangeLine):
            by_change.setdefault(line.change_id, []).append(line)
    return tuple(
        _change(change, by_change.get(change.id, ()), wrote=change.id in writing)
        for change in plan.effective
    )


def _writes(lines: Iterable[AnyLine]) -> tuple[LoggedRequest, ...]:
    """Return the requests that write. A change sends one request at a time."""
    statuses: dict[tuple[str, str, str | None], list[int | None]] = {}
    for line in lines:
        if isinstance(line, (SendingLine, SentLine)) and line.method != "GET":
            attempts = statuses.setdefault((line.method, line.path, line.change), [])
            if isinstance(line, SendingLine):
                attempts.append(None)
            elif attempts:
                attempts[-1] = line.status
    return tuple(LoggedRequest(*request, tuple(made)) for request, made in statuses.items() if made)


def _change(change: Change, lines: Sequence[ChangeLine], *, wrote: bool) -> LoggedChange:
    """Return how a change ended, by its last line that says so."""
    logged = LoggedChange(change, Ending.UNKNOWN if wrote else Ending.NOT_SENT, wrote=wrote)
    before_withdrawing: Ending | None = None
    for line in lines:
        match line:
            case DoneLine():
                ending = Ending.ADOPTED if line.adopted else Ending.DONE
                logged = replace(_with_object(logged, line), ending=ending)
            case FailedLine():
                made = _with_object(logged, line)
                logged = replace(made, ending=_failure(line), detail=line.error)
            case SkippedLine():
                logged = replace(logged, ending=Ending.SKIPPED, detail=line.because)
            case WithdrawingLine():
                before_withdrawing = logged.ending
                logged = replace(logged, ending=Ending.UNKNOWN)
            case WithdrawnLine():
                logged = replace(
                    logged, ending=Ending.WITHDRAWN, live_id=line.id, twin_ids=(line.twin_id,)
                )
            case TwinsLine():
                logged = replace(
                    logged,
                    ending=before_withdrawing or logged.ending,
                    live_id=line.id,
                    twin_ids=line.twin_ids,
                    detail=line.because,
                )
    return logged


def _with_object(logged: LoggedChange, line: DoneLine | FailedLine) -> LoggedChange:
    return replace(logged, live_id=line.id, adopted=line.adopted, stamp=line.stamp)


def _failure(line: FailedLine) -> Ending:
    if line.unknown:
        return Ending.UNKNOWN
    return Ending.STALE if line.stale else Ending.FAILED
