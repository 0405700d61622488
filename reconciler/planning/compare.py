"""Compare a resource with its live object, and turn what differs into request bodies.

Only declared fields are compared. A key that was applied and is removed from the files is reset.
Each difference has the side that it comes from: the files, if they changed since the apply.

A body has configured values. Live values are sent back only where the service requires them: the
integration of a destination (service.md, 15.13), and a field that is judged together with a
changed one (15.16). Other live values can be refused (15.12). Which secrets are sent is decided
here, too: they can't be compared, since the API hides them (15.1).

Whether an object was modified since its plan is decided elsewhere (`modifications` in
applying/check.py): by the results of `live_values`, those recorded in the plan and those of now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.kind import Dialect, Field, Kind, Variant
from reconciler.model.live import LiveObject
from reconciler.model.plan import FieldChange, Origin, SecretNote, SecretUse
from reconciler.model.resource import Lifecycle, Resource
from reconciler.model.schemas import (
    Boolean,
    DecimalText,
    Instant,
    Integer,
    ListOf,
    MergedObject,
    OpenObject,
    Text,
    canonical_text,
    looks_like_address,
    looks_secret,
)
from reconciler.model.values import (
    CLEARED,
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    mapping_of,
    path_text,
    secret_refs,
    value_at,
)
from reconciler.planning.inventory import Declared


def is_same(first: JSON, second: JSON) -> bool:
    """Return whether two values are equal as JSON: Python's `==` also takes `true` for 1."""
    if first.__class__ is str:
        return bool(first == second)
    return bool(first == second) and canonical_text(first) == canonical_text(second)


def with_default(field: Field, value: JSON) -> JSON:
    """Return the canonical form, in which absent, null and the server's default are equal.

    So is an empty list or mapping that means the same to the server.
    """
    if value is MISSING or value is None:
        value = None if field.default is MISSING else field.default
    canonical = field.type.canonical(value)
    return None if field.empty_is_null and canonical in ([], {}) else canonical


def comparable(field: Field, value: JSON) -> JSON:
    """Return the form in which values are compared: canonical, with default, without secrets."""
    canonical = with_default(field, value)
    return _without_secrets(canonical) if isinstance(canonical, (dict, list)) else canonical


def _without_secrets(value: JSON) -> JSON:
    """Return the value without secret references and without objects that become empty.

    Servers remove secrets at any depth and keep the empty object (service.md, 1.3).
    """
    if isinstance(value, Mapping):
        items = {
            key: _without_secrets(item)
            for key, item in value.items()
            if not isinstance(item, SecretRef)
        }
        return {key: item for key, item in items.items() if item != {}}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value if not isinstance(item, SecretRef)]
    return value


def display_value(field: Field, value: JSON) -> JSON:
    """Return the value that a change shows: comparable, but verbatim text and types as they are."""
    if field.verbatim and isinstance(value, str):
        return value
    return comparable(replace(field, type=OpenObject()) if _is_open(field) else field, value)


def _is_open(field: Field) -> bool:
    return isinstance(field.type, OpenObject) and field.type.numbers_as_text


def written_value(field: Field, value: JSON) -> JSON:
    """Return a live value as a file has it: typed, in a fixed order, a query as displayed."""
    if field.verbatim and isinstance(value, str):
        return value
    if isinstance(field.type, MergedObject):
        return field.type.without_nulls(value)
    if isinstance(field.type, OpenObject):
        return OpenObject().canonical(value)
    if isinstance(field.type, DecimalText):
        return field.type.as_number(value)
    return with_default(field, value)


def is_default(field: Field, value: JSON) -> bool:
    """Return whether a value equals null or the default: then no configuration is needed."""
    return _is_empty(field, comparable(field, value))


def _is_empty(field: Field, value: JSON) -> bool:
    return value is None or (field.default is not MISSING and value == comparable(field, None))


