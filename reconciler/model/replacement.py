"""The name that marks the new object of a replacement until the old object is deleted."""

from __future__ import annotations

import re

_MARKED = re.compile(r"(?P<name>.*) \(replaces (?P<old_id>[A-Za-z0-9-]+)\)", re.DOTALL)


def marked_name(name: str, old_id: str) -> str:
    """Return `NAME (replaces OLD-ID)`."""
    return f"{name} (replaces {old_id})"


def parse_marked_name(text: str) -> tuple[str, str] | None:
    """Return the name and the id of the old object, None if a name has no mark."""
    if not text.rstrip().endswith(")"):
        return None
    match = _MARKED.fullmatch(text.strip())
    return (match["name"], match["old_id"]) if match else None
