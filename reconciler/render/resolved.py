"""A resolved resource as YAML, with the origin of each line as a comment, and as JSON.

The YAML is a resource file: loading it gives the same resource, except for literal secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.public import Public, as_json
from reconciler.model.resource import (
    FilledReference,
    ResolvedField,
    ResolvedParent,
    ResolvedResource,
)
from reconciler.model.text import printable, shortened
from reconciler.model.values import JSON, MISSING, UNSET, FieldOrigin, Path, path_text
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import Cell, Document, Lines
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.yaml_line import scalar, yaml_line

_WIDEST = 56
_LONGEST = 60
_INDENT = "  "


class PublicOrigin(Public, frozen=True):
    """Where a value comes from."""

    layer: str
    """The layer, such as `resource` or `override production`."""
    file: str | None
    """Path, relative to the workspace; null without a place."""
    line: int | None
    """Line, from 1."""
    column: int | None
    """Column in characters, from 1."""


class PublicReference(Public, frozen=True):
    """A reference that was filled in."""

    reference: str
    """Its text."""
    origin: PublicOrigin
    """Where its value comes from."""


class PublicOverridden(Public, frozen=True):
    """The value of the field in a lower layer."""

    written: Any
    """The value, as written."""
    origin: PublicOrigin
    """Where it is."""


class PublicField(Public, frozen=True):
    """A field that the files manage."""

    path: Path
    """Its path in the resource."""
    name: str
    """The path as text."""
    value: Any
    """The value, with references in place of secrets; null if it is unset."""
    unset: bool
    """Whether `${unset}` leaves it unmanaged."""
    secret: bool
    """Whether it contains a secret."""
    origin: PublicOrigin
    """Where the value comes from."""
    written: Any
    """The text in the file, if references were filled in, else null."""
    references: tuple[PublicReference, ...]
    """The references that were filled in."""
    overrides: tuple[PublicOverridden, ...]
    """The same field in lower layers, the next one first."""


class PublicParent(Public, frozen=True):
    """The parent: a declared one has an address, a live one an id or a name."""

    address: Address | None
    """Its address."""
    id: str | None
    """Its id."""
    name: str | None
    """Its name."""
    declared: Mark | None
    """Where it is declared."""


class PublicResource(Public, frozen=True):
    """A resource with the origin of its fields: `show --resolved --format json`."""

    version = 1
    schema = "resolved"

    address: Address
    """Its address."""
    environment: str
    """The environment of the values."""
    environments: tuple[str, ...]
    """The environments that have the resource."""
    declared: Mark
    """Where it is declared."""
    parent: PublicParent | None
    """What it belongs to; null for the organization."""
    fields: tuple[PublicField, ...]
    """The fields, in the order of output."""


def resolved_document(resource: ResolvedResource, _: RenderOptions) -> Document:
    """Return YAML with one line for each field and its origin as a comment."""
    lines = [*((f"# {line}", "") for line in _head(resource)), (f"{resource.collection}:", "")]
    lines.append((f"{_INDENT}{scalar(resource.address.key)}:", ""))
    previous: Path = ()
    for field in resource.fields:
        lines += _parents(field.path, previous)
        value = UNSET if field.value is MISSING else yaml_line(field.value, escape=not field.secret)
        indent = _INDENT * (len(field.path) + 1)
        lines.append((f"{indent}{scalar(str(field.path[-1]))}: {value}", _comment(field)))
        previous = field.path
    width = max((len(text) for text, origin in lines if origin and len(text) <= _WIDEST), default=0)
    shown = (f"{text:{width}}  # {origin}" if origin else text for text, origin in lines)
    heading = Cell(str(resource.address), code=True), Cell(f"in {resource.environment}")
    return Document(heading, (), (Lines(tuple(shown), language="yaml"),))


def _head(resource: ResolvedResource) -> Iterator[str]:
    yield printable(f"{resource.address} in environment {resource.environment}")
    yield f"defined at {place_as_text(resource.declared_at)}"
    yield f"environments: {', '.join(resource.environments)}"
    if resource.in_organization:
        yield "belongs to the organization"
    elif resource.parent is not None:
        yield f"belongs to {_parent(resource.parent)}"


def _parent(parent: ResolvedParent) -> str:
    if parent.address is not None:
        place = f", defined at {place_as_text(parent.at)}" if parent.at is not None else ""
        return printable(f'{parent.address} "{parent.name}"{place}')
    identity = f'named "{parent.name}"' if parent.id is None else f"with id {parent.id}"
    return printable(f"the live object {identity}, which is not in the configuration")


def _parents(path: Path, previous: Path) -> Iterator[tuple[str, str]]:
    """Yield a line for each key above a field that is not above the previous field."""
    for depth in range(1, len(path)):
        if path[:depth] != previous[:depth]:
            yield f"{_INDENT * (depth + 1)}{scalar(str(path[depth - 1]))}:", ""


def _comment(field: ResolvedField) -> str:
    parts = [_origin_text(field.origin)]
    references = [reference.text for reference in field.references]
    if field.written is not MISSING and field.written not in references:
        parts.append(f"written as {_short(field.written)}")
    parts += [_reference(reference) for reference in field.references]
    parts += [
        f"overrides {_short(override.written)} ({_origin_text(override.origin)})"
        for override in field.overrides
    ]
    return "; ".join(parts)


def _reference(reference: FilledReference) -> str:
    text, origin = printable(reference.text), reference.origin
    if origin.at is not None:
        layer = "" if origin.layer == "file" else f" {origin.layer}"
        return f"{text} from {place_as_text(origin.at)}{layer}"
    if origin.layer == "default":
        return f"{text} from its default (not set)"
    layer = "the environment" if origin.layer == "environment" else printable(origin.layer)
    return f"{text} from {layer}"


def _origin_text(origin: FieldOrigin) -> str:
    place = f"{place_as_text(origin.at)} " if origin.at is not None else ""
    return f"{place}{printable(origin.layer)}"


def _short(value: JSON) -> str:
    text = value if isinstance(value, str) else yaml_line(value)
    return shortened(printable(text), _LONGEST)


def resolved_as_json(resource: ResolvedResource, _: RenderOptions = DEFAULTS) -> str:
    """Return the public JSON of a resource."""
    return as_json(
        PublicResource(
            address=resource.address,
            environment=resource.environment,
            environments=resource.environments,
            declared=resource.declared_at,
            parent=None if resource.parent is None else _public_parent(resource.parent),
            fields=tuple(map(_public_field, resource.fields)),
        )
    )


def _public_parent(parent: ResolvedParent) -> PublicParent:
    return PublicParent(address=parent.address, id=parent.id, name=parent.name, declared=parent.at)


def _public_field(field: ResolvedField) -> PublicField:
    return PublicField(
        path=field.path,
        name=path_text(field.path),
        value=None if field.value is MISSING else field.value,
        unset=field.value is MISSING,
        secret=field.secret,
        origin=_public_origin(field.origin),
        written=None if field.written is MISSING else field.written,
        references=tuple(
            PublicReference(reference.text, _public_origin(reference.origin))
            for reference in field.references
        ),
        overrides=tuple(
            PublicOverridden(override.written, _public_origin(override.origin))
            for override in field.overrides
        ),
    )


def _public_origin(origin: FieldOrigin) -> PublicOrigin:
    at = origin.at
    if at is None:
        return PublicOrigin(origin.layer, None, None, None)
    return PublicOrigin(origin.layer, at.file, at.line, at.column)
