"""JSON for programs. Keys and their meaning are stable."""

from __future__ import annotations

from reconciler.model.plan import Plan
from reconciler.render.audit import audit_as_json
from reconciler.render.diagnostics import diagnostics_as_json
from reconciler.render.formats.base import Format
from reconciler.render.imports import import_as_json
from reconciler.render.options import RenderOptions
from reconciler.render.resolved import resolved_as_json


def _plan(plan: Plan, _: RenderOptions) -> str:
    # Imported here because it takes 40 ms, which other results do not need.
    from reconciler.model.codec.plan import encode

    return encode(plan).decode()


FORMAT = Format(
    "json",
    plan=_plan,
    diagnostics=lambda diagnostics, _: diagnostics_as_json(diagnostics),
    resolved=lambda resource, _: resolved_as_json(resource),
    imported=lambda imported, _: import_as_json(imported),
    audit=lambda audit, _: audit_as_json(audit),
)
