"""What the API says: objects as they were read, and all of them together as `Live`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.values import JSON


class Dialect(StrEnum):
    """Which server of the interface is spoken to (service-facts, head and trap 46)."""

    INTERFACE = "interface"
    V2025 = "2025"
    V2026 = "2026"


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One live object. `id` is always text. `parent_id` is None at the top of the tree.

    `complete` is False for the short shape that a list of projects has: a field that is not
    there then means "not read", not "not set".
    """

    kind: str
    id: str
    name: str
    body: Mapping[str, JSON]
    parent_id: str | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Live:
    """Everything that was read for one plan.

    `surveyed` holds, by kind, the parent ids whose children were read in full (None for the
    organization as a whole): only there may absence be concluded. `dialect` is None where
    nothing that was read tells it.
    """

    objects: Mapping[str, tuple[LiveObject, ...]]
    surveyed: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    dialect: Dialect | None = None

    def of(self, kind: str) -> tuple[LiveObject, ...]:
        """The objects of one kind, in the order they were read."""
        return self.objects.get(kind, ())
