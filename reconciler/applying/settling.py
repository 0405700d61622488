"""What the server made of what was sent: compared only in the fields that were sent.

Servers ignore fields that they do not know and overwrite some at creation (service-facts, traps 6
and 29). What did not stick after a create is patched once; what still differs is told by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Field, Kind
from reconciler.model.values import JSON, MISSING, JSONObject, path_text
from reconciler.planning.leaves import comparable, leaves


def ignored_fields(kind: Kind, sent: JSONObject, answered: JSONObject) -> tuple[str, ...]:
    """Paths of sent fields that read back otherwise, secrets and toggles aside."""
    return tuple(_ignored(kind, sent, answered))


def _ignored(kind: Kind, sent: JSONObject, answered: JSONObject) -> Iterator[str]:
    found = {leaf.path: leaf.value for leaf in leaves(kind.fields, answered, live=True)}
    for leaf in leaves(kind.fields, _by_field_name(kind, sent), live=False):
        if leaf.field.secret or leaf.field.toggle is not None:
            continue
        have = found.get(leaf.path, MISSING)
        if _compared(leaf.field, have, leaf.value) != _wanted(leaf.field, leaf.value):
            yield path_text(leaf.path)


def unsettled(kind: Kind, sent: JSONObject, answered: JSONObject) -> dict[str, JSON]:
    """The top-level fields of a body that did not stick, as a body of their own."""
    names = {path.partition(".")[0].partition("[")[0] for path in _ignored(kind, sent, answered)}
    wanted: dict[str, JSON] = {}
    for name, value in sent.items():
        field = kind.field_named(name)
        if field is not None and field.name in names:
            wanted[name] = value
    return wanted


def _by_field_name(kind: Kind, sent: JSONObject) -> Mapping[str, JSON]:
    """The body with the names that servers use turned back into the kind's own."""
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


def _compared(field: Field, have: JSON, sent: JSON) -> JSON:
    value = comparable(field, have)
    if isinstance(field.type, MergedObject):
        part = field.type.part_of(value, comparable(field, sent))
        return part if part is not None or sent is None else {}
    return value
