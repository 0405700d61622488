"""JSON for programs: names and their meaning are stable."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import Diagnostic
from reconciler.model.imported import Imported
from reconciler.model.plan import Plan
from reconciler.model.resolved import ResolvedResource
from reconciler.render.formats.base import Format
from reconciler.render.options import RenderOptions


def _plan(plan: Plan, _: RenderOptions) -> str:
    from reconciler.planning.planfile import encode

    return encode(plan).decode()


def _diagnostics(diagnostics: Sequence[Diagnostic], _: RenderOptions) -> str:
    from reconciler.render.diagnostics import diagnostics_as_json

    return diagnostics_as_json(diagnostics)


def _resolved(resource: ResolvedResource, _: RenderOptions) -> str:
    from reconciler.render.resolved import resolved_as_json

    return resolved_as_json(resource)


def _imported(imported: Imported, _: RenderOptions) -> str:
    from reconciler.render.imports import import_as_json

    return import_as_json(imported)


FORMAT = Format(
    "json", plan=_plan, diagnostics=_diagnostics, resolved=_resolved, imported=_imported
)
