"""Decide what must be read beyond lists: what is in a parent, and objects in full.

The files and the inventory decide in which parents objects are read, where the organization has no
list of them. Which objects resources match decides what is read in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.resource import Desired, State
from reconciler.planning.compare import is_identical
from reconciler.planning.integrations import parents_of_names
from reconciler.planning.inventory import Inventory
from reconciler.planning.match import Match, Matching
from reconciler.planning.select import Selected


class Needs(Struct, frozen=True):
    """What a plan depends on and live state lacks.

    objects
        Objects of which only the short form of a list is known.
    integrations
        The ids of the parents whose integrations are named.
    """

    objects: frozenset[Identity] = frozenset()
    integrations: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        live: Live,
        objects: AbstractSet[Identity],
        integrations: AbstractSet[str] = frozenset(),
    ) -> Needs:
        """Return those of some objects and lists of integrations that live state lacks."""
        return cls(
            frozenset(objects & short_forms(live).keys()),
            frozenset(integrations - live.integrations.keys()),
        )

    def __bool__(self) -> bool:
        """Return whether anything is lacking."""
        return bool(self.objects or self.integrations)


def parents_to_read(
    kind: Kind, parents: Sequence[LiveObject], desired: Desired, inventory: Inventory | None
) -> AbstractSet[str]:
    """Return the ids of the live parents in which objects of a kind are or were declared.

    So are parents that are deleted. All are returned if a resource pins an `id` or names no parent:
    it may be in any.
    """
    entries = inventory.entries if inventory is not None else {}
    own = [item for item in desired.resources.values() if item.address.kind == kind.name]
    refs = [item.parent for item in own if item.parent is not None]
    if len(refs) < len(own) or any(item.pinned_id is not None for item in own):
        return {item.id for item in parents}
    ids = {ref.id for ref in refs}
    ids |= {entry.parent for address, entry in entries.items() if address.kind == kind.name}
    names = {(ref.name or "").strip() for ref in refs}
    declared = {Address(kind.parent or "", ref.key) for ref in refs if ref.key is not None}
    for address in {*desired.resources, *entries}:
        if address.kind != kind.parent:
            continue
        parent, entry = desired.resources.get(address), entries.get(address)
        if address in declared or parent is None or parent.state is State.ABSENT:
            ids.add(entry.id if entry is not None else None)
            if parent is not None:
                ids.add(parent.pinned_id)
                names |= {item.strip() for item in (parent.name, *parent.lifecycle.renamed_from)}
    return {item.id for item in parents if item.id in ids or item.name.strip() in names}


def needs_of(selected: Selected) -> Needs:
    """Return what the plan of a selection needs.

    In full are needed: objects that may be one of several, or are deleted; objects that differ from
    their resource, as far as their short form shows; and the parents in which something is created,
    and namesakes of it, which may be pending deletion.
    """
    matching = selected.matching
    wanted = {*matching.undecided}
    wanted |= {
        item.live.identity
        for item in selected.pruned
        if item.match.resource.address in selected.addresses
    }
    created: set[tuple[str, str]] = set()
    for address in selected.addresses & matching.matches.keys():
        match = matching.matches[address]
        parent, live = match.kind.parent or "", match.live
        if live is None and match.resource.state is State.ABSENT:
            continue
        if live is None or match.moved:
            created.add((match.kind.name, match.resource.name.casefold()))
            wanted.add((parent, match.parent_id or ""))
        if live is not None and match.moved:
            wanted.add((parent, live.parent_id or ""))
        if live is not None and not live.complete and not _is_settled(match, live, matching):
            wanted.add(live.identity)
    wanted |= {
        identity
        for identity, item in (short_forms(matching.live) if created else {}).items()
        if (item.kind, item.name.strip().casefold()) in created
    }
    return Needs.of(matching.live, wanted, parents_of_names(matching, selected.addresses))


def _is_settled(match: Match, live: LiveObject, matching: Matching) -> bool:
    """Return whether the short form of an object shows that nothing of it changes."""
    resource = match.resource
    was = matching.declared(resource, live).applied
    return (
        resource.state is State.PRESENT
        and (was is None or was.spec == resource.spec)
        and is_identical(match.kind, resource.spec, live.body)
    )


def short_forms(live: Live) -> Mapping[Identity, LiveObject]:
    """Return the objects of which only the short form of a list is known."""
    return {it.identity: it for items in live.objects.values() for it in items if not it.complete}
