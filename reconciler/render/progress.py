"""Progress, errors and the report of a run as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from traceback import walk_tb

from msgspec import Struct, field

from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import ReconcilerError
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Interrupting,
    Noted,
    Planned,
    Reading,
    Report,
    Sending,
    Sent,
    Skipped,
    Started,
    Verifying,
    Waiting,
)
from reconciler.model.kind import Action
from reconciler.model.text import duration_as_text, listed, printable
from reconciler.render.diagnostics import crop, diagnostics_as_text
from reconciler.render.options import DEFAULT_WIDTH, PLAIN, Colour, Style
from reconciler.render.plan_entries import SIGNS, title

_UNKNOWN = """\
A change with an unknown outcome may have taken effect. Nothing is sent twice in one run.
Run `reconciler plan` to see what is left, then apply again.
"""
_AGAIN = "Run the command again to continue. Completed changes are not repeated.\n"
_REFUSED = "Correct what the service refused, then apply again. Completed changes stay.\n"
_ERASED = "\r\x1b[K"
_REDRAW_AFTER = 0.1
_LINE_AFTER = 5.0
_SAME_AFTER = 60.0
_SHORTEST_WAIT = 2.0
"""Seconds between status lines on a terminal and elsewhere, between those with nothing new, and of
the shortest wait shown."""
_MOST_COLLECTIONS = 4
"""Collections in a status line: several environments have more."""
_SKIPS = 3
"""How many changes that are skipped for one reason have lines of their own."""
_MOST_FAILED = 10
"""How many changes are named that failed for the reason of another one."""


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
        case Interrupting(forced=True):
            lines = ["Stopping now: requests in flight are abandoned."]
        case Interrupting():
            lines = ["Stopping: waiting for running changes (at most 5 s). Repeat to stop now."]
        case _:
            lines = []
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
    to_check = (item for item in report.failed if item.unknown or item.live_id is not None)
    text += "".join(f"  {event_as_text(event)}\n" for event in to_check)
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
    }


class Status(Struct):
    """What a command is doing. Times are monotonic seconds."""

    phase: str = ""
    calls: int = 0
    total: int = 0
    ended: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    collections: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    in_flight: dict[tuple[str | None, str, str], float] = field(default_factory=dict)
    waits_until: float = 0.0
    reason: str = ""

    def update(self, event: Event, now: float) -> bool:
        """Take note of an event. Return whether a wait begins that is worth a line."""
        match event:
            case Planned(plan):
                self._begin("Applying")
                self.total = len(plan.effective)
            case Verifying():
                self._begin("Verifying")
            case Ended():
                self.phase = ""
            case Started(change):
                self.running.add(change.id)
            case Done(change) | Failed(change) | Skipped(change):
                self.running.discard(change.id)
                self.ended.add(change.id)
            case Waiting(seconds, reason):
                begins = now >= self.waits_until and seconds > _SHORTEST_WAIT
                if now + seconds > self.waits_until:
                    self.waits_until, self.reason = now + seconds, reason
                return begins
            case _:
                self._read(event, now)
        return False

    def _read(self, event: Event, now: float) -> None:
        match event:
            case Reading(collection, read, total):
                self.collections[collection] = (read, total)
            case Sending(method, path, _, change_id):
                self.phase = self.phase or "Reading"
                self.in_flight[change_id, method, path] = now
            case Sent(method, path, change_id=change_id):
                self.calls += 1
                self.in_flight.pop((change_id, method, path), None)

    def _begin(self, phase: str) -> None:
        self.phase, self.calls = phase, 0
        self.collections.clear()

    def text(self, now: float) -> str:
        """Return the status line, "" if nothing is being done."""
        if not self.phase:
            return ""
        if self.phase == "Applying":
            parts = [f"{len(self.ended):,}/{self.total:,}"]
            parts += [f"{len(self.running)} at once"] if len(self.running) > 1 else []
        else:
            latest = [*self.collections.items()][-_MOST_COLLECTIONS:]
            parts = [_collection(name, *counts) for name, counts in latest]
            parts.append(f"{self.calls:,} call{'' if self.calls == 1 else 's'}")
        return f"{self.phase:<11}" + " · ".join([*parts, *self._delay(now)])

    @property
    def reached(self) -> object:
        """What the status line says, without calls and times, which count on in every wait."""
        return self.phase, len(self.ended), tuple(self.collections.values()), self.reason

    def _delay(self, now: float) -> list[str]:
        """Return what is waited for."""
        if self.waits_until - now > 0 and self.reason:
            # A limit is waited for; other reasons are what happened.
            link = " for the " if self.reason.startswith("rate limit") else ": "
            return [f"waiting {duration_as_text(self.waits_until - now)}{link}{self.reason}"]
        if self.in_flight:
            (_, method, path), sent = min(self.in_flight.items(), key=lambda item: item[1])
            if now - sent > _SHORTEST_WAIT:
                return [f"no answer for {duration_as_text(now - sent)}: {method} {path}"]
        return []


class Progress(Struct):
    """A listener that writes a line when a change ends, and a status line now and then.

    On a terminal (`live`) the status is the last line and is overwritten. Elsewhere it is a line
    when something new was reached or is waited for, every few seconds at most, and each minute.
    `verbose` writes a line for each request, and `debug` one for each wait and for what was loaded
    and decided, too.
    `clock` returns monotonic seconds. Failures go to `write_error`.
    """

    write: Callable[[str], None]
    write_error: Callable[[str], None]
    clock: Callable[[], float]
    live: bool = False
    width: int = DEFAULT_WIDTH
    verbose: bool = False
    debug: bool = False
    _shown_at: float = 0.0
    _status: Status = field(default_factory=Status)
    _visible: bool = False
    _reached: set[object] = field(default_factory=set)
    _skips: Counter[str] = field(default_factory=Counter)
    _refusals: dict[str, list[Failed]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shown_at = self.clock()

    def __call__(self, event: Event) -> None:
        """Take note of an event, and write its lines and the status if it is due."""
        now = self.clock()
        begins = self._status.update(event, now)
        line = event_as_text(event)
        if isinstance(event, Skipped):
            self._skips[event.because] += 1
            line = line if self._skips[event.because] <= _SKIPS else ""
        if isinstance(event, Failed) and event.refused and event.live_id is None:
            equal = self._refusals.setdefault(event.error, [])
            equal.append(event)
            line = line if len(equal) == 1 else ""
        if self.verbose and isinstance(event, Sent):
            line = call_as_text(event)
        if isinstance(event, Noted) and event.important:
            line = f"note: {printable(event.message)}"
        elif self.debug and isinstance(event, Noted | Waiting):
            line = debug_as_text(event)
        if line:
            self._erase()
            write = self.write_error if isinstance(event, Failed) else self.write
            write(f"{line}\n")
        self._show(now, due=begins or (self.live and bool(line)))

    def tick(self) -> None:
        """Write the status if it is due. Call it regularly, since a wait has no events."""
        self._show(self.clock(), due=False)

    def clear(self) -> None:
        """Remove the status, before something else is written."""
        self._erase()
        self._status = Status()
        for because, count in self._skips.items():
            if count > _SKIPS:
                self.write(f"○ {count - _SKIPS} more skipped: {printable(because)}\n")
        self._skips.clear()
        for equal in self._refusals.values():
            if more := [failed.change for failed in equal[1:]]:
                names = listed(map(title, more), _MOST_FAILED)
                message = f"✗ {len(more)} more failed for the same reason: {names}"
                self.write_error(f"{printable(message)}\n")
        self._refusals.clear()

    def _show(self, now: float, *, due: bool) -> None:
        interval, reached = _REDRAW_AFTER if self.live else _LINE_AFTER, self._status.reached
        if not self.live and reached in self._reached:
            due, interval = False, _SAME_AFTER
        if not due and now - self._shown_at < interval:
            return
        text = printable(self._status.text(now))
        if not text:
            return
        self._shown_at = now
        self._reached.add(reached)
        if self.live:
            # A line that fills the last cell wraps and can't be overwritten.
            self.write(_ERASED + crop(text, 0, 0, width=self.width - 1).text)
            self._visible = True
        else:
            self.write(f"{text}\n")

    def _erase(self) -> None:
        if self._visible:
            self.write(_ERASED)
            self._visible = False


def _collection(name: str, read: int, total: int | None) -> str:
    environment, colon, collection = name.rpartition(": ")
    words = f"{environment}{colon}{collection.replace('_', ' ')}"
    return f"{words} {read:,}" if total is None else f"{words} {read:,}/{total:,}"


def call_as_text(call: Sent) -> str:
    """Return `GET /api/… 200 12 ms`, with the attempt if it is not the first."""
    answer = str(call.status) if call.status is not None else f"no answer ({call.error})"
    attempt = f" (attempt {call.attempt})" if call.attempt > 1 else ""
    return printable(f"{call.method} {call.path} {answer} {call.seconds * 1000:.0f} ms{attempt}")


def debug_as_text(event: Noted | Waiting) -> str:
    """Return the line of an event that only --debug shows."""
    if isinstance(event, Noted):
        return f"debug: {printable(event.message)}"
    return f"debug: wait {duration_as_text(event.seconds)}: {printable(event.reason)}"


def error_as_text(error: ReconcilerError, style: Style = PLAIN) -> str:
    """Return the diagnostics of an error, or its message and hint.

    A line of the message is a problem, or a detail if it begins with spaces. Every line has a
    prefix, so that a live name in a message can't forge a line.
    """
    if isinstance(error, InvalidConfiguration):
        return diagnostics_as_text(error.diagnostics, style)
    word = style.paint(Colour.BOLD_RED, "error")
    problems: list[list[str]] = []
    for line in error.message.split("\n"):
        if line.startswith("  ") and problems:
            problems[-1] += style.on_terminal(printable(line), "", " " * 6)
        else:
            first, *more = style.on_terminal(printable(line), "error: ", " " * 4)
            problems.append([first.replace("error", word, 1), *more])
    hints = [
        style.on_terminal(printable(hint), "  hint: ", " " * 8)
        for hint in (error.hint.split("\n") if error.hint else ())
    ]
    # A hint for each problem is below it, other ones are at the end.
    if len(hints) != len(problems):
        problems[-1] += [line for hint in hints for line in hint]
        hints = [[]] * len(problems)
    blocks = zip(problems, hints, strict=True)
    lines = [line for problem, hint in blocks for line in (*problem, *hint)]
    return "\n".join(lines) + "\n"


def bug_as_text(error: BaseException, version: str) -> str:
    """Return where an unexpected exception was raised, without values, which may be secret."""
    place = "?"
    for frame, line in walk_tb(error.__traceback__):
        place = f"{frame.f_globals.get('__name__', '?')}:{line}"
    return (
        f"error: this is a bug in reconciler {version}: {type(error).__name__} at {place}\n"
        "  hint: report it with the command that you ran\n"
    )


def stack_as_text(error: BaseException) -> str:
    """Return the functions through which an error went, without values, which may be secret."""
    lines = []
    for frame, line in walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "?")
        lines.append(f"debug:   {module}:{line} in {frame.f_code.co_name}\n")
    return f"debug: {type(error).__name__} raised at\n{''.join(lines)}"


def demo_line(text: str, style: Style) -> str:
    """Return a line of the demo: a command begins with `$`, its output with a space."""
    if text.startswith(" "):
        return text
    colour = Colour.CYAN if text.startswith("$") else Colour.BOLD
    return style.paint(colour, f"\n{text}")
