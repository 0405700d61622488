"""Turn changes into levels, and a change into the steps that apply it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.replacement import marked_name
from reconciler.model.values import JSONObject


class Check(Struct, frozen=True):
    """Read the object to modify or delete: the plan is stale if it was modified."""


class CheckNew(Struct, frozen=True):
    """Read the new object of a replacement that was cut short: it must still have its mark."""


class Create(Struct, frozen=True):
    """Create an object, at most once."""

    body: JSONObject


class Complete(Struct, frozen=True):
    """Send what the server altered in the create, and `more`, which a create can't set."""

    sent: JSONObject
    more: JSONObject


class Await(Struct, frozen=True):
    """Wait until lists show that no other client created the same object."""


class Patch(Struct, frozen=True):
    """Set fields of the object of the change: of a replacement, of the new one."""

    body: JSONObject


class Toggle(Struct, frozen=True):
    """Pause or unpause the object."""

    action: Action


class Delete(Struct, frozen=True):
    """Delete the object of the change."""


Step: TypeAlias = Check | CheckNew | Create | Complete | Await | Patch | Toggle | Delete


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

    Its name is marked until the old object is deleted, so that a later plan can do the rest.
    """
    if change.new_id is not None:
        return Check(), CheckNew(), Delete(), Patch(body)
    marked = {**body, "name": marked_name(change.name, change.live_id or "")}
    create = (Check(), Create(marked), Complete(marked, change.after_create or {}))
    return *create, Await(), Check(), Delete(), Patch({"name": change.name})


def unit_of(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the first steps that are admitted together: a check and the requests after it."""
    size = 1
    if isinstance(steps[0], Check):
        while size < len(steps) and not isinstance(steps[size], (Check, Complete, Await)):
            size += 1
    return tuple(steps[:size])


def levels_of(changes: Iterable[Change]) -> tuple[tuple[Change, ...], ...]:
    """Return the changes by the number of changes that must come before, one after another.

    The changes must be in an order in which each comes after those that it depends on.
    """
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
