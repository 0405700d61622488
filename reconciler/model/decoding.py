"""Plans and audit logs, read from public JSON again.

The types of values are those of their JSON. What is derived is not read: the JSON of an intact plan
is what its value is encoded to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import orjson
from msgspec import Struct, convert, field

from reconciler.errors import ReconcilerError
from reconciler.exit_codes import ExitCode
from reconciler.model.event import Event, Noted, OfChange, Record, RunInfo
from reconciler.model.plan import Change, Plan, PlanSource
from reconciler.model.public import SECRET_KEY, Positive, Public, Term, as_json, derived, members
from reconciler.model.run import BackfillPlan
from reconciler.model.values import JSON, Address, SecretRef

STARTS = ("planned", "backfills_planned")
"""The events that start a run."""
_ENDS = ("done", "failed", "skipped")
"""The events that end a change."""
_MOST_BROKEN = 10
"""Lines at the start of an audit log of which one must be an event."""
_T = TypeVar("_T")
_Plan = TypeVar("_Plan", Plan, BackfillPlan)
_HINT = "make the plan again with `reconciler plan --out FILE`"


class Ending(Term):
    """How a change ended, as far as its log says."""

    DONE = "done", "It was made."
    ADOPTED = "adopted", "Its create had no clear answer, and its object was seen afterwards."
    FAILED = "failed", "It was not made, or only in part."
    STALE = "stale", "The object was modified since the plan was made; nothing was sent."
    UNKNOWN = "unknown", "A request may have taken effect."
    SKIPPED = "skipped", "It was not started."
    NOT_SENT = "not sent", "The run ended before a request changed anything."


class LoggedChange(OfChange, frozen=True):
    """A change of a run."""

    ending: Ending
    """How it ended."""
    live_id: str | None = field(default=None, name="id")
    """The object that it created or changed, null if unknown."""
    detail: str | None = None
    """The error, or why it was skipped, null without."""

    @derived
    def name(self) -> str:
        """The name of the object."""
        return self.change.name


class LoggedRun(Public, frozen=True):
    """A run in an audit log. Times are ISO 8601."""

    internal = frozenset({"plan"})

    started_by: RunInfo
    """Who started it, where, and with which version."""
    plan: Plan | BackfillPlan
    started_at: str
    """The start."""
    last_event_at: str
    """The last line."""
    changes: tuple[LoggedChange, ...]
    """The changes, in the order of the plan. A run of backfills has none."""
    exit_code: int | None = None
    """Null if the run was killed, or is still running."""
    verified: bool | None = None
    """Whether the plan afterwards was empty, null if there was none."""

    @property
    def code(self) -> int:
        """The exit code. Without an end, what the run sent may be a part."""
        return ExitCode.PARTLY_APPLIED if self.exit_code is None else self.exit_code

    @derived
    def plan_id(self) -> str:
        """The id of the plan."""
        return self.plan.plan_id

    @derived
    def source(self) -> PlanSource:
        """What the plan was computed from."""
        return self.plan.source


class Audit(Public, frozen=True):
    """The runs of an audit log: `show FILE --format json`."""

    version = 1
    schema = "audit"
    internal = frozenset({"shown"})

    runs: tuple[LoggedRun, ...]
    """The oldest first."""
    shown: LoggedRun


class Line(Struct, frozen=True, kw_only=True):
    """What is read of a line: what all have, and what ends a change or the run."""

    event: str
    run: str
    """Id of the run. Several runs can append to one file at once."""
    sequence: Positive
    """Number of the event in its run, from 1."""
    time: str
    """Time of the event, ISO 8601."""
    address: str = ""
    action: str = ""
    id: str | None = None
    error: str | None = None
    because: str | None = None
    adopted: bool | int = False
    unknown: bool | int = False
    stale: bool = False
    method: str = "GET"
    change: str | None = None
    exit_code: int | None = None
    verified: bool | None = None


class FirstLine(Line, frozen=True, kw_only=True):
    """The first line of a run."""

    started_by: RunInfo
    """Who started the run, where, and with which version."""


EVENTS: Mapping[str, Any] = {
    re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower(): kind
    for kind in get_args(Event)
    if kind is not Noted
}
"""The types of events by their words: `backfills_ended` of `BackfillsEnded`."""
_WORDS = {kind: word for word, kind in EVENTS.items()}


def encode_line(record: Record) -> bytes:
    """Return the line of an event, whose secrets must be masked already."""
    word = _WORDS[type(record.event)]
    head = {
        "event": word,
        "format_version": Plan.version,
        "run": record.run.id,
        "sequence": record.sequence,
        "time": record.time,
    }
    if word in STARTS:
        head["started_by"] = record.run
    return as_json(head | members(record.event), indent=False).encode()


def read_log(data: bytes, *, name: str = "<log>") -> tuple[LoggedRun, ...] | None:
    """Return the runs of an audit log, in the order in which they started.

    None if the data is not an audit log. A run that was killed, or on a full disk, may leave an
    incomplete line: the last of the file, or one before a run starts, also the first of the file.
    Raises InvalidPlanFile.
    """
    events = [_event(text) for text in data.splitlines()]
    first = next((event for event in events[:_MOST_BROKEN] if event is not None), None)
    if first is None or not (_starts_run(first) or events[0] is not None):
        return None
    runs: dict[str, tuple[FirstLine, Plan | BackfillPlan, list[Line]]] = {}
    for number, event in enumerate(events, start=1):
        where = f"{name}:{number}"
        if event is None:
            following = next((later for later in events[number:] if later is not None), None)
            if following is not None and not _starts_run(following):
                raise InvalidPlanFile(f"{where}: not a line of an audit log")
            continue
        if _starts_run(event):
            check_version(event, Plan, name=where)
        line = _line(event, name=where)
        if isinstance(line, FirstLine):
            kind: type[Any] = Plan if line.event == "planned" else BackfillPlan
            runs[line.run] = (line, decode_content(event.get("plan"), kind, name=where), [])
        elif line.run not in runs:
            raise InvalidPlanFile(f"{where}: this audit log contains no plan of run {line.run}")
        runs[line.run][-1].append(line)
    return tuple(_run(*parts) for parts in runs.values())


def _event(line: bytes) -> dict[str, Any] | None:
    """Return a line as a value, None if it is not an event."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return content if isinstance(content, dict) and "event" in content else None


