"""The result of one of several environments, or the error that prevented it."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from reconciler.diagnostics import InvalidConfiguration, Level
from reconciler.errors import ExitCode, ReconcilerError

_R = TypeVar("_R")


class OfEnvironment(Struct, Generic[_R], frozen=True):
    """The result of an environment, or its error: one of both is None.

    `cost` is what applying a plan takes, as text.
    """

    environment: str
    result: _R | None = None
    error: ReconcilerError | None = None
    exit_code: ExitCode = ExitCode.FINE
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
