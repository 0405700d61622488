"""The results of destination tests, as values."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.term import Term


class StepStatus(Term):
    """How a test step ended."""

    PASSED = "passed", "The step succeeded."
    FAILED = "failed", "The step failed."
    SKIPPED = "skipped", "The service does not run it for this destination."


class StepResult(Struct, frozen=True):
    """One step that the service ran. `message` is that of the service, None without one."""

    name: str
    status: StepStatus
    message: str | None = None


class Preflight(Struct, frozen=True):
    """The tests of one resource.

    steps
        What the service ran, up to the first failure.
    untested
        Why the service ran nothing, "" if it did.
    problems
        What is wrong by the files and the policy, without a connection to the destination.
    """

    address: Address
    name: str
    steps: tuple[StepResult, ...] = ()
    untested: str = ""
    problems: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a step failed or a problem is known."""
        return bool(self.problems) or any(step.status is StepStatus.FAILED for step in self.steps)


class PreflightReport(Struct, frozen=True):
    """The tests of all resources, by address."""

    environment: str
    results: tuple[Preflight, ...]

    @property
    def failed(self) -> bool:
        """Whether any test failed."""
        return any(result.failed for result in self.results)
