"""The registry of kinds: every schema with `x-kind`, and the module with its name, if any.

A module defines what a schema cannot express: consequences, and fields with special behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pkgutil import iter_modules

from reconciler.model.kind import Kind, kind_of
from reconciler.model.schemas import kind_names


@cache
def all_kinds() -> tuple[Kind, ...]:
    """Return every kind in a fixed order, parents first."""
    kinds = {name: _kind(name) for name in kind_names()}
    sorter = TopologicalSorter(
        {name: {kind.parent} if kind.parent else set() for name, kind in kinds.items()}
    )
    return tuple(kinds[name] for name in sorter.static_order())


@cache
def kinds_by_name() -> Mapping[str, Kind]:
    """Return every kind by its name, parents first."""
    return {kind.name: kind for kind in all_kinds()}


@cache
def kinds_by_collection() -> Mapping[str, Kind]:
    """Return every kind by the key of its resources in files, parents first."""
    return {kind.collection: kind for kind in all_kinds()}


def _kind(name: str) -> Kind:
    if name not in {module.name for module in iter_modules(__path__)}:
        return kind_of(name)
    kind: Kind = import_module(f"{__name__}.{name}").KIND
    return kind
