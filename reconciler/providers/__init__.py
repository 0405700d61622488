"""The registry of reference providers: one module a provider, found by its `PROVIDER`.

A provider serves `${NAME:ARGUMENT}`, `${secret:NAME:ARGUMENT}`, or both. Nothing else
lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from reconciler.model.reference import SECRET
from reconciler.providers.provider import Filling, LookUp, Provider

__all__ = [
    "Filling",
    "LookUp",
    "Provider",
    "plain_names",
    "plain_usage",
    "providers",
    "secret_usage",
]
_NOT_PROVIDERS = ("provider",)


@cache
def providers() -> Mapping[str, Provider]:
    """Return every provider by name, in the order in which messages list them."""
    names = [module.name for module in iter_modules(__path__) if module.name not in _NOT_PROVIDERS]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    ordered = sorted(
        (module.PROVIDER for module in modules),
        key=lambda provider: (provider.position, provider.name),
    )
    return {provider.name: provider for provider in ordered}


def plain_names() -> tuple[str, ...]:
    """Return what may follow `${`: the providers of plain values, and `secret`."""
    return (*(p.name for p in providers().values() if p.fill is not None), SECRET)


def plain_usage() -> str:
    """Return the plain references for a hint: `${var:NAME}, ${env:NAME}, …`."""
    return ", ".join(
        f"${{{p.name}:{p.argument}}}" for p in providers().values() if p.fill is not None
    )


def secret_usage() -> tuple[str, ...]:
    """Return the secret references for a hint."""
    return tuple(
        f"${{{SECRET}:{p.name}:{p.argument}}}"
        for p in providers().values()
        if p.accepts is not None
    )
