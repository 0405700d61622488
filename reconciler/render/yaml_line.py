"""Values as YAML on one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from reconciler.model.reference import escaped_text
from reconciler.model.values import JSON
from reconciler.model.wording import printable

_PLAIN = re.compile(r"[^\W\d](?:[\w ./+-]*[\w/+-])?")
_REFERENCE = re.compile(r"[\w./+-]*(?:\$\{[\w:./+-]*\}[\w./+-]*)+")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def scalar(text: str) -> str:
    """Return text as a scalar: plain where every reader of YAML takes it for this text."""
    plain = _PLAIN.fullmatch(text) or _REFERENCE.fullmatch(text)
    safe = plain and text.lower() not in _WORDS and printable(text) == text
    return text if safe else _quoted(text)


def yaml_line(value: JSON, *, escape: bool = False) -> str:
    """Return text as a scalar, and the rest in flow style.

    With `escape` no text of it can be taken for a reference.
    """
    if isinstance(value, str):
        return scalar(escaped_text(value) if escape else value)
    return _flow(value, escape=escape)


def _flow(value: JSON, *, escape: bool) -> str:
    """Inside brackets text is quoted, so that no comma or colon in it matters."""
    if isinstance(value, list):
        return f"[{', '.join(_flow(item, escape=escape) for item in value)}]"
    if isinstance(value, Mapping):
        items = (
            f"{_quoted(str(name))}: {_flow(item, escape=escape)}" for name, item in value.items()
        )
        return f"{{{', '.join(items)}}}"
    if isinstance(value, str):
        text = escaped_text(value) if escape else value
        return scalar(text) if _PLAIN.fullmatch(text) else _quoted(text)
    return _number(value) if isinstance(value, float) else json.dumps(value)


def _number(value: float) -> str:
    """Return a number without an exponent, which YAML 1.1 and 1.2 read differently."""
    text = repr(value)
    return f"{value:.20f}".rstrip("0") if "e" in text else text


def _quoted(text: str) -> str:
    return printable(json.dumps(text, ensure_ascii=False))
