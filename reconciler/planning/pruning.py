"""Decide what is deleted although no resource has `state: absent`.

Only objects in a scope that the policy prunes, and resources that the git base declares and the
configuration no longer does. An empty workspace therefore deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.address import Address
from reconciler.model.change import Reason
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Resource, State
from reconciler.planning.matcher import Match, Matching


@dataclass(frozen=True, slots=True)
class PrunedObject:
    """An object to delete, with the reason, and how `--project` may name its parent."""

    match: Match
    live: LiveObject
    reason: Reason
    parent_key: str | None


def to_prune(
    matching: Matching, policy: Policy, kinds: Mapping[str, Kind]
) -> Iterator[PrunedObject]:
    """Yield every object that the policy prunes: removed resources, then unmanaged objects."""
    declared = {address.kind for address in matching.matches}
    parents = {
        (address.kind, match.live.id): address
        for address, match in matching.matches.items()
        if match.live is not None
    }

    def parent_of(live: LiveObject) -> Address | None:
        return parents.get((kinds[live.kind].parent or "", live.parent_id or ""))

    def mode_of(live: LiveObject) -> Prune:
        parent = parent_of(live)
        return policy.prune_of(live.kind, str(parent) if parent else None)

    def pruned(match: Match, live: LiveObject, reason: Reason) -> PrunedObject:
        parent = parent_of(live)
        return PrunedObject(match, live, reason, parent.key if parent else None)

    for _, match in sorted(matching.removed.items()):
        if match.live is not None and mode_of(match.live) is not Prune.NEVER:
            yield pruned(match, match.live, Reason.REMOVED_FROM_FILES)
    for live in matching.unmanaged:
        is_in_scope = parent_of(live) if kinds[live.kind].parent else live.kind in declared
        if is_in_scope and mode_of(live) is Prune.UNMANAGED:
            address = Address.of_unmanaged(live.kind, live.id)
            resource = Resource(address, {"name": live.name}, state=State.ABSENT)
            yield pruned(Match(resource, live), live, Reason.PRUNED)
