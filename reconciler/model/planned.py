"""The plan or the report of one of several environments, or the error that prevented it."""

from __future__ import annotations

from msgspec import Struct

from reconciler.diagnostics import InvalidConfiguration, Level
from reconciler.errors import ExitCode, ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.public import Public


class _OfEnvironment(Struct, frozen=True):
    """What is known of an environment, or the error that prevented it: one of both is None."""

    environment: str
    exit_code: ExitCode
    error: ReconcilerError | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors, each in one line."""
        if isinstance(self.error, InvalidConfiguration):
            return tuple(
                f"{item.at}: {item.message}" if item.at is not None else item.message
                for item in self.error.diagnostics
                if item.level is Level.ERROR
            )
        return tuple(self.error.message.splitlines()) if self.error is not None else ()


class EnvironmentPlan(_OfEnvironment, frozen=True):
    """A plan, or an error. `cost` is what applying it takes, as text."""

    plan: Plan | None = None
    cost: str = ""


class EnvironmentReport(_OfEnvironment, frozen=True):
    """A report, or an error."""

    report: Public | None = None
