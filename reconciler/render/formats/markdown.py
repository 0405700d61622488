"""A plan as a comment of a pull request, the worst changes first."""

from __future__ import annotations

from reconciler.render.formats.base import Format, Later

FORMAT = Format(
    "markdown",
    plan=Later("plan_markdown", "plan_as_markdown"),
    status=Later("status_markdown", "status_as_markdown"),
    backfills=Later("backfills_markdown", "backfills_as_markdown"),
    gaps=Later("gaps", "gaps_as_markdown"),
    drift=Later("drift", "drift_as_markdown"),
    runs=Later("runs", "runs_as_markdown"),
    logs=Later("logs", "logs_as_markdown"),
    compared=Later("compared", "compared_as_markdown"),
    plans=Later("plan_markdown", "plans_as_markdown"),
)
