"""Compare what the server stored with what was sent, in the fields that were sent.

Servers ignore unknown fields and overwrite some at creation (docs/service.md, 1.1 and 4.1).
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.comparison import is_equal
from reconciler.model.kind import Kind
from reconciler.model.leaves import field_leaves
from reconciler.model.values import JSON, MISSING, JSONObject, Path


def altered_paths(kind: Kind, sent: JSONObject, stored: JSONObject) -> tuple[Path, ...]:
    """Return the paths of sent fields that read back different, without secrets and toggles."""
    values = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, stored, live=True)}
    named = {_field_name(kind, name): value for name, value in sent.items()}
    return tuple(
        leaf.path
        for leaf in field_leaves(kind.fields, named, live=False)
        if not leaf.field.secret
        and leaf.field.toggle is None
        and not is_equal(leaf.field, leaf.value, values.get(leaf.path, MISSING))
    )


def body_of_altered(kind: Kind, sent: JSONObject, altered: Collection[Path]) -> dict[str, JSON]:
    """Return the top-level fields of a body that read back different, to send them again."""
    names = {path[0] for path in altered}
    return {name: value for name, value in sent.items() if _field_name(kind, name) in names}


def lacks_fields(kind: Kind, stored: JSONObject, altered: Collection[Path]) -> bool:
    """Return whether a body lacks an altered field: then it is not the whole object."""
    if not altered:
        return False
    shown = {leaf.path for leaf in field_leaves(kind.fields, stored, live=True)}
    return any(path not in shown for path in altered)


def _field_name(kind: Kind, name: str) -> str:
    """Return the kind's own name of a field that a dialect may call otherwise."""
    field = kind.field_named(name)
    return field.name if field is not None else name
