"""Reports of GitLab: counts of a plan for the merge request, and code quality."""

from __future__ import annotations

from reconciler.render.formats.base import Format, Later

FORMAT = Format(
    "gitlab",
    plan=Later("code_quality", "plan_as_gitlab"),
    diagnostics=Later("code_quality", "diagnostics_as_gitlab"),
)
