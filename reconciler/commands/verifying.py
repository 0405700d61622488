"""The last step of `apply`: read and plan again, to see whether the run did what it should."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport
from reconciler.commands.session import Session
from reconciler.errors import ReconcilerError
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.event import Report
from reconciler.model.plan import Plan
from reconciler.model.plan_redaction import redact_plan

_PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a list that may be behind the writes of the run is read again."""


Again: TypeAlias = Callable[[], Awaitable[Plan]]
"""Reads live state and plans again, without secrets to rotate."""


class Verification(Struct, frozen=True):
    """The second plan, None if it was not made; `error` says why it could not be made."""

    left: Plan | None = None
    error: ReconcilerError | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the second plan is empty, None if it was not requested."""
        if self.error is not None:
            return False
        return self.left.empty if self.left is not None else None


async def verify(
    session: Session, transport: Transport, again: Again, report: Report
) -> Verification:
    """Plan again, as the run was planned. Errors are in the result.

    A plan that still changes what the run has changed may come from a list that is behind, so it
    is made again before it is believed.
    """
    done = {result.change.address for result in report.done}
    try:
        for pause in (*_PAUSES, None):
            left = _without_secrets(await again(), done)
            if pause is None or done.isdisjoint(change.address for change in left.effective):
                break
            await transport.pause(pause, "a list that may be behind the changes of this run")
    except ReconcilerError as error:
        return Verification(error=error)
    return Verification(redact_plan(left, session.mask))


def _without_secrets(plan: Plan, done: Collection[Address]) -> Plan:
    """Return a plan without secrets that the run has sent: the base has the old ones."""
    left = (
        change for change in plan.changes if change.address not in done or not _sends_only(change)
    )
    return replace(plan, changes=tuple(left))


def _sends_only(change: Change) -> bool:
    """Return whether a change does nothing but send secrets."""
    return change.action is Action.UPDATE and all(field.secret for field in change.fields)
