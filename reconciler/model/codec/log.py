"""Read audit logs: the runs in a file, and how each change of a run ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import ValidationError, convert
from msgspec.structs import replace

from reconciler.model.change import Change
from reconciler.model.codec.base import copied
from reconciler.model.codec.lines import (
    AnyLine,
    ChangeLine,
    DoneLine,
    EndedLine,
    FailedLine,
    PlannedLine,
    SendingLine,
    SentLine,
    SkippedLine,
    TwinsLine,
    WithdrawingLine,
    WithdrawnLine,
)
from reconciler.model.codec.plan import (
    InvalidPlanFile,
    check_version,
    decode_content,
    problem,
)
from reconciler.model.event import RunInfo
from reconciler.model.logged_run import Ending, LoggedChange, LoggedRequest, LoggedRun
from reconciler.model.plan import Plan

_MOST_BROKEN = 10
"""Lines at the start of an audit log of which one must be an event."""


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
    plans: dict[str, Plan] = {}
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
    return event is not None and event["event"] == "planned"


def _decoded(event: dict[str, Any], *, name: str) -> AnyLine:
    try:
        line: AnyLine = convert(event, AnyLine)
    except ValidationError as error:
        raise InvalidPlanFile(f"{name}: invalid event: {problem(error)}") from None
    return line


def _run(lines: Sequence[AnyLine], plan: Plan) -> LoggedRun:
    planned, *rest = lines
    assert isinstance(planned, PlannedLine)  # noqa: S101 - read_log refuses any other first line
    requests = _writes(rest)
    writing = {request.change_id for request in requests if not request.refused}
    inside = plan.deleted_inside
    writing |= {change.id for deletion in inside.keys() & writing for change in inside[deletion]}
    by_change: dict[str, list[ChangeLine]] = {}
    for line in rest:
        if isinstance(line, ChangeLine):
            by_change.setdefault(line.change_id, []).append(line)
    changes = tuple(
        _change(change, by_change.get(change.id, ()), wrote=change.id in writing)
        for change in plan.effective
    )
    info = copied(RunInfo, planned.started_by)
    run = LoggedRun(info, plan, planned.time, lines[-1].time, changes, requests)
    for line in rest:
        if isinstance(line, EndedLine):
            run = replace(run, exit_code=line.exit_code, verified=line.verified)
    return run


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
