"""Live objects of another as-code tool, posthog-definitions, known by a marker in their names.

It pairs its files with live objects by this marker (docs/service.md 22): without it, its next run
creates a second object.
"""

from __future__ import annotations

import re

from msgspec import Struct

OTHER_TOOL = "posthog-definitions"
"""Its name, which is the code of notes and violations about it, too."""
_MARKER = re.compile(
    r"(?P<name>.*?)\s*"
    r"(?:<!--\s*iac:[\w-]+:(?P<key>\S+)\s+iac:hash:\S+\s*-->"
    r"|\[iac:[\w-]+:(?P<fork>\S+)\s+iac:hash:[0-9a-f]+\])\s*",
    re.DOTALL,
)


class OtherTool(Struct, frozen=True):
    """The name of an object without the marker, and its key in the other tool."""

    name: str
    key: str

    def __str__(self) -> str:
        return f"{OTHER_TOOL} (key {self.key})"


def other_tool_of(name: str) -> OtherTool | None:
    """Return what the marker of a live name says, None without one at its end."""
    if "iac:" not in name:
        return None
    match = _MARKER.fullmatch(name)
    return OtherTool(match["name"].strip(), match["key"] or match["fork"]) if match else None


def plain_name(name: str) -> str:
    """Return a live name without whitespace around it and without the marker."""
    other = other_tool_of(name)
    return other.name if other is not None else name.strip()
