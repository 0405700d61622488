"""The registry of reference providers: every module here with a `PROVIDER`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from reconciler.model.values import SECRET
from reconciler.providers.provider import Provider

_NOT_PROVIDERS = ("flaws", "provider")


@cache
def providers() -> Mapping[str, Provider]:
    """Return every provider by name, in the order of hints."""
    names = [module.name for module in iter_modules(__path__) if module.name not in _NOT_PROVIDERS]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    ordered = sorted(
        (module.PROVIDER for module in modules),
        key=lambda provider: (provider.position, provider.name),
    )
    return {provider.name: provider for provider in ordered}


def plain_names() -> tuple[str, ...]:
    """Return the words that may follow `${`: providers of plain values, and `secret`."""
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
