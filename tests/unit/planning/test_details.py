"""Which objects a plan needs in full, of which only the short form of a list is known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.model.live import LiveObject
from reconciler.model.resource import Desired, Lifecycle, Resource, State
from reconciler.model.settings import PlanOptions, Policy, Selection
from reconciler.planning.select import needs_of, select, short_forms
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    plan_context,
    project,
)

WEB = ("project", "1")


def short(identity: int = 1, name: str = "Web") -> LiveObject:
    """Return a project as a list shows it."""
    return replace(live_project(identity, name), complete=False)


def needed(
    *resources: Resource,
    live: tuple[LiveObject, ...] = (short(),),
    policy: Policy | None = None,
    base: Desired | None = None,
    selection: Selection | None = None,
) -> frozenset[tuple[str, str]]:
    desired, state = desired_of(*resources), live_of(*live)
    options = PlanOptions(selection=selection or Selection())
    context = plan_context(options, base, state, desired)
    return needs_of(select(desired, state, policy or Policy(), KINDS, context=context)).objects


def test_fields_of_the_list_need_no_details() -> None:
    assert needed(project(timezone="UTC")) == frozenset()
    assert needed(project(), export(), live=(short(), live_export())) == frozenset()
    assert needed() == frozenset()


def test_a_field_that_no_list_shows_needs_the_object() -> None:
    assert needed(project(surveys_opt_in=None)) == {WEB}
    assert needed(project(app_urls=[])) == {WEB}


def test_an_object_that_is_complete_is_not_needed() -> None:
    assert needed(project(app_urls=[]), live=(live_project(),)) == frozenset()


def test_a_field_that_was_applied_needs_the_object() -> None:
    assert needed(project(), base=desired_of(project(app_urls=[]))) == {WEB}
    assert needed(project(), base=desired_of(project())) == frozenset()


@pytest.mark.parametrize(
    ("resource", "live"),
    [
        (project(timezone="Europe/Berlin"), ()),
        (replace(project(), state=State.ABSENT), ()),
        (replace(project(name="Shop"), pinned_id="1"), ()),
    ],
)
def test_an_object_that_would_be_changed_is_needed(
    resource: Resource, live: tuple[LiveObject, ...]
) -> None:
    assert needed(resource, live=(short(), *live)) == {WEB}


def test_the_parent_of_a_create_is_needed() -> None:
    assert needed(project(), export(), live=(short(),)) == {WEB}
    assert needed(project(), export(state=State.ABSENT), live=(short(),)) == frozenset()
    assert needed(project(), export(interval="day"), live=(short(), live_export())) == frozenset()


def test_a_namesake_of_a_new_object_is_needed() -> None:
    """It may be pending deletion, and then its name is free."""
    assert needed(project(name="WEB")) == {WEB}


def test_both_parents_of_a_move_are_needed() -> None:
    moved = replace(export(lifecycle=Lifecycle(allow_replace=True)), pinned_id="e1")
    live = (short(), short(2, "App"), live_export(parent=2))
    assert needed(project(), moved, live=live) == {WEB, ("project", "2")}


def test_objects_that_are_pruned_are_needed() -> None:
    policy = Policy(prune=True)
    base = desired_of(project(), project("app"))
    live = (short(), short(2, "App"), short(3, "Shop"))
    assert needed(project(), live=live, policy=policy, base=base) == {("project", "2")}


def test_what_a_selection_leaves_out_is_not_needed() -> None:
    web, app = project(app_urls=[]), project("app", app_urls=[])
    live = (short(), short(2, "App"))
    assert needed(web, app, live=live, selection=Selection(targets=("project.web",))) == {WEB}


def test_short_forms_are_the_objects_that_are_not_complete() -> None:
    live = live_of(short(), live_project(2, "App"), live_export())
    assert short_forms(live) == {WEB: short()}
