"""The versions of the service."""

from __future__ import annotations

from enum import StrEnum


class Dialect(StrEnum):
    """The server versions, in order of release (docs/service.md)."""

    INTERFACE = "interface"
    V2025 = "2025"
    V2026 = "2026"

    def is_since(self, first: Dialect) -> bool:
        """Return whether it is `first` or later."""
        order = tuple(Dialect)
        return order.index(self) >= order.index(first)

    @classmethod
    def between(cls, since: Dialect | None, until: Dialect | None) -> tuple[Dialect, ...]:
        """Return the dialects from `since` to `until`, both included. None is an open end."""
        return tuple(
            dialect
            for dialect in cls
            if (since is None or dialect.is_since(since))
            and (until is None or until.is_since(dialect))
        )
