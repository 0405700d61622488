"""The registry of output formats.

A new format is one module in this folder with a `FORMAT`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, TypeAlias, TypeVar

from reconciler.errors import BadUsage, Diagnostic
from reconciler.model.imported import Imported
from reconciler.model.plan import Plan
from reconciler.model.resolved import ResolvedResource
from reconciler.planning.masking import masked
from reconciler.render.formats.base import Format, Writer
from reconciler.render.options import RenderOptions

_Result = TypeVar("_Result")
Result: TypeAlias = Literal["plan", "diagnostics", "resolved", "imported"]
DEFAULT = "text"
_OPTIONS: Mapping[Result, str] = {
    "plan": "a plan",
    "diagnostics": "validate",
    "resolved": "--resolved",
    "imported": "import",
}


@cache
def all_formats() -> Mapping[str, Format]:
    """Return every format by name: the default one first, then by name."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    listed: list[Format] = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    listed.sort(key=lambda output: (output.name != DEFAULT, output.name))
    return {output.name: output for output in listed}


def formats_of(result: Result) -> tuple[str, ...]:
    """Return the names of the formats that can show a result."""
    return tuple(
        name for name, output in all_formats().items() if getattr(output, result) is not None
    )


def write_plan(
    plan: Plan, name: str, options: RenderOptions, *, mask: Callable[[str], str] = str
) -> str:
    """Return a plan in a format, with known secrets masked in its values."""
    return _writer(all_formats()[name].plan, "plan")(masked(plan, mask), options)


def write_diagnostics(diagnostics: Sequence[Diagnostic], name: str, options: RenderOptions) -> str:
    """Return diagnostics in a format."""
    return _writer(all_formats()[name].diagnostics, "diagnostics")(diagnostics, options)


def write_resolved(resource: ResolvedResource, name: str, options: RenderOptions) -> str:
    """Return a resolved resource in a format."""
    return _writer(all_formats()[name].resolved, "resolved")(resource, options)


def write_imported(imported: Imported, name: str, options: RenderOptions) -> str:
    """Return what an import wrote, or would write, in a format."""
    return _writer(all_formats()[name].imported, "imported")(imported, options)


def check_format(name: str, result: Result) -> None:
    """Raise BadUsage if a format can't show a result."""
    _writer(getattr(all_formats()[name], result), result)


def _writer(writer: Writer[_Result] | None, result: Result) -> Writer[_Result]:
    if writer is None:
        raise BadUsage(f"{_OPTIONS[result]} has the formats {', '.join(formats_of(result))}")
    return writer
