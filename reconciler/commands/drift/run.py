"""The use case `drift`: what changed in live state since the apply, and who changed it.

The activity log says who changed an object (service.md, 10).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from reconciler.commands.drift.report import Attribution, Drift, DriftedField, DriftedObject
from reconciler.commands.runtime import Reported, Workspace
from reconciler.commands.session import Session
from reconciler.errors import ServiceError
from reconciler.kinds import behaviour_of, kinds_by_name
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Change, FieldChange, Origin, Plan
from reconciler.model.policy import POSSIBLE_DUPLICATE, PlanOptions
from reconciler.model.values import (
    JSON,
    JSONObject,
    mapping_of,
    path_text,
)
from reconciler.planning.compare import comparable
from reconciler.planning.inventory import Inventory
from reconciler.planning.notes import PAUSED_BY_SERVICE
from reconciler.planning.select import Named, Names, check_clear
from reconciler.service.operations import NotOffered, ObjectCalls
from reconciler.service.transport import Transport

_OPERATION = "activity"
_REFUSED = (None, 402, 403, 404)
"""The status of an answer that has no log: not offered to keys, not paid for, or without scope."""
_NAMES = {"enabled": "paused"}
"""The log calls the field `enabled`, with the values of `paused` (service.md, 15.64)."""
_DRIFT = (Origin.LIVE, Origin.BOTH, Origin.UNKNOWN)
"""Where nothing was recorded as applied, a difference from the files counts, too."""


async def drift(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    options: PlanOptions | None = None,
    attribute: bool = True,
) -> Reported[Drift]:
    """Return what changed in live state since the apply, of all resources without `names`.

    `attribute`: read the activity log of what drifted, one call an object.

    Raises:
        InvalidConfiguration, ServiceError.
        GitUnavailable: the inventory cannot be read.

    """
    session, options = Session.open(workspace), options or PlanOptions()
    async with session.connected() as transport:
        inventory = session.inventory(options)
        plan, live = await session.planned(transport, options, inventory)
        result = drift_of(plan, live, inventory, names)
        if attribute:
            result = await attributed(result, live, transport)
        return workspace.masked(Reported(result, session.warnings(plan), transport.calls))


def drift_of(
    plan: Plan, live: Live, inventory: Inventory | None, names: Sequence[str] = ()
) -> Drift:
    """Return the drift that a plan would set back, of all resources without names.

    Raises BadUsage for a text that names nothing.
    """
    chosen = _chosen(plan, names)
    by_address: dict[Address, list[Change]] = {}
    for change in sorted(plan.changes, key=lambda item: (item.address.kind, item.address.key)):
        # The fields of a deletion are not compared with anything.
        if change.action is not Action.DELETE and change.address in chosen:
            by_address.setdefault(change.address, []).append(change)
    # What was applied and the plan creates again.
    applied = (inventory or Inventory()).counted(live, kinds_by_name()).entries
    deleted = {
        address
        for address, changes in by_address.items()
        if address in applied and any(change.action is Action.CREATE for change in changes)
    }
    doubled = [item for item in plan.refusals if item.rule == POSSIBLE_DUPLICATE]
    renamed = {
        item.addresses[0]: item.objects[0].name
        for item in doubled
        if not names or item.addresses[0] in chosen
    }
    explained = {address for item in doubled for address in item.addresses}
    objects = map(_object, by_address.values())
    return Drift(
        source=plan.source,
        objects=tuple(item for item in objects if item is not None),
        compared=len(by_address),
        deleted=tuple(sorted(deleted - explained)),
        renamed={
            address: name
            for address, name in renamed.items()
            if plan.source.applied is None or address in deleted
        },
        unmanaged=len(plan.unmanaged),
        remarks=(
            *(refusal.message for refusal in plan.refusals if refusal in plan.unclear.values()),
            *(note.message for note in plan.notes if note.code == PAUSED_BY_SERVICE),
        ),
    )


def _chosen(plan: Plan, names: Sequence[str]) -> frozenset[Address]:
    ids = {change.address: change for change in plan.changes}
    if not names:
        return frozenset(ids)
    check_clear(names, plan.refusals)
    known = (
        Named(address, (change.live_id,) if change.live_id else (), (change.name,))
        for address, change in ids.items()
    )
    return Names(known).addresses(names)


def _object(changes: list[Change]) -> DriftedObject | None:
    fields = [
        DriftedField(item)
        for change in changes
        for item in change.fields
        if item.origin in _DRIFT and not item.secret
    ]
    first = changes[0]
    if not fields or first.live_id is None:
        return None
    rules = {item.rule for change in changes for item in change.consequences}
    return DriftedObject(
        address=first.address,
        name=first.name,
        live_id=first.live_id,
        fields=tuple(fields),
        parent_name=first.parent_name,
        at=next((change.at for change in changes if change.at is not None), None),
        paused_by_service=PAUSED_BY_SERVICE in rules,
    )


async def attributed(drift: Drift, live: Live, transport: Transport) -> Drift:
    """Return drift with who changed it and when, where the activity log says so.

    A server that refuses its log is asked once. Raises ServiceError for other errors.
    """
    objects = list(drift.objects)
    try:
        for position, item in enumerate(objects):
            kind = kinds_by_name()[item.address.kind]
            if any(it.name == _OPERATION and it.scope for it in behaviour_of(kind).operations):
                body = live.by_identity[kind.name, item.live_id]
                calls = ObjectCalls(transport, kind, drift.source.organization, body, live.dialect)
                objects[position] = await _attributed(item, calls)
    except (NotOffered, ServiceError) as error:
        if getattr(error, "status", None) not in _REFUSED:
            raise
        return replace(drift, remarks=(*drift.remarks, f"the author is unknown: {error.message}"))
    return replace(drift, objects=tuple(objects))


async def _attributed(item: DriftedObject, calls: ObjectCalls) -> DriftedObject:
    """Return an object with the newest entries of its log that set the live values.

    What the log does not show, such as a change of a destination, stays unknown.
    """
    latest: dict[str, tuple[JSON, Attribution]] = {}
    entries = await calls.send(_OPERATION, query={"item_id": item.live_id, "page_size": "100"})
    for entry in map(mapping_of, mapping_of(entries).get("results") or ()):
        by = Attribution(_person(entry), str(entry.get("created_at")))
        for change in map(mapping_of, mapping_of(entry.get("detail")).get("changes") or ()):
            name = str(change.get("field"))
            latest.setdefault(_NAMES.get(name, name), (change.get("after"), by))

    def author_of(change: FieldChange) -> Attribution | None:
        field, name = calls.kind.field_named(path_text(change.path)), path_text(change.path)
        value, by = latest.get(name, (None, None))
        is_same = field and comparable(field, value) == comparable(field, change.before)
        return by if is_same else None

    fields = (replace(it, attribution=author_of(it.change)) for it in item.fields)
    return replace(item, fields=tuple(fields))


def _person(entry: JSONObject) -> str | None:
    """Return the name and address of the user of an entry, None for the service.

    Before July 2026, writes by API key are attributed to the service.
    """
    user = mapping_of(entry.get("user")) if entry.get("is_system") is not True else {}
    email = user.get("email") and f"<{user['email']}>"
    words = (user.get("first_name"), user.get("last_name"), email)
    return " ".join(map(str, filter(None, words))) or None
