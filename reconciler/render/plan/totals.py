"""The counts of a plan for programs that know three actions."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.plan import Plan

_CREATES = (Action.CREATE, Action.REPLACE)
_CHANGES = (Action.UPDATE, Action.PAUSE, Action.UNPAUSE)
_DESTROYS = (Action.DELETE, Action.REPLACE)


class Totals(Struct, frozen=True):
    """The numbers of resources. A replacement is created and destroyed."""

    create: int
    change: int
    destroy: int


def totals_of(plan: Plan) -> Totals:
    """Return how many resources a plan creates, changes and destroys."""
    return Totals(*(_count(plan, actions) for actions in (_CREATES, _CHANGES, _DESTROYS)))


def _count(plan: Plan, actions: tuple[Action, ...]) -> int:
    return len({change.address for change in plan.effective if change.action in actions})
