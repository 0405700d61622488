"""Encode the events of a run: one line of JSON for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import to_builtins

from reconciler.model.codec.base import copied
from reconciler.model.codec.forms import FORMAT_VERSION, PlanForm
from reconciler.model.codec.lines import (
    AnyLine,
    DoneLine,
    EndedLine,
    FailedLine,
    InterruptingLine,
    PlannedLine,
    ReadingLine,
    RunForm,
    SendingLine,
    SentLine,
    SkippedLine,
    StartedLine,
    TwinsLine,
    VerifyingLine,
    WaitingLine,
    WithdrawingLine,
    WithdrawnLine,
)
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Interrupting,
    Planned,
    Reading,
    Record,
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
from reconciler.model.wording import plain_json

_LINES: Mapping[type[Event], type[AnyLine]] = {
    Planned: PlannedLine,
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
