"""JSON for programs: names and their meaning are stable."""

from __future__ import annotations

from reconciler.planning.planfile import encode
from reconciler.render.diagnostics import diagnostics_as_json
from reconciler.render.formats.base import Format
from reconciler.render.imports import import_as_json
from reconciler.render.resolved import resolved_as_json

FORMAT = Format(
    "json",
    plan=lambda plan, _: encode(plan).decode(),
    diagnostics=lambda diagnostics, _: diagnostics_as_json(diagnostics),
    resolved=lambda resource, _: resolved_as_json(resource),
    imported=lambda imported, _: import_as_json(imported),
)
