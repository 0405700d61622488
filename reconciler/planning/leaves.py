"""Walks the fields of a resource or live body leaf by leaf, each with the `Field` that knows it.

A *leaf* is what is compared and told as one: a field of the top level, or one field of a tagged
object's body (`destination.config.prefix`). Differ, freshness check and undo all walk leaves, so
that they can't disagree about what a field is or when two values are equal.
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
    """A field at its path. `value` is as written or as answered, MISSING where it is not there."""

    path: Path
    field: Field
    value: JSON


def leaves(fields: Sequence[Field], body: JSONObject, *, live: bool) -> Iterator[Leaf]:
    """Every leaf of a body that has a value, in the order of the fields.

    With `live`, the body is an answer: values are also looked for under the field's other names
    and places, and secrets, which no answer holds, are passed over.
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
    """A config field that no table knows: any JSON, cleared by null."""
    return Field(name, OpenObject(numbers_as_text=True), clearable=True)


def settled(field: Field, value: JSON) -> JSON:
    """The canonical form in which absent, null and the server's default are equal."""
    if value is MISSING or value is None:
        value = None if field.default is MISSING else field.default
    return field.type.canonical(value)


def without_secrets(value: JSON) -> JSON:
    """The value without secret references, and without what is empty then.

    Servers strip secrets at any depth and leave the empty object behind (service-facts 1.3).
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
    """What two sides are compared by: settled, and without secrets."""
    canonical = settled(field, value)
    return without_secrets(canonical) if isinstance(canonical, (dict, list)) else canonical


def told(field: Field, value: JSON) -> JSON:
    """What a change tells of a value: as it is written or shown where the field says so.

    Everywhere else that is what is compared.
    """
    return value if field.verbatim and isinstance(value, str) else comparable(field, value)


def live_fields(kind: Kind, body: JSONObject) -> dict[str, JSON]:
    """The comparable live values by path text. What is as the server has it anyway is left out.

    So a default that is written out and one that is not are the same to whoever compares.
    """
    found: dict[str, JSON] = {}
    for leaf in leaves(kind.fields, body, live=True):
        value = comparable(leaf.field, leaf.value)
        if value is not None and value != comparable(leaf.field, None):
            found[path_text(leaf.path)] = value
    return found


def seen_fields(kind: Kind, body: JSONObject, paths: frozenset[Path] | None) -> dict[str, JSON]:
    """The live values of the given paths, or of all, with None for "not set, or the default"."""
    found = live_fields(kind, body)
    wanted = found if paths is None else sorted(path_text(path) for path in paths)
    return {path: found.get(path) for path in wanted}
