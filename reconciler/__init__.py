"""GitOps for data pipelines: YAML in, a plan, and the calls that carry it out.

The use cases of the commands are the Python API (docs/api.md). They are imported when they are
named, since every import of a module of the package runs this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.version import __version__ as __version__

if TYPE_CHECKING:
    from reconciler.authoring.comparing import EnvironmentComparison as EnvironmentComparison
    from reconciler.authoring.comparing import compare as compare
    from reconciler.authoring.drift import Drift as Drift
    from reconciler.authoring.drift import drift as drift
    from reconciler.authoring.import_choice import Choice as Choice
    from reconciler.authoring.importing import import_live as import_live
    from reconciler.commands.applying import Applied as Applied
    from reconciler.commands.applying import apply as apply
    from reconciler.commands.planning import PlanResult as PlanResult
    from reconciler.commands.planning import plan as plan
    from reconciler.commands.recording import Outputs as Outputs
    from reconciler.commands.runtime import Reported as Reported
    from reconciler.commands.runtime import Runtime as Runtime
    from reconciler.commands.runtime import Workspace as Workspace
    from reconciler.commands.session import load as load
    from reconciler.errors import ReconcilerError as ReconcilerError
    from reconciler.model.backfill_plan import BackfillPlan as BackfillPlan
    from reconciler.model.event import Event as Event
    from reconciler.model.files import Imported as Imported
    from reconciler.model.kind import Action as Action
    from reconciler.model.plan import Plan as Plan
    from reconciler.model.policy import PlanOptions as PlanOptions
    from reconciler.model.policy import Selection as Selection
    from reconciler.model.run import LogReport as LogReport
    from reconciler.model.run import RunReport as RunReport
    from reconciler.operations.backfills import Backfilled as Backfilled
    from reconciler.operations.backfills import ClosedGaps as ClosedGaps
    from reconciler.operations.backfills import SincePause as SincePause
    from reconciler.operations.backfills import Span as Span
    from reconciler.operations.backfills import backfill as backfill
    from reconciler.operations.gaps import GapReport as GapReport
    from reconciler.operations.gaps import gaps as gaps
    from reconciler.operations.logs import logs as logs
    from reconciler.operations.pausing import pause as pause
    from reconciler.operations.pausing import plan_pause as plan_pause
    from reconciler.operations.projects import ProjectDetails as ProjectDetails
    from reconciler.operations.projects import ProjectReport as ProjectReport
    from reconciler.operations.projects import projects as projects
    from reconciler.operations.projects import reset_token as reset_token
    from reconciler.operations.projects import show_project as show_project
    from reconciler.operations.runs import cancel_backfills as cancel_backfills
    from reconciler.operations.runs import runs as runs
    from reconciler.operations.status import status as status
    from reconciler.operations.status_report import StatusReport as StatusReport
    from reconciler.workspace.loading import Loaded as Loaded

_NAMES = {
    "authoring.comparing": ("EnvironmentComparison", "compare"),
    "authoring.drift": ("Drift", "drift"),
    "authoring.import_choice": ("Choice",),
    "authoring.importing": ("import_live",),
    "commands.applying": ("Applied", "apply"),
    "commands.planning": ("PlanResult", "plan"),
    "commands.recording": ("Outputs",),
    "commands.runtime": ("Reported", "Runtime", "Workspace"),
    "commands.session": ("load",),
    "errors": ("ReconcilerError",),
    "model.backfill_plan": ("BackfillPlan",),
    "model.event": ("Event",),
    "model.files": ("Imported",),
    "model.kind": ("Action",),
    "model.plan": ("Plan",),
    "model.policy": ("PlanOptions", "Selection"),
    "model.run": ("LogReport", "RunReport"),
    "operations.backfills": ("Backfilled", "ClosedGaps", "SincePause", "Span", "backfill"),
    "operations.gaps": ("GapReport", "gaps"),
    "operations.logs": ("logs",),
    "operations.pausing": ("pause", "plan_pause"),
    "operations.projects": (
        "ProjectDetails",
        "ProjectReport",
        "projects",
        "reset_token",
        "show_project",
    ),
    "operations.runs": ("cancel_backfills", "runs"),
    "operations.status": ("status",),
    "operations.status_report": ("StatusReport",),
    "workspace.loading": ("Loaded",),
}
"""The names of the API by the module that defines them."""


def __getattr__(name: str) -> Any:
    """Return a function or a class of the API. Raises AttributeError for another name."""
    from importlib import import_module

    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"reconciler.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
