"""A resolved resource as YAML with the origin of each line beside it, and as JSON.

The text is a resource file: loaded again, it gives the same resource (literal secrets aside).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from reconciler.errors import Mark
from reconciler.model.resolved import (
    FieldOrigin,
    FilledReference,
    ResolvedField,
    ResolvedParent,
    ResolvedResource,
)
from reconciler.model.values import JSON, MISSING, Path, path_text
from reconciler.model.wording import printable
from reconciler.render.plan.words import shortened
from reconciler.render.yaml_line import scalar, yaml_line

_WIDEST = 56
_LONGEST = 60
_INDENT = "  "


def resolved_as_text(resource: ResolvedResource) -> str:
    """Return YAML, one field a line, with its origin as a comment."""
    lines = [*((f"# {line}", "") for line in _head(resource)), (f"{resource.collection}:", "")]
    lines.append((f"{_INDENT}{scalar(resource.address.key)}:", ""))
    before: Path = ()
    for field in resource.fields:
        lines += _parents(field.path, before)
        value = yaml_line(field.value, escape=not field.secret)
        indent = _INDENT * (len(field.path) + 1)
        lines.append((f"{indent}{scalar(str(field.path[-1]))}: {value}", _comment(field)))
        before = field.path
    width = max((len(text) for text, note in lines if note and len(text) <= _WIDEST), default=0)
    return "".join(f"{text:{width}}  # {note}\n" if note else f"{text}\n" for text, note in lines)


def _head(resource: ResolvedResource) -> Iterator[str]:
    yield printable(f"{resource.address} in environment {resource.environment}")
    yield f"declared at {_place(resource.declared_at)}, in {', '.join(resource.environments)}"
    if resource.in_organization:
        yield "belongs to the organization"
    elif resource.parent is not None:
        yield f"belongs to {_parent(resource.parent)}"


def _parent(parent: ResolvedParent) -> str:
    if parent.address is not None:
        place = f", declared at {_place(parent.at)}" if parent.at is not None else ""
        return printable(f'{parent.address} "{parent.name}"{place}')
    if parent.id is not None:
        return printable(f"the live one with id {parent.id}, which the files do not declare")
    return printable(f'the live one named "{parent.name}", which the files do not declare')


def _parents(path: Path, before: Path) -> Iterator[tuple[str, str]]:
    """Yield lines with the keys above a field, except those that the field before shares."""
    shared = 0
    while shared < min(len(path), len(before)) - 1 and path[shared] == before[shared]:
        shared += 1
    for depth in range(shared, len(path) - 1):
        yield f"{_INDENT * (depth + 2)}{scalar(str(path[depth]))}:", ""


def _comment(field: ResolvedField) -> str:
    parts = [_origin_text(field.origin)]
    references = [reference.text for reference in field.references]
    if field.written is not MISSING and field.written not in references:
        parts.append(f"written {_short(field.written)}")
    parts += [_reference(reference) for reference in field.references]
    parts += [
        f"was {_short(override.written)} ({_origin_text(override.origin)})"
        for override in field.overrides
    ]
    return "; ".join(parts)


def _reference(reference: FilledReference) -> str:
    text, origin = printable(reference.text), reference.origin
    if origin.at is not None:
        layer = "" if origin.layer == "file" else f" {origin.layer}"
        return f"{text} from {_place(origin.at)}{layer}"
    if origin.layer == "default":
        return f"{text} from its default: it is not set"
    layer = origin.layer
    return f"{text} from {'the environment' if layer == 'environment' else printable(layer)}"


def _origin_text(origin: FieldOrigin) -> str:
    place = f"{_place(origin.at)} " if origin.at is not None else ""
    return f"{place}{printable(origin.layer)}"


def _place(at: Mark) -> str:
    return printable(f"{at.file}:{at.line}")


def _short(value: JSON) -> str:
    text = value if isinstance(value, str) else yaml_line(value)
    return shortened(printable(text), _LONGEST)


def resolved_as_json(resource: ResolvedResource) -> str:
    """Return an object with a list of fields; names are stable."""
    value = {
        "address": str(resource.address),
        "environment": resource.environment,
        "environments": list(resource.environments),
        "declared": _mark(resource.declared_at),
        "parent": _parent_as_json(resource.parent),
        "fields": [_field_as_json(field) for field in resource.fields],
    }
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def _parent_as_json(parent: ResolvedParent | None) -> dict[str, Any] | None:
    if parent is None:
        return None
    address = str(parent.address) if parent.address is not None else None
    return {"address": address, "id": parent.id, "name": parent.name, "declared": _mark(parent.at)}


def _field_as_json(field: ResolvedField) -> dict[str, Any]:
    return {
        "path": list(field.path),
        "name": path_text(field.path),
        "value": field.value,
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
    return {"layer": origin.layer, **(_mark(origin.at) or _NOWHERE)}


_NOWHERE = {"file": None, "line": None, "column": None}


def _mark(at: Mark | None) -> dict[str, Any] | None:
    return {"file": at.file, "line": at.line, "column": at.column} if at is not None else None
