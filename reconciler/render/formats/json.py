"""JSON for programs. Keys and their meaning are stable."""

from __future__ import annotations

from reconciler.model.plan import Plan
from reconciler.model.status import StatusReport
from reconciler.render.audit import audit_as_json
from reconciler.render.compared import compared_as_json
from reconciler.render.diagnostics import diagnostics_as_json
from reconciler.render.drift import drift_as_json
from reconciler.render.explanation import explanation_as_json
from reconciler.render.formats.base import Format
from reconciler.render.gaps import gaps_as_json
from reconciler.render.health import health_as_json
from reconciler.render.imports import import_as_json
from reconciler.render.logs import logs_as_json
from reconciler.render.options import RenderOptions
from reconciler.render.plans import plans_as_json
from reconciler.render.preflight import preflight_as_json
from reconciler.render.projects import project_as_json, projects_as_json
from reconciler.render.rehearsal import rehearsal_as_json
from reconciler.render.resolved import resolved_as_json
from reconciler.render.runs import runs_as_json


def _plan(plan: Plan, _: RenderOptions) -> str:
    # Imported here because it takes 40 ms, which other results do not need.
    from reconciler.model.codec.plan import encode

    return encode(plan).decode()


def _status(report: StatusReport, _: RenderOptions) -> str:
    from reconciler.model.codec.status import encode_status

    return encode_status(report)


FORMAT = Format(
    "json",
    plan=_plan,
    diagnostics=lambda diagnostics, _: diagnostics_as_json(diagnostics),
    resolved=lambda resource, _: resolved_as_json(resource),
    imported=lambda imported, _: import_as_json(imported),
    gaps=gaps_as_json,
    drift=drift_as_json,
    runs=runs_as_json,
    logs=logs_as_json,
    audit=lambda audit, _: audit_as_json(audit),
    status=_status,
    explanation=explanation_as_json,
    health=health_as_json,
    preflight=preflight_as_json,
    projects=projects_as_json,
    project_details=project_as_json,
    rehearsal=rehearsal_as_json,
    compared=compared_as_json,
    plans=plans_as_json,
)
