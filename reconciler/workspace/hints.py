"""Convert inputs to the types of the schema, and explain invalid values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from reconciler.model.schemas import member_schema, schema
from reconciler.model.values import JSON, SecretRef, holds_reference, references_in
from reconciler.workspace.yaml.document import Input, UnknownText

PLACEHOLDER = "(secret)"
NOT_FILLED = "references are not filled in here: write the value itself"
_LONGEST = 60
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_CONVERTED = frozenset({"integer", "number", "boolean"})


def shown(value: JSON) -> str:
    """Return a value for a message, without its content if that is long or secret."""
    if isinstance(value, Input):
        return f"{shown(str(value))} from {value.reference}"
    if isinstance(value, UnknownText):
        return "text from an environment variable"
    if isinstance(value, str):
        return "text" if len(value) > _LONGEST else f"'{value}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, SecretRef):
        return f"'{PLACEHOLDER}'"
    words: dict[type, str] = {dict: "a mapping", list: "a list"}
    return words.get(type(value), str(value))


def shortened(text: str) -> str:
    """Return a name for a message, cut if it is too long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def type_words(types: Sequence[str]) -> str:
    """Return the types that a field accepts, in words."""
    *words, last = (_TYPES[type_name] for type_name in types)
    return f"{', '.join(words)} or {last}" if words else last


def type_hint(
    value: JSON, wanted: Sequence[str], node: Mapping[str, Any], written: JSON
) -> str | None:
    """Return a hint for a value of the wrong type.

    `node` is the schema of its field, `written` the value in the file, with its references.
    """
    if isinstance(value, str) and holds_reference(value):
        return NOT_FILLED
    by_node = _hint_by_node(node)
    if by_node is not None:
        return by_node
    if value is None:
        return "add a value, or remove the line"
    if isinstance(value, Input):
        return f"set it to {_example(wanted)}"
    if isinstance(value, str):
        is_filled = isinstance(written, str) and holds_reference(written)
        return _hint_for_filled(written, wanted) if is_filled else _hint_for_text(value, wanted)
    return _hint_for_other(value, wanted, node)


def _hint_by_node(node: Mapping[str, Any]) -> str | None:
    """Return the values that a field accepts, None if there is no list of them."""
    if node.get("x-secret"):
        return "write a reference such as ${secret:env:NAME}"
    if "enum" in node:
        return f"allowed: {', '.join(map(word, node['enum']))}"
    return f"known: {', '.join(node['x-open-enum'])}" if "x-open-enum" in node else None


def _example(wanted: Sequence[str]) -> str:
    return "true or false" if "boolean" in wanted else "a plain number"


def _hint_for_filled(written: str, wanted: Sequence[str]) -> str:
    """Return a hint for text from references in a field that takes no text."""
    if [str(reference) for reference in references_in(written)] != [written]:
        return "use one reference as the whole value: with more around it, it is text"
    if converts_to(wanted):
        return "correct the variable: a value in quotes is text"
    return "use ${var:NAME} with a variable of that type"


def word(value: JSON) -> str:
    """Return an allowed value as it is written."""
    return value if isinstance(value, str) else shown(value)


def _hint_for_other(value: JSON, wanted: Sequence[str], node: Mapping[str, Any]) -> str | None:
    if isinstance(value, list) and "object" in wanted:
        return "write `name: value` lines without dashes"
    if isinstance(value, dict) and "string" in wanted and list(value.values()) == [None]:
        return f"quote a value that begins with {{: '{{{next(iter(value))}}}'"
    if not isinstance(value, (list, dict)) and "string" in wanted:
        return _hint_to_quote(value, node)
    return "write true or false" if "boolean" in wanted else None


def _hint_to_quote(value: JSON, node: Mapping[str, Any]) -> str:
    if node.get("format") == "date-time":
        return "use ISO 8601, such as 2026-01-31T00:00:00Z"
    if "pattern" in node:
        return "write a whole number, or a percentage such as 20%"
    if "id" in node.get("properties", {}) and not isinstance(value, bool):
        return f"quote a key: '{value}'; for an undeclared project write {{id: {value}}}"
    # A decimal such as 1.10 has lost its last digit on the way here.
    return "quote it" if isinstance(value, float) else f"quote it: '{word(value)}'"


def _hint_for_text(value: str, wanted: Sequence[str]) -> str | None:
    if "integer" in wanted or "number" in wanted:
        digits = value.strip().lstrip("+-").replace(".", "", 1).isdigit()
        return "remove the quotes" if digits else "write a number without a unit or text"
    if "boolean" in wanted:
        quoted = value.lower() in ("true", "false")
        return f"write true or false{', without quotes' if quoted else ''}"
    if "array" in wanted:
        if value.startswith(("-", "–", "—")):
            return "start each item with a dash and a space: `- item`"
        return f"write a list: [{value}]" if len(value) <= _LONGEST else "write a list"
    return "write `name: value` lines below it, indented" if "object" in wanted else None


def range_words(keyword: str, value: JSON, node: Mapping[str, Any]) -> str:
    """Return what a value of the right type must be, by the keyword that it violates."""
    limit, text = node[keyword], shown(value)
    names = ", ".join(node.get("properties", {}))
    words = {
        "minimum": f"be at least {limit}, not {text}",
        "maximum": f"be at most {limit}, not {text}",
        "minLength": "not be empty" if limit == 1 else f"have at least {limit} characters",
        "maxLength": f"have at most {limit} characters",
        "pattern": f"be a whole number or a percentage such as 20%, not {text}",
        "minProperties": f"have one of {names}",
        "maxProperties": f"have only one of {names}",
    }
    return words.get(keyword, f"satisfy `{keyword}: {limit}`")


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
