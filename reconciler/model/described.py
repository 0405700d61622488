"""Create kinds and fields from their JSON Schemas."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from reconciler.model.dialect import Dialect
from reconciler.model.field_types import (
    FROM_SCHEMA,
    Boolean,
    DecimalText,
    FieldType,
    Instant,
    Integer,
    ListOf,
    OpenObject,
    Text,
)
from reconciler.model.kind import Field, Kind, Paths, Variant
from reconciler.model.schema_files import known_schema, own_properties
from reconciler.model.values import JSON, MISSING, Missing

_PLAIN: Mapping[str, FieldType] = {
    "string": Text(),
    "integer": Integer(),
    "boolean": Boolean(),
    "object": OpenObject(),
}


_SET_BY_KIND = (
    *("type", "reset", "after_create", "null_in_create", "toggle", "sent_with"),
    "fixed_since",
    *("aliases", "renamed_since", "read_at", "verbatim"),
)
"""Attributes of a field that a kind may set; the schema sets all others."""


def kind_of(name: str, special: Collection[Field] = ()) -> Kind:
    """Return the kind of a schema with `x-kind`. `special` fields have more than the schema."""
    words = dict(known_schema(name)["x-kind"])
    fields = fields_of(name, special, parent_key=words.get("parent_key"))
    return Kind(name=name, paths=Paths(**words.pop("paths")), fields=fields, **words)


def fields_of(
    name: str, special: Collection[Field] = (), *, parent_key: str | None = None
) -> tuple[Field, ...]:
    """Return the fields of a schema, in its order.

    `special` fields have attributes that a schema cannot express. `parent_key` is not a field.
    """
    properties = own_properties(name)
    unknown = {field.name for field in special} - properties.keys()
    if unknown:
        raise ValueError(f"no field of {name}: {', '.join(sorted(unknown))}")
    return _fields(known_schema(name), properties, special, leave_out=(parent_key,))


def variant_of(
    name: str,
    field: str,
    special: Collection[Field] = (),
    **parts: Any,
) -> Variant:
    """Return the type of a field with `x-variants`, with the fields of each variant.

    `parts` are attributes of the variant that its schema does not have.
    """
    node = known_schema(name)["properties"][field]
    words = node["x-variants"]
    tag, body = words["tag"], words["body"]
    return Variant(
        tag,
        body,
        {
            variant: _fields(inner, inner["properties"], special)
            for variant in node["properties"][tag]["x-open-enum"]
            if (inner := known_schema(f"{words['folder']}/{variant}"))
        },
        extras=_fields(node, node["properties"], (), leave_out=(tag, body)),
        **parts,
    )


def _fields(
    node: Mapping[str, Any],
    properties: Mapping[str, Any],
    special: Collection[Field],
    *,
    leave_out: Sequence[str | None] = (),
) -> tuple[Field, ...]:
    for own in special:
        _check_special(own)
    known = {field.name: field for field in special}
    aliases = {alias for field in special for alias in field.aliases}
    needed = {*node.get("required", ()), *node.get("x-required-unless", ())}
    return tuple(
        _described(known.get(name, Field(name)), below, required=name in needed)
        for name, below in properties.items()
        if name not in leave_out and name not in aliases
    )


def _check_special(field: Field) -> None:
    if field != replace(Field(field.name), **{name: getattr(field, name) for name in _SET_BY_KIND}):
        raise ValueError(f"{field.name}: an attribute is set that belongs to its schema")


def _described(field: Field, node: Mapping[str, Any], *, required: bool) -> Field:
    return replace(
        field,
        type=_type_of(node) if field.type is FROM_SCHEMA else field.type,
        default=_default(node),
        reset=node["default"] if node.get("x-initial-only") else field.reset,
        # Null means the default to some servers, and others refuse it (docs/service.md 1.1).
        clearable="null" in _types(node) and not node.get("x-null-is-default"),
        secret=bool(node.get("x-secret")),
        required=required,
        since=_dialect(node.get("x-since")),
        until=_dialect(node.get("x-until")),
        not_restored=node.get("x-not-restored", ""),
    )


def _default(node: Mapping[str, Any]) -> JSON | Missing:
    """Return the meaning of an absent field, MISSING for an initial value of new objects."""
    return MISSING if node.get("x-initial-only") else node.get("default", MISSING)


def _dialect(name: str | None) -> Dialect | None:
    return Dialect(name) if name is not None else None


def _types(node: Mapping[str, Any]) -> Sequence[str]:
    types = node.get("type", ())
    return (types,) if isinstance(types, str) else types


def _type_of(node: Mapping[str, Any]) -> FieldType:
    if node.get("format") == "date-time":
        return Instant()
    if node.get("x-rate"):
        return DecimalText()
    types = [name for name in _types(node) if name != "null"]
    if types == ["array"]:
        items = node.get("items", {})
        return ListOf(Text()) if items.get("type") == "string" else OpenObject()
    return _PLAIN[types[0]] if len(types) == 1 else OpenObject()