def compared(field: Field, wanted: JSON, live: JSON) -> tuple[JSON, JSON]:
    """Return both values in forms that are equal if the server needs no request.

    Of an object that the server merges, only the wanted keys count, and null equals absent. A
    secret that the server returns, as some do below an object, is not compared.
    """
    want, have = comparable(field, wanted), comparable(field, _without_returned(live, wanted))
    if isinstance(field.type, MergedObject) and isinstance(want, dict):
        part = field.type.part_of(have, want)
        # An object of which null removes every key is empty, like one that had secrets only.
        want, have = field.type.without_nulls(want), {} if part is None else part
        return _without_secrets(want), _without_secrets(have)
    if isinstance(field.type, MergedObject) and have == {}:
        have = None
    return want, have


def _without_returned(live: JSON, wanted: JSON) -> JSON:
    """Return a live value without what the configuration has a secret reference for."""
    if not (isinstance(live, Mapping) and isinstance(wanted, Mapping)):
        return live
    return {
        key: _without_returned(item, wanted.get(key))
        for key, item in live.items()
        if not isinstance(wanted.get(key), SecretRef)
    }


def is_equal(field: Field, wanted: JSON, live: JSON) -> bool:
    """Return whether the live value is the wanted one."""
    return is_same(*compared(field, wanted, live))


def live_fields(kind: Kind, body: JSONObject) -> JSONObject:
    """Return the fields of a live body by name, without those that are absent."""
    return {
        field.name: value
        for field in kind.fields
        if (value := field.live_value(body)) is not MISSING
    }


def live_leaves(kind: Kind, body: JSONObject) -> dict[Path, Leaf]:
    """Return every leaf of a live body that has a value by its path."""
    return {leaf.path: leaf for leaf in field_leaves(kind.fields, body, live=True)}


def live_values(kind: Kind, body: JSONObject) -> dict[str, JSON]:
    """Return the comparable live values by path text, without those that equal their default."""
    return {
        path_text(leaf.path): value
        for leaf in field_leaves(kind.fields, body, live=True)
        if not _is_empty(leaf.field, value := comparable(leaf.field, leaf.value))
    }


def stamp_of(kind: Kind, body: JSONObject) -> dict[str, JSON]:
    """Return the field in which a live object differs from others that had its id, if it has it."""
    return {kind.stamp: body[kind.stamp]} if kind.stamp in body else {}


def is_identical(kind: Kind, spec: JSONObject, body: JSONObject) -> bool:
    """Return whether every declared value is literally in a live body, secrets aside.

    True implies that nothing differs; False implies nothing. Most of a large plan ends here, which
    keeps ten thousand unchanged resources cheap.
    """
    for name, declared in spec.items():
        live = body.get(name, MISSING)
        if is_same(live, declared):
            continue
        field = kind.field_named(name)
        if field is None or (declared == CLEARED and live not in (None, MISSING)):
            return False
        if not field.secret and not (field.variant and _is_part(declared, live, field.variant)):
            return False
    return True


def _is_part(declared: JSON, live: JSON, variant: Variant | None = None) -> bool:
    """Return whether every value of a mapping is in a live one, in the body of a variant, too."""
    if not (isinstance(declared, (dict, Mapping)) and isinstance(live, (dict, Mapping))):
        return False
    return all(
        value.__class__ is SecretRef
        or is_same(value, live.get(name, MISSING))
        or (variant is not None and name == variant.body and _is_part(value, live.get(name)))
        for name, value in declared.items()
    )


class Leaf(Struct, frozen=True):
    """A value that is compared and shown as one, as configured or as the API returned it.

    It is a top-level field, or one field of a variant's body (`destination.config.prefix`).
    """

    path: Path
    field: Field
    value: JSON


def field_leaves(fields: Sequence[Field], body: JSONObject, *, live: bool) -> Iterator[Leaf]:
    """Yield every leaf of a body that has a value, in field order.

    With `live`, the body is a response of the API: values are also read from a field's aliases,
    and secrets are skipped.
    """
    for field in fields:
        value = field.live_value(body) if live else body.get(field.name, MISSING)
        if value is MISSING or (live and field.secret):
            continue
        if field.variant is None:
            yield Leaf((field.name,), field, value)
        elif isinstance(value, Mapping):
            yield from _variant_leaves(field.name, field.variant, value, live=live)


