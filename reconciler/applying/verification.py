"""Compare what the server stored with what was sent, in the fields that were sent.

Servers ignore unknown fields and overwrite some at creation (docs/service.md 1.1, 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Field, Kind
from reconciler.model.values import JSON, MISSING, JSONObject, path_text
from reconciler.planning.leaves import comparable, leaves


def altered_fields(kind: Kind, sent: JSONObject, stored: JSONObject) -> tuple[str, ...]:
    """Return the paths of sent fields that read back different, without secrets and toggles."""
    return tuple(_altered(kind, sent, stored))


def _altered(kind: Kind, sent: JSONObject, stored: JSONObject) -> Iterator[str]:
    values = {leaf.path: leaf.value for leaf in leaves(kind.fields, stored, live=True)}
    for leaf in leaves(kind.fields, _by_field_name(kind, sent), live=False):
        if leaf.field.secret or leaf.field.toggle is not None:
            continue
        value = values.get(leaf.path, MISSING)
        if _stored(leaf.field, value, leaf.value) != _wanted(leaf.field, leaf.value):
            yield path_text(leaf.path)


def body_of_altered(kind: Kind, sent: JSONObject, stored: JSONObject) -> dict[str, JSON]:
    """Return the top-level fields of a body that read back different, to send them again."""
    names = {path.partition(".")[0].partition("[")[0] for path in _altered(kind, sent, stored)}
    body: dict[str, JSON] = {}
    for name, value in sent.items():
        field = kind.field_named(name)
        if field is not None and field.name in names:
            body[name] = value
    return body


def _by_field_name(kind: Kind, sent: JSONObject) -> Mapping[str, JSON]:
    """Return the body with the kind's own names in place of those of a dialect."""
    renamed: dict[str, JSON] = {}
    for name, value in sent.items():
        field = kind.field_named(name)
        renamed[field.name if field is not None else name] = value
    return renamed


def _wanted(field: Field, value: JSON) -> JSON:
    canonical = comparable(field, value)
    if isinstance(field.type, MergedObject):
        return field.type.without_nulls(canonical)
    return canonical


def _stored(field: Field, stored: JSON, sent: JSON) -> JSON:
    value = comparable(field, stored)
    if isinstance(field.type, MergedObject):
        part = field.type.part_of(value, comparable(field, sent))
        return part if part is not None or sent is None else {}
    return value
