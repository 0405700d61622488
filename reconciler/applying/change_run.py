"""Turn changes into steps, and keep what is left to do and what was done. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.applying.scopes import Scope
from reconciler.model.event import Done
from reconciler.model.kind import Action
from reconciler.model.plan import Change
from reconciler.model.request import Routes
from reconciler.model.text import printable
from reconciler.model.values import JSONObject


class Check(Struct, frozen=True):
    """Read the object to modify or delete: the plan is stale if it was modified."""


class Create(Struct, frozen=True):
    """Create an object, at most once."""

    body: JSONObject


class Complete(Struct, frozen=True):
    """Send what the server altered in the create, and `more`, which a create can't set."""

    sent: JSONObject
    more: JSONObject


class Patch(Struct, frozen=True):
    """Set fields of the object of the change."""

    body: JSONObject


class Toggle(Struct, frozen=True):
    """Pause or unpause the object."""

    action: Action


class Delete(Struct, frozen=True):
    """Delete the object of the change."""


Step: TypeAlias = Check | Create | Complete | Patch | Toggle | Delete


def steps_of(change: Change) -> tuple[Step, ...]:
    """Return the steps of a change, in order."""
    body = change.body or {}
    match change.action:
        case Action.CREATE:
            return Create(body), Complete(body, change.after_create or {})
        case Action.UPDATE:
            return Check(), Patch(body)
        case Action.PAUSE | Action.UNPAUSE:
            return Check(), Toggle(change.action)
        case Action.DELETE:
            return Check(), Delete()
        case Action.REPLACE:
            return _steps_of_replacement(change, body)
    return ()


def _steps_of_replacement(change: Change, body: JSONObject) -> tuple[Step, ...]:
    """Return steps that create the new object first, so that no interval is lost.

    If a run ends in between, both exist, and the next plan says what to do with them.
    """
    create = (Check(), Create(body), Complete(body, change.after_create or {}))
    return *create, Check(), Delete()


def unit_of(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the first steps that are taken together: a check and the requests after it."""
    size = 1
    if isinstance(steps[0], Check):
        while size < len(steps) and not isinstance(steps[size], (Check, Complete)):
            size += 1
    return tuple(steps[:size])


def levels_of(changes: Sequence[Change]) -> tuple[tuple[Change, ...], ...]:
    """Return the changes by the number of changes that must come before, one after another.

    Deletions are in levels after all others, unless one of those needs them. The changes must be in
    an order in which each comes after those that it depends on.
    """
    needed: set[str] = set()
    last: list[Change] = []
    others: list[Change] = []
    for change in reversed(changes):
        if change.action is Action.DELETE and change.id not in needed:
            last.append(change)
        else:
            needed.update(change.depends_on)
            others.append(change)
    return (*_by_depth(reversed(others)), *_by_depth(reversed(last)))


def _by_depth(changes: Iterable[Change]) -> tuple[tuple[Change, ...], ...]:
    depths: dict[str, int] = {}
    levels: list[list[Change]] = []
    for change in changes:
        depth = max(
            (depths[needed] + 1 for needed in change.depends_on if needed in depths), default=0
        )
        depths[change.id] = depth
        if depth == len(levels):
            levels.append([])
        levels[depth].append(change)
    return tuple(map(tuple, levels))


class Creation(Struct):
    """A create that was sent.

    name
        The name that was sent.
    before
        The ids of the list that was read before.
    live_id
        The id of the new object, None while the outcome is unknown.
    confirmed
        Whether the answer had the id.
    stored
        The object as its create or a search returned it, None if that is not known.
    """

    scope: Scope
    routes: Routes
    sent: JSONObject
    name: str
    before: frozenset[str]
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
    cause
        The error of a create whose outcome is unknown.
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
    cause: str = ""

    @property
    def live_id(self) -> str | None:
        """The object of the change: a new one, or the one that is modified."""
        if self.creation is not None:
            return self.creation.live_id
        return self.change.live_id

    @property
    def adopted(self) -> bool:
        """Whether the new object was found by a search."""
        return self.creation is not None and not self.creation.confirmed

    @property
    def creates(self) -> bool:
        """Whether a create is among the steps that are left."""
        return any(isinstance(step, Create) for step in self.steps)

    @property
    def outcome_unknown(self) -> bool:
        """Whether a create was sent, and no object of it is known."""
        return self.creation is not None and self.creation.live_id is None

    def done(self) -> Done:
        """Return the end of the change after its last step."""
        return Done(self.change, self.live_id, tuple(self.notices), adopted=self.adopted)

    def created(self, live_id: str) -> None:
        """Note the id of the new object."""
        if self.creation is not None:
            self.creation.live_id = live_id
            word = "created" if self.creation.confirmed else "adopted"
            self.made.append(f"{word} (id {printable(live_id)})")
