"""A resolved resource as YAML with the origin of each line beside it, and as JSON. Pure.

The text is a resource file: read again, it says the same (literal secrets aside).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from reconciler.config.references import escaped
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

_PLAIN = re.compile(r"[^\W\d](?:[\w ./+-]*[\w/+-])?")
_PLAIN_REFERENCE = re.compile(r"[\w./+-]*(?:\$\{[\w:./+-]*\}[\w./+-]*)+")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_WIDEST = 56
_LONGEST = 60
_INDENT = "  "


def resolved_as_text(resource: ResolvedResource) -> str:
    """YAML, a line a field, with where it comes from as a comment."""
    lines = [*((f"# {line}", "") for line in _head(resource)), (f"{resource.collection}:", "")]
    lines.append((f"{_INDENT}{_scalar(resource.address.key)}:", ""))
    before: Path = ()
    for each in resource.fields:
        lines += _above(each.path, before)
        text = f"{_INDENT * (len(each.path) + 1)}{_scalar(str(each.path[-1]))}: {_value(each)}"
        lines.append((text, _comment(each)))
        before = each.path
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


def _above(path: Path, before: Path) -> Iterator[tuple[str, str]]:
    """The keys that a field stands below, those aside that are open already."""
    shared = 0
    while shared < min(len(path), len(before)) - 1 and path[shared] == before[shared]:
        shared += 1
    for depth in range(shared, len(path) - 1):
        yield f"{_INDENT * (depth + 2)}{_scalar(str(path[depth]))}:", ""


def _value(each: ResolvedField) -> str:
    """The value as a file would say it: what only looks like a reference is escaped again."""
    return _yaml(each.value if each.secret else escaped(each.value))


def _yaml(value: JSON) -> str:
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, list):
        return f"[{', '.join(_flow(item) for item in value)}]"
    return _flow(value)


def _flow(value: JSON) -> str:
    """Inside brackets text is quoted, so that no comma or colon in it matters."""
    if isinstance(value, list):
        return _yaml(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_quoted(str(name))}: {_flow(item)}" for name, item in value.items())
        return f"{{{inside}}}"
    if isinstance(value, str):
        return _scalar(value) if _PLAIN.fullmatch(value) else _quoted(value)
    return _number(value) if isinstance(value, float) else orjson.dumps(value).decode()


def _number(value: float) -> str:
    """Without an exponent, which YAML 1.1 and 1.2 read differently."""
    text = repr(value)
    return f"{value:.20f}".rstrip("0") if "e" in text else text


def _scalar(text: str) -> str:
    plain = _PLAIN.fullmatch(text) or _PLAIN_REFERENCE.fullmatch(text)
    if plain and text.lower() not in _WORDS and printable(text) == text:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    return printable(orjson.dumps(text).decode())


def _comment(each: ResolvedField) -> str:
    parts = [_told(each.origin)]
    if each.written is not MISSING and each.written not in [one.text for one in each.references]:
        parts.append(f"written {_short(each.written)}")
    parts += [_reference(one) for one in each.references]
    parts += [f"was {_short(one.written)} ({_told(one.origin)})" for one in each.overrides]
    return "; ".join(parts)


def _reference(one: FilledReference) -> str:
    text = printable(one.text)
    if one.origin.at is not None:
        layer = "" if one.origin.layer == "file" else f" {one.origin.layer}"
        return f"{text} from {_place(one.origin.at)}{layer}"
    if one.origin.layer == "default":
        return f"{text} from its default: it is not set"
    layer = one.origin.layer
    return f"{text} from {'the environment' if layer == 'environment' else printable(layer)}"


def _told(origin: FieldOrigin) -> str:
    place = f"{_place(origin.at)} " if origin.at is not None else ""
    return f"{place}{printable(origin.layer)}"


def _place(at: Mark) -> str:
    return printable(f"{at.file}:{at.line}")


def _short(value: JSON) -> str:
    text = printable(value) if isinstance(value, str) else printable(_yaml(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def resolved_as_json(resource: ResolvedResource) -> str:
    """An object with a list of fields; names are stable."""
    told = {
        "address": str(resource.address),
        "environment": resource.environment,
        "environments": list(resource.environments),
        "declared": _mark(resource.declared_at),
        "parent": _parent_as_json(resource.parent),
        "fields": [_field_as_json(each) for each in resource.fields],
    }
    return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n"


def _parent_as_json(parent: ResolvedParent | None) -> dict[str, Any] | None:
    if parent is None:
        return None
    address = str(parent.address) if parent.address is not None else None
    return {"address": address, "id": parent.id, "name": parent.name, "declared": _mark(parent.at)}


def _field_as_json(each: ResolvedField) -> dict[str, Any]:
    return {
        "path": list(each.path),
        "name": path_text(each.path),
        "value": each.value,
        "secret": each.secret,
        "origin": _origin(each.origin),
        "written": None if each.written is MISSING else each.written,
        "references": [
            {"reference": one.text, "origin": _origin(one.origin)} for one in each.references
        ],
        "overrides": [
            {"written": one.written, "origin": _origin(one.origin)} for one in each.overrides
        ],
    }


def _origin(origin: FieldOrigin) -> dict[str, Any]:
    return {"layer": origin.layer, **(_mark(origin.at) or _NOWHERE)}


_NOWHERE = {"file": None, "line": None, "column": None}


def _mark(at: Mark | None) -> dict[str, Any] | None:
    return {"file": at.file, "line": at.line, "column": at.column} if at is not None else None
