"""A resolved resource as YAML, with the origin of each line as a comment, and as JSON.

The YAML is a resource file: loading it gives the same resource, except for literal secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.model.resource import (
    FilledReference,
    ResolvedField,
    ResolvedParent,
    ResolvedResource,
)
from reconciler.model.text import printable, shortened
from reconciler.model.values import JSON, MISSING, UNSET, FieldOrigin, Path, path_text
from reconciler.render.diagnostics import place_as_json, place_as_text, safe_json
from reconciler.render.document import Cell, Document, Lines
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.yaml_line import scalar, yaml_line

_WIDEST = 56
_LONGEST = 60
_INDENT = "  "


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
    """Return an object with a list of fields. Its keys are stable."""
    value = {
        "address": str(resource.address),
        "environment": resource.environment,
        "environments": list(resource.environments),
        "declared": place_as_json(resource.declared_at),
        "parent": _parent_as_json(resource.parent),
        "fields": [_field_as_json(field) for field in resource.fields],
    }
    return safe_json(value)


def _parent_as_json(parent: ResolvedParent | None) -> dict[str, Any] | None:
    if parent is None:
        return None
    address = str(parent.address) if parent.address is not None else None
    place = place_as_json(parent.at) if parent.at is not None else None
    return {"address": address, "id": parent.id, "name": parent.name, "declared": place}


def _field_as_json(field: ResolvedField) -> dict[str, Any]:
    return {
        "path": list(field.path),
        "name": path_text(field.path),
        "value": None if field.value is MISSING else field.value,
        "unset": field.value is MISSING,
        "secret": field.secret,
        "origin": _origin(field.origin),
        "written": None if field.written is MISSING else field.written,
        "references": [
            {"reference": reference.text, "origin": _origin(reference.origin)}
            for reference in field.references
        ],
        "overrides": [
            {"written": override.written, "origin": _origin(override.origin)}
            for override in field.overrides
        ],
    }


def _origin(origin: FieldOrigin) -> dict[str, Any]:
    return {"layer": origin.layer, **place_as_json(origin.at)}