def _starts_run(event: Mapping[str, Any]) -> bool:
    return event["event"] in STARTS


def _line(event: Mapping[str, Any], *, name: str) -> Line:
    try:
        return value_of(FirstLine if _starts_run(event) else Line, event)
    except ValueError as error:
        raise InvalidPlanFile(f"{name}: invalid event: {problem_of(error)}") from None


def _run(first: FirstLine, plan: Plan | BackfillPlan, lines: Sequence[Line]) -> LoggedRun:
    last = lines[-1]
    return LoggedRun(
        started_by=first.started_by,
        plan=plan,
        started_at=first.time,
        last_event_at=last.time,
        changes=_changes(plan, lines) if isinstance(plan, Plan) else (),
        exit_code=last.exit_code,
        verified=last.verified,
    )


def _changes(plan: Plan, lines: Iterable[Line]) -> tuple[LoggedChange, ...]:
    """Return how each change of a plan ended, by its last line that says so."""
    ends = {f"{line.address}:{line.action}": line for line in lines if line.event in _ENDS}
    sent = {line.change for line in lines if line.event == "sending" and line.method != "GET"}
    inside = plan.deleted_inside
    sent |= {change.id for deletion in inside.keys() & sent for change in inside[deletion]}
    return tuple(
        _change(change, ends.get(change.id), is_sent=change.id in sent) for change in plan.effective
    )


def _change(change: Change, end: Line | None, *, is_sent: bool) -> LoggedChange:
    if end is None:
        return LoggedChange(change, Ending.UNKNOWN if is_sent else Ending.NOT_SENT)
    return LoggedChange(change, _ending(end), end.id, end.error or end.because)


def _ending(line: Line) -> Ending:
    if line.event == "skipped":
        return Ending.SKIPPED
    if line.event == "done":
        return Ending.ADOPTED if line.adopted else Ending.DONE
    if line.unknown:
        return Ending.UNKNOWN
    return Ending.STALE if line.stale else Ending.FAILED


class InvalidPlanFile(ReconcilerError):
    """A file that is not a plan or an audit log, has another format, or was edited."""


def decode(data: bytes, *, name: str = "<plan>") -> Plan:
    """Return the plan that `encode` encoded. `name` is the file, for errors.

    Raises InvalidPlanFile.
    """
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        content = None
    return decode_content(content, Plan, name=name)


def decode_content(content: object, kind: type[_Plan], *, name: str) -> _Plan:
    """Return the plan of its public JSON as a value. Raises InvalidPlanFile."""
    if not isinstance(content, dict) or "format_version" not in content:
        raise InvalidPlanFile(f"{name}: not a plan file", hint=_HINT)
    check_version(content, kind, name=name)
    try:
        plan = value_of(kind, content)
        if orjson.loads(as_json(plan)) != content:
            raise ValueError("its digests do not match its content")  # noqa: TRY301 - one message
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"plan was edited or damaged: {problem_of(error)}"
        raise InvalidPlanFile(f"{name}: {problem}", hint=_HINT) from None
    return plan


def check_version(content: Mapping[str, Any], kind: type[Public], *, name: str) -> None:
    """Raise InvalidPlanFile for an unsupported format."""
    version = content.get("format_version")
    if version != kind.version:
        problem = f"unsupported format {version!r}, supported: {kind.version}"
        raise InvalidPlanFile(f"{name}: {problem}", hint=_HINT)


def value_of(kind: type[_T], content: object) -> _T:
    """Return the value of a type from its public JSON. Raises ValueError."""
    return convert(_with_secrets(content), kind, dec_hook=_address)


def _address(_: type[Address], text: object) -> Address:
    return Address.parse(str(text))


def _with_secrets(value: Any) -> JSON:
    """Return public JSON with values of the configuration as they were before `encode_value`."""
    if isinstance(value, dict):
        if value.keys() == {SECRET_KEY}:
            return convert(value[SECRET_KEY], SecretRef)
        return {name.removeprefix("$"): _with_secrets(item) for name, item in value.items()}
    return [_with_secrets(item) for item in value] if isinstance(value, list) else value


def problem_of(error: Exception) -> str:
    """Return the message of an error with its place: `changes[0].action: invalid enum value`."""
    message, _, place = str(error).partition(" - at `$")
    message = message[:1].lower() + message[1:]
    return f"{place.rstrip('`').removeprefix('.')}: {message}" if place else message
