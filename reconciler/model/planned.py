"""The plan of one of several environments, or why there is none."""

from __future__ import annotations

from msgspec import Struct

from reconciler.diagnostics import InvalidConfiguration, Level
from reconciler.errors import ExitCode, ReconcilerError
from reconciler.model.plan import Plan


class EnvironmentPlan(Struct, frozen=True):
    """A plan, or the error that prevented it: one of both is None.

    `cost` is what applying it takes, as text.
    """

    environment: str
    exit_code: ExitCode
    plan: Plan | None = None
    error: ReconcilerError | None = None
    cost: str = ""

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
