"""The names of the Python API (docs/api.md), which `reconciler` imports when one is named."""

# ruff: noqa: PLC0414 - an alias makes a name public for type checkers

from reconciler.commands.apply.execution import apply as apply
from reconciler.commands.backfill.planning import ClosedGaps as ClosedGaps
from reconciler.commands.backfill.planning import SincePause as SincePause
from reconciler.commands.backfill.planning import Span as Span
from reconciler.commands.backfill.starting import Backfilled as Backfilled
from reconciler.commands.backfill.starting import backfill as backfill
from reconciler.commands.backfill.starting import cancel_backfills as cancel_backfills
from reconciler.commands.compare import EnvironmentComparison as EnvironmentComparison
from reconciler.commands.compare import compare as compare
from reconciler.commands.drifted import Drift as Drift
from reconciler.commands.drifted import drift as drift
from reconciler.commands.gaps import GapReport as GapReport
from reconciler.commands.gaps import gaps as gaps
from reconciler.commands.import_choice import Choice as Choice
from reconciler.commands.import_live import Imported as Imported
from reconciler.commands.import_live import import_live as import_live
from reconciler.commands.logs import logs as logs
from reconciler.commands.pause.toggling import pause as pause
from reconciler.commands.plan import plan as plan
from reconciler.commands.projects import ProjectDetails as ProjectDetails
from reconciler.commands.projects import ProjectReport as ProjectReport
from reconciler.commands.projects import projects as projects
from reconciler.commands.projects import reset_token as reset_token
from reconciler.commands.projects import show_project as show_project
from reconciler.commands.runs import runs as runs
from reconciler.commands.sending import Applied as Applied
from reconciler.commands.sending import Outputs as Outputs
from reconciler.commands.session import PlanResult as PlanResult
from reconciler.commands.session import load as load
from reconciler.commands.status.report import StatusReport as StatusReport
from reconciler.commands.status.state import status as status
from reconciler.commands.workspace import Reported as Reported
from reconciler.commands.workspace import Runtime as Runtime
from reconciler.commands.workspace import Workspace as Workspace
from reconciler.errors import ReconcilerError as ReconcilerError
from reconciler.files.loading import Loaded as Loaded
from reconciler.model.event import Event as Event
from reconciler.model.kind import Action as Action
from reconciler.model.plan import Plan as Plan
from reconciler.model.run import BackfillPlan as BackfillPlan
from reconciler.model.run import LogReport as LogReport
from reconciler.model.run import RunReport as RunReport
from reconciler.model.settings import PlanOptions as PlanOptions
from reconciler.model.settings import Selection as Selection
