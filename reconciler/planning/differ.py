"""Two sides of one resource to field changes. Comes after the matcher, before the bodies.

Only what the files declare is compared. With a git base, a key that was declared there and is
gone now is reset, and each difference is told apart by the side it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.change import FieldChange, Origin
from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Field, Kind, Variant
from reconciler.model.live import LiveObject
from reconciler.model.resource import Lifecycle, Resource
from reconciler.model.values import JSON, MISSING, JSONObject, Path, SecretRef, path_text, value_at
from reconciler.planning.leaves import Leaf, comparable, display_value, leaves


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs. `unreset` are removed keys that nothing can reset: they stay as they are."""

    changes: tuple[FieldChange, ...]
    unreset: tuple[Path, ...] = ()


def difference(
    kind: Kind, resource: Resource, live: LiveObject, *, base: Resource | None = None
) -> Difference:
    """The managed fields in which the live object is not as the files say, in field order."""
    found = {leaf.path: leaf for leaf in leaves(kind.fields, live.body, live=True)}
    before = _declared(kind, base.spec) if base is not None else {}
    tag_moves = _tag_moves(kind, resource.spec, live.body)
    changes: list[FieldChange] = []
    declared = _declared(kind, resource.spec)
    for leaf in declared.values():
        if leaf.field.secret or leaf.field.toggle or is_ignored(leaf.path, resource.lifecycle):
            continue
        change = _compared(leaf, found.get(leaf.path), was=before.get(leaf.path), based=base)
        if change is not None:
            changes.append(change)
    unreset: list[Path] = []
    for path, leaf in before.items():
        gone = path not in declared and not leaf.field.secret and not leaf.field.toggle
        if not gone or is_ignored(path, resource.lifecycle) or path[0] in tag_moves:
            continue
        reset = _reset(leaf, found.get(path))
        if reset is None:
            unreset.append(path)
        elif reset.before != reset.after:
            changes.append(reset)
    return Difference(tuple(changes), tuple(unreset))


def toggled(kind: Kind, resource: Resource, live: LiveObject) -> Iterator[tuple[Field, bool]]:
    """Booleans with calls of their own that differ: the field and the wanted state."""
    for field in kind.fields:
        if field.toggle is None or resource.spec.get(field.name) is None:
            continue
        wanted = comparable(field, resource.spec[field.name])
        is_now = comparable(field, field.live_value(live.body))
        if wanted != is_now and not is_ignored((field.name,), resource.lifecycle):
            yield field, bool(wanted)


def _declared(kind: Kind, spec: JSONObject) -> dict[Path, Leaf]:
    return {leaf.path: leaf for leaf in leaves(kind.fields, spec, live=False)}


def is_ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """Return whether `ignore_changes` names a path or one above it."""
    text = path_text(path)
    return any(
        text == prefix or text.startswith((f"{prefix}.", f"{prefix}["))
        for prefix in lifecycle.ignore_changes
    )


def _tag_moves(kind: Kind, spec: JSONObject, body: JSONObject) -> frozenset[str]:
    """Variant fields whose tag changes: the old tag's keys mean nothing under the new one."""
    return frozenset(
        field.name
        for field, variant in kind.variants
        if value_at(spec, (field.name, variant.tag)) is not MISSING
        and comparable(variant.tag_field, value_at(spec, (field.name, variant.tag)))
        != comparable(variant.tag_field, value_at(body, (field.name, variant.tag)))
    )


def _compared(
    leaf: Leaf, found: Leaf | None, *, was: Leaf | None, based: Resource | None
) -> FieldChange | None:
    if isinstance(leaf.value, SecretRef):
        return None
    raw = found.value if found is not None else MISSING
    was_raw = was.value if was is not None else MISSING
    want, have = _sides(leaf.field, leaf.value, raw)
    removed_keys = _removed_parts(leaf, was_raw, raw)
    if want == have and not removed_keys:
        return None
    origin = Origin.UNKNOWN
    if based is not None:
        origin = _origin(leaf.field, leaf.value, raw, was_raw)
    if removed_keys and isinstance(want, dict):
        have = {**(have if isinstance(have, dict) else {}), **removed_keys}
        want = {**want, **dict.fromkeys(removed_keys)}
    if leaf.field.verbatim:
        have, want = display_value(leaf.field, raw), display_value(leaf.field, leaf.value)
    return FieldChange(leaf.path, have, want, reset=bool(removed_keys), origin=origin)


def _sides(field: Field, desired: JSON, live: JSON) -> tuple[JSON, JSON]:
    """Both values in the form in which they are equal when the server needs no call."""
    want = comparable(field, desired)
    have = comparable(field, live)
    if isinstance(field.type, MergedObject) and isinstance(want, dict):
        want = field.type.without_nulls(want)
        have = field.type.part_of(have, comparable(field, desired))
        have = have if have is not None else {}
    return want, have


def _removed_parts(leaf: Leaf, was: JSON, live: JSON) -> dict[str, JSON]:
    """Keys of a merged object that the base declared, the files no longer do, and are live."""
    if not isinstance(leaf.field.type, MergedObject):
        return {}
    if not (isinstance(was, Mapping) and isinstance(leaf.value, Mapping)):
        return {}
    have = comparable(leaf.field, live)
    if not isinstance(have, dict):
        return {}
    return {
        key: have[key] for key in sorted(was) if key not in leaf.value and have.get(key) is not None
    }


def _origin(field: Field, desired: JSON, live: JSON, base: JSON) -> Origin:
    """Which side moved since the git base. A key that is new in the files moved there."""
    if base is MISSING:
        return Origin.FILES
    files_moved = comparable(field, base) != comparable(field, desired)
    want, have = _sides(field, base, live)
    if not files_moved:
        return Origin.LIVE
    return Origin.BOTH if want != have else Origin.FILES


def _reset(leaf: Leaf, found: Leaf | None) -> FieldChange | None:
    """The way back of a key that was removed from the files (traps 8 and 9), if there is one."""
    field = leaf.field
    raw = found.value if found is not None else MISSING
    have, shown = comparable(field, raw), display_value(field, raw)
    if field.reset is not MISSING:
        after = field.reset
    elif field.clearable:
        after = None
    elif field.default is not MISSING:
        after = comparable(field, None)
    else:
        return None
    if have == comparable(field, after):
        after = shown
    return FieldChange(leaf.path, shown, after, reset=True, origin=Origin.FILES)


def same_at_a_glance(kind: Kind, resource: Resource, live: LiveObject) -> bool:
    """Whether every declared value is literally what was answered: no need to look closer.

    True implies an empty difference; False says nothing. Most of a large plan ends here, which
    is what makes ten thousand unchanged resources cheap.
    """
    body = live.body
    for name, value in resource.spec.items():
        answered = body.get(name, MISSING)
        if answered == value and answered is not MISSING:
            continue
        field = kind.field_named(name)
        if field is None or field.variant is None:
            if field is not None and field.secret:
                continue
            return False
        if not _same_tagged(field.variant, value, answered):
            return False
    return True


def _same_tagged(tagged: Variant, value: JSON, answered: JSON) -> bool:
    if not (isinstance(value, Mapping) and isinstance(answered, Mapping)):
        return False
    for name, inner in value.items():
        if name != tagged.body:
            if answered.get(name, MISSING) != inner:
                return False
            continue
        config = answered.get(name)
        if not (isinstance(config, Mapping) and isinstance(inner, Mapping)):
            return False
        for key, wanted in inner.items():
            if config.get(key, MISSING) != wanted and not isinstance(wanted, SecretRef):
                return False
    return True