def _variant_leaves(
    name: str, variant: Variant, value: JSONObject, *, live: bool
) -> Iterator[Leaf]:
    if value.get(variant.tag) is not None:
        yield Leaf((name, variant.tag), variant.tag_field, value[variant.tag])
    for extra in variant.extras:
        if extra.name in value:
            yield Leaf((name, extra.name), extra, value[extra.name])
    body = value.get(variant.body)
    if not isinstance(body, Mapping):
        return
    fields = variant.named_fields_of(value)
    known = [inner_name for inner_name in fields if inner_name in body]
    for inner_name in (*known, *sorted(body.keys() - fields.keys())):
        inner = fields.get(inner_name) or unknown_field(inner_name)
        if not (live and inner.secret):
            yield Leaf((name, variant.body, inner_name), inner, body[inner_name])


def unknown_field(name: str) -> Field:
    """Return a field for a name that its type does not define: any JSON, cleared by null."""
    return Field(name, OpenObject(numbers_as_text=True), clearable=True, secret=looks_secret(name))


_SENT_CANONICAL = (Instant, DecimalText, Integer, Boolean, Text)


class Difference(Struct, frozen=True):
    """What differs, in field order.

    `toggles` are changed by requests of their own. `unreset` are keys that were removed from the
    files and that the API can't reset: they keep their live value. `wanted` is what is
    declared.
    """

    changes: tuple[FieldChange, ...]
    toggles: tuple[FieldChange, ...]
    unreset: tuple[Path, ...]
    wanted: Mapping[Path, Leaf]


def difference(kind: Kind, resource: Resource, live: LiveObject, declared: Declared) -> Difference:
    """Return the managed fields in which the live object does not match the configuration.

    `declared` is how the object was applied.
    """
    current = live_leaves(kind, live.body)
    wanted = _leaves(kind, resource)
    before = _leaves(kind, declared.applied) if declared.applied is not None else {}
    once = _set_before(kind, resource, declared.applied)
    replaced: set[str] = set()
    if resource.lifecycle.ignore_changes:
        replaced = _replaced_variants(kind, resource, live)
    changes: list[FieldChange] = []
    toggles: list[FieldChange] = []
    unreset: list[Path] = []
    for path, leaf in wanted.items():
        now = _value(current.get(path))
        if now.__class__ is str and now == leaf.value:
            continue
        is_unset_toggle = leaf.field.toggle is not None and leaf.value is None
        is_secret = leaf.field.secret or isinstance(leaf.value, SecretRef)
        is_kept = path[0] not in replaced and is_ignored(path, resource.lifecycle)
        if is_unset_toggle or is_secret or is_kept:
            continue
        change = _field_change(leaf, now, once)
        if change is not None:
            origin = _origin(leaf, now, before.get(path), declared)
            kept = toggles if leaf.field.toggle else changes
            kept.append(replace(change, origin=origin))
    for leaf in _removed(kind, resource, live, wanted, once) if once else ():
        now = _value(current.get(leaf.path))
        reset = _reset(leaf, now)
        if reset is not None and reset.before != reset.after:
            changes.append(reset)
        elif reset is None and not (leaf.field.toggle and is_default(leaf.field, now)):
            unreset.append(leaf.path)
    return Difference(tuple(changes), tuple(toggles), tuple(unreset), wanted)


def _value(leaf: Leaf | None) -> JSON:
    return leaf.value if leaf is not None else MISSING


def is_ignored(path: Path, lifecycle: Lifecycle) -> bool:
    """Return whether `ignore_changes` names a path or one above it."""
    if not lifecycle.ignore_changes:
        return False
    text = path_text(path)
    return any(
        text == prefix or text.startswith((f"{prefix}.", f"{prefix}["))
        for prefix in lifecycle.ignore_changes
    )


def _leaves(kind: Kind, resource: Resource) -> dict[Path, Leaf]:
    return {leaf.path: leaf for leaf in field_leaves(kind.fields, resource.spec, live=False)}


