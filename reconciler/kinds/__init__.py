"""The registry of kinds: every schema with `x-kind`, and the module with its name, if any.

A module defines what a schema cannot express: consequences, and fields with special behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from reconciler.model.kind import Kind, kind_of
from reconciler.model.schemas import kind_names

if TYPE_CHECKING:
    from reconciler.kinds.behaviour import Behaviour


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


def behaviour_of(kind: Kind) -> Behaviour:
    """Return the rules and operations of a kind, which loading files does not need."""
    return _behaviour(kind.name)


@cache
def _behaviour(name: str) -> Behaviour:
    # Imported when needed: loading files imports half as much without.
    from reconciler.kinds.behaviour import Behaviour

    module = import_module(f"{__name__}.{name}") if _has_module(name) else None
    if not hasattr(module, "__path__"):
        return Behaviour()
    behaviour: Behaviour = import_module(f"{__name__}.{name}.behaviour").BEHAVIOUR
    return behaviour


def _has_module(name: str) -> bool:
    return name in {module.name for module in iter_modules(__path__) if module.ispkg}


def _kind(name: str) -> Kind:
    if not _has_module(name):
        return kind_of(name)
    kind: Kind = import_module(f"{__name__}.{name}").KIND
    return kind
