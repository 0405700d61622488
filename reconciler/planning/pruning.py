"""What may be deleted although no resource says `state: absent` (design, section 6).

Two ways only: the policy prunes a scope that the files manage, or the resource stood in the files
at the git base and is gone. An empty workspace therefore never condemns anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model.address import Address
from reconciler.model.change import Reason
from reconciler.model.live import LiveObject
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Resource, State
from reconciler.planning.changes import Around
from reconciler.planning.matcher import Match, Matching


@dataclass(frozen=True, slots=True)
class Condemned:
    """An object to delete, with the reason, and how `--project` may name its parent."""

    match: Match
    reason: Reason
    parent_word: str | None


def condemned(matching: Matching, policy: Policy, around: Around) -> Iterator[Condemned]:
    """Every object that the policy has deleted, by address."""
    parents = {
        (address.kind, match.live.id): address
        for address, match in matching.matches.items()
        if match.live is not None
    }
    for address in sorted(matching.removed):
        match = matching.removed[address]
        parent = _parent(match.live, parents, around)
        mode = policy.prune_of(address.kind, str(parent) if parent else None)
        if mode is not Prune.NEVER:
            yield Condemned(match, Reason.REMOVED_FROM_FILES, parent.key if parent else None)
    declared = {address.kind for address in matching.matches}
    told = {
        (found.live.kind, found.live.id)
        for found in matching.removed.values()
        if found.live is not None
    }
    for each in matching.unmanaged:
        if (each.kind, each.id) in told:
            continue
        parent = _parent(each, parents, around)
        if not _in_a_managed_scope(each, parent, declared, around):
            continue
        if policy.prune_of(each.kind, str(parent) if parent else None) is Prune.UNMANAGED:
            resource = Resource(
                Address.of_unmanaged(each.kind, each.id), {"name": each.name}, state=State.ABSENT
            )
            found_match = Match(resource, each, parent_id=each.parent_id)
            yield Condemned(found_match, Reason.PRUNED, parent.key if parent else None)


def _parent(
    each: LiveObject | None, parents: dict[tuple[str, str], Address], around: Around
) -> Address | None:
    if each is None:
        return None
    parent_kind = around.kinds[each.kind].parent
    if parent_kind is None or each.parent_id is None:
        return None
    return parents.get((parent_kind, each.parent_id))


def _in_a_managed_scope(
    each: LiveObject, parent: Address | None, declared: set[str], around: Around
) -> bool:
    """A parent that the files manage; for kinds without one, at least one declared resource."""
    if around.kinds[each.kind].parent is not None:
        return parent is not None
    return each.kind in declared
