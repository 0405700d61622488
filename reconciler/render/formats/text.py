"""Text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.render.formats.base import Format, Later

if TYPE_CHECKING:
    from reconciler.diagnostics import Diagnostic
    from reconciler.model.imported import Imported
    from reconciler.model.logged_run import Audit
    from reconciler.model.resolved import ResolvedResource
    from reconciler.render.options import RenderOptions


def _diagnostics(diagnostics: Sequence[Diagnostic], options: RenderOptions) -> str:
    from reconciler.render.diagnostics import diagnostics_as_text

    return diagnostics_as_text(diagnostics, options.style) or f"{options.passed}.\n"


def _resolved(resource: ResolvedResource, _: RenderOptions) -> str:
    from reconciler.render.resolved import resolved_as_text

    return resolved_as_text(resource)


def _imported(imported: Imported, options: RenderOptions) -> str:
    from reconciler.render.imports import imported_as_text

    return imported_as_text(imported, options.style)


def _audit(audit: Audit, options: RenderOptions) -> str:
    from reconciler.render.audit import audit_as_text

    return audit_as_text(audit, options.style)


FORMAT = Format(
    "text",
    plan=Later("plan.text", "plan_as_text"),
    diagnostics=_diagnostics,
    resolved=_resolved,
    imported=_imported,
    backfills=Later("backfills", "backfills_as_text"),
    gaps=Later("gaps", "gaps_as_text"),
    drift=Later("drift", "drift_as_text"),
    runs=Later("runs", "runs_as_text"),
    logs=Later("logs", "logs_as_text"),
    audit=_audit,
    status=Later("status", "status_as_text"),
    health=Later("health", "health_as_text"),
    preflight=Later("preflight", "preflight_as_text"),
    projects=Later("projects", "projects_as_text"),
    project_details=Later("projects", "project_as_text"),
    compared=Later("compared", "compared_as_text"),
    plans=Later("plans", "plans_as_text"),
)
