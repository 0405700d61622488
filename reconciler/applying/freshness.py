"""Is an object still what the plan saw? Told by object and field.

Only what the plan speaks about counts: an export that ran meanwhile, or a field that nobody
manages, makes no plan stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Kind
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.values import JSONObject
from reconciler.model.wording import printable
from reconciler.planning.leaves import live_fields
from reconciler.planning.masking import Mask, masked_value


@dataclass(frozen=True, slots=True)
class Moved:
    """One object that is no longer as the plan saw it, with the reason in words."""

    address: Address
    what: str

    def __str__(self) -> str:
        return f"{self.address}: {self.what}"


def moved_since(plan: Plan, live: Live, kinds: Sequence[Kind], *, mask: Mask) -> tuple[Moved, ...]:
    """What moved on the live side of everything that a plan is about to touch.

    `mask` hides known secrets, as it did in what the saved plan tells that it saw.
    """
    by_name = {kind.name: kind for kind in kinds}
    objects = {(each.kind, each.id): each for found in live.objects.values() for each in found}
    names = {
        (each.kind, each.parent_id, each.name.strip()): each
        for found in live.objects.values()
        for each in found
    }
    moved: list[Moved] = []
    for change in plan.effective:
        kind = by_name[change.address.kind]
        if change.action is Action.CREATE:
            twin = names.get((kind.name, change.parent_id, change.name.strip()))
            if twin is not None and (kind.parent is None or change.parent_id is not None):
                moved.append(
                    Moved(change.address, f"it exists by now, with the id {printable(twin.id)}")
                )
            continue
        found = objects.get((kind.name, change.live_id or ""))
        if found is None:
            moved.append(Moved(change.address, f"it is gone (id {printable(str(change.live_id))})"))
            continue
        fields = moved_fields(kind, change, found.body, mask=mask)
        if fields:
            moved.append(Moved(change.address, told(fields)))
    return tuple(moved)


def moved_fields(
    kind: Kind, change: Change, body: JSONObject, *, mask: Mask
) -> Mapping[str, tuple[str, str]]:
    """The fields that the plan saw otherwise: path text to both values as canonical text."""
    if change.seen is None:
        return {}
    now = live_fields(kind, body)
    moved: dict[str, tuple[str, str]] = {}
    for path, seen in sorted(change.seen.fields.items()):
        was = canonical_text(masked_value(seen, mask))
        is_now = canonical_text(masked_value(now.get(path), mask))
        if was != is_now:
            moved[path] = (was, is_now)
    return moved


def told(fields: Mapping[str, tuple[str, str]]) -> str:
    """`prefix was "a/" and is "b/" now`."""
    return printable(
        "; ".join(f"{path} was {was} and is {now} now" for path, (was, now) in fields.items())
    )
