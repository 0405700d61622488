"""Values as YAML on one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from reconciler.model.text import printable
from reconciler.model.values import JSON, escaped_text, map_leaves

_PLAIN = re.compile(r"[^\W\d](?:[\w ./+-]*[\w/+-])?")
_REFERENCE = re.compile(r"[\w./+-]*(?:\$\{[\w:./+-]*\}[\w./+-]*)+")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def scalar(text: str) -> str:
    """Return text as a scalar: plain where every YAML parser reads it as this text."""
    plain = _PLAIN.fullmatch(text) or _REFERENCE.fullmatch(text)
    safe = plain and text.lower() not in _WORDS and printable(text) == text
    return text if safe else _quoted(text)


def yaml_line(value: JSON, *, escape: bool = False) -> str:
    """Return text as a scalar, other values in flow style.

    With `escape` no text in it is read as a reference.
    """
    if escape:
        value = map_leaves(
            value, lambda leaf: escaped_text(leaf) if isinstance(leaf, str) else leaf
        )
    return scalar(value) if isinstance(value, str) else _flow(value)


def _flow(value: JSON) -> str:
    """Return a value in flow style, text quoted unless it is plain."""
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, Mapping):
        items = (f"{_quoted(str(name))}: {_flow(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, str):
        return scalar(value) if _PLAIN.fullmatch(value) else _quoted(value)
    return _number(value) if isinstance(value, float) else json.dumps(value)


def _number(value: float) -> str:
    """Return a number without an exponent, which YAML 1.1 and 1.2 parse differently."""
    text = repr(value)
    return f"{value:.20f}".rstrip("0") if "e" in text else text


def _quoted(text: str) -> str:
    return printable(json.dumps(text, ensure_ascii=False))
