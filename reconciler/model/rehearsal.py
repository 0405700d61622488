"""The result of a rehearsal: what an apply of the plan of now would do."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.errors import ExitCode
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.dialect import Dialect
from reconciler.model.plan import Refusal
from reconciler.model.term import Term


class Outcome(Term):
    """How a change ended that was not made."""

    REFUSED = "refused", "The service refuses it."
    UNKNOWN = "unknown", "The service fails, and the change may have taken effect."
    SKIPPED = "skipped", "It depends on a change that was not made."
    INEXACT = "inexact", "The copy does not represent the object: nothing is predicted."


class Problem(Struct, frozen=True):
    """A change that was not made. `message` has the words of the service."""

    address: Address
    action: Action
    name: str
    outcome: Outcome
    message: str
    at: Mark | None = None
    hint: str | None = None


class Kill(Struct, frozen=True):
    """A run that ended at once after its n-th write, and a second run.

    `write` is that write. `problem` is how the end state differs, empty if it does not.
    """

    number: int
    write: str
    problem: str = ""


class Rehearsal(Struct, frozen=True):
    """How the plan of now would be applied.

    dialect, dialect_known
        That of the copy, and whether live state shows it.
    counts
        The changes of the plan by action.
    refusals
        The policy violations. With any, nothing is rehearsed.
    problems
        The changes that would not be made.
    left
        The changes that a second plan would still make.
    calls, writes
        The calls of an apply, and how many of them change something.
    seconds, limit, beyond_hour
        How long the calls take under the rate limit, and that limit.
    assumed
        What must exist for the plan, and live state does not show.
    kills
        The runs that were killed, None if none was requested.
    """

    environment: str
    base_url: str
    organization: str
    dialect: Dialect | None
    dialect_known: bool
    counts: Mapping[Action, int]
    refusals: tuple[Refusal, ...] = ()
    problems: tuple[Problem, ...] = ()
    left: tuple[tuple[Address, Action], ...] = ()
    calls: int = 0
    writes: int = 0
    seconds: float = 0.0
    limit: str | None = None
    beyond_hour: bool = False
    assumed: tuple[str, ...] = ()
    kills: tuple[Kill, ...] | None = None

    @property
    def changes(self) -> int:
        """The number of changes of the plan."""
        return sum(count for action, count in self.counts.items() if action is not Action.NO_OP)

    @property
    def exit_code(self) -> ExitCode:
        """REFUSED by policy, PARTLY_APPLIED if anything would go wrong, or FINE."""
        if self.refusals:
            return ExitCode.REFUSED
        killed = any(kill.problem for kill in self.kills or ())
        wrong = self.problems or self.left or killed
        return ExitCode.PARTLY_APPLIED if wrong else ExitCode.FINE
