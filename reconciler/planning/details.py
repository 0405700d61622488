"""Decide which objects must be read in full, of which only the short form of a list is known.

A plan is made from short forms first. It is believed only when nothing that it depends on is
missing in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from reconciler.model.action import Action
from reconciler.model.address import UNMANAGED_PREFIX, Address
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired
from reconciler.model.values import MISSING
from reconciler.planning.differ import is_ignored

Identity: TypeAlias = tuple[str, str]
"""The kind and the id of a live object."""


def needed_details(
    plan: Plan,
    live: Live,
    versions: Sequence[Desired],
    kinds: Sequence[Kind],
) -> frozenset[Identity]:
    """Return the objects whose short form is not enough for a plan.

    These are objects that the plan writes to or into or is refused for, which may be pending
    deletion, and objects with a managed field that is not in the short form. `versions` are the
    configuration and those of the git base.
    """
    short = short_forms(live)
    if not short:
        return frozenset()
    by_name = {kind.name: kind for kind in kinds}
    needed: set[Identity] = set()
    for change in plan.changes:
        kind = by_name[change.address.kind]
        own = (kind.name, change.live_id or "")
        if change.action is not Action.NO_OP:
            parent = kind.parent or ""
            needed |= {own, (parent, change.parent_id or ""), (parent, change.old_parent_id or "")}
        elif own in short and _lacks_field(short[own], change.address, versions, kind):
            needed.add(own)
    reasons = (item.address for refusal in plan.refusals for item in refusal.objects)
    needed |= {(item.kind, item.key.removeprefix(UNMANAGED_PREFIX)) for item in reasons}
    return frozenset(needed & short.keys())


def touched_by(plan: Plan) -> Callable[[LiveObject], bool]:
    """Return the test whether a change of a plan concerns an object, by id or by name."""
    ids = {(change.address.kind, change.live_id) for change in plan.effective}
    names = {(change.address.kind, change.name.strip()) for change in plan.effective}
    return lambda live: (live.kind, live.id) in ids or (live.kind, live.name.strip()) in names


def short_forms(live: Live) -> dict[Identity, LiveObject]:
    """Return the objects of which only the short form of a list is known."""
    return {
        (item.kind, item.id): item
        for items in live.objects.values()
        for item in items
        if not item.complete
    }


def _lacks_field(
    live: LiveObject, address: Address, versions: Sequence[Desired], kind: Kind
) -> bool:
    """Return whether the body of an object lacks a field that its resource manages or managed."""
    resources = (desired.resources.get(address) for desired in versions)
    for resource in filter(None, resources):
        for name in resource.spec:
            field = kind.field_named(name)
            if field is None or field.secret or is_ignored((name,), resource.lifecycle):
                continue
            if field.live_value(live.body) is MISSING:
                return True
    return False
