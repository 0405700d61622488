"""Progress, report and errors of a run as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import walk_tb

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

_ERASED = "\r\x1b[K"


@dataclass(slots=True)
class Progress:
    """A listener that writes a line when a change ends.

    On a terminal (`live`) the last line lists the running changes and is overwritten. A log has
    no such line, since it would contain two lines for each change.
    """

    write: Callable[[str], None]
    live: bool = False
    width: int = DEFAULT_WIDTH
    _running: dict[str, Change] = field(default_factory=dict)
    _ended: int = 0
    _total: int = 0

    def __call__(self, event: Event) -> None:
        """Write the line of an event, and the status line on a terminal."""
        match event:
            case Planned(plan):
                self._total = len(plan.effective)
            case Started(change):
                self._running[change.id] = change
            case Done(change) | Failed(change) | Skipped(change):
                self._running.pop(change.id, None)
                self._ended += 1
            case Sent():
                return
        line = event_as_text(event)
        text = f"{line}\n" if line else ""
        if self.live:
            self.write(f"{_ERASED}{text}{self._status()}")
        elif text:
            self.write(text)

    def _status(self) -> str:
        if not self._running:
            return ""
        running = ", ".join(
            f"{change.action.removesuffix('e')}ing {change.address}"
            for change in self._running.values()
        )
        status = printable(f"{self._ended} of {self._total} finished; {running}")
        # A line that fills the last cell wraps and can't be overwritten.
        return crop(status, 0, 0, width=self.width - 1).text


def _past(action: Action) -> str:
    # Every action is a verb that ends with e: create, pause, replace.
    return f"{action.value}d"


def event_as_text(event: Event) -> str:
    """Return the lines of a change that ended or of an interruption, "" for other events.

    Lines after the first are indented, so that text of a server can't forge a line.
    """
    match event:
        case Done(change, live_id, notices):
            sign = SIGNS[change.action].text
            lines = [f"{sign} {_past(change.action)} {title(change)} (id {live_id})"]
            lines += [f"! {notice}" for notice in notices]
        case Failed(change, error, hint, _):
            lines = [f"✗ {change.action} of {title(change)} failed: {error}"]
            lines += [f"hint: {hint}"] if hint else []
        case Skipped(change, because):
            lines = [f"○ {change.action} of {title(change)} skipped: {because}"]
        case Interrupting():
            lines = ["Stopping: waiting for running changes, starting no new ones."]
        case _:
            lines = []
    return "\n    ".join(printable(line) for text in lines for line in text.split("\n"))


def report_as_text(report: Report) -> str:
    """Return `Applied: 3 created, 1 updated; 1 failed, 2 skipped`, and what to do next.

    Return nothing if there was nothing to apply.
    """
    if report == Report():
        return ""
    actions = Counter(done.change.action for done in report.done)
    done = [f"{actions[action]} {_past(action)}" for action in Action if actions[action]]
    counts = ", ".join(done) or "no changes"
    outcomes = {"failed": len(report.failed), "skipped": len(report.skipped)}
    if incomplete := ", ".join(f"{count} {word}" for word, count in outcomes.items() if count):
        counts += f"; {incomplete}"
    text = f"\n{'Interrupted' if report.interrupted else 'Applied'}: {counts}\n"
    if incomplete:
        text += "Run the command again to continue. Completed changes are not repeated.\n"
    return text


def error_as_text(error: ReconcilerError, style: Style = PLAIN) -> str:
    """Return the diagnostics of an error, or its message and hint.

    A line of the message is a problem, or a detail if it begins with spaces. Every line has a
    prefix, so that a live name in a message can't forge a line.
    """
    if isinstance(error, InvalidConfiguration):
        return diagnostics_as_text(error.diagnostics, style)
    word = style.paint(Colour.BOLD_RED, "error")
    lines = [
        printable(line) if line.startswith("  ") else f"{word}: {printable(line)}"
        for line in error.message.split("\n")
    ]
    if error.hint:
        lines += [f"  hint: {printable(line)}" for line in error.hint.split("\n")]
    return "\n".join(lines) + "\n"


def bug_as_text(error: Exception, version: str) -> str:
    """Return where an unexpected exception was raised, without values, which may be secret."""
    place = "?"
    for frame, line in walk_tb(error.__traceback__):
        place = f"{frame.f_globals.get('__name__', '?')}:{line}"
    return (
        f"error: this is a bug in reconciler {version}: {type(error).__name__} at {place}\n"
        "  hint: report it with the command that you ran\n"
    )


def demo_line(text: str, style: Style) -> str:
    """Return a line of the demo: a command begins with `$`, its output with a space."""
    if text.startswith(" "):
        return text
    colour = Colour.CYAN if text.startswith("$") else Colour.BOLD
    return style.paint(colour, f"\n{text}")
