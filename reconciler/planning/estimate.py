"""Estimate the number of calls that applying a plan takes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.kind import Kind, containers
from reconciler.model.plan import Plan

_CALLS: Mapping[Action, int] = {
    Action.CREATE: 1,
    Action.UPDATE: 1,
    Action.PAUSE: 1,
    Action.UNPAUSE: 1,
    Action.DELETE: 1,
    Action.REPLACE: 5,
    Action.NO_OP: 0,
}
"""A write; a replacement checks, creates, checks again, deletes and renames."""
_CALLS_OF_A_REST = 4
"""The rest of a replacement: two checks, then the old object is deleted, the new one renamed."""
_PAGE = 100


def calls_of(plan: Plan, kinds: Sequence[Kind], *, verify: bool = True) -> int:
    """Return about how many calls applying a plan takes, and verifying it.

    Lists of the names are read before and after the creates of a kind, and at the end.
    """
    if plan.empty:
        return 0
    sizes = Counter(change.address.kind for change in plan.changes)
    sizes += Counter(unmanaged.address.kind for unmanaged in plan.unmanaged)
    calls, checked_again, parents = sum(map(_calls_of_change, plan.sending)), 0, containers(kinds)
    # What is in an object to delete is listed.
    calls += sum(
        change.action is Action.DELETE and change.address.kind in parents for change in plan.sending
    )
    for kind in kinds:
        survey = max(1, ceil(sizes[kind.name] / _PAGE))
        scopes = {
            (change.parent_id, change.parent)
            for change in plan.effective
            if change.address.kind == kind.name and _creates(change)
        }
        lists = min(len(scopes), survey) if kind.paths.survey is not None else len(scopes)
        calls += 2 * lists + survey * verify
        if lists:
            # What was created before the last creates is checked again.
            calls += checked_again
            checked_again = lists
    return calls


def _creates(change: Change) -> bool:
    return change.action in (Action.CREATE, Action.REPLACE) and change.new_id is None


def _calls_of_change(change: Change) -> int:
    if change.new_id is not None:
        return _CALLS_OF_A_REST
    return _CALLS[change.action] + (change.after_create is not None)
