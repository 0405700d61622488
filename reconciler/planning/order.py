"""Order the changes of a plan. Pure.

Parents are created before their children and deleted after them; pausing comes before an update
of the same resource and unpausing after it; deletes come last, except one that frees a name which
another change needs (so that no server answers "name taken").
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from msgspec.structs import replace

from reconciler.model.kind import Action, Kind
from reconciler.model.plan import Change
from reconciler.model.values import Address

_PHASES = {
    Action.PAUSE: 1,
    Action.CREATE: 2,
    Action.UPDATE: 2,
    Action.REPLACE: 2,
    Action.UNPAUSE: 3,
    Action.DELETE: 4,
}
_FREEING_PHASE = 0
_Needs: TypeAlias = dict[str, set[str]]
"""The ids of changes, each with those of the changes that come before it."""


def in_order(
    changes: Sequence[Change], kinds: Mapping[str, Kind]
) -> tuple[list[Change], list[tuple[Address, ...]]]:
    """Sort by dependency, then by phase, level and address: the same for any input order.

    Return the changes, each with what it depends on, and the resources that swap names. No-ops must
    be left out.
    """
    by_id = dict(sorted(((change.id, change) for change in changes), key=itemgetter(0)))
    needs: _Needs = {change_id: set() for change_id in by_id}
    _add_parents(by_id, needs, kinds)
    _add_toggles(by_id, needs)
    freeing = _changes_that_free_names(by_id)
    for taker, givers in freeing.items():
        needs[taker] |= givers
    cycles = _cut_cycles(needs, freeing)
    levels = {kind: level for level, kind in enumerate(kinds)}
    ordered = _sorted_by_need(by_id, needs, levels, set().union(*freeing.values()))
    return [replace(by_id[item], depends_on=tuple(sorted(needs[item]))) for item in ordered], [
        tuple(sorted(by_id[change_id].address for change_id in cycle))
        for cycle in cycles
        if any(kinds[by_id[change_id].address.kind].unique_names for change_id in cycle)
    ]


def _add_parents(by_id: Mapping[str, Change], needs: _Needs, kinds: Mapping[str, Kind]) -> None:
    deletes = {
        (change.address.kind, change.live_id): change.id
        for change in by_id.values()
        if change.action is Action.DELETE
    }
    for change_id, change in by_id.items():
        parent_kind = kinds[change.address.kind].parent
        if parent_kind is None:
            continue
        if change.parent is not None and change.parent.key is not None:
            create = f"{Address(parent_kind, change.parent.key)}:{Action.CREATE}"
            needs[change_id] |= {create} & by_id.keys()
        for parent_id in (change.parent_id, change.old_parent_id):
            if (parent_kind, parent_id) in deletes:
                needs[deletes[parent_kind, parent_id]].add(change_id)


def _add_toggles(by_id: Mapping[str, Change], needs: _Needs) -> None:
    toggles = (Action.PAUSE, Action.UNPAUSE)
    for change_id, change in [item for item in by_id.items() if item[1].action in toggles]:
        ids = {f"{change.address}:{action}" for action in (Action.UPDATE, Action.REPLACE)}
        for update in ids & by_id.keys():
            if change.action is Action.PAUSE:
                needs[update].add(change_id)
            else:
                needs[change_id].add(update)


def _changes_that_free_names(by_id: Mapping[str, Change]) -> _Needs:
    """Return for each change that takes a name the changes that free it in the same place."""
    freed: dict[tuple[str, str | None, str], set[str]] = defaultdict(set)
    taking: list[tuple[str, tuple[str, str | None, str]]] = []
    for change_id, change in by_id.items():
        kind, (name, taken) = change.address.kind, _freed_and_taken_name(change)
        if name is not None:
            freed[kind, change.old_parent_id or change.parent_id, name].add(change_id)
        if taken is not None:
            taking.append((change_id, (kind, change.parent_id, taken)))
    freeing = {taker: freed.get(place, set()) - {taker} for taker, place in taking}
    return {taker: givers for taker, givers in freeing.items() if givers}


def _freed_and_taken_name(change: Change) -> tuple[str | None, str | None]:
    """Return names regardless of case, since newer servers require unique names of projects so."""
    if change.action is Action.DELETE:
        return change.name.casefold(), None
    if change.action is Action.CREATE:
        return None, change.name.casefold()
    for entry in change.fields:
        if entry.path == ("name",) and change.action is Action.UPDATE:
            return str(entry.before).strip().casefold(), str(entry.after).strip().casefold()
    return None, None


def _cut_cycles(needs: _Needs, freeing: _Needs) -> list[list[str]]:
    """Remove the needs for names that are part of a cycle; return the changes of each cycle."""
    cycles: list[list[str]] = []
    while True:
        try:
            waiting = {taker: sorted(givers) for taker, givers in needs.items() if givers}
            TopologicalSorter(waiting).prepare()
        except CycleError as error:
            steps = pairwise(error.args[1])
            cut = [(giver, taker) for giver, taker in steps if giver in freeing.get(taker, ())]
            if not cut:
                raise
            for giver, taker in cut:
                needs[taker].remove(giver)
            cycles.append(sorted({change_id for pair in cut for change_id in pair}))
        else:
            return sorted(cycles)


def _sorted_by_need(
    by_id: Mapping[str, Change], needs: _Needs, levels: Mapping[str, int], givers: set[str]
) -> list[str]:
    def key(change_id: str) -> tuple[int, int, Address, str]:
        change = by_id[change_id]
        phase = _FREEING_PHASE if change_id in givers else _PHASES[change.action]
        level = levels[change.address.kind]
        is_delete = change.action is Action.DELETE
        return (phase, -level if is_delete else level, change.address, change_id)

    sorter = TopologicalSorter(needs)
    sorter.prepare()
    ready: list[tuple[int, int, Address, str]] = []
    ordered: list[str] = []
    while sorter.is_active():
        for change_id in sorter.get_ready():
            heapq.heappush(ready, key(change_id))
        done = heapq.heappop(ready)[-1]
        ordered.append(done)
        sorter.done(done)
    return ordered
