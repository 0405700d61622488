"""Compare a resource with its live object. Comes after the matcher, before the bodies.

Only declared fields are compared. With a git base, a key that was removed since is reset, and each
difference has the side that it comes from: a change since the oldest version of the resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from reconciler.model.change import FieldChange, Origin
from reconciler.model.comparison import comparable, compared, display_value, is_equal
from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Field, Kind
from reconciler.model.leaves import Leaf, field_leaves
from reconciler.model.live import LiveObject
from reconciler.model.resource import Lifecycle, Resource
from reconciler.model.values import JSON, MISSING, JSONObject, Path, SecretRef, path_text, value_at


class Difference(Struct, frozen=True):
    """What differs, in field order.

    `toggles` are changed by requests of their own. `unreset` are keys that were removed from the
    files and that the API can't reset: they keep their live value.
    """

    changes: tuple[FieldChange, ...]
    toggles: tuple[FieldChange, ...]
    unreset: tuple[Path, ...]


def difference(
    kind: Kind, resource: Resource, live: LiveObject, *, versions: Sequence[Resource] = ()
) -> Difference:
    """Return the managed fields in which the live object does not match the configuration.

    `versions` is the resource as it was declared since the git base, oldest first.
    """
    current = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, live.body, live=True)}
    declared = _declared(kind, resource.spec)
    former = [_declared(kind, version.spec) for version in versions]
    changes: list[FieldChange] = []
    toggles: list[FieldChange] = []
    unreset: list[Path] = []
    for path, leaf in declared.items():
        is_unset_toggle = leaf.field.toggle is not None and leaf.value is None
        is_secret = leaf.field.secret or isinstance(leaf.value, SecretRef)
        if is_unset_toggle or is_secret or is_ignored(path, resource.lifecycle):
            continue
        change = _field_change(leaf, current.get(path, MISSING), former)
        if change is not None:
            (toggles if leaf.field.toggle else changes).append(change)
    once = {
        path: leaf
        for version, leaves in zip(versions, former, strict=True)
        for path, leaf in leaves.items()
        if path[0] not in _other_variants(kind, resource, version.spec)
    }
    for leaf in _removed(kind, resource, live, declared, once):
        reset = _reset(leaf, current.get(leaf.path, MISSING))
        if reset is None:
            unreset.append(leaf.path)
        elif reset.before != reset.after:
            changes.append(reset)
    return Difference(tuple(changes), tuple(toggles), tuple(unreset))


def is_ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """Return whether `ignore_changes` names a path or one above it."""
    text = path_text(path)
    return any(
        text == prefix or text.startswith((f"{prefix}.", f"{prefix}["))
        for prefix in lifecycle.ignore_changes
    )


def _declared(kind: Kind, spec: JSONObject) -> dict[Path, Leaf]:
    return {leaf.path: leaf for leaf in field_leaves(kind.fields, spec, live=False)}


def _field_change(
    leaf: Leaf, live: JSON, former: Sequence[Mapping[Path, Leaf]]
) -> FieldChange | None:
    """Return the change of a declared field, None if it is equal."""
    field = leaf.field
    formerly = [leaves[leaf.path].value if leaf.path in leaves else MISSING for leaves in former]
    want, have = compared(field, leaf.value, live)
    removed_keys = _removed_keys(leaf, formerly, live)
    if want == have and not removed_keys:
        return None
    origin = _origin(field, leaf.value, live, formerly[0]) if formerly else Origin.UNKNOWN
    if removed_keys:
        have = {**(have if isinstance(have, dict) else {}), **removed_keys}
        want = {**want, **dict.fromkeys(removed_keys)}
    if field.verbatim:
        have, want = display_value(field, live), display_value(field, leaf.value)
    return FieldChange(leaf.path, have, want, reset=bool(removed_keys), origin=origin)


def _removed_keys(leaf: Leaf, formerly: Iterable[JSON], live: JSON) -> dict[str, JSON]:
    """Return live keys of a merged object that were removed from the files since the git base."""
    have, wanted = comparable(leaf.field, live), leaf.value
    if not (isinstance(leaf.field.type, MergedObject) and isinstance(have, dict)):
        return {}
    if not isinstance(wanted, Mapping):
        return {}
    once = {key for value in formerly if isinstance(value, Mapping) for key in value}
    return {key: have[key] for key in sorted(once - wanted.keys()) if have.get(key) is not None}


def _origin(field: Field, wanted: JSON, live: JSON, at_base: JSON) -> Origin:
    """Return which side changed since the git base. A new key is a change of the files."""
    if at_base is MISSING:
        return Origin.FILES
    if comparable(field, at_base) == comparable(field, wanted):
        return Origin.LIVE
    return Origin.FILES if is_equal(field, at_base, live) else Origin.BOTH


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
        is_field = path[0] not in others and not leaf.field.toggle and not leaf.field.secret
        if is_field and path not in declared and not is_ignored(path, resource.lifecycle):
            yield leaf


def _reset(leaf: Leaf, live: JSON) -> FieldChange | None:
    """Return what resets a removed key (docs/service.md, 15.8 and 15.9), None if nothing can."""
    field = leaf.field
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
