"""Audit logs: events as lines of JSON, and the runs that are read from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, get_args

import orjson
from msgspec import Struct, ValidationError, convert, defstruct
from msgspec.structs import replace

from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.change import Change
from reconciler.model.codec.forms import form_of, members_of, value_of
from reconciler.model.codec.plan import (
    InvalidPlanFile,
    check_version,
    decode_backfill_content,
    decode_content,
    problem,
)
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Noted,
    OfChange,
    Planned,
    Record,
    RunInfo,
    Sending,
    Sent,
    Skipped,
    Twins,
    Withdrawing,
    Withdrawn,
)
from reconciler.model.logged_run import Ending, LoggedChange, LoggedRequest, LoggedRun
from reconciler.model.plan import Plan
from reconciler.model.public import Positive, Public, as_json, members

_STARTS = ("planned", "backfills_planned")
"""The events that start a run."""
_MOST_BROKEN = 10
"""Lines at the start of an audit log of which one must be an event."""


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


class StartLine(Line, frozen=True, kw_only=True):
    """The first line of a run."""

    started_by: form_of(RunInfo)  # type: ignore[valid-type]
    """Who started the run, where, and with which version."""


@cache
def lines() -> Any:
    """Return the type of all lines: the form of each event, behind what every line has."""
    return Union[tuple(_line_of(kind) for kind in get_args(Event) if kind is not Noted)]  # noqa: UP007


def _line_of(kind: type[Public]) -> type[Struct]:
    word = _word(kind)
    return defstruct(
        kind.__name__,
        members_of(kind),
        bases=(StartLine if word in _STARTS else Line,),
        namespace={"__doc__": kind.__doc__, "__declared__": kind},
        frozen=True,
        kw_only=True,
        tag=word,
    )


def _word(kind: type[Any]) -> str:
    """Return the word of an event: `backfills_ended` of `BackfillsEnded`."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def encode_line(record: Record) -> bytes:
    """Return the line of an event, whose secrets must be masked already."""
    event = record.event
    word = _word(type(event))
    head = {
        "event": word,
        "format_version": Plan.version,
        "run": record.run.id,
        "sequence": record.sequence,
        "time": record.time,
    }
    if word in _STARTS:
        head["started_by"] = record.run
    return as_json(head | members(event), indent=False).encode()


def read_log(data: bytes, *, name: str = "<log>") -> tuple[LoggedRun, ...] | None:
    """Return the runs of an audit log, in the order in which they started.

    None if the data is not an audit log. A run that was killed, or on a full disk, may leave an
    incomplete line: the last of the file, or one before a run starts, also the first of the file.
    Raises InvalidPlanFile.
    """
    texts = data.splitlines()
    first = next((event for event in map(_event, texts[:_MOST_BROKEN]) if event is not None), None)
    if first is None or not (_starts_run(first) or _event(texts[0]) is not None):
        return None
    runs: dict[str, list[Any]] = {}
    plans: dict[str, Plan | BackfillPlan] = {}
    events = [_event(text) for text in texts]
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
        if _starts_run(event):
            plans[line.run] = _plan(line, event["plan"], name=where)
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


def _decoded(event: dict[str, Any], *, name: str) -> Any:
    try:
        return convert(event, lines())
    except ValidationError as error:
        raise InvalidPlanFile(f"{name}: invalid event: {problem(error)}") from None


def _plan(line: Any, content: object, *, name: str) -> Plan | BackfillPlan:
    is_plan = line.__declared__ is Planned
    return (decode_content if is_plan else decode_backfill_content)(content, name=name)


def _run(lines: Sequence[Any], plan: Plan | BackfillPlan) -> LoggedRun:
    planned, *rest = lines
    changes = {change.id: change for change in plan.effective} if isinstance(plan, Plan) else {}
    events = [event for event in (_event_of(line, changes) for line in rest) if event is not None]
    requests = _writes(events)
    return LoggedRun(
        value_of(RunInfo, planned.started_by),
        plan,
        planned.time,
        lines[-1].time,
        _changes(plan, events, requests) if isinstance(plan, Plan) else (),
        requests,
        next((line.exit_code for line in rest if hasattr(line, "exit_code")), None),
        next((line.verified for line in rest if hasattr(line, "verified")), None),
    )


def _event_of(line: Any, changes: Mapping[str, Change]) -> Event | None:
    """Return the event of a line about a change or a request, None for any other."""
    kind = line.__declared__
    if issubclass(kind, OfChange):
        change = changes.get(f"{line.address}:{line.action}")
        return value_of(kind, line, change=change) if change is not None else None
    return value_of(kind, line) if kind in (Sending, Sent) else None


def _changes(
    plan: Plan, lines: Iterable[Event], requests: Iterable[LoggedRequest]
) -> tuple[LoggedChange, ...]:
    """Return how each change of a plan ended."""
    writing = {request.change_id for request in requests if not request.refused}
    inside = plan.deleted_inside
    writing |= {change.id for deletion in inside.keys() & writing for change in inside[deletion]}
    by_change: dict[str, list[OfChange]] = {}
    for line in lines:
        if isinstance(line, OfChange):
            by_change.setdefault(line.change.id, []).append(line)
    return tuple(
        _change(change, by_change.get(change.id, ()), wrote=change.id in writing)
        for change in plan.effective
    )


def _writes(lines: Iterable[Event]) -> tuple[LoggedRequest, ...]:
    """Return the requests that write. A change sends one request at a time."""
    statuses: dict[tuple[str, str, str | None], list[int | None]] = {}
    for line in lines:
        if isinstance(line, (Sending, Sent)) and line.method != "GET":
            attempts = statuses.setdefault((line.method, line.path, line.change_id), [])
            if isinstance(line, Sending):
                attempts.append(None)
            elif attempts:
                attempts[-1] = line.status
    return tuple(LoggedRequest(*request, tuple(made)) for request, made in statuses.items() if made)


def _change(change: Change, lines: Sequence[OfChange], *, wrote: bool) -> LoggedChange:
    """Return how a change ended, by its last line that says so."""
    logged = LoggedChange(change, Ending.UNKNOWN if wrote else Ending.NOT_SENT, wrote=wrote)
    before_withdrawing: Ending | None = None
    for line in lines:
        match line:
            case Done():
                ending = Ending.ADOPTED if line.adopted else Ending.DONE
                logged = replace(_with_object(logged, line), ending=ending)
            case Failed():
                made = _with_object(logged, line)
                logged = replace(made, ending=_failure(line), detail=line.error)
            case Skipped():
                logged = replace(logged, ending=Ending.SKIPPED, detail=line.because)
            case Withdrawing():
                before_withdrawing = logged.ending
                logged = replace(logged, ending=Ending.UNKNOWN)
            case Withdrawn():
                logged = replace(
                    logged, ending=Ending.WITHDRAWN, live_id=line.live_id, twin_ids=(line.twin_id,)
                )
            case Twins():
                logged = replace(
                    logged,
                    ending=before_withdrawing or logged.ending,
                    live_id=line.live_id,
                    twin_ids=line.twin_ids,
                    detail=line.because,
                )
    return logged


def _with_object(logged: LoggedChange, line: Done | Failed) -> LoggedChange:
    return replace(logged, live_id=line.live_id, adopted=line.adopted, stamp=line.stamp)


def _failure(line: Failed) -> Ending:
    if line.unknown:
        return Ending.UNKNOWN
    return Ending.STALE if line.stale else Ending.FAILED
