"""The Python API: what the commands do, as typed coroutines. See docs/api.md.

Every function raises exceptions of `reconciler.errors`, prints nothing and masks known secrets in
its result. `run` runs one of them for callers without an event loop. Use cases are imported when
they are called, and classes when they are named: importing this package is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from reconciler.authoring.environments import EnvironmentComparison
    from reconciler.commands.applying import Applied
    from reconciler.commands.planning import PlanResult
    from reconciler.model.backfill_plan import BackfillPlan
    from reconciler.model.event import Event
    from reconciler.model.files import Imported
    from reconciler.model.plan import Plan
    from reconciler.model.run import LogReport, RunReport
    from reconciler.operations.backfills import Backfilled
    from reconciler.operations.gaps import GapReport
    from reconciler.operations.pausing import Paused
    from reconciler.operations.projects import ProjectDetails, ProjectReport
    from reconciler.operations.status_report import StatusReport
    from reconciler.workspace.loading import Loaded

__all__ = [
    "Applied",
    "BackfillPlan",
    "BackfillRange",
    "Backfilled",
    "EnvironmentComparison",
    "Event",
    "GapReport",
    "Imported",
    "Loaded",
    "LogReport",
    "Paused",
    "Plan",
    "PlanResult",
    "PlanScope",
    "ProjectDetails",
    "ProjectReport",
    "RunReport",
    "StatusReport",
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

_MODULES = {
    "Applied": "reconciler.commands.applying",
    "BackfillPlan": "reconciler.model.backfill_plan",
    "Backfilled": "reconciler.operations.backfills",
    "EnvironmentComparison": "reconciler.authoring.environments",
    "Event": "reconciler.model.event",
    "GapReport": "reconciler.operations.gaps",
    "Imported": "reconciler.model.files",
    "Loaded": "reconciler.workspace.loading",
    "LogReport": "reconciler.model.run",
    "Paused": "reconciler.operations.pausing",
    "Plan": "reconciler.model.plan",
    "PlanResult": "reconciler.commands.planning",
    "ProjectDetails": "reconciler.operations.projects",
    "ProjectReport": "reconciler.operations.projects",
    "RunReport": "reconciler.model.run",
    "StatusReport": "reconciler.operations.status_report",
}
"""The modules of the classes that functions take and return."""


def __getattr__(name: str) -> Any:
    """Return a class of a result. Raises AttributeError for another name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
