"""A plan of the lists that it needs is the plan of all lists."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired
from reconciler.planning.details import declared_parents, needed_parents
from tests.support.worlds import inventory_of, planned, worlds

_policies = st.builds(
    Policy,
    prune=st.booleans(),
    deletable=st.just(frozenset({"project", "batch_export"})),
)
_OF_ALL = {"same-place", "not-read"}
"""Notes on what is unmanaged anywhere, for which a plan reads nothing."""


def without(live: Live, unread: frozenset[tuple[str, str]]) -> Live:
    """Return live state as it is read without the contents of some projects."""
    exports = live.of("batch_export")
    left = tuple(item for item in exports if ("project", item.parent_id) not in unread)
    return replace(live, objects={**live.objects, "batch_export": left}, unread=unread)


def settled(
    desired: Desired, live: Live, policy: Policy, base: Desired | None
) -> tuple[Plan | str, int]:
    """Return the plan or the problem, and how many projects were not read."""
    inventory = inventory_of(base, live, desired) if base is not None else None
    (kind,) = (kind for kind in all_kinds() if kind.parent)
    projects = live.of("project")
    ids = declared_parents(kind, projects, desired, inventory)
    unread = frozenset(("project", item.id) for item in projects if item.id not in ids)
    while True:
        seen = without(live, unread)
        plan = plan_or_problem(lambda seen=seen: planned(desired, seen, policy, base=inventory))
        wanted = unread if isinstance(plan, str) else needed_parents(plan, seen, all_kinds())
        if not wanted:
            return plan, len(unread)
        unread -= wanted


def plan_or_problem(make: Callable[[], Plan]) -> Plan | str:
    try:
        return make()
    except BadUsage as error:
        return str(error)


@given(worlds(), worlds(), _policies, st.booleans())
def test_a_plan_of_the_lists_that_it_needs_is_that_of_all(
    world: tuple[Desired, Live], other: tuple[Desired, Live], policy: Policy, with_base: bool
) -> None:
    (desired, live), (former, _) = world, other
    base = former if with_base else None
    own, unread = settled(desired, live, policy, base)
    full = plan_or_problem(lambda: planned(desired, live, policy, base=base))
    event(f"unread: {unread}")
    if isinstance(own, str) or isinstance(full, str):
        assert own == full
        return
    assert own.changes == full.changes
    assert own.refusals == full.refusals
    assert [note for note in own.notes if note.code not in _OF_ALL] == [
        note for note in full.notes if note.code not in _OF_ALL
    ]
