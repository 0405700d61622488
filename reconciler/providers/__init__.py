"""The registry of reference providers: every module here with a `PROVIDER`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from reconciler.model.values import SECRET
from reconciler.providers.provider import Provider

_NOT_PROVIDERS = ("provider",)


@cache
def providers() -> Mapping[str, Provider]:
    """Return every provider by name, in the order of hints."""
    names = [module.name for module in iter_modules(__path__) if module.name not in _NOT_PROVIDERS]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    members: list[Provider] = [module.PROVIDER for module in modules]
    return {item.name: item for item in sorted(members, key=lambda p: (p.position, p.name))}


def plain_names() -> tuple[str, ...]:
    """Return the words that may follow `${`: providers of plain values, and `secret`."""
    return (*(p.name for p in providers().values() if p.fill is not None), SECRET)


def plain_usage() -> str:
    """Return the plain references for a hint: `${var:NAME}, ${env:NAME}, …`."""
    plain = (item for item in providers().values() if item.fill is not None)
    return ", ".join(f"${{{item.name}:{item.argument}}}" for item in plain)


def secret_usage() -> tuple[str, ...]:
    """Return the secret references for a hint."""
    accepted = (item for item in providers().values() if item.accepts is not None)
    return tuple(f"${{{SECRET}:{item.name}:{item.argument}}}" for item in accepted)
