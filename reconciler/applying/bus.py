"""Pass the events of a run on: masked once, numbered, and without a listener that can end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.errors import ReconcilerError
from reconciler.model.change import Change
from reconciler.model.event import Event, Listener, Planned, Record, RunInfo
from reconciler.model.plan_redaction import redact_event
from reconciler.model.redaction import Mask

RecordListener: TypeAlias = Callable[[Record], None]


class Output(Struct, frozen=True):
    """A listener of a run. `name` is for messages.

    `required`: a run does not start if its first event can't be written. `lost` returns what
    happened to events that were written, None if they are still there.
    """

    name: str
    write: RecordListener
    required: bool = False
    lost: Callable[[], str | None] = lambda: None

    @classmethod
    def of(cls, name: str, listener: Listener) -> Output:
        """Return a listener that needs the event only."""
        return cls(name, lambda record: listener(record.event))


class Bus(Struct):
    """The listener to which a run sends its events, and which passes them on to its outputs.

    An output that fails gets no more events; the run continues. `problems` reports it. The changes
    of the plan are masked with the plan: every secret that they send is resolved before.

    Raises on the first event:
        ReconcilerError: a required output can't be written; nothing was sent.

    """

    outputs: Sequence[Output]
    mask: Mask
    now: Callable[[], datetime]
    run: RunInfo
    _sequence: int = 0
    _changes: Mapping[str, Change] = field(default_factory=dict)
    _failures: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Pass an event on to every output that has not failed."""
        self._sequence += 1
        time = self.now().isoformat()
        masked = redact_event(event, self.mask, self._changes)
        if isinstance(masked, Planned):
            self._changes = {change.id: change for change in masked.plan.changes}
        record = Record(self.run, self._sequence, time, masked)
        for output in self.outputs:
            if output.name not in self._failures:
                self._pass(record, output)

    def _pass(self, record: Record, output: Output) -> None:
        try:
            output.write(record)
        except Exception as error:  # noqa: BLE001 - no listener may end a run
            reason = _reason(error)
            if output.required and isinstance(record.event, Planned):
                raise ReconcilerError(
                    f"{output.name} can't be written: {reason}; nothing was sent"
                ) from None
            self._failures[output.name] = (record.sequence, reason)

    @property
    def problems(self) -> tuple[str, ...]:
        """What the outputs lack, a line for each output that failed."""
        missing = tuple(
            f"{name} is incomplete: {reason}; "
            f"{self._sequence - first + 1} of {self._sequence} events are missing"
            for name, (first, reason) in self._failures.items()
        )
        lost = ((output.name, output.lost()) for output in self.outputs)
        return missing + tuple(f"{name} is incomplete: {reason}" for name, reason in lost if reason)


def _reason(error: Exception) -> str:
    """Return why an output failed: the text of the system, or the name of the error."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or type(error).__name__
