"""Text for a terminal."""

from __future__ import annotations

from reconciler.render.audit import audit_as_text
from reconciler.render.compared import compared_as_text
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.drift import drift_as_text
from reconciler.render.explanation import explanation_as_text
from reconciler.render.formats.base import Format
from reconciler.render.gaps import gaps_as_text
from reconciler.render.health import health_as_text
from reconciler.render.imports import imported_as_text
from reconciler.render.logs import logs_as_text
from reconciler.render.plan.text import plan_as_text
from reconciler.render.plans import plans_as_text
from reconciler.render.preflight import preflight_as_text
from reconciler.render.projects import project_as_text, projects_as_text
from reconciler.render.rehearsal import rehearsal_as_text
from reconciler.render.resolved import resolved_as_text
from reconciler.render.runs import runs_as_text
from reconciler.render.status import status_as_text

FORMAT = Format(
    "text",
    plan=plan_as_text,
    diagnostics=lambda diagnostics, options: (
        diagnostics_as_text(diagnostics, options.style) or f"{options.passed}.\n"
    ),
    resolved=lambda resource, _: resolved_as_text(resource),
    imported=lambda imported, options: imported_as_text(imported, options.style),
    gaps=gaps_as_text,
    drift=drift_as_text,
    runs=runs_as_text,
    logs=logs_as_text,
    audit=lambda audit, options: audit_as_text(audit, options.style),
    status=status_as_text,
    explanation=explanation_as_text,
    health=health_as_text,
    preflight=preflight_as_text,
    projects=projects_as_text,
    project_details=project_as_text,
    rehearsal=rehearsal_as_text,
    compared=compared_as_text,
    plans=plans_as_text,
)
