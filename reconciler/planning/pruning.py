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
from reconciler.model.live import LiveObject
from reconciler.model.other_tools import other_tool_of
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

    `kept` are removed resources that `prune: git` does not delete. What another tool manages stays.
    """
    parents = {
        (address.kind, match.live.id): address
        for address, match in matching.matches.items()
        if match.live is not None
    }

    def parent_and_mode(live: LiveObject) -> tuple[Address | None, Prune]:
        parent = parents.get((kinds[live.kind].parent or "", live.parent_id or ""))
        return parent, policy.prune_of(live.kind, str(parent) if parent else None)

    for address, match in sorted(matching.removed.items()):
        if match.live is not None and not other_tool_of(match.live.name):
            parent, mode = parent_and_mode(match.live)
            if mode is Prune.UNMANAGED or (mode is Prune.GIT and address not in kept):
                yield PrunedObject(match, match.live, Reason.REMOVED_FROM_FILES, parent)
    for live in matching.unmanaged:
        kind = kinds[live.kind]
        parent, mode = parent_and_mode(live)
        if parent is not None and mode is Prune.UNMANAGED and not other_tool_of(live.name):
            address = Address.of_unmanaged(live.kind, live.id)
            resource = Resource(address, {"name": live.name}, state=State.ABSENT)
            yield PrunedObject(Match(resource, kind, live), live, Reason.PRUNED, parent)
