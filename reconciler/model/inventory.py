"""One line of the inventory of what was applied."""

from __future__ import annotations

from msgspec import Struct


class Entry(Struct, frozen=True, omit_defaults=True):
    """One line of the inventory: the object that a resource has.

    id, name, parent
        The live object, its name as it was applied, and the id of its project.
    commit
        The commit whose files were applied to it, None for files that were not committed.
    secrets
        The hash of what decides its secrets, None if it is not known what was sent.
    """

    id: str
    name: str
    parent: str | None = None
    commit: str | None = None
    secrets: str | None = None
