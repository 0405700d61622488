"""Invariants of planning, over worlds drawn by hypothesis, without a network."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import encode
from reconciler.model.resource import Desired, Lifecycle, Resource, State
from reconciler.model.settings import Limit, PlanOptions, Policy, Selection
from reconciler.render.options import RenderOptions
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from tests.support.worlds import PureServer, planned, worlds

_policies = st.builds(
    Policy,
    prune=st.booleans(),
    ignore=st.sampled_from([(), ("E1",), ("E*",)]),
    max_deletes=st.none() | st.builds(Limit, st.integers(0, 3).map(float)),
    max_changes=st.none() | st.builds(Limit, st.integers(0, 5).map(float)),
    deletable=st.sampled_from([frozenset(), frozenset({"project"})]),
    deny=st.sampled_from([(), ("history-lost",)]),
)


@given(worlds())
def test_a_plan_of_what_was_applied_is_empty(world: tuple[Desired, Live]) -> None:
    desired, live = world
    server = PureServer(live)
    server.apply(planned(desired, live))
    again = planned(desired, server.live())
    assert again.empty, plan_as_text(again)


@given(worlds(), st.randoms(use_true_random=False))
def test_order_of_input_never_matters(world: tuple[Desired, Live], shuffler: random.Random) -> None:
    desired, live = world
    resources = list(desired.resources.items())
    shuffler.shuffle(resources)
    objects = {kind: list(live.objects[kind]) for kind in sorted(live.objects, reverse=True)}
    for items in objects.values():
        shuffler.shuffle(items)
    shuffled = {kind: tuple(items) for kind, items in objects.items()}
    other = planned(replace(desired, resources=dict(resources)), replace(live, objects=shuffled))
    assert encode(other) == encode(planned(desired, live))


@given(worlds(), _policies)
def test_only_allowed_objects_are_deleted(world: tuple[Desired, Live], policy: Policy) -> None:
    desired, live = world
    plan = planned(desired, live, policy)
    for change in plan.effective:
        if change.action is not Action.DELETE:
            continue
        resource = desired.resources.get(change.address)
        asked = resource is not None and resource.state is State.ABSENT
        inside = change.parent_name in {
            item.name for item in desired.resources.values() if item.state is State.ABSENT
        }
        assert asked or inside
        assert not any(fnmatchcase(change.name, glob) for glob in policy.ignore)


@given(worlds())
def test_unmanaged_objects_and_what_is_said_about_them_never_change_a_plan(
    world: tuple[Desired, Live],
) -> None:
    """Only, where one of them writes is no new place. What a look-alike note suggests works."""
    desired, live = world
    plan = planned(desired, live)
    unmanaged = {item.address.key.removeprefix("id:") for item in plan.unmanaged}
    managed = {
        kind: tuple(item for item in objects if item.id not in unmanaged)
        for kind, objects in live.objects.items()
    }
    alone = planned(desired, replace(live, objects=managed))
    both = ([replace(change, new=()) for change in of.changes] for of in (alone, plan))
    assert next(both) == next(both)
    for note in plan.notes:
        if note.code == "look-alike" and note.about is not None:
            event("look-alike")
            pinned = _as_suggested(desired.resources[note.about], note.message)
            assert pinned.pinned_id in {None, *unmanaged}
            resources = {**desired.resources, note.about: pinned}
            again = planned(replace(desired, resources=resources), live)
            assert f"{note.about}:create" not in [change.id for change in again.effective]


def _as_suggested(resource: Resource, message: str) -> Resource:
    """Return a resource with the line that a note says."""
    suggested = message.rpartition(", ")[2]
    if "renamed_from" in suggested:
        name = suggested.partition("['")[2].partition("']")[0]
        return replace(resource, lifecycle=Lifecycle(renamed_from=(name,)))
    return replace(resource, pinned_id=suggested.rpartition("`id: ")[2].rstrip("`"))


@given(worlds(), st.sampled_from(["batch_export.*", "batch_export.e1", "project.a", "*"]))
def test_a_partial_plan_is_a_subset_of_the_whole_plan(
    world: tuple[Desired, Live], glob: str
) -> None:
    desired, live = world
    whole = {change.id for change in planned(desired, live).effective}
    options = PlanOptions(selection=Selection(targets=(glob,)), planned_before=frozenset())
    part = {change.id for change in planned(desired, live, options=options).effective}
    assert part <= whole


@given(worlds(), st.integers(2_000, 20_000))
def test_markdown_stays_within_its_limit(world: tuple[Desired, Live], limit: int) -> None:
    plan = planned(*world)
    assert len(plan_as_markdown(plan, RenderOptions(limit=limit))) <= limit
