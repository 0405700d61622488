"""The type of an output format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from reconciler.errors import Diagnostic
from reconciler.model.imported import Imported
from reconciler.model.logged_run import Audit
from reconciler.model.plan import Plan
from reconciler.model.resolved import ResolvedResource
from reconciler.render.options import RenderOptions

_Result = TypeVar("_Result")
Writer: TypeAlias = Callable[[_Result, RenderOptions], str]
"""Returns text that is empty or ends with a line end."""


@dataclass(frozen=True, slots=True)
class Format:
    """A value of `--format` with its writers. A result without a writer is not supported."""

    name: str
    plan: Writer[Plan] | None = None
    diagnostics: Writer[Sequence[Diagnostic]] | None = None
    resolved: Writer[ResolvedResource] | None = None
    imported: Writer[Imported] | None = None
    audit: Writer[Audit] | None = None
