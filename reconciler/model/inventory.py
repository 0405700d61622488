"""One line of the inventory of what was applied."""

from __future__ import annotations

from msgspec import Struct


class Entry(Struct, frozen=True, omit_defaults=True):
    """One line of the inventory: the object that a resource has."""

    id: str
    """Of the live object."""
    name: str
    """As it was applied."""
    parent: str | None = None
    """The id of its project."""
    commit: str | None = None
    """The commit whose files were applied to it, None for files that were not committed."""
    secrets: str | None = None
    """The hash of what decides its secrets, None if it is not known what was sent."""
