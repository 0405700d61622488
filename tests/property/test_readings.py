"""A plan of what the two readings read is the plan of everything."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.kinds import all_kinds
from reconciler.model.live import Live
from reconciler.model.plan import Note, Plan
from reconciler.model.resource import Desired
from reconciler.model.settings import POSSIBLE_DUPLICATE, Policy
from reconciler.planning.inventory import Inventory
from reconciler.planning.select import needs_of, parents_to_read, select
from tests.support.worlds import KINDS, inventory_of, plan_context, planned, worlds

_policies = st.builds(
    Policy,
    prune=st.booleans(),
    deletable=st.just(frozenset({"project", "batch_export"})),
)
_LISTED = ("id", "name", "timezone")
"""Fields of a project that its list shows here."""
_OF_ALL = {"same-place", "look-alike", "not-read"}
"""Notes on what is unmanaged anywhere, for which a plan reads nothing."""


def notes_of(plan: Plan) -> list[Note]:
    return [note for note in plan.notes if note.code not in _OF_ALL]


def without_unread(live: Live, desired: Desired, inventory: Inventory | None) -> Live:
    """Return live state where the organization has no list of exports."""
    (kind,) = (kind for kind in all_kinds() if kind.parent)
    projects, exports = live.of("project"), live.of("batch_export")
    ids = parents_to_read(kind, projects, desired, inventory)
    unread = frozenset(item.identity for item in projects if item.id not in ids)
    left = tuple(item for item in exports if ("project", item.parent_id) not in unread)
    return replace(live, objects={**live.objects, "batch_export": left}, unread=unread)


def completed(live: Live, desired: Desired, policy: Policy, inventory: Inventory | None) -> Live:
    """Return live state of which projects were listed, and those that are needed read in full."""
    context, whole = plan_context(base=inventory), live.by_identity
    listed = (
        replace(item, body={name: item.body[name] for name in _LISTED}, complete=False)
        for item in live.of("project")
    )
    live = replace(live, objects={**live.objects, "project": tuple(listed)})
    rounds = 0
    while wanted := needs_of(select(desired, live, policy, KINDS, context=context)):
        rounds += 1
        projects = tuple(
            whole[item.identity] if item.identity in wanted.objects else item
            for item in live.of("project")
        )
        live = replace(live, objects={**live.objects, "project": projects})
    assert rounds <= 1, "only an object that is gone makes others needed"
    event(f"in full: {sum(item.complete for item in live.of('project'))}")
    return live


@given(worlds(), worlds(), _policies, st.booleans())
def test_a_plan_of_what_is_read_is_that_of_everything(
    world: tuple[Desired, Live], other: tuple[Desired, Live], policy: Policy, with_base: bool
) -> None:
    (desired, live), (former, _) = world, other
    inventory = inventory_of(former, live, desired) if with_base else None
    seen = without_unread(completed(live, desired, policy, inventory), desired, inventory)
    event(f"unread: {len(seen.unread)}")
    own = planned(desired, seen, policy, base=inventory)
    full = planned(desired, live, policy, base=inventory)
    assert own.changes == full.changes
    # What is in projects that are not read is compared with nothing.
    unread = {f"{kind}.id:{live_id}" for kind, live_id in seen.unread}
    known = [
        item
        for item in full.refusals
        if item.rule != POSSIBLE_DUPLICATE or not unread & {str(it.address) for it in item.objects}
    ]
    assert list(own.refusals) == known
    assert notes_of(own) == notes_of(full)
