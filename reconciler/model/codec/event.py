"""Encode and decode audit logs: one line of JSON for each event of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import orjson
from msgspec import Struct, ValidationError, convert, structs, to_builtins

from reconciler.model.change import Action
from reconciler.model.codec.base import AddressText, copied
from reconciler.model.codec.forms import FORMAT_VERSION, PlanForm
from reconciler.model.codec.plan import (
    InvalidPlanFile,
    check_version,
    decode_content,
    digest,
    problem,
)
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Interrupting,
    Planned,
    Sent,
    Skipped,
    Started,
)
from reconciler.model.plan import Plan
from reconciler.model.wording import plain_json


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="event"):
    """One line of an audit log."""

    time: str
    """Time of the event, ISO 8601."""
    format_version: Literal[1]
    """Version of this format."""


class ChangeLine(Line, frozen=True, kw_only=True):
    """A line about one change."""

    address: AddressText
    action: Action
    """Action."""

    @property
    def change_id(self) -> str:
        """The id of the change in the plan."""
        return f"{self.address}:{self.action}"


class PlannedLine(Line, frozen=True, kw_only=True, tag="planned"):
    """The first line of a run, with the plan that is about to be applied."""

    plan: PlanForm
    """The plan, with known secrets masked."""


class StartedLine(ChangeLine, frozen=True, kw_only=True, tag="started"):
    """A change is about to send its first request."""


class SentLine(Line, frozen=True, kw_only=True, tag="sent"):
    """A request was answered, or ended without an answer."""

    method: Literal["GET", "POST", "PATCH", "DELETE", "PUT"]
    """HTTP method."""
    path: str
    """Path below the base URL, without a query."""
    status: int | None
    """HTTP status, null without an answer."""


class DoneLine(ChangeLine, frozen=True, kw_only=True, tag="done"):
    """A change was made."""

    id: str | None
    """Id of the object."""
    notices: tuple[str, ...]
    """Values that the server altered or ignored."""


class FailedLine(ChangeLine, frozen=True, kw_only=True, tag="failed"):
    """A change was not made, or only in part."""

    error: str
    """Reason."""
    ambiguous: bool
    """Whether the outcome is unknown."""


class SkippedLine(ChangeLine, frozen=True, kw_only=True, tag="skipped"):
    """A change was not started."""

    because: str
    """Reason."""


class InterruptingLine(Line, frozen=True, kw_only=True, tag="interrupting"):
    """A stop was requested: requests in flight are finished, no new ones are started."""


AnyLine: TypeAlias = (
    PlannedLine | StartedLine | SentLine | DoneLine | FailedLine | SkippedLine | InterruptingLine
)
_LINES: Mapping[type[Event], type[AnyLine]] = {
    Planned: PlannedLine,
    Started: StartedLine,
    Sent: SentLine,
    Done: DoneLine,
    Failed: FailedLine,
    Skipped: SkippedLine,
    Interrupting: InterruptingLine,
}


def encode_line(event: Event, *, time: str) -> bytes:
    """Return the line of an event, whose secrets must be masked already."""
    line = orjson.dumps(to_builtins(_line(event, time)))
    return plain_json(line.decode()).encode() + b"\n"


def last_run(data: bytes, *, name: str = "<log>") -> tuple[Plan, list[AnyLine]] | None:
    """Return the plan of the last run in an audit log, and the lines that follow it.

    None if the data is not an audit log. An incomplete last line, which a killed run leaves, is
    ignored. Raises InvalidPlanFile.
    """
    lines = data.splitlines()
    if not lines or _event(lines[0]) is None:
        return None
    events = [(number, _event(line)) for number, line in enumerate(lines, start=1)]
    if events[-1][1] is None:
        del events[-1]
    run: list[tuple[str, dict[str, Any]]] = []
    for number, event in events:
        if event is None:
            raise InvalidPlanFile(f"{name}:{number}: not a line of an audit log")
        if event["event"] == "planned":
            run = []
        run.append((f"{name}:{number}", event))
    (where, planned), *rest = run
    if planned["event"] != "planned":
        raise InvalidPlanFile(f"{name}: this audit log contains no plan")
    check_version(planned, name=where)
    plan = decode_content(planned.get("plan"), name=where)
    return plan, [_decoded(event, name=where) for where, event in rest]


def _event(line: bytes) -> dict[str, Any] | None:
    """Return a line as a value, None if it is not an event."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return content if isinstance(content, dict) and "event" in content else None


def _decoded(event: dict[str, Any], *, name: str) -> AnyLine:
    try:
        line: AnyLine = convert(event, AnyLine)
    except ValidationError as error:
        raise InvalidPlanFile(f"{name}: invalid event: {problem(error)}") from None
    return line


def _line(event: Event, time: str) -> AnyLine:
    parts: dict[str, Any] = {"time": time, "format_version": FORMAT_VERSION}
    match event:
        case Planned(plan):
            parts["plan"] = structs.replace(PlanForm.of(plan), digest=digest(plan))
        case Started(change) | Done(change) | Failed(change) | Skipped(change):
            parts |= {"address": str(change.address), "action": change.action}
    if isinstance(event, Done):
        parts["id"] = event.live_id
    return copied(_LINES[type(event)], event, **parts)