def _set_before(kind: Kind, resource: Resource, applied: Resource | None) -> dict[Path, Leaf]:
    """Return what was applied, with the keys of merged objects, and is not left to the service."""
    once: dict[Path, Leaf] = {}
    others = other_variants(kind, resource, applied.spec) if applied is not None else ()
    for path, leaf in _leaves(kind, applied).items() if applied is not None else ():
        if path[0] not in others and not resource.leaves(path):
            once[path] = leaf
            is_merged = isinstance(leaf.field.type, MergedObject)
            keys = leaf.value if is_merged and isinstance(leaf.value, Mapping) else ()
            once |= {(*path, key): leaf for key in keys if not resource.leaves((*path, key))}
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
    if field.verbatim or _is_open(field):
        have = display_value(field, _without_returned(live, leaf.value))
        want = display_value(field, leaf.value)
    return FieldChange(leaf.path, have, want, reset=bool(removed_keys))


def _removed_keys(leaf: Leaf, once: Iterable[Path], live: JSON) -> dict[str, JSON]:
    """Return live keys of a merged object that were removed from the files since the apply."""
    have, wanted = comparable(leaf.field, live), leaf.value
    if not (isinstance(leaf.field.type, MergedObject) and isinstance(have, dict)):
        return {}
    if not isinstance(wanted, Mapping):
        return {}
    keys = {str(path[-1]) for path in once if path[:-1] == leaf.path}
    return {key: have[key] for key in sorted(keys - wanted.keys()) if have.get(key) is not None}


def _origin(wanted: Leaf, live: JSON, applied: Leaf | None, declared: Declared) -> Origin:
    """Return which side changed since the apply. A new field is a change of the files."""
    if declared.applied is None:
        return Origin.UNKNOWN
    if applied is None:
        return Origin.FILES
    if is_same(comparable(wanted.field, applied.value), comparable(wanted.field, wanted.value)):
        return Origin.LIVE
    return Origin.FILES if is_equal(wanted.field, applied.value, live) else Origin.BOTH


def other_variants(kind: Kind, resource: Resource, spec: JSONObject) -> set[str]:
    """Return the fields that have another tag in a spec or body: what is in them differs."""
    return {
        field.name
        for field, variant in kind.variants
        if (tag := value_at(resource.spec, (field.name, variant.tag))) is not MISSING
        and not is_equal(variant.tag_field, tag, value_at(spec, (field.name, variant.tag)))
    }


def _replaced_variants(kind: Kind, resource: Resource, live: LiveObject) -> set[str]:
    """Return the fields whose tag changes: no live value is kept inside them."""
    others = other_variants(kind, resource, live.body)
    return {
        field.name
        for field, variant in kind.variants
        if field.name in others and not is_ignored((field.name, variant.tag), resource.lifecycle)
    }


def with_live_values(
    body: JSONObject, live: JSONObject, lifecycle: Lifecycle, path: Path = ()
) -> dict[str, JSON]:
    """Return a body with live values in place of those that `ignore_changes` names."""
    sent: dict[str, JSON] = {}
    for name, value in body.items():
        inside = (*path, name)
        if isinstance(value, Mapping):
            sent[name] = with_live_values(value, mapping_of(live.get(name)), lifecycle, inside)
        elif isinstance(value, SecretRef) or not is_ignored(inside, lifecycle):
            sent[name] = value
        elif name in live:
            sent[name] = live[name]
    return sent


def patched(kind: Kind, sent: JSONObject, live: JSONObject) -> dict[str, JSON]:
    """Return the fields of an object after a PATCH, which keeps what it does not contain."""
    whole = {**live, **sent}
    for field, variant in kind.variants:
        old, new = (mapping_of(body.get(field.name)) for body in (live, sent))
        body = {**mapping_of(old.get(variant.body)), **mapping_of(new.get(variant.body))}
        whole[field.name] = {**old, **new, variant.body: body}
    return whole


