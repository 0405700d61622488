"""What a plan may do, as the workspace says (design, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.errors import Mark


class Prune(StrEnum):
    """Which objects may be deleted although no resource says `state: absent`."""

    NEVER = "false"
    UNMANAGED = "true"
    GIT = "git"


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a number of changes: absolute, or percent of the managed objects."""

    value: float
    percent: bool = False

    def allows(self, count: int, *, total: int) -> bool:
        """Whether `count` of `total` is within the limit."""
        return count <= (self.value * total / 100 if self.percent else self.value)

    def __str__(self) -> str:
        return f"{self.value:g}%" if self.percent else f"{self.value:g}"


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one environment. `marks` tells where each was written, by field name.

    `prune` maps a scope to its mode: the address of a parent (its children), a kind's name, or
    "*" for all that is not named. `deletable` names the kinds whose second switch is on: kinds
    that ask for one (`Kind.deletion_switch`) are never deleted without it.
    """

    prune: Mapping[str, Prune] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    max_deletes: Limit | None = None
    max_changes: Limit | None = None
    deletable: frozenset[str] = frozenset()
    allow_replace: bool = False
    deny: tuple[str, ...] = ()
    marks: Mapping[str, Mark] = field(default_factory=dict, compare=False)

    def prune_of(self, kind: str, parent: str | None = None) -> Prune:
        """The mode for an object: its parent's address decides, then its kind, then "*"."""
        for scope in (parent, kind, "*"):
            if scope is not None and scope in self.prune:
                return self.prune[scope]
        return Prune.NEVER
