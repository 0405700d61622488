"""Field changes to what is sent: the body of a create, of an update, of a toggle's neighbours.

Bodies are built from the files only. Echoing what was read can be refused (trap 12), so a live
value is sent back in just two cases, each of which the service demands: the integration of a
destination (trap 13) and the partner of a field that is judged together with it (trap 16).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.change import FieldChange, SecretNote, SecretUse
from reconciler.model.field_types import Boolean, DecimalText, Instant, Integer, MergedObject, Text
from reconciler.model.kind import Field, Kind, OnCreate, Variant
from reconciler.model.live import Dialect, LiveObject
from reconciler.model.resource import Resource
from reconciler.model.values import JSON, MISSING, Path, SecretRef, value_at

_SENT_CANONICAL = (Instant, DecimalText, Integer, Boolean, Text)


@dataclass(frozen=True, slots=True)
class Bodies:
    """What a create sends, and what is patched right after it."""

    create: dict[str, JSON]
    after: dict[str, JSON]


def create_bodies(kind: Kind, resource: Resource, dialect: Dialect | None) -> Bodies:
    """All declared fields but nulls: absent and null are the same to a create."""
    create: dict[str, JSON] = {}
    after: dict[str, JSON] = {}
    for field in kind.fields:
        value = resource.spec.get(field.name)
        if value is None:
            continue
        target = after if field.on_create is OnCreate.AFTER else create
        for name in field.sent_as(dialect):
            target[name] = _sendable(field, value)
    return Bodies(create, after)


def update_body(
    kind: Kind,
    resource: Resource,
    live: LiveObject,
    *,
    changes: Iterable[FieldChange],
    secrets: Iterable[SecretNote] = (),
    dialect: Dialect | None,
) -> dict[str, JSON]:
    """Just the changed fields, with what must go along with them. Empty if nothing is sent."""
    changed: dict[str, dict[Path, FieldChange]] = {}
    for change in changes:
        changed.setdefault(str(change.path[0]), {})[change.path] = change
    sent = {note.path: note.ref for note in secrets if note.use.sent}
    for path in sent:
        changed.setdefault(str(path[0]), {})
    body: dict[str, JSON] = {}
    for field in _with_brought(kind, changed):
        if field.variant is not None:
            paths = changed.get(field.name, {})
            value = _tagged_body(field, field.variant, resource, live, paths=paths, secrets=sent)
        else:
            value = _plain_value(field, resource, live, changed.get(field.name, {}))
        if value is MISSING:
            continue
        for name in field.sent_as(dialect):
            body[name] = value
    return body


def _with_brought(kind: Kind, changed: Mapping[str, object]) -> list[Field]:
    brought = {name for each in kind.fields if each.name in changed for name in each.sent_with}
    return [each for each in kind.fields if each.name in changed or each.name in brought]


def _plain_value(
    field: Field, resource: Resource, live: LiveObject, changes: Mapping[Path, FieldChange]
) -> JSON:
    change = changes.get((field.name,))
    declared = resource.spec.get(field.name, MISSING)
    if isinstance(field.type, MergedObject) and isinstance(declared, Mapping):
        return _merged_value(field.type, declared, field.live_value(live.body), change)
    if declared is not MISSING:
        return _sendable(field, declared)
    return change.after if change is not None else MISSING


def _merged_value(
    shape: MergedObject, declared: Mapping[str, JSON], live: JSON, change: FieldChange | None
) -> JSON:
    """The declared keys, with null for the removed ones; whole where only the client merges."""
    removed = {
        key: None
        for key, value in (
            change.after.items() if change and isinstance(change.after, dict) else ()
        )
        if value is None and key not in declared
    }
    if not shape.by_client:
        return {**declared, **removed}
    kept = dict(live) if isinstance(live, Mapping) else {}
    whole = {**kept, **declared, **removed}
    return {key: value for key, value in whole.items() if value is not None}


def _tagged_body(
    field: Field,
    tagged: Variant,
    resource: Resource,
    live: LiveObject,
    *,
    paths: Mapping[Path, FieldChange],
    secrets: Mapping[Path, SecretRef],
) -> JSON:
    """The tag, the extras and the changed part of the body: the three go together (trap 13)."""
    declared = resource.spec.get(field.name)
    declared = declared if isinstance(declared, Mapping) else {}
    current = live.body.get(field.name)
    current = current if isinstance(current, Mapping) else {}
    tag = declared.get(tagged.tag, current.get(tagged.tag))
    body: dict[str, JSON] = {tagged.tag: tag}
    for extra in tagged.extras:
        value = declared.get(extra.name, current.get(extra.name))
        if value is not None or (field.name, extra.name) in paths:
            body[extra.name] = value
    if (field.name, tagged.tag) in paths:
        config = declared.get(tagged.body)
        wanted = config if isinstance(config, Mapping) else {}
        body[tagged.body] = {name: value for name, value in wanted.items() if value is not None}
        return body
    body[tagged.body] = _changed_config(
        field, tagged, str(tag), declared, current, paths=paths, secrets=secrets
    )
    return body


def _changed_config(  # noqa: PLR0913 - see _tagged_body
    field: Field,
    tagged: Variant,
    tag: str,
    declared: Mapping[str, JSON],
    current: Mapping[str, JSON],
    *,
    paths: Mapping[Path, FieldChange],
    secrets: Mapping[Path, SecretRef],
) -> dict[str, JSON]:
    known = {each.name: each for each in tagged.variants.get(tag, ())}
    prefix = (field.name, tagged.body)
    changed = [str(path[2]) for path in paths if path[:2] == prefix]
    resent = [str(path[2]) for path in secrets if path[:2] == prefix]
    config: dict[str, JSON] = {}
    for name in (*changed, *resent):
        wanted = value_at(declared, (tagged.body, name))
        change = paths.get((*prefix, name))
        if wanted is MISSING and change is not None:
            config[name] = change.after
        else:
            config[name] = _sendable(known[name], wanted) if name in known else wanted
        for partner in known[name].sent_with if name in known else ():
            value = value_at(declared, (tagged.body, partner))
            value = value_at(current, (tagged.body, partner)) if value is MISSING else value
            if partner not in config and value not in (MISSING, None):
                config[partner] = _sendable(known[partner], value) if partner in known else value
    return config


def _sendable(field: Field, value: JSON) -> JSON:
    """Scalars in canonical form, which every server takes; the rest as it was written."""
    if isinstance(field.type, _SENT_CANONICAL):
        return field.type.canonical(value)
    return value


def secret_needed(kind: Kind, path: Path, changes: Iterable[FieldChange]) -> bool:
    """Whether a patch of these changes needs the secret at a path.

    It does when its tagged object changes its tag, when a changed field beside it brings it, and
    when it stands inside a value that is sent whole.
    """
    for change in changes:
        if path[: len(change.path)] == change.path:
            return True
        if path[:1] != change.path[:1]:
            continue
        field = kind.field_named(str(path[0]))
        if field is None or field.variant is None:
            continue
        if change.path == (field.name, field.variant.tag):
            return True
        fields = (each for inner in field.variant.variants.values() for each in inner)
        if any(each.name == change.path[-1] and path[-1] in each.sent_with for each in fields):
            return True
    return False


def sends_anything(notes: Iterable[SecretNote]) -> bool:
    """Whether any of the secrets is sent."""
    return any(note.use is not SecretUse.UNREADABLE for note in notes)
