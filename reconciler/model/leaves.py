"""Iterate over the fields of a resource or a live body, leaf by leaf, each with its `Field`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from reconciler.model.field_types import OpenObject
from reconciler.model.kind import Field, Variant
from reconciler.model.secret_names import looks_secret
from reconciler.model.values import JSON, MISSING, JSONObject, Path


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
    fields = {inner.name: inner for inner in variant.fields_of(value)}
    for inner_name in (*fields, *sorted(set(body) - set(fields))):
        inner = fields.get(inner_name) or unknown_field(inner_name)
        if inner_name in body and not (live and inner.secret):
            yield Leaf((name, variant.body, inner_name), inner, body[inner_name])


def unknown_field(name: str) -> Field:
    """Return a field for a name that its type does not define: any JSON, cleared by null."""
    return Field(name, OpenObject(numbers_as_text=True), clearable=True, secret=looks_secret(name))
