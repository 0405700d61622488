"""Text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import Diagnostic
from reconciler.model.imported import Imported
from reconciler.model.plan import Plan
from reconciler.model.resolved import ResolvedResource
from reconciler.render.formats.base import Format
from reconciler.render.options import RenderOptions


def _plan(plan: Plan, options: RenderOptions) -> str:
    from reconciler.render.plan.text import plan_as_text

    return plan_as_text(plan, options)


def _diagnostics(diagnostics: Sequence[Diagnostic], options: RenderOptions) -> str:
    from reconciler.render.diagnostics import diagnostics_as_text

    return diagnostics_as_text(diagnostics, options.style) or "The files are valid.\n"


def _resolved(resource: ResolvedResource, _: RenderOptions) -> str:
    from reconciler.render.resolved import resolved_as_text

    return resolved_as_text(resource)


def _imported(imported: Imported, options: RenderOptions) -> str:
    from reconciler.render.imports import import_as_diff, imported_as_text

    if imported.written:
        return imported_as_text(imported)
    return import_as_diff(imported, options.style)


FORMAT = Format(
    "text", plan=_plan, diagnostics=_diagnostics, resolved=_resolved, imported=_imported
)
