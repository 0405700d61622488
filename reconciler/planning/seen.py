"""What a change records of the live object, from which staleness is decided later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.change import FieldChange, Seen
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.resource import Lifecycle, Resource
from reconciler.model.values import JSON, Path, path_text
from reconciler.planning.differ import is_ignored
from reconciler.planning.leaves import leaves, live_fields


def seen_of_update(
    kind: Kind, resource: Resource, live: LiveObject, changes: Sequence[FieldChange]
) -> Seen:
    """Return the managed fields, without toggles (other changes) and without `ignore_changes`."""
    declared = {
        leaf.path
        for leaf in leaves(kind.fields, resource.spec, live=False)
        if not leaf.field.secret
        and leaf.field.toggle is None
        and not is_ignored(leaf.path, resource.lifecycle)
    }
    return seen_paths(kind, live, declared | {change.path for change in changes})


def seen_paths(kind: Kind, live: LiveObject, paths: Iterable[Path]) -> Seen:
    """Return the live values of some paths, None for one that is absent or equals its default."""
    values = live_fields(kind, live.body)
    return _seen(kind, live, {text: values.get(text) for text in sorted(map(path_text, paths))})


def seen_of_object(
    kind: Kind, live: LiveObject, lifecycle: Lifecycle, *, used: Iterable[str] = ()
) -> Seen:
    """Return every live value, without `ignore_changes` unless `used`, by API name, in a body."""
    ignored = {
        path_text(leaf.path)
        for leaf in leaves(kind.fields, live.body, live=True)
        if is_ignored(leaf.path, lifecycle)
        and not {leaf.field.name, *leaf.field.sent_as(None)} & set(used)
    }
    values = live_fields(kind, live.body)
    return _seen(kind, live, {path: values[path] for path in values if path not in ignored})


def _seen(kind: Kind, live: LiveObject, fields: Mapping[str, JSON]) -> Seen:
    updated = live.body.get(kind.last_changed) if kind.last_changed else None
    return Seen(updated_at=str(updated) if updated is not None else None, fields=fields)
