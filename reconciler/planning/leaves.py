"""Iterate over the fields of a resource or live body, leaf by leaf, with their `Field`.

A *leaf* is compared and shown as one value: a top-level field, or one field of a tagged object's
body (`destination.config.prefix`). Differ, staleness check and undo use the same leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.field_types import OpenObject
from reconciler.model.kind import Field, Kind, Variant
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    path_text,
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field at its path, with its value as configured or as the API returned it."""

    path: Path
    field: Field
    value: JSON


def leaves(fields: Sequence[Field], body: JSONObject, *, live: bool) -> Iterator[Leaf]:
    """Yield every leaf of a body that has a value, in field order.

    With `live`, the body is a response of the API: values are also read from a field's aliases,
    and secrets are skipped.
    """
    for field in fields:
        value = field.live_value(body) if live else body.get(field.name, MISSING)
        if value is MISSING or (live and field.secret):
            continue
        if field.variant is not None:
            if isinstance(value, Mapping):
                yield from _variant_leaves(field, field.variant, value, live=live)
        else:
            yield Leaf((field.name,), field, value)


def _variant_leaves(
    field: Field, variant: Variant, value: JSONObject, *, live: bool
) -> Iterator[Leaf]:
    tag = value.get(variant.tag)
    if tag is not None:
        yield Leaf((field.name, variant.tag), variant.tag_field, tag)
    for extra in variant.extras:
        if extra.name in value:
            yield Leaf((field.name, extra.name), extra, value[extra.name])
    body = value.get(variant.body)
    if not isinstance(body, Mapping):
        return
    known = {inner.name: inner for inner in variant.fields_of(value)}
    for name in (*known, *sorted(set(body) - set(known))):
        if name not in body:
            continue
        inner = known.get(name) or unknown_field(name)
        if live and inner.secret:
            continue
        yield Leaf((field.name, variant.body, name), inner, body[name])


def unknown_field(name: str) -> Field:
    """Return a field for a name that its type does not define: any JSON, cleared by null."""
    return Field(name, OpenObject(numbers_as_text=True), clearable=True)


def with_default(field: Field, value: JSON) -> JSON:
    """Return the canonical form, in which absent, null and the server's default are equal."""
    if value is MISSING or value is None:
        value = None if field.default is MISSING else field.default
    return field.type.canonical(value)


def without_secrets(value: JSON) -> JSON:
    """Return the value without secret references and without objects that become empty.

    Servers remove secrets at any depth and keep the empty object (docs/service.md 1.3).
    """
    if isinstance(value, Mapping):
        kept = {}
        for key, item in value.items():
            if isinstance(item, SecretRef):
                continue
            inner = without_secrets(item)
            if not (isinstance(inner, Mapping) and not inner):
                kept[key] = inner
        return kept
    if isinstance(value, list):
        return [without_secrets(item) for item in value if not isinstance(item, SecretRef)]
    return value


def comparable(field: Field, value: JSON) -> JSON:
    """Return the form in which two values are compared: with defaults, without secrets."""
    canonical = with_default(field, value)
    return without_secrets(canonical) if isinstance(canonical, (dict, list)) else canonical


def display_value(field: Field, value: JSON) -> JSON:
    """Return the value that a change shows: comparable, but text as it is in a verbatim field."""
    return value if field.verbatim and isinstance(value, str) else comparable(field, value)


def live_fields(kind: Kind, body: JSONObject) -> dict[str, JSON]:
    """Return the comparable live values by path text, without those that equal their default."""
    values: dict[str, JSON] = {}
    for leaf in leaves(kind.fields, body, live=True):
        value = comparable(leaf.field, leaf.value)
        if value is not None and value != comparable(leaf.field, None):
            values[path_text(leaf.path)] = value
    return values
