"""Workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from reconciler.render.formats.base import Format, Later

FORMAT = Format(
    "github",
    plan=Later("annotations", "plan_as_github"),
    backfills=Later("annotations", "backfills_as_github"),
    diagnostics=Later("annotations", "diagnostics_as_github"),
)
