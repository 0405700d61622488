"""JSON for programs. Keys and their meaning are stable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.render.formats.base import Format, Later

if TYPE_CHECKING:
    from reconciler.diagnostics import Diagnostic
    from reconciler.model.imported import Imported
    from reconciler.model.logged_run import Audit
    from reconciler.model.plan import Plan
    from reconciler.model.resolved import ResolvedResource
    from reconciler.model.status import StatusReport
    from reconciler.render.options import RenderOptions


def _plan(plan: Plan, _: RenderOptions) -> str:
    from reconciler.model.codec.plan import encode

    return encode(plan).decode()


def _status(report: StatusReport, _: RenderOptions) -> str:
    from reconciler.model.codec.status import encode_status

    return encode_status(report)


def _diagnostics(diagnostics: Sequence[Diagnostic], _: RenderOptions) -> str:
    from reconciler.render.diagnostics import diagnostics_as_json

    return diagnostics_as_json(diagnostics)


def _resolved(resource: ResolvedResource, _: RenderOptions) -> str:
    from reconciler.render.resolved import resolved_as_json

    return resolved_as_json(resource)


def _imported(imported: Imported, _: RenderOptions) -> str:
    from reconciler.render.imports import import_as_json

    return import_as_json(imported)


def _audit(audit: Audit, _: RenderOptions) -> str:
    from reconciler.render.audit import audit_as_json

    return audit_as_json(audit)


FORMAT = Format(
    "json",
    plan=_plan,
    diagnostics=_diagnostics,
    resolved=_resolved,
    imported=_imported,
    backfills=Later("backfills", "backfills_as_json"),
    gaps=Later("gaps", "gaps_as_json"),
    drift=Later("drift", "drift_as_json"),
    runs=Later("runs", "runs_as_json"),
    logs=Later("logs", "logs_as_json"),
    audit=_audit,
    status=_status,
    health=Later("health", "health_as_json"),
    preflight=Later("preflight", "preflight_as_json"),
    projects=Later("projects", "projects_as_json"),
    project_details=Later("projects", "project_as_json"),
    compared=Later("compared", "compared_as_json"),
    plans=Later("plans", "plans_as_json"),
)
