"""The origin of each field of a resolved resource: its layer, its line and its references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from reconciler.files.schema.annotations import annotated
from reconciler.files.yaml.document import Layer, Places
from reconciler.model.kind import Kind
from reconciler.model.redaction import MASK
from reconciler.model.resource import (
    PublicField,
    PublicOrigin,
    PublicOverridden,
    PublicReference,
    Resource,
    State,
)
from reconciler.model.values import (
    JSON,
    MISSING,
    UNSET,
    FieldOrigin,
    JSONObject,
    Path,
    SecretRef,
    is_only_references,
    leaves,
    map_leaves,
    mapped_leaves,
    path_text,
    references_in,
    value_at,
)
from reconciler.providers import providers
from reconciler.providers.var import PROVIDER as VARIABLES

LITERAL_SECRET = "(literal secret)"  # noqa: S105 - a placeholder
"""Replaces a secret that is written in the files."""

_MAPPING = "(a mapping)"
_SECRET = frozenset({"x-secret"})


class OriginContext(Struct, frozen=True):
    """The sources of fields: the layers of the resource, variables and the environment."""

    places: Places
    variables: Places
    environ: Mapping[str, str]


def fields_with_origin(
    resource: Resource, kind: Kind, context: OriginContext
) -> tuple[PublicField, ...]:
    """Return every field of a resource with its origin, parent and lifecycle included."""
    carriers = annotated(kind.name, _SECRET, resource.spec)
    secret = {path for path, _ in carriers.get("x-secret", ())}
    resolved: list[PublicField] = []
    for path, value in _values(resource, kind, context.places):
        written_path = _as_written(path, kind, context.places)
        hidden = path in secret or isinstance(value, SecretRef)
        resolved.append(_field(path, written_path, value, context, hidden=hidden))
    return tuple(resolved)


def _with_missing(values: JSONObject, path: Path) -> JSONObject:
    """Return a mapping with `MISSING` at a path, unchanged if something else is there."""
    name, below = str(path[0]), path[1:]
    inside = values.get(name, {} if below else MISSING)
    if below and isinstance(inside, dict):
        return {**values, name: _with_missing(inside, below)}
    return values if below or inside is not MISSING else {**values, name: MISSING}


def _values(resource: Resource, kind: Kind, places: Places) -> Iterator[tuple[Path, JSON]]:
    """Yield the leaves of a resource: parent and id first, lifecycle last."""
    if kind.parent_key is not None and resource.parent is not None:
        yield from mapped_leaves(resource.parent.value, (kind.parent_key,))
    elif kind.parent_key is not None and _is_unset(kind.parent_key, places):
        yield (kind.parent_key,), MISSING
    if resource.pinned_id is not None:
        yield ("id",), resource.pinned_id
    if resource.state is not State.PRESENT or places.layer_of(("state",)) is not None:
        yield ("state",), resource.state.value
    order = {field.name: position for position, field in enumerate(kind.fields)}
    spec: JSONObject = resource.spec
    for unset in resource.unset:
        spec = _with_missing(spec, unset)
    for name in sorted(spec, key=lambda field_name: order.get(field_name, len(order))):
        yield from mapped_leaves(spec[name], (name,))
    given = resource.lifecycle.given()
    for setting, value in resource.lifecycle.as_json().items():
        path: Path = ("lifecycle", setting)
        is_set = any(value_at(layer.value, path) is not MISSING for layer in places.layers)
        if setting in given or is_set:
            yield path, value
    if resource.secret_version is not None or _is_unset("secret_version", places):
        yield ("secret_version",), resource.secret_version or MISSING


def _is_unset(name: str, places: Places) -> bool:
    layer = places.layer_of((name,))
    return layer is not None and value_at(layer.value, (name,)) == UNSET


def _as_written(path: Path, kind: Kind, places: Places) -> Path:
    """Return the path under the name that the files use, which may be an alias."""
    known = kind.field_named(str(path[0]))
    for name in (known.name, *known.aliases) if known is not None else ():
        if places.layer_of((name,)) is not None:
            return (name, *path[1:])
    return path


def _field(
    path: Path, written_path: Path, value: JSON, context: OriginContext, *, hidden: bool
) -> PublicField:
    top, set_at = context.places.source_of(written_path)
    written = value_at(top.value, set_at)
    texts = tuple(_texts(written))
    plain = str(value) if isinstance(value, SecretRef) else value
    filled = any("${" in text for text in texts) and written != plain and value is not MISSING
    below = (layer for layer in context.places.layers if layer is not top)
    return PublicField(
        path=path,
        name=path_text(path),
        value=None if value is MISSING else map_leaves(value, _shown),
        unset=value is MISSING,
        origin=_origin(top, set_at),
        secret=hidden,
        written=_safe(written, hidden=hidden) if filled else None,
        references=tuple(_filled(texts, context, hidden=hidden, seen=frozenset())),
        overrides=tuple(
            PublicOverridden(_safe(overridden, hidden=hidden), _origin(layer, set_at))
            for layer in below
            if (overridden := value_at(layer.value, written_path)) is not MISSING
        ),
    )


def _origin(layer: Layer, path: Path) -> PublicOrigin:
    return PublicOrigin.of(FieldOrigin(layer.label, layer.document.key_mark(layer.path + path)))


def _shown(value: JSON) -> JSON:
    """Return a leaf without secrets. A list may contain references."""
    if not isinstance(value, SecretRef):
        return value
    return LITERAL_SECRET if value.is_literal else str(value)


def _safe(written: JSON, *, hidden: bool) -> JSON:
    """Return what is written in a file, without secrets."""
    if isinstance(written, Mapping):
        return _MAPPING if written else written
    if not hidden or written is None:
        return written
    text = str(written)
    if is_only_references(text):
        return text
    return LITERAL_SECRET


def _texts(value: JSON) -> Iterator[str]:
    return (leaf for _, leaf in leaves(value) if isinstance(leaf, str))


def _filled(
    texts: tuple[str, ...], context: OriginContext, *, hidden: bool, seen: frozenset[str]
) -> Iterator[PublicReference]:
    """Yield the references in texts, each followed by those in the variable that it names."""
    for reference in (reference for text in texts for reference in references_in(text)):
        provider, argument = reference.provider, reference.argument
        layer = context.variables.layer_of((argument,)) if provider == VARIABLES.name else None
        if layer is not None and argument not in seen:
            yield PublicReference(str(reference), _origin(layer, (argument,)))
            inner = tuple(_texts(value_at(layer.value, (argument,))))
            yield from _filled(inner, context, hidden=hidden, seen=seen | {argument})
        elif provider != VARIABLES.name and not reference.is_secret and provider in providers():
            text = reference.without_default(MASK) if hidden else str(reference)
            origin = providers()[provider].origin_of(argument, context.environ)
            yield PublicReference(text, PublicOrigin.of(origin))
