"""Finds every `KIND` in this folder. Nothing else lives here, and kinds do not know each other."""

from __future__ import annotations

from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pkgutil import iter_modules

from reconciler.model.kind import Kind


@cache
def all_kinds() -> tuple[Kind, ...]:
    """Every kind, parents first, then by name: a fixed order."""
    found: dict[str, Kind] = {}
    for module in sorted(iter_modules(__path__), key=lambda each: each.name):
        kind: Kind = import_module(f"{__name__}.{module.name}").KIND
        found[kind.name] = kind
    sorter = TopologicalSorter(
        {name: {kind.parent} if kind.parent else set() for name, kind in found.items()}
    )
    return tuple(found[name] for name in sorter.static_order())
