"""What happens while a plan is carried out, and how it ended: lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.errors import ReconcilerError
from reconciler.model.change import Action, Change
from reconciler.model.event import Done, Event, Failed, Interrupting, Report, Skipped
from reconciler.render.plan.view import title
from reconciler.render.plan.words import SIGNS

_PAST = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.REPLACE: "replaced",
    Action.PAUSE: "paused",
    Action.UNPAUSE: "unpaused",
    Action.DELETE: "deleted",
    Action.NO_OP: "left alone",
}


def event_as_text(event: Event) -> str | None:
    """A line for an event that a person wants to see, None for the rest."""
    match event:
        case Done(change, live_id, notices):
            told = f"{SIGNS[change.action]} {_PAST[change.action]} {title(change)} (id {live_id})"
            return "\n".join([told, *(f"    ! {notice}" for notice in notices)])
        case Failed(change, error, hint, _):
            told = f"✗ {change.action} of {title(change)} failed: {error}"
            return told if hint is None else f"{told}\n    {hint}"
        case Skipped(change, because):
            return f"○ {change.action} of {title(change)} skipped: {because}"
        case Interrupting():
            return "Stopping: what is in flight is finished, nothing new is begun."
        case _:
            return None


def report_as_text(report: Report) -> str:
    """`Applied: 3 created, 1 updated; 1 failed, 2 skipped`, and what to do next."""
    counts = "; ".join(_counted(report))
    lines = [f"{'Interrupted' if report.interrupted else 'Applied'}: {counts}"]
    if report.failed or report.skipped:
        lines.append("Running it again goes on from here: what is done is not done twice.")
    return "\n".join(lines) + "\n"


def _counted(report: Report) -> Iterator[str]:
    made: list[Change] = [each.change for each in report.done]
    words = [
        f"{count} {_PAST[action]}"
        for action in Action
        if (count := sum(change.action is action for change in made))
    ]
    yield ", ".join(words) or "nothing done"
    rest = [
        f"{len(found)} {word}"
        for found, word in ((report.failed, "failed"), (report.skipped, "skipped"))
        if found
    ]
    if rest:
        yield ", ".join(rest)


def error_as_text(error: ReconcilerError, *, colour: bool = False) -> str:
    """The message, and the way out on lines of its own."""
    word = "\x1b[1;31merror\x1b[0m" if colour else "error"
    lines = [f"{word}: {error.message}"]
    if error.hint:
        lines += [f"  {line}" for line in error.hint.splitlines()]
    return "\n".join(lines) + "\n"
