"""Decide what must be read beyond lists: objects in full, and what is in a parent.

A plan is made from short forms first, and where the organization has no list, from the contents of
the parents that it names. It is believed only when nothing that it depends on is missing in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from reconciler.errors import ReconcilerError
from reconciler.model.address import UNMANAGED_PREFIX, Address
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.plan import Change, Plan
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.values import MISSING
from reconciler.planning.differ import is_ignored
from reconciler.planning.inventory import Inventory

_Fields: TypeAlias = Mapping[tuple[str, str], AbstractSet[str]]
"""Names of fields by kind and a text that names a resource."""


class DetailsNotRead(ReconcilerError):
    """Changes depend on fields that only objects in full have: `wanted`."""

    def __init__(self, wanted: frozenset[Identity]) -> None:
        super().__init__("objects are needed in full, and only their short form was read")
        self.wanted = wanted


def needed_details(
    plan: Plan,
    live: Live,
    versions: Sequence[Mapping[Address, Resource]],
    kinds: Sequence[Kind],
) -> frozenset[Identity]:
    """Return the objects whose short form is not enough for a plan.

    These are objects that the plan writes to or into or is refused for, which may be pending
    deletion, and objects with a managed field that is not in the short form. `versions` are the
    configuration and what was applied.
    """
    reasons = (item.address for refusal in plan.refusals for item in refusal.objects)
    refused = {(item.kind, item.key.removeprefix(UNMANAGED_PREFIX)) for item in reasons}
    of_changes = details_of_changes(plan.changes, live, versions, kinds)
    return of_changes | (refused & short_forms(live).keys())


def details_of_changes(
    changes: Iterable[Change],
    live: Live,
    versions: Sequence[Mapping[Address, Resource]],
    kinds: Iterable[Kind],
) -> frozenset[Identity]:
    """Return the objects whose short form is not enough for changes, like `needed_details`."""
    short = short_forms(live)
    if not short:
        return frozenset()
    by_name = {kind.name: kind for kind in kinds}
    managed = _managed_fields(versions, {kind for kind, _ in short})
    needed: set[Identity] = set()
    for change in changes:
        kind = by_name[change.address.kind]
        own = (kind.name, change.live_id or "")
        if change.action is not Action.NO_OP:
            parent = kind.parent or ""
            needed |= {own, (parent, change.parent_id or ""), (parent, change.old_parent_id or "")}
        elif own in short and _lacks_field(short[own], change.address, managed, kind):
            needed.add(own)
    return frozenset(needed & short.keys())


def declared_parents(
    kind: Kind, parents: Sequence[LiveObject], desired: Desired, inventory: Inventory | None
) -> AbstractSet[str]:
    """Return the ids of the live parents in which objects of a kind are or were declared.

    All parents are returned if something may be in any.
    """
    entries = inventory.entries if inventory is not None else {}
    known = {item.id for item in parents}
    by_name: dict[str, set[str]] = defaultdict(set)
    for item in parents:
        by_name[item.name.strip()].add(item.id)
    chosen = {entry.parent or "" for address, entry in entries.items() if address.kind == kind.name}
    for resource in desired.resources.values():
        if resource.address.kind != kind.name:
            continue
        ref = resource.parent or ParentRef()
        address = Address(kind.parent or "", ref.key or "")
        parent = desired.resources.get(address)
        ids: set[str | None] = {ref.id, entries[address].id if address in entries else None}
        names = [ref.name or ""]
        if parent is not None:
            ids.add(parent.pinned_id)
            names += [parent.name, *parent.lifecycle.renamed_from]
        possible = {item for item in ids if item is not None and item in known} | set[str]().union(
            *(by_name[name.strip()] for name in names)
        )
        if not possible:
            return known
        chosen |= possible
    return chosen & known


def needed_parents(plan: Plan, live: Live, kinds: Sequence[Kind]) -> AbstractSet[Identity]:
    """Return the objects whose contents a plan depends on and that were not read.

    All of them if something is created or sent to another place, since any object may be its
    duplicate or write there, or if the object of a resource is not known. Else those that the plan
    deletes.
    """
    if plan.unclear:
        return live.unread
    variants = {(kind.name, item.name) for kind in kinds for item, _ in kind.variants}
    for change in plan.effective if live.unread else ():
        paths = {(change.address.kind, field.path[0]) for field in change.fields}
        is_sent = change.action is not Action.DELETE and not variants.isdisjoint(paths)
        if is_sent or change.action is Action.CREATE:
            return live.unread
    deletions = (change for change in plan.effective if change.action is Action.DELETE)
    return live.unread & {(change.address.kind, change.live_id or "") for change in deletions}


def touched_by(plan: Plan) -> Callable[[LiveObject], bool]:
    """Return the test whether a change of a plan concerns an object, by id or by name."""
    ids = {(change.address.kind, change.live_id) for change in plan.effective}
    names = {(change.address.kind, change.name.strip()) for change in plan.effective}
    return lambda live: live.identity in ids or (live.kind, live.name.strip()) in names


def short_forms(live: Live) -> dict[Identity, LiveObject]:
    """Return the objects of which only the short form of a list is known."""
    return {it.identity: it for items in live.objects.values() for it in items if not it.complete}


def _managed_fields(
    versions: Sequence[Mapping[Address, Resource]], kinds: Collection[str]
) -> _Fields:
    """Return the fields that resources of some kinds manage or managed.

    By address, and by kind and name or id: the key of an object may have changed.
    """
    managed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for resources in versions:
        for address, resource in resources.items():
            if address.kind in kinds:
                ignored = resource.lifecycle
                names = {name for name in resource.spec if not is_ignored((name,), ignored)}
                for text in (str(address), resource.name, resource.pinned_id or ""):
                    managed[address.kind, text] |= names
    return managed


def _lacks_field(live: LiveObject, address: Address, managed: _Fields, kind: Kind) -> bool:
    """Return whether the body of an object lacks a field that its resource manages or managed."""
    texts = (str(address), live.name.strip(), live.id)
    for name in set[str]().union(*(managed.get((kind.name, text), ()) for text in texts)):
        field = kind.field_named(name)
        if field is not None and not field.secret and field.live_value(live.body) is MISSING:
            return True
    return False
