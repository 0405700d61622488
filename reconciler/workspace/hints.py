"""Words and hints of diagnostics about values that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.values import JSON, SecretRef
from reconciler.workspace.yaml.document import UnknownText

PLACEHOLDER = "(secret)"
_LONGEST = 60
_TYPED = "${env:…} is always text, a variable keeps its type"
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def shown(value: JSON) -> str:
    """A value in a message, without its content where that might be long or a secret."""
    if isinstance(value, UnknownText):
        return "text from a variable of the machine"
    if isinstance(value, str):
        return "text" if len(value) > _LONGEST else f"'{value}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, SecretRef):
        return f"'{PLACEHOLDER}'"
    words: dict[type, str] = {dict: "a mapping", list: "a list"}
    return words.get(type(value), str(value))


def shortened(text: str) -> str:
    """A name in a message, cut where it is too long for one."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def types(wanted: Sequence[str]) -> str:
    """The types that a field takes, in words."""
    words = [_TYPES[type_name] for type_name in wanted]
    if len(words) < 3:
        return " or ".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"


def type_hint(value: JSON, wanted: Sequence[str], node: Mapping[str, Any]) -> str | None:
    """Return a hint for a value of another type than its field. `node` is the field's schema."""
    if node.get("x-secret"):
        return "write a reference such as ${secret:env:NAME}"
    if "enum" in node:
        return f"allowed: {', '.join(map(word, node['enum']))}"
    if value is None:
        return "give it a value, or remove the line"
    if isinstance(value, UnknownText):
        return f"{_TYPED}: use ${{var:NAME}}"
    if isinstance(value, str):
        return _hint_for_text(value, wanted)
    return _hint_for_other(value, wanted, node)


def word(value: JSON) -> str:
    """A value that is allowed, as it is written."""
    return value if isinstance(value, str) else shown(value)


def _hint_for_other(value: JSON, wanted: Sequence[str], node: Mapping[str, Any]) -> str | None:
    if isinstance(value, list) and "object" in wanted:
        return "write `name: value` lines without dashes"
    if not isinstance(value, (list, dict)) and "string" in wanted:
        return _hint_to_quote(value, node)
    return "write true or false" if "boolean" in wanted else None


def _hint_to_quote(value: JSON, node: Mapping[str, Any]) -> str:
    if node.get("format") == "date-time":
        return "write it like 2026-01-31T00:00:00Z"
    if "pattern" in node:
        return "write a whole number, or a share such as 20%"
    if "id" in node.get("properties", {}) and not isinstance(value, bool):
        return f"a key is quoted: '{value}'; for what is not declared write {{id: {value}}}"
    # A decimal such as 1.10 has lost its last digit on the way here.
    return "put it in quotes as it is" if isinstance(value, float) else f"quote it: '{word(value)}'"


def _hint_for_text(value: str, wanted: Sequence[str]) -> str | None:
    if "integer" in wanted or "number" in wanted:
        digits = value.strip().lstrip("+-").replace(".", "", 1).isdigit()
        return f"remove the quotes; {_TYPED}" if digits else "write a number, with digits only"
    if "boolean" in wanted:
        quoted = value.lower() in ("true", "false")
        return f"write true or false{f', without quotes; {_TYPED}' if quoted else ''}"
    if "array" in wanted:
        if value.startswith(("-", "–", "—")):
            return "each item of a list begins with a dash and a space: `- item`"
        return f"write a list: [{value}]" if len(value) <= _LONGEST else "write a list"
    return "write `name: value` lines below it, indented" if "object" in wanted else None


def range_words(keyword: str, value: JSON, node: Mapping[str, Any]) -> str:
    """What is wrong with a value of the right type, by the keyword that refuses it."""
    limit, text = node[keyword], shown(value)
    words = {
        "minimum": f"{text} is less than {limit}",
        "maximum": f"{text} is more than {limit}",
        "minLength": "it is empty" if limit == 1 else f"it has less than {limit} characters",
        "maxLength": f"it has more than {limit} characters",
        "pattern": f"{text} is neither a whole number nor a share such as 20%",
        "minProperties": f"it is empty, and takes one of {', '.join(node.get('properties', {}))}",
        "maxProperties": f"it takes only one of {', '.join(node.get('properties', {}))}",
    }
    return words.get(keyword, "the value does not fit")
