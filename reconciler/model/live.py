"""Live state: objects as the API returns them, and the marks in their names.

Another as-code tool, posthog-definitions, pairs its files with live objects by a marker in their
names (service.md 22): without it, its next run creates a second object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from math import inf
from sys import intern
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.kind import Dialect, Integrations
from reconciler.model.values import JSON

_ID = re.compile(r"[A-Za-z0-9_-]+")
Identity: TypeAlias = tuple[str, str]
"""The kind and the id of a live object."""
OTHER_TOOL = "posthog-definitions"
"""Its name, which is the code of violations about it, too."""
_MARKER = re.compile(r"(?:<!--\s*|\[)iac:\S+\s+iac:hash:\S+?(?:\s*-->|\])\s*\Z")


def id_text(value: JSON) -> str | None:
    """Return the id of an object as text, None for a value that is no id.

    Ids become parts of paths, so text may contain only letters, digits, `-` and `_`.
    """
    if value.__class__ is int:  # Not a bool.
        return intern(str(value))  # Many objects have the same parent.
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return text if _ID.fullmatch(text) else None


def is_same_id(one: str, other: str) -> bool:
    """Return whether the service takes both for one id: UUIDs of other case, without hyphens."""
    return one.replace("-", "").lower() == other.replace("-", "").lower()


class LiveObject(Struct, frozen=True):
    """One live object."""

    kind: str
    id: str
    name: str
    body: Mapping[str, JSON]
    parent_id: str | None = None
    """None for an object of the organization."""
    complete: bool = True
    """Whether the body is the answer of a detail request, not the short form of a list."""

    @property
    def identity(self) -> Identity:
        """Its kind and id."""
        return self.kind, self.id

    @property
    def address(self) -> Address:
        """The address of the object while no resource claims it."""
        return Address.of_unmanaged(self.kind, self.id)


# With a dict, since cached properties need one.
class Live(Struct, frozen=True, dict=True):
    """All live objects for one plan.

    An object that is missing here does not exist, unless it is in a parent of `unread`: reading
    fails if it cannot see all of them.
    """

    objects: Mapping[str, tuple[LiveObject, ...]]
    dialect: Dialect | None = None
    """None if unknown."""
    unlisted: frozenset[str] = frozenset()
    """Kinds without a list of all for the key: read in each parent, or those of configured ids."""
    unread: frozenset[tuple[str, str]] = frozenset()
    """Objects, by kind and id, whose contents were not read: a plan did not need them so far."""
    read_at: float = -inf
    """When reading began, in seconds of the clock."""
    details_at: Mapping[tuple[str, str], float] = {}
    """When objects were requested in full, by kind and id, in seconds of the clock."""
    integrations: Mapping[str, Integrations] = {}
    """The integrations of the parents that were read, by id of the parent."""

    @property
    def serves_organization(self) -> bool:
        """Whether objects are written below the organization if no parent is configured.

        Real servers fail there (service.md, 1.10), and keys limited to projects are refused.
        """
        return self.dialect is Dialect.INTERFACE and not self.unlisted

    def seen_at(self, kind: str, live_id: str) -> float:
        """Return when an object was requested that is here."""
        return self.details_at.get((kind, live_id), self.read_at)

    def of_old(self) -> Live:
        """Return the same, read too long ago to serve as a check before a write."""
        return replace(self, read_at=-inf, details_at={})

    @cached_property
    def by_identity(self) -> Mapping[Identity, LiveObject]:
        """All objects by kind and id."""
        return {item.identity: item for items in self.objects.values() for item in items}

    def of(self, kind: str) -> tuple[LiveObject, ...]:
        """Return the objects of one kind, in the order of reading."""
        return self.objects.get(kind, ())


def is_of_other_tool(name: str) -> bool:
    """Return whether a live name ends with the marker."""
    return _MARKER.search(name) is not None


def plain_name(name: str) -> str:
    """Return a live name without the marker and without whitespace around it."""
    return _MARKER.sub("", name).strip()
