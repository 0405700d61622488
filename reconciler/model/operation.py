"""The operations of a kind besides create, read, update and delete, as data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.dialect import Dialect
from reconciler.model.request import Repeat


class Paging(StrEnum):
    """What an operation returns."""

    ONE = "one"
    """One object."""
    PAGES = "pages"
    """A list with `limit` and `offset`."""
    CURSOR = "cursor"
    """A list whose `next` is the address of the next page; it has no count."""


class Operation(Struct, frozen=True):
    """One operation of the API.

    name
        Unique in its kind: `pause`, `runs`, `run_logs`.
    path
        Below the path of the object, such as `runs/{run}/logs/`, or absolute if it begins with a
        slash, with `{organization}`, `{parent}` and `{id}`.
    scope
        The least scope of an API key, None if it is not documented.
    below_parent
        Whether only the path of the parent has it, not the path of the organization.
    since, until
        The first and the last dialect that have it, None for an open end.
    refused_to_keys
        The dialects that have it, and refuse it to API keys.
    query
        Parameters that are always sent.
    source
        Where docs/service.md describes it.
    """

    name: str
    method: str
    path: str
    scope: str | None
    paging: Paging = Paging.ONE
    repeat: Repeat = Repeat.SAFE
    below_parent: bool = False
    since: Dialect | None = None
    until: Dialect | None = None
    refused_to_keys: frozenset[Dialect] = frozenset()
    query: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def offered_by(self, dialect: Dialect | None) -> bool:
        """Return whether servers of a dialect offer it to API keys; True if unknown."""
        if dialect is None:
            return True
        offered = dialect in Dialect.between(self.since, self.until)
        return offered and dialect not in self.refused_to_keys
