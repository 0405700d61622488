"""Compare a resource with its live object. Comes after the matcher, before the bodies.

Only declared fields are compared. With a git base, a key that was removed since is reset, and each
difference has the side that it comes from: the files, if they changed since the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.change import FieldChange, Origin
from reconciler.model.comparison import (
    Leaf,
    comparable,
    compared,
    display_value,
    field_leaves,
    is_default,
    is_equal,
    is_same,
)
from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.resource import Lifecycle, Resource
from reconciler.model.values import JSON, MISSING, JSONObject, Path, SecretRef, path_text, value_at
from reconciler.planning.base import Base, Declared


class Difference(Struct, frozen=True):
    """What differs, in field order.

    `toggles` are changed by requests of their own. `unreset` are keys that were removed from the
    files and that the API can't reset: they keep their live value.
    """

    changes: tuple[FieldChange, ...]
    toggles: tuple[FieldChange, ...]
    unreset: tuple[Path, ...]


def difference(kind: Kind, resource: Resource, live: LiveObject, declared: Declared) -> Difference:
    """Return the managed fields in which the live object does not match the configuration.

    `declared` is how the object was declared since the git base.
    """
    current = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, live.body, live=True)}
    wanted = _leaves(kind, resource)
    before = _leaves(kind, declared.at_base) if declared.at_base is not None else {}
    once = _set_since_base(kind, resource, declared.versions)
    changes: list[FieldChange] = []
    toggles: list[FieldChange] = []
    unreset: list[Path] = []
    for path, leaf in wanted.items():
        is_unset_toggle = leaf.field.toggle is not None and leaf.value is None
        is_secret = leaf.field.secret or isinstance(leaf.value, SecretRef)
        if is_unset_toggle or is_secret or is_ignored(path, resource.lifecycle):
            continue
        change = _field_change(leaf, current.get(path, MISSING), once)
        if change is not None:
            origin = _origin(leaf, current.get(path, MISSING), before.get(path), declared.base)
            kept = toggles if leaf.field.toggle else changes
            kept.append(replace(change, origin=origin))
    for leaf in _removed(kind, resource, live, wanted, once):
        now = current.get(leaf.path, MISSING)
        reset = _reset(leaf, now)
        if reset is not None and reset.before != reset.after:
            changes.append(reset)
        elif reset is None and not (leaf.field.toggle and is_default(leaf.field, now)):
            unreset.append(leaf.path)
    return Difference(tuple(changes), tuple(toggles), tuple(unreset))


def is_ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """Return whether `ignore_changes` names a path or one above it."""
    text = path_text(path)
    return any(
        text == prefix or text.startswith((f"{prefix}.", f"{prefix}["))
        for prefix in lifecycle.ignore_changes
    )


def _leaves(kind: Kind, resource: Resource) -> dict[Path, Leaf]:
    return {leaf.path: leaf for leaf in field_leaves(kind.fields, resource.spec, live=False)}


def _set_since_base(
    kind: Kind, resource: Resource, versions: Sequence[Resource]
) -> dict[Path, Leaf]:
    """Return what was set, with the keys of merged objects, and not left to the service since."""
    once: dict[Path, Leaf] = {}
    for version in (*versions, resource) if versions else ():
        if version.unset:
            once = {path: leaf for path, leaf in once.items() if not version.leaves(path)}
        others = _other_variants(kind, resource, version.spec)
        for path, leaf in _leaves(kind, version).items():
            if path[0] not in others:
                once[path] = leaf
                is_merged = isinstance(leaf.field.type, MergedObject)
                keys = leaf.value if is_merged and isinstance(leaf.value, Mapping) else ()
                once |= {(*path, key): leaf for key in keys}
    return once


def _field_change(leaf: Leaf, live: JSON, once: Iterable[Path]) -> FieldChange | None:
    """Return the change of a declared field, None if it is equal. Its origin is unknown."""
    field = leaf.field
    want, have = compared(field, leaf.value, live)
    removed_keys = _removed_keys(leaf, once, live)
    if is_same(want, have) and not removed_keys:
        return None
    if removed_keys:
        have = {**(have if isinstance(have, dict) else {}), **removed_keys}
        want = {**want, **dict.fromkeys(removed_keys)}
    if field.verbatim:
        have, want = display_value(field, live), display_value(field, leaf.value)
    return FieldChange(leaf.path, have, want, reset=bool(removed_keys))


def _removed_keys(leaf: Leaf, once: Iterable[Path], live: JSON) -> dict[str, JSON]:
    """Return live keys of a merged object that were removed from the files since the git base."""
    have, wanted = comparable(leaf.field, live), leaf.value
    if not (isinstance(leaf.field.type, MergedObject) and isinstance(have, dict)):
        return {}
    if not isinstance(wanted, Mapping):
        return {}
    keys = {str(path[-1]) for path in once if path[:-1] == leaf.path}
    return {key: have[key] for key in sorted(keys - wanted.keys()) if have.get(key) is not None}


def _origin(wanted: Leaf, live: JSON, at_base: Leaf | None, base: Base | None) -> Origin:
    """Return which side changed since the git base. A new field is a change of the files."""
    if base is None:
        return Origin.UNKNOWN
    if at_base is None or not base.merged:
        return Origin.FILES
    if is_same(comparable(wanted.field, at_base.value), comparable(wanted.field, wanted.value)):
        return Origin.LIVE
    return Origin.FILES if is_equal(wanted.field, at_base.value, live) else Origin.BOTH


def _other_variants(kind: Kind, resource: Resource, spec: JSONObject) -> set[str]:
    """Return the fields that have another tag in a spec or body: what is in them differs."""
    return {
        field.name
        for field, variant in kind.variants
        if (tag := value_at(resource.spec, (field.name, variant.tag))) is not MISSING
        and not is_equal(variant.tag_field, tag, value_at(spec, (field.name, variant.tag)))
    }


def _removed(
    kind: Kind,
    resource: Resource,
    live: LiveObject,
    declared: Mapping[Path, Leaf],
    once: Mapping[Path, Leaf],
) -> Iterator[Leaf]:
    """Yield the fields that were removed from the files since the git base.

    Those of a variant whose tag changes are no fields of the new one.
    """
    others = _other_variants(kind, resource, live.body)
    for path, leaf in once.items():
        is_field = path == leaf.path and path[0] not in others
        if is_field and path not in declared and not is_ignored(path, resource.lifecycle):
            yield leaf


def _reset(leaf: Leaf, live: JSON) -> FieldChange | None:
    """Return what resets a removed key (service.md, 15.8 and 15.9), None if nothing can.

    An object is not unpaused because a line was removed, and a secret may be another one by now.
    """
    field = leaf.field
    if field.toggle or field.secret or isinstance(leaf.value, SecretRef):
        return None
    if field.reset is not MISSING:
        after = field.reset
    elif field.clearable:
        after = None
    elif field.default is not MISSING:
        after = comparable(field, None)
    else:
        return None
    before = display_value(field, live)
    if comparable(field, live) == comparable(field, after):
        after = before
    return FieldChange(leaf.path, before, after, reset=True, origin=Origin.FILES)
