"""Addresses of resources: `batch_export.web-events-s3`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reconciler.model.globs import fits_any

UNMANAGED_PREFIX = "id:"
"""Starts the key in the address of an unmanaged object: `<kind>.id:<id>`."""


class Address(NamedTuple):
    """A kind and a key. Sorts by kind, then key.

    A tuple, since plans hash and compare addresses many times.
    """

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.key}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address that `str` made. Raises ValueError for text without a dot."""
        kind, dot, key = text.partition(".")
        if not (kind and dot and key):
            raise ValueError(f"'{text}' is not an address; write kind.key")
        return cls(kind, key)

    @classmethod
    def of_unmanaged(cls, kind: str, live_id: str) -> Address:
        """Return the address of an unmanaged object."""
        return cls(kind, f"{UNMANAGED_PREFIX}{live_id}")

    def matches(self, globs: Iterable[str]) -> bool:
        """Whether any of the shell-style patterns fits the whole address, case-sensitively."""
        return fits_any(str(self), globs)
