"""The Python API: what the commands do, as typed coroutines. See docs/api.md.

Every function raises exceptions of `reconciler.errors`, prints nothing and masks known secrets in
its result. `run` runs one of them for callers without an event loop. Use cases are imported when
they are called: importing this package is cheap.
"""

from reconciler.api.operations import (
    BackfillRange,
    backfill,
    cancel_backfills,
    cancel_run,
    gaps,
    logs,
    pause,
    project_activity,
    project_demo_data,
    projects,
    reset_token,
    retry_runs,
    runs,
    show_project,
    status,
    unpause,
)
from reconciler.api.plans import apply, compare, import_, load, plan
from reconciler.api.workspace import PlanScope, Workspace, run

__all__ = [
    "BackfillRange",
    "PlanScope",
    "Workspace",
    "apply",
    "backfill",
    "cancel_backfills",
    "cancel_run",
    "compare",
    "gaps",
    "import_",
    "load",
    "logs",
    "pause",
    "plan",
    "project_activity",
    "project_demo_data",
    "projects",
    "reset_token",
    "retry_runs",
    "run",
    "runs",
    "show_project",
    "status",
    "unpause",
]
