"""Select from a plan what changed in live state since the git base. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, FieldChange, Origin
from reconciler.model.drift import Drift, DriftedField, DriftedObject
from reconciler.model.live import OTHER_TOOL
from reconciler.model.plan import Plan
from reconciler.model.policy import POSSIBLE_DUPLICATE
from reconciler.planning.base import Base

_PAUSED_BY_SERVICE = "paused-by-service"
"""The consequence of an unpause that says that the service probably paused the object."""
_DRIFT = (Origin.LIVE, Origin.BOTH)


def drift_of(plan: Plan, base: Base) -> Drift:
    """Return the drift that a plan with a git base would set back."""
    by_address: dict[Address, list[Change]] = {}
    for change in plan.changes:
        by_address.setdefault(change.address, []).append(change)
    created = set(_created(plan, base))
    doubled = [refusal for refusal in plan.refusals if refusal.rule == POSSIBLE_DUPLICATE]
    renamed = {refusal.addresses[0]: refusal.objects[0].name for refusal in doubled}
    explained = {address for refusal in doubled for address in refusal.addresses}
    in_order = sorted(by_address, key=lambda address: (address.kind, address.key))
    objects = (_object(by_address[address]) for address in in_order)
    return Drift(
        source=plan.source,
        objects=tuple(item for item in objects if item is not None),
        compared=len(by_address),
        deleted=tuple(sorted(created - explained)),
        renamed={address: name for address, name in renamed.items() if address in created},
        unmanaged=len(plan.unmanaged),
        remarks=tuple(note.message for note in plan.notes if note.code == OTHER_TOOL),
    )


def _object(changes: list[Change]) -> DriftedObject | None:
    fields = [field for change in changes for field in _drifted(change)]
    first = changes[0]
    if not fields or first.live_id is None:
        return None
    rules = {item.rule for change in changes for item in change.consequences}
    return DriftedObject(
        address=first.address,
        name=first.name,
        live_id=first.live_id,
        fields=tuple(map(DriftedField, fields)),
        parent_name=first.parent_name,
        at=next((change.at for change in changes if change.at is not None), None),
        paused_by_service=_PAUSED_BY_SERVICE in rules,
    )


def _drifted(change: Change) -> Iterator[FieldChange]:
    for field in change.fields:
        if field.origin in _DRIFT and not field.secret:
            yield field


def _created(plan: Plan, base: Base) -> Iterator[Address]:
    """Yield the resources of the base that a plan creates again."""
    at_base = base.present
    for change in plan.changes:
        if change.action is Action.CREATE and change.address in at_base:
            yield change.address
