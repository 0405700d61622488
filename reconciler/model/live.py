"""What the API says: objects as they were read, and all of them together as `Live`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.values import JSON


class Dialect(StrEnum):
    """The servers of the interface, in the order of their appearance (docs/service.md)."""

    INTERFACE = "interface"
    V2025 = "2025"
    V2026 = "2026"

    def is_since(self, first: Dialect) -> bool:
        """Return whether it is the first one or a later one."""
        order = tuple(Dialect)
        return order.index(self) >= order.index(first)

    @classmethod
    def between(cls, since: Dialect | None, until: Dialect | None) -> tuple[Dialect, ...]:
        """Return the dialects from one to another, both included; None leaves an end open."""
        return tuple(
            dialect
            for dialect in cls
            if (since is None or dialect.is_since(since))
            and (until is None or until.is_since(dialect))
        )


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One live object. `id` is always text. `parent_id` is None at the top of the tree.

    An object that no resource could claim may have just the short shape of its list.
    """

    kind: str
    id: str
    name: str
    body: Mapping[str, JSON]
    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """Everything that was read for one plan.

    What is not here is not there: a reader that can't see all that the files speak of refuses.
    `dialect` is None where nothing that was read tells it.
    """

    objects: Mapping[str, tuple[LiveObject, ...]]
    dialect: Dialect | None = None
    unlisted: frozenset[str] = frozenset()
    """Kinds that the key may not list: of these, only objects that were named by id are here."""

    def of(self, kind: str) -> tuple[LiveObject, ...]:
        """The objects of one kind, in the order they were read."""
        return self.objects.get(kind, ())
