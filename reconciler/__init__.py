"""GitOps for data pipelines: YAML in, a plan, and the calls that carry it out.

The use cases of the commands are the Python API (docs/api.md). They are imported when they are
named, since every import of a module of the package runs this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.version import __version__ as __version__

if TYPE_CHECKING:
    from reconciler.commands.apply.run import Applied as Applied
    from reconciler.commands.apply.run import apply as apply
    from reconciler.commands.backfill.cancel import cancel_backfills as cancel_backfills
    from reconciler.commands.backfill.run import Backfilled as Backfilled
    from reconciler.commands.backfill.run import ClosedGaps as ClosedGaps
    from reconciler.commands.backfill.run import SincePause as SincePause
    from reconciler.commands.backfill.run import Span as Span
    from reconciler.commands.backfill.run import backfill as backfill
    from reconciler.commands.compare import EnvironmentComparison as EnvironmentComparison
    from reconciler.commands.compare import compare as compare
    from reconciler.commands.drift.report import Drift as Drift
    from reconciler.commands.drift.run import drift as drift
    from reconciler.commands.gaps import GapReport as GapReport
    from reconciler.commands.gaps import gaps as gaps
    from reconciler.commands.import_.choice import Choice as Choice
    from reconciler.commands.import_.run import import_live as import_live
    from reconciler.commands.logs import logs as logs
    from reconciler.commands.pause.run import pause as pause
    from reconciler.commands.pause.run import plan_pause as plan_pause
    from reconciler.commands.plan.work import PlanResult as PlanResult
    from reconciler.commands.plan.work import plan as plan
    from reconciler.commands.projects import ProjectDetails as ProjectDetails
    from reconciler.commands.projects import ProjectReport as ProjectReport
    from reconciler.commands.projects import projects as projects
    from reconciler.commands.projects import reset_token as reset_token
    from reconciler.commands.projects import show_project as show_project
    from reconciler.commands.recording import Outputs as Outputs
    from reconciler.commands.runs import runs as runs
    from reconciler.commands.runtime import Reported as Reported
    from reconciler.commands.runtime import Runtime as Runtime
    from reconciler.commands.runtime import Workspace as Workspace
    from reconciler.commands.session import load as load
    from reconciler.commands.status.report import StatusReport as StatusReport
    from reconciler.commands.status.state import status as status
    from reconciler.errors import ReconcilerError as ReconcilerError
    from reconciler.files.loading import Loaded as Loaded
    from reconciler.model.backfill_plan import BackfillPlan as BackfillPlan
    from reconciler.model.event import Event as Event
    from reconciler.model.files import Imported as Imported
    from reconciler.model.kind import Action as Action
    from reconciler.model.plan import Plan as Plan
    from reconciler.model.policy import PlanOptions as PlanOptions
    from reconciler.model.policy import Selection as Selection
    from reconciler.model.run import LogReport as LogReport
    from reconciler.model.run import RunReport as RunReport

_NAMES = {
    "commands.apply.run": ("Applied", "apply"),
    "commands.backfill.cancel": ("cancel_backfills",),
    "commands.backfill.run": ("Backfilled", "ClosedGaps", "SincePause", "Span", "backfill"),
    "commands.compare": ("EnvironmentComparison", "compare"),
    "commands.drift.report": ("Drift",),
    "commands.drift.run": ("drift",),
    "commands.gaps": ("GapReport", "gaps"),
    "commands.import_.choice": ("Choice",),
    "commands.import_.run": ("import_live",),
    "commands.logs": ("logs",),
    "commands.pause.run": ("pause", "plan_pause"),
    "commands.plan.work": ("PlanResult", "plan"),
    "commands.projects": (
        "ProjectDetails",
        "ProjectReport",
        "projects",
        "reset_token",
        "show_project",
    ),
    "commands.recording": ("Outputs",),
    "commands.runs": ("runs",),
    "commands.runtime": ("Reported", "Runtime", "Workspace"),
    "commands.session": ("load",),
    "commands.status.report": ("StatusReport",),
    "commands.status.state": ("status",),
    "errors": ("ReconcilerError",),
    "files.loading": ("Loaded",),
    "model.backfill_plan": ("BackfillPlan",),
    "model.event": ("Event",),
    "model.files": ("Imported",),
    "model.kind": ("Action",),
    "model.plan": ("Plan",),
    "model.policy": ("PlanOptions", "Selection"),
    "model.run": ("LogReport", "RunReport"),
}
"""The names of the API by the module that defines them."""


def __getattr__(name: str) -> Any:
    """Return a function or a class of the API. Raises AttributeError for another name."""
    from importlib import import_module

    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"reconciler.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
