"""Compare values of fields: as configured, as live and as sent.

Whether an object was modified since its plan is decided elsewhere (`modifications` in
applying/check.py): by the results of `live_values`, those recorded in the plan and those of now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from reconciler.model.field_types import DecimalText, MergedObject, OpenObject, canonical_text
from reconciler.model.kind import Field, Kind, Variant
from reconciler.model.schemas import looks_secret
from reconciler.model.values import CLEARED, JSON, MISSING, JSONObject, Path, SecretRef, path_text


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
    """Return the value that a change shows: comparable, but text as it is in a verbatim field."""
    return value if field.verbatim and isinstance(value, str) else comparable(field, value)


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
