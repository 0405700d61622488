"""Compare a saved plan with the plan that is made now, and keep what both contain. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.identity import digest_of
from reconciler.model.kind import Kind
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.plan_redaction import redact_plan
from reconciler.model.redaction import Mask
from reconciler.model.resource import Desired
from reconciler.planning.deviations import addition, deviations, omission
from reconciler.planning.resumed import Resumed


class Comparison(Struct, frozen=True):
    """The common part of both plans, and one line of text for each difference.

    `plan` is the new plan without the changes that the saved one does not contain, and without
    those that depend on one of them.
    """

    plan: Plan
    differences: tuple[str, ...] = ()


def compare(
    saved: Plan, new: Plan, *, live: Live, desired: Desired, kinds: Sequence[Kind], mask: Mask
) -> Comparison:
    """Compare a saved plan with the plan of the same selection, base and options.

    Changes are equal by digest, which includes identity. A saved change that is not in the new plan
    must be done; what an incomplete run of the saved plan did is taken into account. `live` and
    `desired` are those of the new plan. `mask` masks known secrets in both plans.
    """
    saved, masked = redact_plan(saved, mask), redact_plan(new, mask)
    by_name = {kind.name: kind for kind in kinds}
    comparer = _Comparer(
        Resumed(saved, masked, live, desired, by_name, mask),
        {change.id: change for change in masked.effective},
        {change.id for change in saved.effective},
    )
    for change in saved.effective:
        if change.address.kind in by_name:
            comparer.account_for(change)
        else:
            comparer.differences += omission(change)
    comparer.report_additions()
    return Comparison(
        replace(new, changes=tuple(_closed(new.changes, comparer.contained))),
        tuple(comparer.differences),
    )


class _Comparer(Struct):
    """The comparison so far.

    `current` are the changes of the new plan by id. `contained` are the ids of those that the saved
    plan contains, `reported` of those whose differences are listed.
    """

    resumed: Resumed
    current: Mapping[str, Change]
    saved_ids: Collection[str]
    contained: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)

    def account_for(self, change: Change) -> None:
        """Compare a saved change; those that it depends on come before it."""
        expected = self.resumed.expected(change)
        now = self.current.get(change.id)
        if now is not None:
            self._compare(expected, now)
        elif rest := self._rest_of(expected):
            self.contained |= rest
            self.resumed.settle(expected)
        elif self.resumed.is_done(expected):
            self.resumed.settle(expected)
        else:
            self.differences += omission(expected)

    def report_additions(self) -> None:
        """List the changes of the new plan that the saved one does not contain."""
        accounted = self.contained | self.reported
        for change in self.current.values():
            if change.id not in accounted:
                self.differences += addition(change)

    def _compare(self, expected: Change, now: Change) -> None:
        source = self.resumed.new.source
        current = self.resumed.in_own_names(now)
        is_equal = digest_of(expected, source) == digest_of(current, source)
        if is_equal or self.resumed.is_half_done(expected, now):
            self.contained.add(now.id)
        else:
            self.reported.add(now.id)
            self.differences += deviations(expected, now)

    def _rest_of(self, expected: Change) -> set[str]:
        """Return the ids of changes that finish what a saved change of another action began."""
        return {
            change.id
            for action in Action
            if (change := self.current.get(f"{expected.address}:{action}")) is not None
            if change.id not in self.saved_ids and self.resumed.is_half_done(expected, change)
        }


def _closed(changes: Iterable[Change], contained: Collection[str]) -> Iterable[Change]:
    """Yield the contained changes whose dependencies are all contained, and no-ops."""
    kept: set[str] = set()
    for change in changes:
        if change.action is Action.NO_OP:
            yield change
        elif change.id in contained and kept.issuperset(change.depends_on):
            kept.add(change.id)
            yield change
