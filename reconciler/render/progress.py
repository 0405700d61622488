"""Progress, report and errors of a run as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reconciler.errors import InvalidConfiguration, ReconcilerError
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
from reconciler.render.crop import crop
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.plan.words import SIGNS, title
from reconciler.render.style import DEFAULT_WIDTH, PLAIN, Colour, Style

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

    On a terminal (`live`) the last line shows which changes are running, and is overwritten. A log
    has no such line: it would have two lines for each change.
    """

    write: Callable[[str], None]
    live: bool = False
    width: int = DEFAULT_WIDTH
    _running: dict[str, Change] = field(default_factory=dict)
    _ended: int = 0
    _all: int = 0

    def __call__(self, event: Event) -> None:
        """Show an event."""
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
        text = f"{line}\n" if line is not None else ""
        if self.live:
            self.write(f"{_ERASED}{text}{self._status()}")
        elif text:
            self.write(text)

    def _status(self) -> str:
        if not self._running:
            return ""
        doing = ", ".join(
            f"{_PRESENT[change.action]} {change.address}" for change in self._running.values()
        )
        status = printable(f"{self._ended} of {self._all} ended; {doing}")
        # A line that fills the last cell would wrap, and could not be overwritten.
        return crop(status, 0, 0, width=self.width - 1).text


def event_as_text(event: Event) -> str | None:
    """Return a line for an event that a person wants to see, None for the rest.

    Text of a server can't forge a line: further lines are indented.
    """
    match event:
        case Done(change, live_id, notices):
            result = f"{_PAST[change.action]} {title(change)} (id {printable(str(live_id))})"
            return "\n".join([f"{SIGNS[change.action]} {result}", *map(_notice, notices)])
        case Failed(change, error, hint, _):
            failure = _indented(f"✗ {change.action} of {title(change)} failed: {error}")
            return failure if hint is None else f"{failure}\n    {_indented(hint)}"
        case Skipped(change, because):
            return _indented(f"○ {change.action} of {title(change)} skipped: {because}")
        case Interrupting():
            return "Stopping: what is in flight is finished, nothing new is begun."
        case _:
            return None


def _notice(text: str) -> str:
    return f"    ! {_indented(text)}"


def _indented(text: str) -> str:
    return "\n    ".join(printable(line) for line in text.split("\n"))


def report_as_text(report: Report) -> str:
    """Return `Applied: 3 created, 1 updated; 1 failed, 2 skipped`, and what to do next."""
    counts = "; ".join(_counted(report))
    lines = [f"{'Interrupted' if report.interrupted else 'Applied'}: {counts}"]
    if report.failed or report.skipped:
        lines.append("Running it again goes on from here: what is done is not done twice.")
    return "\n".join(lines) + "\n"


def _counted(report: Report) -> Iterator[str]:
    actions = Counter(done.change.action for done in report.done)
    words = [f"{actions[action]} {_PAST[action]}" for action in Action if actions[action]]
    yield ", ".join(words) or "nothing done"
    rest = {"failed": len(report.failed), "skipped": len(report.skipped)}
    if any(rest.values()):
        yield ", ".join(f"{count} {word}" for word, count in rest.items() if count)


def error_as_text(error: ReconcilerError, style: Style = PLAIN) -> str:
    """Return diagnostics, or each problem after the word error with details and hint indented.

    A message may hold several problems, each on its own line, and details on lines that begin
    with spaces. It may hold live names: no line of one can pass for a line of ours.
    """
    if isinstance(error, InvalidConfiguration):
        return diagnostics_as_text(error.diagnostics, style)
    word = style.paint(Colour.BOLD_RED, "error")
    lines = [
        printable(line) if line.startswith("  ") else f"{word}: {printable(line)}"
        for line in error.message.split("\n")
    ]
    if error.hint:
        lines += [f"  {printable(line)}" for line in error.hint.split("\n")]
    return "\n".join(lines) + "\n"


def bug_as_text(error: Exception, version: str) -> str:
    """Return where an unexpected exception was raised, without values: they may be secret."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "?"
    if trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "?")
        place = f"{module}:{trace.tb_lineno}"
    return (
        f"error: this is a bug in reconciler {version}: {type(error).__name__} at {place}\n"
        "  please report it, with the command that you ran\n"
    )


def demo_line(text: str, style: Style) -> str:
    """Return a line of the demo: a command begins with `$`, its output with a space."""
    if text.startswith(" "):
        return text
    colour = Colour.CYAN if text.startswith("$") else Colour.BOLD
    return style.paint(colour, f"\n{text}")
