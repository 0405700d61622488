"""What an output format is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from reconciler.errors import Diagnostic
from reconciler.model.imported import Imported
from reconciler.model.plan import Plan
from reconciler.model.resolved import ResolvedResource
from reconciler.render.options import RenderOptions

_Result = TypeVar("_Result")
Writer: TypeAlias = Callable[[_Result, RenderOptions], str]
"""Returns a result as text that ends with a line end, or as empty text."""


@dataclass(frozen=True, slots=True)
class Format:
    """A value of `--format` with a writer for each result that it can show, None for the rest."""

    name: str
    plan: Writer[Plan] | None = None
    diagnostics: Writer[Sequence[Diagnostic]] | None = None
    resolved: Writer[ResolvedResource] | None = None
    imported: Writer[Imported] | None = None
