"""The registry of output formats. A new format is one module here with its name and a `FORMAT`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, TypeAlias

from reconciler.errors import BadUsage
from reconciler.render.formats.base import Format, Writer

Result: TypeAlias = Literal[
    "plan",
    "diagnostics",
    "resolved",
    "imported",
    "audit",
    "backfills",
    "gaps",
    "runs",
    "logs",
    "status",
    "health",
    "preflight",
    "projects",
    "project_details",
    "drift",
    "compared",
    "plans",
]
"""What a format can write: a field of `Format`."""

DEFAULT = "text"
_BASE = "base"


@cache
def all_formats() -> Mapping[str, Format]:
    """Return the formats by name, the default first. This imports all of them."""
    names = {module.name for module in iter_modules(__path__)} - {_BASE}
    return {name: _format(name) for name in sorted(names, key=lambda name: (name != DEFAULT, name))}


def _format(name: str) -> Format:
    output: Format = import_module(f"{__name__}.{name}").FORMAT
    return output


def formats_of(result: Result) -> tuple[str, ...]:
    """Return the names of the formats that have a writer for a result."""
    return tuple(name for name, output in all_formats().items() if getattr(output, result))


def writer_of(name: str, result: Result) -> Writer[Any]:
    """Return the writer of a format for a result. Raises BadUsage if it has none."""
    writer: Writer[Any] | None = getattr(_format(name), result)
    if writer is None:
        raise BadUsage(
            f"--format {name} is not supported here",
            hint=f"use one of: {', '.join(formats_of(result))}",
        )
    return writer
