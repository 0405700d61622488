"""Invariants of planning from a base some commits ago, over drawn histories."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.live import Live, marked_name
from reconciler.model.plan import Plan
from reconciler.model.policy import PlanOptions, Policy, Prune
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.planning.base import Base
from tests.support.worlds import PureServer, base_of, desired_of, live_of, planned, s3

PRUNE = Policy(prune={"*": Prune.GIT}, deletable=frozenset({"project"}))
ALLOWED = PlanOptions(allow_replace=True)


@st.composite
def configurations(draw: st.DrawFn) -> Desired:
    """Draw projects and exports from few keys and names, without two of one name in one place."""
    projects = draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from("XYZ"), min_size=1))
    if len(set(projects.values())) < len(projects):
        projects = {key: f"P{key}" for key in projects}
    resources = [
        Resource(Address("project", key), {"name": name}) for key, name in projects.items()
    ]
    taken = set()
    for key in draw(st.lists(st.sampled_from("1234"), unique=True)):
        place = (draw(st.sampled_from(sorted(projects))), draw(st.sampled_from("LMNO")))
        if place in taken:
            continue
        taken.add(place)
        spec = {"name": place[1], "interval": "hour", "destination": s3(prefix=key)}
        parent = ParentRef(key=place[0])
        resources.append(Resource(Address("batch_export", key), spec, parent=parent))
    return desired_of(*resources)


histories = st.lists(configurations(), min_size=2, max_size=4)


def plan_or_none(desired: Desired, live: Live, base: Base) -> Plan | None:
    """Return the plan, None if an identity is ambiguous or a removed resource is."""
    try:
        plan = planned(desired, live, PRUNE, options=ALLOWED, base=base)
    except AmbiguousIdentity:
        event("ambiguous")
        return None
    if any(note.code in ("removed-unclear", "removed-elsewhere") for note in plan.notes):
        event("unclear")
        return None
    event("planned")
    return plan


def names(live: Live) -> list[tuple[str, str]]:
    """Return the sorted names of all exports with those of their projects."""
    projects = {item.id: item.name for item in live.of("project")}
    return sorted((projects[str(item.parent_id)], item.name) for item in live.of("batch_export"))


def declared_names(desired: Desired) -> list[tuple[str, str]]:
    return sorted(
        (desired.resources[Address("project", resource.parent.key or "")].name, resource.name)
        for resource in desired.resources.values()
        if resource.parent is not None
    )


@given(histories, st.data())
def test_commits_that_were_applied_in_part_leave_nothing_behind(
    history: list[Desired], data: st.DataObject
) -> None:
    """The first commit is applied, the last, too, and of those between any number of changes."""
    *before, head = history
    server = PureServer(live_of())
    server.apply(planned(before[0], server.live()))
    for count in range(1, len(history)):
        plan = plan_or_none(history[count], server.live(), base_of(*before[:count]))
        if plan is None:
            return
        made = len(plan.effective)
        if history[count] is not head:
            made = data.draw(st.integers(0, made))
        server.apply(replace(plan, changes=plan.effective[:made]))
    assert names(server.live()) == declared_names(head)
    assert {item.name for item in server.live().of("project")} == {
        resource.name for resource in head.resources.values() if resource.parent is None
    }


@given(histories)
def test_only_objects_of_declared_resources_are_deleted(history: list[Desired]) -> None:
    """The server has objects of the first commit only; those in no resource of it must stay."""
    *before, head = history
    server = PureServer(live_of())
    server.apply(planned(before[0], server.live()))
    plan = plan_or_none(head, server.live(), base_of(*before[1:] or before[:1]))
    if plan is None:
        return
    declared = {resource.name for desired in history for resource in desired.resources.values()}
    for change in plan.effective:
        if change.action is Action.DELETE:
            assert change.address not in head.resources
            assert change.name in declared


@given(histories, st.data())
def test_an_interrupted_replacement_is_continued(
    history: list[Desired], data: st.DataObject
) -> None:
    """Stop after the create of a replacement, and plan again: the same end state, no duplicate."""
    first, head = history[0], history[-1]
    server = PureServer(live_of())
    server.apply(planned(first, server.live()))
    plan = plan_or_none(head, server.live(), base_of(first))
    replacements = (
        [
            change
            for change in plan.effective
            if change.action is Action.REPLACE and change.parent_id
        ]
        if plan is not None
        else []
    )
    if not replacements:
        return
    change = data.draw(st.sampled_from(replacements))
    marked = marked_name(change.name, str(change.live_id))
    server.create_marked(change, marked)
    plan = planned(head, server.live(), PRUNE, options=ALLOWED, base=base_of(first))
    event("continued")
    assert change.live_id in [rest.live_id for rest in plan.effective if rest.new_id is not None]
    server.apply(plan)
    assert names(server.live()) == declared_names(head)
    assert planned(head, server.live(), PRUNE, options=ALLOWED, base=base_of(first)).empty


def with_other_keys(desired: Desired) -> Desired:
    """Return the configuration with another key of every project."""
    return desired_of(
        *(
            replace(resource, address=Address("project", f"{resource.address.key}2"))
            if resource.parent is None
            else replace(resource, parent=ParentRef(key=f"{resource.parent.key}2"))
            for resource in desired.resources.values()
        )
    )


@given(histories)
def test_the_keys_of_projects_do_not_matter_if_their_names_stay(history: list[Desired]) -> None:
    """Exports are updated, replaced and deleted as without new keys of their projects."""
    first, *later = history
    server = PureServer(live_of())
    server.apply(planned(first, server.live()))
    live = server.live()
    head = later[-1]
    wanted = {resource.name for resource in head.resources.values() if resource.parent is None}
    if not wanted <= {item.name for item in live.of("project")}:
        return
    plans = [
        plan_or_none(desired, live, base_of(first)) for desired in (head, with_other_keys(head))
    ]
    if None in plans:
        return
    same, other = (
        {
            (change.action, change.address, change.live_id, change.name)
            for change in plan.effective
            if change.address.kind == "batch_export"
        }
        for plan in filter(None, plans)
    )
    event(f"compared, exports change: {bool(same)}")
    assert same == other
