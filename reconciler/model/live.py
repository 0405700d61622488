"""Live state: objects as the API returns them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.dialect import Dialect
from reconciler.model.values import JSON

_ID = re.compile(r"[A-Za-z0-9_-]+")


def id_text(value: JSON) -> str | None:
    """Return the id of an object as text, None for a value that is no id.

    Ids become parts of paths, so text may contain only letters, digits, `-` and `_`.
    """
    if value.__class__ is int:  # Not a bool.
        return str(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return text if _ID.fullmatch(text) else None


class LiveObject(Struct, frozen=True):
    """One live object. `parent_id` is None for an object of the organization.

    `complete`: the body is the answer of a detail request, not the short form of a list.
    """

    kind: str
    id: str
    name: str
    body: Mapping[str, JSON]
    parent_id: str | None = None
    complete: bool = True

    @property
    def address(self) -> Address:
        """The address of the object while no resource claims it."""
        return Address.of_unmanaged(self.kind, self.id)


class Live(Struct, frozen=True):
    """All live objects for one plan. `dialect` is None if unknown.

    An object that is missing here does not exist: reading fails if it cannot see all of them.
    """

    objects: Mapping[str, tuple[LiveObject, ...]]
    dialect: Dialect | None = None
    unlisted: frozenset[str] = frozenset()
    """Kinds that the key may not list: only objects with a configured id are here."""

    @property
    def serves_organization(self) -> bool:
        """Whether objects are written below the organization if no parent is configured.

        Real servers fail there (docs/service.md, 1.10), and keys limited to projects are refused.
        """
        return self.dialect is Dialect.INTERFACE and not self.unlisted

    def of(self, kind: str) -> tuple[LiveObject, ...]:
        """Return the objects of one kind, in the order of reading."""
        return self.objects.get(kind, ())
