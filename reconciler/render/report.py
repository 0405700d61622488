"""The events of a run as lines, and the report at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reconciler.model.action import Action
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Interrupting,
    Report,
    Skipped,
    Twins,
    Withdrawing,
    Withdrawn,
)
from reconciler.model.text import printable
from reconciler.render.plan.words import SIGNS, title

_UNKNOWN = """\
A change with an unknown outcome may have taken effect. Nothing is sent twice in one run.
Run `reconciler plan` to see what is left, then apply again.
"""
_AGAIN = "Run the command again to continue. Completed changes are not repeated.\n"
_REFUSED = "Correct what the service refused, then apply again. Completed changes stay.\n"


def event_as_text(event: Event) -> str:
    """Return the lines of a change that ended or of an interruption, "" for other events.

    Lines after the first are indented, so that text of a server can't forge a line.
    """
    match event:
        case Done():
            lines = _done(event)
        case Failed():
            lines = _failed(event)
        case Skipped(change, because):
            lines = [f"○ {change.action} of {title(change)} skipped: {because}"]
        case Withdrawing(change, live_id, twin_id):
            why = f"another client created the same object before (id {twin_id})"
            lines = [f"! withdrawing {title(change)} (id {live_id}): {why}"]
        case Withdrawn(change, live_id, twin_id):
            lines = [f"- withdrew {title(change)} (id {live_id}); id {twin_id} stays"]
        case Twins(change, live_id, twin_ids, because, hint):
            lines = [_twice(title(change), live_id, twin_ids, because), f"hint: {hint}"]
        case Interrupting(forced=True):
            lines = ["Stopping now: requests in flight are abandoned."]
        case Interrupting():
            lines = ["Stopping: waiting for running changes (at most 5 s). Repeat to stop now."]
        case _:
            lines = []
    return _indented(lines)


def _twice(name: str, live_id: str, twin_ids: Sequence[str], because: str) -> str:
    if not twin_ids:
        return f"✗ {name} may exist twice (created by this run: id {live_id}): {because}"
    ids = f"id {live_id} (created by this run) and id {', '.join(twin_ids)}"
    return f"✗ {name} exists twice: {ids}: {because}"


def _indented(lines: Sequence[str]) -> str:
    return "\n    ".join(printable(line) for text in lines for line in text.split("\n"))


def _done(done: Done) -> list[str]:
    change = done.change
    line = f"{SIGNS[change.action].text} {past(change.action)} {title(change)} (id {done.live_id})"
    if done.adopted:
        line += ", adopted: its create had no clear answer"
    return [line, *(f"! {notice}" for notice in done.notices)]


def _failed(failed: Failed) -> list[str]:
    change = failed.change
    if failed.unknown:
        outcome = "has an unknown outcome"
    else:
        outcome = "is stale" if failed.stale else "failed"
    word = "adopted" if failed.adopted else "created"
    created = f" ({word}: id {failed.live_id})" if failed.live_id is not None else ""
    line = f"✗ {change.action} of {title(change)} {outcome}{created}: {failed.error}"
    return [line, f"hint: {failed.hint}"] if failed.hint else [line]


def past(action: Action) -> str:
    """Return the past of an action. Each is a verb that ends with e: create, pause, replace."""
    return f"{action.value}d"


def report_as_text(report: Report) -> str:
    """Return `Applied: 3 created, 1 updated; 1 failed, 2 skipped`, and what to do next.

    Return nothing if there was nothing to apply. Secrets must be masked already.
    """
    if report == Report():
        return ""
    actions = Counter(done.change.action for done in report.done)
    done = [f"{actions[action]} {past(action)}" for action in Action if actions[action]]
    text = f"\n{'Interrupted' if report.interrupted else 'Applied'}: "
    text += ", ".join(done) or "no changes"
    if adopted := sum(done.adopted for done in report.done):
        text += f" ({adopted} adopted)"
    outcomes = _outcomes(report)
    if incomplete := ", ".join(f"{count} {word}" for word, count in outcomes.items() if count):
        text += f"; {incomplete}"
    text += "\n"
    listed: tuple[Event, ...] = (*report.withdrawn, *report.twins, *_to_check(report))
    text += "".join(f"  {event_as_text(event)}\n" for event in listed)
    if outcomes["with an unknown outcome"]:
        return text + _UNKNOWN
    if report.failed or report.skipped:
        text += _REFUSED if any(failed.refused for failed in report.failed) else _AGAIN
    return text


def _outcomes(report: Report) -> dict[str, int]:
    """Return the counts of what is not done, by the words of the summary."""
    unknown = sum(failed.unknown for failed in report.failed)
    stale = sum(failed.stale for failed in report.failed)
    return {
        "failed": len(report.failed) - unknown - stale,
        "stale": stale,
        "with an unknown outcome": unknown,
        "skipped": len(report.skipped),
        "withdrawn": len(report.withdrawn),
        "with a twin": len(report.twins),
    }


def _to_check(report: Report) -> list[Failed]:
    """Return the changes whose object has to be looked at."""
    return [failed for failed in report.failed if failed.unknown or failed.live_id is not None]
