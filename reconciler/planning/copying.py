"""Describe a copy of the service, in which a plan is rehearsed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from reconciler.model.comparison import comparable, is_default
from reconciler.model.copied import Related, ServiceCopy
from reconciler.model.kind import Kind
from reconciler.model.leaves import field_leaves
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.values import JSONObject, path_text
from reconciler.planning.details import Identity

EndState: TypeAlias = Counter[tuple[str, str, str, tuple[tuple[str, str], ...]]]
"""How many objects there are by kind, parent, name and values."""


def copy_of(plan: Plan, live: Live, kinds: Sequence[Kind]) -> ServiceCopy:
    """Return the copy of live state in which a plan can be applied, ids included.

    Objects that only the plan names are assumed to exist.
    """
    sent = {
        (change.address.kind, change.live_id): {
            **(change.body or {}),
            **(change.after_create or {}),
        }
        for change in plan.effective
        if change.live_id is not None
    }
    known: dict[tuple[str, int], JSONObject] = {}
    named: dict[tuple[str, int], JSONObject] = {}
    bodies: dict[Identity, JSONObject] = {}
    others: set[str] = set()
    for kind in kinds:
        for item in live.of(kind.name):
            copied = kind.behaviour().copied(item.body, sent.get((kind.name, item.id), {}))
            bodies[kind.name, item.id] = copied.body
            others |= {*copied.assumed}
            _add(known, kind.behaviour().copied(item.body, {}).related, kind, item.parent_id)
            _add(named, copied.related, kind, item.parent_id)
    by_name = {kind.name: kind for kind in kinds}
    for change in plan.effective:
        if change.parent_id is not None:
            kind = by_name[change.address.kind]
            related = kind.behaviour().copied({}, change.body or {}).related
            _add(named, related, kind, change.parent_id)
    assumed = {key: body for key, body in named.items() if key not in known}
    seed = {
        "organizations": [{"id": plan.source.organization, **_nested(live, kinds, bodies)}],
        **_collections({**known, **assumed}),
    }
    return ServiceCopy(seed, tuple(sorted({*others, *map(_described, assumed)})))


def end_state(live: Live, kinds: Sequence[Kind]) -> EndState:
    """Return live state in a form that can be compared although the ids of new objects differ."""
    names = {(item.kind, item.id): item.name for kind in kinds for item in live.of(kind.name)}
    return Counter(
        (kind.name, names.get((kind.parent or "", item.parent_id or ""), ""), item.name, values)
        for kind in kinds
        for item in live.of(kind.name)
        for values in [tuple(sorted(_values(kind, item)))]
    )


def sample(count: int, most: int) -> list[int]:
    """Return at most so many numbers from 1 to `count`, evenly spread, the last one included."""
    chosen = min(count, most)
    return [count * number // chosen for number in range(1, chosen + 1)]


def _values(kind: Kind, item: LiveObject) -> Iterator[tuple[str, str]]:
    for leaf in field_leaves(kind.fields, item.body, live=True):
        if not is_default(leaf.field, leaf.value):
            yield path_text(leaf.path), repr(comparable(leaf.field, leaf.value))


def _add(
    related: dict[tuple[str, int], JSONObject], more: Related, kind: Kind, parent_id: str | None
) -> None:
    """Add objects that are below a parent. One that is known already stays where it is."""
    for key, body in more.items():
        place = {} if kind.parent_key is None else {kind.parent_key: _number(parent_id)}
        related.setdefault(key, {**body, **place})


def _nested(
    live: Live,
    kinds: Sequence[Kind],
    bodies: Mapping[Identity, JSONObject],
    parent: str | None = None,
    parent_id: str | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Return the objects below a parent by collection, with what is below them, oldest first."""
    return {
        kind.collection: [
            {
                **bodies[kind.name, item.id],
                "id": _number(item.id),
                "copied": True,
                **_nested(live, kinds, bodies, kind.name, item.id),
            }
            for item in reversed(live.of(kind.name))
            if item.parent_id == parent_id
        ]
        for kind in kinds
        if kind.parent == parent
    }


def _collections(related: Mapping[tuple[str, int], JSONObject]) -> dict[str, list[dict[str, Any]]]:
    collections: dict[str, list[dict[str, Any]]] = {}
    for (collection, number), body in related.items():
        collections.setdefault(collection, []).append({"id": number, **body})
    return collections


def _described(key: tuple[str, int]) -> str:
    collection, number = key
    return f"{collection.removesuffix('s')} {number}"


def _number(live_id: str | None) -> int | str | None:
    return int(live_id) if live_id is not None and live_id.isdecimal() else live_id
