"""The state of one change in a run: what is left to do, and what was done."""

from __future__ import annotations

from math import inf

from msgspec import Struct, field

from reconciler.applying.scopes import Scope
from reconciler.applying.steps import Create, Step
from reconciler.model.change import Change
from reconciler.model.event import Done
from reconciler.model.routes import Routes
from reconciler.model.values import JSONObject
from reconciler.model.wording import printable


class Creation(Struct):
    """A create that was sent.

    names
        The name that was sent, and the one that the object gets at the end.
    before
        The ids of the list that was read before.
    sent_at
        When it was sent, in seconds of the clock.
    live_id
        The id of the new object, None while the outcome is unknown.
    confirmed
        Whether the answer had the id.
    stored
        The object in full after the last write of this run, None if that is not known.
    """

    scope: Scope
    routes: Routes
    sent: JSONObject
    names: tuple[str, ...]
    before: frozenset[str]
    sent_at: float
    live_id: str | None = None
    confirmed: bool = False
    stored: JSONObject | None = None


class ChangeRun(Struct):
    """One change in a run.

    steps
        The steps that are left.
    checked_at
        When the object to modify was read last, in seconds of the clock.
    inside_at
        When reading began what is in the object to delete, in seconds of the clock.
    gone
        Whether the object to delete does not exist any more.
    writing
        Whether a write was sent and its answer was not handled.
    made
        What was done so far, for messages.
    """

    change: Change
    steps: tuple[Step, ...]
    creation: Creation | None = None
    checked_at: float = -inf
    inside_at: float = inf
    started: bool = False
    gone: bool = False
    writing: bool = False
    made: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def live_id(self) -> str | None:
        """The object of the change: a new one, or the one that is modified."""
        if self.creation is not None:
            return self.creation.live_id
        return self.change.new_id or self.change.live_id

    @property
    def adopted(self) -> bool:
        """Whether the new object was found by a search."""
        return self.creation is not None and not self.creation.confirmed

    @property
    def stamp(self) -> str | None:
        """What distinguishes the new object from others with its id, None if unknown."""
        stored = self.creation.stored if self.creation is not None else None
        return stored.get(self.creation.routes.kind.stamp) if stored and self.creation else None

    @property
    def creates(self) -> bool:
        """Whether a create is among the steps that are left."""
        return any(isinstance(step, Create) for step in self.steps)

    @property
    def outcome_unknown(self) -> bool:
        """Whether a create was sent, and no object of it is known."""
        return self.creation is not None and self.creation.live_id is None

    def pass_check(self) -> None:
        """Continue after the check for duplicates."""
        self.steps = self.steps[1:]

    def done(self) -> Done:
        """Return the end of the change after its last step."""
        notices = tuple(self.notices)
        return Done(self.change, self.live_id, notices, adopted=self.adopted, stamp=self.stamp)

    def created(self, live_id: str) -> None:
        """Note the id of the new object."""
        if self.creation is not None:
            self.creation.live_id = live_id
            word = "created" if self.creation.confirmed else "adopted"
            self.made.append(f"{word} (id {printable(live_id)})")
