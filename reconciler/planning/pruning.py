"""Decide what is deleted although no resource has `state: absent`.

Only resources that the git base declares and the configuration no longer does, and unmanaged
objects in a declared parent. An unmanaged object without a parent is never deleted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.change import Reason
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject, other_tool_of
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Resource, State
from reconciler.planning.matcher import Match, Matching


class PrunedObject(Struct, frozen=True):
    """An object to delete, with the reason and its parent, if that is declared."""

    match: Match
    live: LiveObject
    reason: Reason
    parent: Address | None


def to_prune(
    matching: Matching, policy: Policy, kinds: Mapping[str, Kind], *, kept: Container[Address]
) -> Iterator[PrunedObject]:
    """Yield every object that the policy prunes: removed resources, then unmanaged objects.

    So is all that is in an object with `state: absent`, which is deleted with it. `kept` are
    removed resources that `prune: git` does not delete. What another tool manages is not pruned.
    """
    parents = {
        (address.kind, match.live.id): address
        for address, match in matching.matches.items()
        if match.live is not None
    }

    ambiguous = {(live.kind, live.id) for item in matching.unclear for live in item.objects}

    def parent_and_mode(live: LiveObject) -> tuple[Address | None, Prune]:
        parent = parents.get((kinds[live.kind].parent or "", live.parent_id or ""))
        return parent, policy.prune_of(live.kind, str(parent) if parent else None)

    def is_inside_absent(parent: Address | None) -> bool:
        return parent is not None and matching.matches[parent].resource.state is State.ABSENT

    for address, match in sorted(matching.removed.items()):
        if match.live is not None:
            parent, mode = parent_and_mode(match.live)
            is_pruned = mode is not Prune.NEVER and not other_tool_of(match.live.name)
            # Below a declared parent it is like an unmanaged object.
            is_kept = address in kept and (mode is not Prune.UNMANAGED or parent is None)
            if (is_pruned or is_inside_absent(parent)) and not is_kept:
                yield PrunedObject(match, match.live, Reason.REMOVED_FROM_FILES, parent)
    for live in matching.unmanaged:
        parent, mode = parent_and_mode(live)
        is_pruned = mode is Prune.UNMANAGED and not other_tool_of(live.name)
        is_inside = is_inside_absent(parent) and (live.kind, live.id) not in ambiguous
        if parent is not None and (is_pruned or is_inside):
            resource = Resource(live.address, {"name": live.name}, state=State.ABSENT)
            reason = Reason.STATE_ABSENT if is_inside else Reason.PRUNED
            yield PrunedObject(Match(resource, kinds[live.kind], live), live, reason, parent)
