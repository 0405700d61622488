"""Decide what happens if two clients created the same object. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum, auto

from msgspec import Struct

from reconciler.model.comparison import live_values
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.values import MISSING, JSONObject, value_at

LONGEST_AGE = 120.0
"""Seconds after which an object of this run is not withdrawn any more."""


class Verdict(Enum):
    """What happens to our object."""

    WITHDRAW = auto()
    """It is deleted: an older, equal object stays."""
    WAIT = auto()
    """It stays, and the other client should withdraw its own."""
    KEEP = auto()
    """Both stay, and a person decides."""


class Ours(Struct, frozen=True):
    """An object that this run created.

    live
        The object now, in full.
    stored
        Its body after the last write of this run, None if the run did not get one.
    confirmed
        Whether its id came with the answer to the create, not from a search.
    age
        Seconds since the create was sent, by the clock of this machine.
    removable
        Whether such an object may be deleted at all: it holds nothing, and shows whether it ran.
    allowed
        Whether the policy allows to delete it.
    """

    live: LiveObject
    stored: JSONObject | None
    confirmed: bool
    age: float
    removable: bool = True
    allowed: bool = True


class Decision(Struct, frozen=True):
    """A verdict. `twin` is the object that stays instead of ours; `because` says why both stay."""

    verdict: Verdict
    because: str = ""
    twin: LiveObject | None = None


def decide(kind: Kind, ours: Ours, twins: Sequence[LiveObject]) -> Decision:
    """Return what happens to our object, given the other new ones of its name and scope.

    The oldest of equal objects is never withdrawn, so at least one of them stays, whatever each
    client sees and in whatever order they look.
    """
    if not ours.removable:
        return Decision(Verdict.KEEP, f"a {kind.name} is never deleted to resolve this")
    created = {item.id: _created_at(item) for item in (ours.live, *twins)}
    if None in created.values():
        return Decision(Verdict.KEEP, "`created_at` is not known for all of them")

    def order(item: LiveObject) -> tuple[datetime, str]:
        return created[item.id] or datetime.max.replace(tzinfo=UTC), item.id

    older = [twin for twin in twins if order(twin) < order(ours.live)]
    equal = [twin for twin in older or twins if _values(kind, twin) == _values(kind, ours.live)]
    if not equal:
        return Decision(Verdict.KEEP, "they differ")
    if not older:
        return Decision(Verdict.WAIT, "the younger one was not withdrawn")
    because = _obstacle(kind, ours)
    if because:
        return Decision(Verdict.KEEP, because)
    return Decision(Verdict.WITHDRAW, twin=min(equal, key=order))


def _obstacle(kind: Kind, ours: Ours) -> str:
    """Return why our object must not be deleted, empty if it may be."""
    live, stored = ours.live, ours.stored
    obstacles = {
        "policy.withdraw is never": not ours.allowed,
        "the answer to its create was lost, so it may be of another client": not ours.confirmed,
        "it was modified after its creation": (
            stored is None or live_values(kind, live.body) != live_values(kind, stored)
        ),
        "it is not known whether it has runs": not isinstance(
            value_at(live.body, kind.activity[:1]), list
        ),
        "it has runs": value_at(live.body, kind.activity) is not MISSING,
        "it is more than two minutes old": ours.age > LONGEST_AGE,
    }
    return next((text for text, applies in obstacles.items() if applies), "")


def _values(kind: Kind, item: LiveObject) -> JSONObject:
    """Return what makes two objects equal. Of a replacement one may still have its marked name."""
    values = live_values(kind, item.body)
    return {path: value for path, value in values.items() if path != "name"}


def _created_at(item: LiveObject) -> datetime | None:
    """Return the time of creation, None without a valid one."""
    text = item.body.get("created_at")
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
