"""Convert inputs, such as the value of `${env:PORT}`, to the types that a schema wants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from reconciler.model.schemas import member_schema, schema
from reconciler.model.values import JSON
from reconciler.workspace.yaml.document import Input

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_CONVERTED = frozenset({"integer", "number", "boolean"})


def converted(name: str, value: JSON) -> JSON:
    """Return a value with every input as what the schema of that name wants.

    An input that is not a number or a boolean stays, so that a check can report it.
    """
    return _converted(value, schema(name) or {})


def _converted(value: Any, node: Mapping[str, Any]) -> JSON:
    if value.__class__ is Input:
        return _typed(value, node)
    if not isinstance(value, (dict, list)):
        return value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    changed: Any = None
    for key, item in items:
        if item.__class__ is str:
            continue
        new = _converted(item, _member(node, value, key) or {})
        if new is not item:
            changed = value.copy() if changed is None else changed
            changed[key] = new
    return value if changed is None else changed


def _member(node: Mapping[str, Any], value: Any, key: Any) -> Mapping[str, Any] | None:
    return member_schema(node, value, key) if isinstance(value, dict) else node.get("items")


def converts_to(types: Sequence[str]) -> bool:
    """Return whether a schema of these types converts inputs: not if it takes text."""
    return "string" not in types and not _CONVERTED.isdisjoint(types)


def _typed(value: Input, node: Mapping[str, Any]) -> JSON:
    types = node.get("type", ())
    types = [types] if isinstance(types, str) else types
    if not converts_to(types):
        return str(value)
    if "boolean" in types and value.casefold() in _BOOLEANS:
        return _BOOLEANS[value.casefold()]
    if ("integer" in types or "number" in types) and _INTEGER.fullmatch(value):
        return int(value)
    if "number" in types and _NUMBER.fullmatch(value) and isfinite(float(value)):
        return float(value)
    return value
