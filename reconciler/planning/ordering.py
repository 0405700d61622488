"""The order in which changes can be carried out. Nowhere else is it decided.

Parents are created before their children and deleted after them; pausing comes before an update
of the same object and unpausing after it; deletes come last, except one that frees a name which
another change needs (so that no server answers "name taken").
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.kind import Kind

_PHASES = {
    Action.PAUSE: 1,
    Action.CREATE: 2,
    Action.UPDATE: 2,
    Action.REPLACE: 2,
    Action.UNPAUSE: 3,
    Action.DELETE: 4,
    Action.NO_OP: 5,
}
_FREEING_PHASE = 0


@dataclass(frozen=True, slots=True)
class Ordered:
    """The changes in order, each with what it depends on, and names that go round in a circle."""

    changes: tuple[Change, ...]
    circles: tuple[tuple[Address, ...], ...] = ()


def in_order(changes: Sequence[Change], kinds: Sequence[Kind]) -> Ordered:
    """Sort by what must come first, then by phase, level, address: the same for any input order."""
    levels = {kind.name: level for level, kind in enumerate(kinds)}
    by_id = {change.id: change for change in sorted(changes, key=lambda each: each.id)}
    needs: dict[str, set[str]] = {each: set() for each in by_id}
    _parents_first(by_id, needs, kinds)
    _same_object_in_turn(by_id, needs)
    freeing = _names_freed_first(by_id, kinds)
    circles = _circles(freeing)
    circular = {each for circle in circles for each in circle}
    for taker, givers in freeing.items():
        needs[taker] |= {each for each in givers if not {taker, each} <= circular}
    givers = {each for taker in freeing for each in freeing[taker]}
    ordered = _sorted_by_need(by_id, needs, levels, givers)
    unique = {kind.name for kind in kinds if kind.unique_names}
    return Ordered(
        tuple(replace(change, depends_on=tuple(sorted(needs[change.id]))) for change in ordered),
        tuple(
            tuple(sorted(by_id[each].address for each in circle))
            for circle in circles
            if by_id[circle[0]].address.kind in unique
        ),
    )


def _parents_first(
    by_id: Mapping[str, Change], needs: Mapping[str, set[str]], kinds: Sequence[Kind]
) -> None:
    parent_of = {kind.name: kind.parent for kind in kinds}
    created = {each.address: each.id for each in by_id.values() if each.action is Action.CREATE}
    deleted = {
        (each.address.kind, each.live_id): each.id
        for each in by_id.values()
        if each.action is Action.DELETE
    }
    for change in by_id.values():
        parent_kind = parent_of.get(change.address.kind)
        if parent_kind is None or change.action is Action.NO_OP:
            continue
        if change.parent is not None and change.parent.key is not None:
            creator = created.get(Address(parent_kind, change.parent.key))
            if creator is not None:
                needs[change.id].add(creator)
        for place in (change.parent_id, change.old_parent_id):
            deleter = deleted.get((parent_kind, place))
            if deleter is not None:
                needs[deleter].add(change.id)


def _same_object_in_turn(by_id: Mapping[str, Change], needs: Mapping[str, set[str]]) -> None:
    for change in by_id.values():
        update = f"{change.address}:{Action.UPDATE}"
        if update not in by_id:
            continue
        if change.action is Action.PAUSE:
            needs[update].add(change.id)
        elif change.action is Action.UNPAUSE:
            needs[change.id].add(update)


def _names_freed_first(by_id: Mapping[str, Change], kinds: Sequence[Kind]) -> dict[str, set[str]]:
    """For each change that takes a name in a place, the changes that give the name up there."""
    given: dict[tuple[str, str | None, str], set[str]] = {}
    for change in by_id.values():
        name = _name_given_up(change)
        if name is not None:
            place = change.old_parent_id or change.parent_id
            given.setdefault((change.address.kind, place, name), set()).add(change.id)
    freeing: dict[str, set[str]] = {}
    known = {kind.name for kind in kinds}
    for change in by_id.values():
        name = _name_taken(change)
        if name is None or change.address.kind not in known:
            continue
        givers = given.get((change.address.kind, change.parent_id, name), set()) - {change.id}
        if givers:
            freeing[change.id] = givers
    return freeing


def _renaming(change: Change) -> tuple[str, str] | None:
    for each in change.fields:
        if each.path == ("name",) and change.action is Action.UPDATE:
            return str(each.before).strip(), str(each.after).strip()
    return None


def _name_given_up(change: Change) -> str | None:
    if change.action is Action.DELETE:
        return change.name
    renaming = _renaming(change)
    return renaming[0] if renaming else None


def _name_taken(change: Change) -> str | None:
    if change.action is Action.CREATE:
        return change.name
    renaming = _renaming(change)
    return renaming[1] if renaming else None


def _circles(freeing: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Changes that wait for each other's names, each circle once."""
    found: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for start in sorted(freeing):
        trail: list[str] = []
        at = start
        while at in freeing and at not in seen and at not in trail:
            trail.append(at)
            at = min(freeing[at])
        if at in trail:
            found.append(tuple(trail[trail.index(at) :]))
        seen.update(trail)
    return found


def _sorted_by_need(
    by_id: Mapping[str, Change],
    needs: Mapping[str, set[str]],
    levels: Mapping[str, int],
    givers: set[str],
) -> list[Change]:
    waiting = {each: len(needs[each]) for each in by_id}
    needed_by: dict[str, list[str]] = {}
    for each, needed in needs.items():
        for other in needed:
            needed_by.setdefault(other, []).append(each)
    ready = [_key(by_id[each], levels, givers) for each, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    ordered: list[Change] = []
    while ready:
        change = by_id[heapq.heappop(ready)[-1]]
        ordered.append(change)
        for each in needed_by.get(change.id, ()):
            waiting[each] -= 1
            if waiting[each] == 0:
                heapq.heappush(ready, _key(by_id[each], levels, givers))
    return ordered


def _key(
    change: Change, levels: Mapping[str, int], givers: set[str]
) -> tuple[int, int, Address, str]:
    phase = _FREEING_PHASE if change.id in givers else _PHASES[change.action]
    level = levels.get(change.address.kind, len(levels))
    return (phase, -level if change.action is Action.DELETE else level, change.address, change.id)
