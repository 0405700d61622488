"""Find objects that were modified since a plan was made, by object and field.

Only what the plan depends on counts: an export that ran, or a field that is not managed, makes no
plan stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.values import JSONObject
from reconciler.model.wording import printable
from reconciler.planning.leaves import live_fields
from reconciler.planning.masking import Mask, masked_value


@dataclass(frozen=True, slots=True)
class StaleChange:
    """The address of a change that no longer fits live state, with the cause."""

    address: Address
    cause: str

    def __str__(self) -> str:
        return f"{self.address}: {self.cause}"


def stale_changes(
    plan: Plan, live: Live, kinds: Sequence[Kind], *, mask: Mask
) -> tuple[StaleChange, ...]:
    """Return every change of a plan whose object is not as the plan expects it.

    `mask` masks known secrets, as in the values that a saved plan recorded.
    """
    by_name = {kind.name: kind for kind in kinds}
    objects = [item for listed in live.objects.values() for item in listed]
    by_id = {(item.kind, item.id): item for item in objects}
    names = {(item.kind, item.parent_id, item.name.strip()): item for item in objects}
    stale = []
    for change in plan.effective:
        kind = by_name[change.address.kind]
        if change.action is Action.CREATE:
            twin = names.get((kind.name, change.parent_id, change.name.strip()))
            cause = _existing(kind, change, twin)
        else:
            cause = _modified(kind, change, by_id.get((kind.name, change.live_id or "")), mask)
        if cause is not None:
            stale.append(StaleChange(change.address, cause))
    return tuple(stale)


def _existing(kind: Kind, change: Change, twin: LiveObject | None) -> str | None:
    """Return why a create is stale. Below a parent that does not exist yet there is no twin."""
    if twin is None or (kind.parent is not None and change.parent_id is None):
        return None
    return f"it exists by now, with the id {printable(twin.id)}"


def _modified(kind: Kind, change: Change, live: LiveObject | None, mask: Mask) -> str | None:
    if live is None:
        return f"it is gone (id {printable(str(change.live_id))})"
    fields = modified_fields(kind, change, live.body, mask=mask)
    return modifications_text(fields) if fields else None


def modified_fields(
    kind: Kind, change: Change, body: JSONObject, *, mask: Mask
) -> Mapping[str, tuple[str, str]]:
    """Return the modified fields: path text to both values as canonical text."""
    if change.seen is None:
        return {}
    current = live_fields(kind, body)
    modified: dict[str, tuple[str, str]] = {}
    for path, seen in sorted(change.seen.fields.items()):
        before = canonical_text(masked_value(seen, mask))
        now = canonical_text(masked_value(current.get(path), mask))
        if before != now:
            modified[path] = (before, now)
    return modified


def modifications_text(fields: Mapping[str, tuple[str, str]]) -> str:
    """Return `prefix was "a/" and is "b/" now`."""
    return printable(
        "; ".join(f"{path} was {was} and is {now} now" for path, (was, now) in fields.items())
    )
