"""Text for a terminal."""

from __future__ import annotations

from reconciler.render.audit import audit_as_text
from reconciler.render.diagnostics import diagnostics_as_text
from reconciler.render.formats.base import Format
from reconciler.render.imports import imported_as_text
from reconciler.render.plan.text import plan_as_text
from reconciler.render.resolved import resolved_as_text

FORMAT = Format(
    "text",
    plan=plan_as_text,
    diagnostics=lambda diagnostics, options: (
        diagnostics_as_text(diagnostics, options.style) or "The configuration is valid.\n"
    ),
    resolved=lambda resource, _: resolved_as_text(resource),
    imported=lambda imported, options: imported_as_text(imported, options.style),
    audit=lambda audit, options: audit_as_text(audit, options.style),
)
