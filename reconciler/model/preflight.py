"""The results of destination tests, as values."""

from __future__ import annotations

from reconciler.model.address import Address
from reconciler.model.public import Public, Term, derived


class StepStatus(Term):
    """How a test step ended."""

    PASSED = "passed", "The step succeeded."
    FAILED = "failed", "The step failed."
    SKIPPED = "skipped", "The service does not run it for this destination."


class StepResult(Public, frozen=True):
    """One step that the service ran."""

    name: str
    status: StepStatus
    message: str | None = None
    """As the service returns it."""


class Preflight(Public, frozen=True):
    """The tests of one resource."""

    address: Address
    name: str
    steps: tuple[StepResult, ...] = ()
    """Up to the first failure."""
    untested: str = ""
    """Why the service ran nothing, empty if it did."""
    problems: tuple[str, ...] = ()
    """What is wrong by the files and the policy."""

    @derived
    def failed(self) -> bool:
        """Whether a step failed or a problem is known."""
        return bool(self.problems) or any(step.status is StepStatus.FAILED for step in self.steps)


class PreflightReport(Public, frozen=True):
    """The tests of all resources."""

    schema = "preflight"
    version = 1

    environment: str
    results: tuple[Preflight, ...]

    @derived
    def failed(self) -> bool:
        """Whether any test failed."""
        return any(result.failed for result in self.results)
