"""Scopes of API keys (docs/service.md, 6 and 12). write includes read; `*` includes all."""

from __future__ import annotations

from collections.abc import Collection, Iterable

ALL = "*"
_READ, _WRITES = ":read", ":write"


def read_scope(kind: str) -> str:
    """Return the least scope that reads the objects of a kind."""
    return f"{kind}{_READ}"


def write_scope(kind: str) -> str:
    """Return the least scope that changes the objects of a kind."""
    return f"{kind}{_WRITES}"


def missing_scopes(scopes: Collection[str], needed: Iterable[str]) -> tuple[str, ...]:
    """Return the needed scopes that a key with some scopes lacks."""
    return tuple(scope for scope in needed if not _allows(scopes, scope))


def _allows(scopes: Collection[str], needed: str) -> bool:
    wider = needed.removesuffix(_READ) + _WRITES if needed.endswith(_READ) else needed
    return not {ALL, needed, wider}.isdisjoint(scopes)
