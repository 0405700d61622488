"""Iterate over the fields of a resource or live body, leaf by leaf, with their `Field`.

A *leaf* is compared and shown as one value: a top-level field, or one field of a tagged object's
body (`destination.config.prefix`). Differ, staleness check and undo use the same leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.kind import Field, Kind, Tagged
from reconciler.model.shape import OpenObject, Text
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    path_text,
    value_at,
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
        if isinstance(field.shape, Tagged):
            if isinstance(value, Mapping):
                yield from _tagged_leaves(field, field.shape, value, live=live)
        else:
            yield Leaf((field.name,), field, value)


def _tagged_leaves(
    field: Field, tagged: Tagged, value: JSONObject, *, live: bool
) -> Iterator[Leaf]:
    tag = value.get(tagged.tag)
    if tag is not None:
        yield Leaf((field.name, tagged.tag), tag_field(tagged), tag)
    for extra in tagged.extras:
        if extra.name in value:
            yield Leaf((field.name, extra.name), extra, value[extra.name])
    body = value.get(tagged.body)
    if not isinstance(body, Mapping):
        return
    known = {inner.name: inner for inner in tagged.variants.get(str(tag), ())}
    for name in (*known, *sorted(set(body) - set(known))):
        if name not in body:
            continue
        inner = known.get(name) or unknown_field(name)
        if live and inner.secret:
            continue
        yield Leaf((field.name, tagged.body, name), inner, body[name])


def tag_field(tagged: Tagged) -> Field:
    """Return the tag of a tagged object as a field."""
    return Field(tagged.tag, Text(), required=True, fixed_in=tagged.fixed_in)


def unknown_field(name: str) -> Field:
    """Return a field for a name that its type does not define: any JSON, cleared by null."""
    return Field(name, OpenObject(numbers_as_text=True), clearable=True)


def with_default(field: Field, value: JSON) -> JSON:
    """Return the canonical form, in which absent, null and the server's default are equal."""
    if value is MISSING or value is None:
        value = None if field.default is MISSING else field.default
    if isinstance(field.shape, Tagged):
        return value
    return field.shape.canonical(value)


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


def field_at(kind: Kind, body: JSONObject, path: Path) -> Field | None:
    """Return the field at a path of a body, None for one that its kind or type does not define.

    Types share field names, so the tag in the body decides which field a name means.
    """
    top = kind.field_named(str(path[0]))
    if top is None or not isinstance(top.shape, Tagged):
        return top if len(path) == 1 else None
    if len(path) == 2:
        beside = (tag_field(top.shape), *top.shape.extras)
        return next((field for field in beside if field.name == path[1]), None)
    tag = str(value_at(body, (top.name, top.shape.tag)))
    inside = top.shape.variants.get(tag, ()) if len(path) == 3 else ()
    return next((field for field in inside if field.name == path[2]), None)
