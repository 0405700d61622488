"""Record what a change depends on in the live object, from which staleness is decided later.

That it is the same object is recorded, too, in the field `Kind.stamp`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.model.change import FieldChange
from reconciler.model.comparison import field_leaves, live_values, stamp_of
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.resource import Lifecycle, Resource
from reconciler.model.values import JSON, JSONObject, Path, path_text
from reconciler.planning.differ import is_ignored


def seen_of_update(
    kind: Kind,
    resource: Resource,
    live: LiveObject,
    changes: Sequence[FieldChange],
    body: JSONObject,
) -> dict[str, JSON]:
    """Return the managed fields, without toggles (other changes) and without `ignore_changes`.

    What is sent although no file manages it was seen, too.
    """
    declared = {
        leaf.path
        for leaf in field_leaves(kind.fields, resource.spec, live=False)
        if not (leaf.field.secret or leaf.field.toggle or is_ignored(leaf.path, resource.lifecycle))
    }
    sent = {
        (field.name,)
        for field in kind.fields
        if field.name in body and field.name not in resource.spec
    }
    return seen_paths(kind, live, declared | sent | {change.path for change in changes})


def seen_paths(kind: Kind, live: LiveObject, paths: Iterable[Path]) -> dict[str, JSON]:
    """Return the live values of some paths, None for one that is absent or equals its default."""
    values = live_values(kind, live.body)
    return {text: values.get(text) for text in sorted(map(path_text, paths))} | stamp_of(
        kind, live.body
    )


def seen_of_object(
    kind: Kind, live: LiveObject, lifecycle: Lifecycle, *, used: Collection[str] = ()
) -> dict[str, JSON]:
    """Return every live value, without `ignore_changes` unless `used`, by API name, in a body."""
    ignored = {
        path_text(leaf.path)
        for leaf in field_leaves(kind.fields, live.body, live=True)
        if is_ignored(leaf.path, lifecycle)
        and not {leaf.field.name, *leaf.field.sent_as(None)} & set(used)
    }
    values = live_values(kind, live.body)
    return {p: value for p, value in values.items() if p not in ignored} | stamp_of(kind, live.body)
