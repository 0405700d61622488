"""How a resource is named: `batch_export.web-events-s3`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

UNMANAGED_PREFIX = "id:"
"""A live object that no resource claims has no key; its address is `<kind>.id:<id>`."""


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A kind and the map key of a resource in YAML. Sorts by kind, then key."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.key}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that `str` made. Raises ValueError for text without a dot."""
        kind, dot, key = text.partition(".")
        if not (kind and dot and key):
            raise ValueError(f"'{text}' is not an address; write kind.key")
        return cls(kind, key)

    @classmethod
    def of_unmanaged(cls, kind: str, live_id: str) -> Address:
        """The address of a live object that no resource claims."""
        return cls(kind, f"{UNMANAGED_PREFIX}{live_id}")

    def matches(self, globs: Iterable[str]) -> bool:
        """Whether any of the shell-style patterns fits the whole address, case-sensitively."""
        return any(fnmatchcase(str(self), glob) for glob in globs)
