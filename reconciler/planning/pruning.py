"""What may be deleted although no resource says `state: absent`.

Only objects in a scope that the policy prunes, and resources that the git base declares and the
configuration no longer does. An empty workspace therefore deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model.address import Address
from reconciler.model.change import Reason
from reconciler.model.live import LiveObject
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Resource, State
from reconciler.planning.changes import PlanContext
from reconciler.planning.matcher import Match, Matching


@dataclass(frozen=True, slots=True)
class PrunedObject:
    """An object to delete, with the reason, and how `--project` may name its parent."""

    match: Match
    reason: Reason
    parent_word: str | None


def to_prune(matching: Matching, policy: Policy, context: PlanContext) -> Iterator[PrunedObject]:
    """Yield every object that the policy prunes: removed resources, then unmanaged objects."""
    parents = {
        (address.kind, match.live.id): address
        for address, match in matching.matches.items()
        if match.live is not None
    }
    removed_ids = set()
    for address in sorted(matching.removed):
        match = matching.removed[address]
        if match.live is not None:
            removed_ids.add((match.live.kind, match.live.id))
        parent = _parent(match.live, parents, context)
        mode = policy.prune_of(address.kind, str(parent) if parent else None)
        if mode is not Prune.NEVER:
            yield PrunedObject(match, Reason.REMOVED_FROM_FILES, parent.key if parent else None)
    declared = {address.kind for address in matching.matches}
    for live in matching.unmanaged:
        parent = _parent(live, parents, context)
        if (live.kind, live.id) in removed_ids or not _in_managed_scope(
            live, parent, declared, context
        ):
            continue
        if policy.prune_of(live.kind, str(parent) if parent else None) is Prune.UNMANAGED:
            resource = Resource(
                Address.of_unmanaged(live.kind, live.id), {"name": live.name}, state=State.ABSENT
            )
            match = Match(resource, live, parent_id=live.parent_id)
            yield PrunedObject(match, Reason.PRUNED, parent.key if parent else None)


def _parent(
    live: LiveObject | None, parents: dict[tuple[str, str], Address], context: PlanContext
) -> Address | None:
    if live is None:
        return None
    parent_kind = context.kinds[live.kind].parent
    if parent_kind is None or live.parent_id is None:
        return None
    return parents.get((parent_kind, live.parent_id))


def _in_managed_scope(
    live: LiveObject, parent: Address | None, declared: set[str], context: PlanContext
) -> bool:
    """Return whether the parent is declared; for kinds without one, whether any resource is."""
    if context.kinds[live.kind].parent is not None:
        return parent is not None
    return live.kind in declared