def _removed(
    kind: Kind,
    resource: Resource,
    live: LiveObject,
    declared: Mapping[Path, Leaf],
    once: Mapping[Path, Leaf],
) -> Iterator[Leaf]:
    """Yield the fields that were removed from the files since the apply.

    Those of a variant whose tag changes are no fields of the new one.
    """
    others = other_variants(kind, resource, live.body)
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


def secret_notes(
    kind: Kind,
    resource: Resource,
    changes: Sequence[FieldChange],
    *,
    declared: Declared,
    always: SecretUse | None,
    live: LiveObject | None,
) -> tuple[SecretNote, ...]:
    """Return every secret of the resource with the reason why it is or isn't sent.

    All are sent if what decides them is not what was sent last, but for those of `ignore_changes`.
    `always`: why all are sent in any case. Whether one is cleared already is seen where the live
    object shows it, as older projects do.
    """
    notes, was = [], declared.applied
    is_other_version = was is not None and was.secret_version != resource.secret_version
    for path, ref in secret_refs(resource.spec):
        resend = declared.resend and not is_ignored(path, resource.lifecycle)
        old = value_at(was.spec, path) if was is not None and resend else ref
        shown = value_at(live.body, path) if live is not None and ref == CLEARED else MISSING
        if always is not None:
            use = always
        elif resend and is_other_version:
            use = SecretUse.VERSION_CHANGED
        elif shown is None:
            use = SecretUse.UNREADABLE
        elif old != ref or shown is not MISSING:
            use = SecretUse.REFERENCE_CHANGED
        elif resend:
            use = SecretUse.RESENT
        elif any(_requires_secret(kind, change.path, path) for change in changes):
            use = SecretUse.NEEDED
        else:
            use = SecretUse.UNREADABLE
        former = str(old) if old != ref and isinstance(old, SecretRef) else ""
        notes.append(SecretNote(path, ref, use, former))
    return tuple(notes)


def _requires_secret(kind: Kind, changed: Path, secret: Path) -> bool:
    """Return whether a PATCH of a changed path must contain the secret at another path.

    So it is if the secret is inside the changed value, if its variant changes its tag or its
    address, and if it must be sent with a changed field beside it.
    """
    if secret[: len(changed)] == changed:
        return True
    field = kind.field_named(str(changed[0]))
    if secret[0] != changed[0] or field is None or field.variant is None:
        return False
    if changed == (field.name, field.variant.tag):
        return True
    if changed[1] == field.variant.body and looks_like_address(str(changed[-1])):
        return True
    return changed[-1] in field.variant.sent_with_secret.get(str(secret[-1]), ())


def create_body(
    kind: Kind, resource: Resource, dialect: Dialect | None, *, after: bool = False
) -> dict[str, JSON]:
    """Return the declared fields that a create sends, or (`after`) that are patched after it.

    Without nulls: absent and null are the same to a create, but for fields of which the server
    gives new objects a value.
    """
    return {
        name: value
        for field in kind.fields
        if field.after_create is after and field.name in resource.spec
        if (value := _created_value(field, resource.spec[field.name])) is not None
        or field.null_in_create
        for name in field.sent_as(dialect)
    }


def _created_value(field: Field, value: JSON) -> JSON:
    """Return a value with the body of its variant, which servers require even if it is empty."""
    if field.variant is None:
        return _sent_value(field, value)
    return {**value, field.variant.body: value.get(field.variant.body) or {}}


def update_body(
    kind: Kind,
    resource: Resource,
    live: LiveObject,
    *,
    changes: Iterable[FieldChange],
    secrets: Mapping[Path, SecretRef],
    dialect: Dialect | None,
) -> dict[str, JSON]:
    """Return the changed fields and secrets, with the fields that must be sent with them."""
    if resource.lifecycle.ignore_changes:
        fields = live_fields(kind, live.body)
        kept = with_live_values(resource.spec, fields, resource.lifecycle)
        kept |= {name: resource.spec[name] for name in _replaced_variants(kind, resource, live)}
        resource = replace(resource, spec=kept)
    by_path = {change.path: change for change in changes}
    names = {path[0] for path in (*by_path, *secrets)}
    names |= {name for field in kind.fields if field.name in names for name in field.sent_with}
    body: dict[str, JSON] = {}
    for field in kind.fields:
        if field.name not in names:
            continue
        if field.variant is not None:
            value = _variant_value(
                field, field.variant, resource, live, changes=by_path, secrets=secrets
            )
        else:
            value = _plain_value(field, resource, live, by_path.get((field.name,)))
        if value is not MISSING:
            body.update(dict.fromkeys(field.sent_as(dialect), value))
    return {**body, **_kept(kind, live, body, changed={str(path[0]) for path in by_path})}


