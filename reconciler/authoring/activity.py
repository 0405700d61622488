"""Who changed live objects, by the activity log of the service (docs/service.md, 10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client.waits import together
from reconciler.errors import ServiceError
from reconciler.model.comparison import comparable
from reconciler.model.drift import Attribution, Drift, DriftedField, DriftedObject
from reconciler.model.values import JSON, JSONObject
from reconciler.reading.calls import NotOffered, ObjectCalls

OPERATION = "activity"
_MOST_ENTRIES = 200
"""Entries of one object that are read."""
_REFUSED = (402, 403, 404)
_WITHOUT_PLAN = 402
_NAMES = {"enabled": "paused"}
"""The log calls the field `enabled`, with the values of `paused` (docs/service.md, 15.64)."""


class _Change(Struct, frozen=True):
    """The newest entry of the log that sets a field."""

    after: JSON
    attribution: Attribution


async def attributed(
    drift: Drift, calls_of: Callable[[DriftedObject], ObjectCalls | None]
) -> Drift:
    """Return drift with who changed it and when, where the log says so.

    A field is attributed only if the newest entry that sets it has the live value: what the log
    does not show, such as a change of a destination, stays unknown. A server that refuses its log
    is asked once. Raises ServiceError for other errors.
    """
    known: list[DriftedObject] = []
    waiting = list(drift.objects)
    try:
        while waiting and not known:
            known.append(await _attributed(waiting.pop(0), calls_of))
        known += await together(_attributed(item, calls_of) for item in waiting)
    except (NotOffered, ServiceError) as error:
        remark = _remark(error)
        if remark is None:
            raise
        return replace(drift, remarks=(*drift.remarks, remark))
    return replace(drift, objects=tuple(known))


def _remark(error: NotOffered | ServiceError) -> str | None:
    """Return why the log cannot be read, None for an error that may pass."""
    if isinstance(error, NotOffered):
        return f"who changed it is unknown: {error.message}"
    if error.status not in _REFUSED:
        return None
    if error.status == _WITHOUT_PLAN:
        return "who changed it is unknown: the organization has no audit log (402)"
    return (
        f"who changed it is unknown: the key may not read the activity log ({error.status}); "
        "it needs the scope activity_log:read"
    )


async def _attributed(
    item: DriftedObject, calls_of: Callable[[DriftedObject], ObjectCalls | None]
) -> DriftedObject:
    calls = calls_of(item)
    fields = {str(field.change.path[0]) for field in item.fields if len(field.change.path) == 1}
    if calls is None or not fields:
        return item
    query = {"item_id": item.live_id, "page_size": "100"}
    latest = await _latest(calls.listed(OPERATION, query=query), fields)
    return replace(item, fields=tuple(_with(field, latest, calls) for field in item.fields))


async def _latest(entries: AsyncIterator[JSONObject], fields: set[str]) -> Mapping[str, _Change]:
    """Return the newest change of each field."""
    latest: dict[str, _Change] = {}
    number = 0
    async for entry in entries:
        number += 1
        for name, change in _changes(entry):
            latest.setdefault(name, change)
        if fields <= latest.keys() or number >= _MOST_ENTRIES:
            break
    return latest


def _changes(entry: JSONObject) -> Sequence[tuple[str, _Change]]:
    """Return the fields that an entry sets; none for an entry of another form."""
    detail, at = entry.get("detail"), entry.get("created_at")
    changes = detail.get("changes") if isinstance(detail, Mapping) else None
    if not isinstance(changes, list) or not isinstance(at, str):
        return ()
    attribution = Attribution(_person(entry), at)
    return [
        (_NAMES.get(name, name), _Change(change.get("after"), attribution))
        for change in changes
        if isinstance(change, Mapping) and isinstance(name := change.get("field"), str)
    ]


def _person(entry: JSONObject) -> str | None:
    """Return the name and address of the user of an entry, None for the service.

    Before July 2026, writes by API key are attributed to the service.
    """
    user = entry.get("user")
    if not isinstance(user, Mapping) or entry.get("is_system") is True:
        return None
    names = [user.get(part) for part in ("first_name", "last_name")]
    name = " ".join(part for part in names if isinstance(part, str) and part)
    email = user.get("email")
    address = f"<{email}>" if isinstance(email, str) and email else ""
    return " ".join(part for part in (name, address) if part) or None


def _with(field: DriftedField, latest: Mapping[str, _Change], calls: ObjectCalls) -> DriftedField:
    """Return a field with its attribution, if the log shows its live value as the newest one."""
    path = field.change.path
    change = latest.get(str(path[0])) if len(path) == 1 else None
    known = calls.kind.field_named(str(path[0]))
    if change is None or known is None:
        return field
    live = known.live_value(calls.live.body)
    if comparable(known, change.after) != comparable(known, live):
        return field
    return replace(field, attribution=change.attribution)
