"""Values of plain scalars: numbers, true, false, null, and text that looks like them."""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite

from reconciler.model.values import JSON, MISSING
from reconciler.workspace.yaml.nodes import PREFIX, TEXT_TAG, tag_of

DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
FLOAT = re.compile(r"([-+]?(0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
NUMERIC = re.compile(r"[-+0-9.][-+0-9a-fA-FoxXbeE._:]*|[-+]?\.(inf|nan)", re.IGNORECASE)
LONG = 25
"""Characters from which a number is too long for 64 bits, and for a message."""
_LARGEST = 2**63
"""JSON readers hold whole numbers in 64 bits; longer ones would change."""
_TRUE_OR_FALSE = {"true": True, "false": False}
_NULLS = frozenset({"~", "null"})


@lru_cache(maxsize=4096)
def plain_value(text: str) -> JSON:
    """Return the value of a plain scalar, MISSING if it is ambiguous."""
    return tagged_value(tag_of(text), text)


def tagged_value(tag: str, text: str) -> JSON:
    """Return the value of a scalar without quotes by its tag, MISSING if it is ambiguous."""
    kind, word = tag.removeprefix(PREFIX), text.lower()
    if tag == TEXT_TAG or kind in ("timestamp", "value", "merge"):
        return text
    if kind == "null" and word in _NULLS:
        return None
    if kind == "bool" and word in _TRUE_OR_FALSE:
        return _TRUE_OR_FALSE[word]
    if kind in ("int", "float") and NUMERIC.fullmatch(text):
        return _number(text)
    return MISSING


def _number(text: str) -> JSON:
    if DECIMAL.fullmatch(text):
        fits = len(text) < LONG and -_LARGEST <= int(text) < _LARGEST
        return int(text) if fits else MISSING
    return float(text) if FLOAT.fullmatch(text) and isfinite(float(text)) else MISSING
