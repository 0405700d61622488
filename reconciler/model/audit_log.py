"""Audit logs: events as lines of JSON, and the runs that are read from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Literal, Union, get_args

import orjson
from msgspec import Struct, ValidationError, convert, defstruct
from msgspec.structs import replace

from reconciler.errors import ExitCode
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.decoding import (
    InvalidPlanFile,
    check_version,
    decode_backfill_content,
    decode_content,
    form_of,
    members_of,
    problem,
    value_of,
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
)
from reconciler.model.plan import Change, Plan
from reconciler.model.public import Positive, Public, Term, as_json, members

_STARTS = ("planned", "backfills_planned")
"""The events that start a run."""
_MOST_BROKEN = 10
"""Lines at the start of an audit log of which one must be an event."""


class Ending(Term):
    """How a change ended, as far as its log says."""

    DONE = "done", "It was made."
    ADOPTED = "adopted", "Its create had no clear answer, and its object was seen afterwards."
    FAILED = "failed", "It was not made, or only in part."
    STALE = "stale", "The object was modified since the plan was made; nothing was sent."
    UNKNOWN = "unknown", "A request may have taken effect."
    SKIPPED = "skipped", "It was not started."
    NOT_SENT = "not sent", "The run ended before a request changed anything."


class LoggedRequest(Struct, frozen=True):
    """A request that writes. `statuses` are those of its attempts, None without an answer."""

    method: str
    path: str
    change_id: str | None
    statuses: tuple[int | None, ...]

    @property
    def answered(self) -> bool:
        """Whether the last attempt was answered."""
        return self.statuses[-1] is not None

    @property
    def refused(self) -> bool:
        """Whether the service certainly did nothing."""
        return all(map(_refuses, self.statuses))

    @property
    def clear(self) -> bool:
        """Whether it is known if the last attempt took effect."""
        status = self.statuses[-1]
        return _refuses(status) or (status is not None and status < HTTPStatus.MULTIPLE_CHOICES)


def _refuses(status: int | None) -> bool:
    return (
        status is not None
        and status != HTTPStatus.REQUEST_TIMEOUT
        and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    )


class LoggedChange(Struct, frozen=True):
    """A change of a run.

    live_id
        The object that it created or changed, None if unknown.
    detail
        The error, or why it was skipped.
    wrote
        Whether a request that writes was sent and not refused.
    """

    change: Change
    ending: Ending
    live_id: str | None = None
    detail: str | None = None
    wrote: bool = False


class LoggedRun(Struct, frozen=True):
    """A run in an audit log. `exit_code` is None if it was killed. Times are ISO 8601.

    Only the run of a plan has changes and is verified.
    """

    info: RunInfo
    plan: Plan | BackfillPlan
    started_at: str
    last_event_at: str
    changes: tuple[LoggedChange, ...]
    requests: tuple[LoggedRequest, ...]
    exit_code: int | None = None
    verified: bool | None = None

    @property
    def plan_id(self) -> str:
        """The id of its plan."""
        return self.plan.plan_id

    @property
    def unknown(self) -> tuple[LoggedChange, ...]:
        """The changes with an unknown outcome."""
        return tuple(change for change in self.changes if change.ending is Ending.UNKNOWN)

    @property
    def unknown_requests(self) -> tuple[LoggedRequest, ...]:
        """The requests of no change, such as backfills, that may have taken effect.

        None of a run that ended well: it found what they did.
        """
        if self.exit_code == ExitCode.FINE:
            return ()
        return tuple(
            request for request in self.requests if request.change_id is None and not request.clear
        )

    @property
    def unanswered(self) -> tuple[LoggedRequest, ...]:
        """The requests that write whose last attempt has no answer."""
        return tuple(request for request in self.requests if not request.answered)


class Audit(Struct, frozen=True):
    """The runs of an audit log in the order of their start, and the one that is shown in full."""

    runs: Sequence[LoggedRun]
    shown: LoggedRun


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
            is_plan = line.__declared__ is Planned
            decode = decode_content if is_plan else decode_backfill_content
            plans[line.run] = decode(event["plan"], name=where)
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
    for line in lines:
        match line:
            case Done():
                ending = Ending.ADOPTED if line.adopted else Ending.DONE
                logged = replace(logged, live_id=line.live_id, ending=ending)
            case Failed():
                logged = replace(
                    logged, live_id=line.live_id, ending=_failure(line), detail=line.error
                )
            case Skipped():
                logged = replace(logged, ending=Ending.SKIPPED, detail=line.because)
    return logged


def _failure(line: Failed) -> Ending:
    if line.unknown:
        return Ending.UNKNOWN
    return Ending.STALE if line.stale else Ending.FAILED
