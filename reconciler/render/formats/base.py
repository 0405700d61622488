"""The type of an output format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    # A command imports the results that it has.
    from reconciler.diagnostics import Diagnostic
    from reconciler.model.backfill_plan import BackfillPlan
    from reconciler.model.compared import EnvironmentComparison
    from reconciler.model.drift import Drift
    from reconciler.model.gaps import GapReport
    from reconciler.model.health import HealthReport
    from reconciler.model.imported import Imported
    from reconciler.model.logged_run import Audit
    from reconciler.model.plan import Plan
    from reconciler.model.planned import EnvironmentPlan
    from reconciler.model.preflight import PreflightReport
    from reconciler.model.project_report import ProjectDetails, ProjectReport
    from reconciler.model.resolved import ResolvedResource
    from reconciler.model.run_report import LogReport, RunReport
    from reconciler.model.status import StatusReport
    from reconciler.render.options import RenderOptions

_Result = TypeVar("_Result")
Writer: TypeAlias = "Callable[[_Result, RenderOptions], str]"
"""Returns text that is empty or ends with a line end."""


class Format(Struct, frozen=True):
    """A value of `--format` with its writers. A result without a writer is not supported."""

    name: str
    plan: Writer[Plan] | None = None
    diagnostics: Writer[Sequence[Diagnostic]] | None = None
    resolved: Writer[ResolvedResource] | None = None
    imported: Writer[Imported] | None = None
    audit: Writer[Audit] | None = None
    compared: Writer[EnvironmentComparison] | None = None
    plans: Writer[Sequence[EnvironmentPlan]] | None = None
    drift: Writer[Drift] | None = None
    backfills: Writer[BackfillPlan] | None = None
    gaps: Writer[GapReport] | None = None
    runs: Writer[RunReport] | None = None
    logs: Writer[LogReport] | None = None
    status: Writer[StatusReport] | None = None
    health: Writer[HealthReport] | None = None
    preflight: Writer[PreflightReport] | None = None
    projects: Writer[ProjectReport] | None = None
    project_details: Writer[ProjectDetails] | None = None


class Later:
    """A writer of a module of `render` that is imported when it writes.

    A run writes one result, and the modules of all of them take 60 ms to import.
    """

    def __init__(self, module: str, function: str) -> None:
        self._module = f"reconciler.render.{module}"
        self._function = function

    def load(self) -> Writer[Any]:
        """Return the writer."""
        writer: Writer[Any] = getattr(import_module(self._module), self._function)
        return writer

    def __call__(self, result: Any, options: RenderOptions) -> str:
        """Return the text of a result."""
        return self.load()(result, options)