def _kept(
    kind: Kind, live: LiveObject, body: JSONObject, *, changed: Collection[str]
) -> dict[str, JSON]:
    """Return the live values that a PATCH with this body would reset."""
    return {
        name: value
        for field in kind.fields
        if field.name in body
        for name, unless in field.resets.items()
        if name not in body and unless not in changed
        if (value := live.body.get(name)) is not None
    }


def _plain_value(
    field: Field, resource: Resource, live: LiveObject, change: FieldChange | None
) -> JSON:
    """Return the declared value, or what a removed key is reset to.

    Of an object that the server merges: the declared keys, with null for removed ones; all keys
    where the server replaces it.
    """
    declared = resource.spec.get(field.name, MISSING)
    after = change.after if change is not None else MISSING
    if declared is MISSING:
        return after
    if not (isinstance(field.type, MergedObject) and isinstance(declared, Mapping)):
        return _sent_value(field, declared)
    removed = {
        key: None
        for key, value in mapping_of(after).items()
        if value is None and key not in declared
    }
    if not field.type.by_client:
        return {**declared, **removed}
    return _without_nulls({**mapping_of(field.live_value(live.body)), **declared, **removed})


def _variant_value(
    field: Field,
    variant: Variant,
    resource: Resource,
    live: LiveObject,
    *,
    changes: Mapping[Path, FieldChange],
    secrets: Mapping[Path, SecretRef],
) -> JSON:
    """Return the tag and the extras, as always required, with what changed of the body.

    A tag or an extra without a change is sent as it is live: `ignore_changes` may name it.
    """
    declared = mapping_of(resource.spec.get(field.name))
    current = mapping_of(live.body.get(field.name))
    value: dict[str, JSON] = {}
    for name in (variant.tag, *(extra.name for extra in variant.extras)):
        is_changed = (field.name, name) in changes
        item = declared.get(name) if is_changed else current.get(name)
        if item is not None or is_changed:
            value[name] = item
    body, live_body = mapping_of(declared.get(variant.body)), mapping_of(current.get(variant.body))
    if (field.name, variant.tag) in changes:
        value[variant.body] = _without_nulls(body)
        return value
    fields = variant.named_fields_of(value)
    items = value[variant.body] = {}
    for path in (*changes, *secrets):
        if path[:2] != (field.name, variant.body):
            continue
        name = str(path[2])
        inner = fields.get(name) or unknown_field(name)
        items[name] = _sent_value(inner, body[name]) if name in body else changes[path].after
        for partner in inner.sent_with:
            item = body.get(partner, live_body.get(partner))
            if partner not in items and item is not None:
                items[partner] = _sent_value(fields[partner], item)
    return value


def _sent_value(field: Field, value: JSON) -> JSON:
    """Return scalars in canonical form, which every server takes; the rest as it is written.

    Entries that servers drop are not sent: in 2025 blank ones are refused (service.md 4.2). So
    are empty keys of a query in 2026, which null clears (1.9).
    """
    if field.empty_is_null and field.clearable and value in ([], {}):
        return None
    if (
        isinstance(field.type, ListOf)
        and field.type.drop_blank
        and isinstance(value, (list, tuple))
    ):
        item = field.type.item
        return [entry for entry in value if item.canonical(entry) not in (None, "")]
    return field.type.canonical(value) if isinstance(field.type, _SENT_CANONICAL) else value


def _without_nulls(value: JSONObject) -> dict[str, JSON]:
    return {name: item for name, item in value.items() if item is not None}
