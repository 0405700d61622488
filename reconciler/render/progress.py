"""What happens while a plan is carried out, and how it ended: lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reconciler.errors import ReconcilerError
from reconciler.model.change import Action, Change
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Interrupting,
    Planned,
    Report,
    Sent,
    Skipped,
    Started,
)
from reconciler.model.wording import printable
from reconciler.render.excerpt import excerpt
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
_PRESENT = {
    Action.CREATE: "creating",
    Action.UPDATE: "updating",
    Action.REPLACE: "replacing",
    Action.PAUSE: "pausing",
    Action.UNPAUSE: "unpausing",
    Action.DELETE: "deleting",
    Action.NO_OP: "leaving alone",
}
_ERASED = "\r\x1b[K"


@dataclass(slots=True)
class Progress:
    """A listener that writes a line as each change ends.

    On a terminal (`live`) the last line tells what is under way, and is written over: in a log
    that is kept, beginnings would only double the lines.
    """

    write: Callable[[str], None]
    live: bool = False
    width: int = 100
    _running: dict[str, Change] = field(default_factory=dict)
    _ended: int = 0
    _all: int = 0

    def __call__(self, event: Event) -> None:
        """Tell of an event."""
        match event:
            case Planned(plan):
                self._all = len(plan.effective)
            case Started(change):
                self._running[change.id] = change
            case Done(change) | Failed(change) | Skipped(change):
                self._running.pop(change.id, None)
                self._ended += 1
            case Sent():
                return
        line = event_as_text(event)
        told = f"{line}\n" if line is not None else ""
        if self.live:
            self.write(f"{_ERASED}{told}{self._under_way()}")
        elif told:
            self.write(told)

    def _under_way(self) -> str:
        if not self._running:
            return ""
        doing = ", ".join(
            f"{_PRESENT[each.action]} {each.address}" for each in self._running.values()
        )
        told = printable(f"{self._ended} of {self._all} ended; {doing}")
        # A line that fills the last cell would wrap, and could not be written over.
        return excerpt(told, 0, 0, width=self.width - 1).text


def event_as_text(event: Event) -> str | None:
    """A line for an event that a person wants to see, None for the rest.

    What a server said can't forge a line of its own: more lines than one are set in.
    """
    match event:
        case Done(change, live_id, notices):
            told = f"{_PAST[change.action]} {title(change)} (id {printable(str(live_id))})"
            return "\n".join([f"{SIGNS[change.action]} {told}", *map(_notice, notices)])
        case Failed(change, error, hint, _):
            told = _set_in(f"✗ {change.action} of {title(change)} failed: {error}")
            return told if hint is None else f"{told}\n    {_set_in(hint)}"
        case Skipped(change, because):
            return _set_in(f"○ {change.action} of {title(change)} skipped: {because}")
        case Interrupting():
            return "Stopping: what is in flight is finished, nothing new is begun."
        case _:
            return None


def _notice(text: str) -> str:
    return f"    ! {_set_in(text)}"


def _set_in(text: str) -> str:
    return "\n    ".join(printable(line) for line in text.split("\n"))


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
    """Each problem after the word error, its details and the way out set in below.

    A message may tell several problems, each on a line of its own, and details on lines that begin
    with blanks. Names of the live side stand in it: whatever they hold, no line of it can pass for
    one that says something else.
    """
    word = "\x1b[1;31merror\x1b[0m" if colour else "error"
    lines = [
        printable(line) if line.startswith("  ") else f"{word}: {printable(line)}"
        for line in error.message.split("\n")
    ]
    if error.hint:
        lines += [f"  {printable(line)}" for line in error.hint.split("\n")]
    return "\n".join(lines) + "\n"
