"""What the options of a plan select, which are refused, and which objects are read in full."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.errors import BadUsage
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import PlanOptions, Policy, Selection
from reconciler.model.values import Address
from reconciler.planning.select import needs_of, select, short_forms
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    plan_context,
    planned,
    project,
    with_secrets,
)

DESIRED = desired_of(
    project(),
    project("app", name="The app"),
    export("lake", name="New lake", destination=with_secrets(), pinned_id="e1", interval="day"),
    export("sea", parent="app", interval="day"),
)
LIVE = live_of(
    live_project(1),
    live_project(2, "The app"),
    live_project(3, "Other"),
    live_export("e1", "Old lake"),
    live_export("e2", "Sea", parent=2),
    live_export("e3", "Hand-made"),
    live_export("e4", "Ignored"),
)


def plan_of(policy: Policy | None = None, rotate: tuple[str, ...] = (), **selection: Any) -> Plan:
    options = PlanOptions(rotate=rotate, selection=Selection(**selection))
    return planned(DESIRED, LIVE, policy, options=options)


def changed(plan: Plan) -> set[str]:
    return {str(change.address) for change in plan.effective}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"targets": (name,)}, {"batch_export.lake"})
        for name in (
            *("batch_export.lake", "e1", "batch_export.id:e1", "lake"),
            *("New lake", "Old lake", "*lake", "lak*"),
        )
    ]
    + [
        ({"parents": (name,)}, {"batch_export.sea"})
        for name in ("project.app", "2", "app", "The app", "The*", "a?p", "*.app")
    ]
    + [
        ({"targets": ("lake,sea",)}, {"batch_export.lake", "batch_export.sea"}),
        ({"targets": ("lake", "sea")}, {"batch_export.lake", "batch_export.sea"}),
        ({"excludes": ("Old lake",)}, {"batch_export.sea"}),
        ({"excludes": ("Hand-made", "e2")}, {"batch_export.lake"}),
        ({"kinds": ("batch_exports",), "excludes": ("lake",)}, {"batch_export.sea"}),
        ({"kinds": ("projects",)}, set()),
        ({"parents": ("web", "app")}, {"batch_export.lake", "batch_export.sea"}),
    ],
)
def test_experience_1_objects_are_named_by_address_id_key_name_or_glob(
    selection: dict[str, tuple[str, ...]], expected: set[str]
) -> None:
    assert changed(plan_of(**selection)) == expected


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"targets": ("batch_export.lakee",)}, r"nothing matches 'batch_export.lakee' \(--target"),
        ({"targets": ("lake,lakee",)}, "nothing matches 'lakee'"),
        ({"targets": ("lake", "nope*")}, r"nothing matches 'nope\*'"),
        ({"excludes": ("x*",)}, r"nothing matches 'x\*' \(--exclude\)"),
        ({"parents": ("Webb",)}, r"nothing matches 'Webb' \(--project\)"),
        ({"parents": ("lake",)}, r"nothing matches 'lake' \(--project\)"),
        ({"kinds": ("exports",)}, "unknown kind 'exports'"),
        ({"targets": ("lake",), "kinds": ("project",)}, "select no resource: --target lake, --kin"),
        ({"parents": ("Other",)}, "select no resource: --project Other"),
        ({"excludes": ("*",)}, r"select no resource: --exclude \*"),
        ({"targets": ("Hand-made",)}, r"\"Hand-made\" \(batch_export.id:e3\) is unmanaged"),
        ({"targets": ("lake,e3",)}, "is unmanaged"),
        ({"targets": ("Ignored",)}, "is ignored by the policy"),
    ],
)
def test_experience_1_an_option_that_selects_nothing_is_bad_usage(
    selection: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(BadUsage, match=message):
        plan_of(Policy(ignore=("Ignored",)), **selection)


def test_exports_of_an_ignored_project_are_not_planned_as_replacements() -> None:
    """Their project had no object, so they seemed to be moved to one that does not exist yet."""
    web, lake = project(), export(lifecycle=Lifecycle(allow_replace=True))
    live = live_of(live_project(), live_export())
    for base in (None, desired_of(web, lake)):
        plan = planned(desired_of(web, lake), live, Policy(ignore=("Web",)), base=base)
        assert changed(plan) == set()
        assert [item.message for item in plan.refusals] == [
            "1 resource in project.web, which matches `policy.ignore`",
            "project.web matches `policy.ignore`",
        ]
        assert bool(plan.unmanaged) is (base is None)


@pytest.mark.parametrize(
    ("rotate", "expected"),
    [
        (("*",), {"batch_export.lake", "batch_export.sea"}),
        (("e1",), {"batch_export.lake", "batch_export.sea"}),
        (("Old lake",), {"batch_export.lake", "batch_export.sea"}),
    ],
)
def test_experience_1_secrets_are_sent_again_by_any_name(
    rotate: tuple[str, ...], expected: set[str]
) -> None:
    plan = plan_of(rotate=rotate)
    assert changed(plan) == expected
    rotated = [str(change.address) for change in plan.effective if change.secrets]
    assert rotated == ["batch_export.lake"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch_export.nope*", r"nothing matches 'batch_export.nope\*' \(--rotate-secrets\)"),
        ("Hand-made", "nothing matches 'Hand-made'"),
        ("sea", "batch_export.sea: no secret to send again"),
        ("lake,sea", "batch_export.sea: no secret"),
    ],
)
def test_experience_1_a_rotation_of_nothing_is_bad_usage(text: str, message: str) -> None:
    with pytest.raises(BadUsage, match=message):
        plan_of(rotate=(text,))


def test_a_rotation_of_all_secrets_may_be_of_none() -> None:
    options = PlanOptions(rotate=("*",))
    assert planned(desired_of(), live_of(), options=options).empty


def test_removed_resources_are_named_by_their_address_and_live_name() -> None:
    base = desired_of(*DESIRED.resources.values(), export("hand", name="Hand-made"))
    for name in ("batch_export.hand", "hand", "Hand-made", "e3"):
        options = PlanOptions(selection=Selection(targets=(name,)))
        plan = planned(DESIRED, LIVE, Policy(prune=True), options=options, base=base)
        assert changed(plan) == {"batch_export.hand"}
        kept = planned(DESIRED, LIVE, options=options, base=base)
        assert kept.empty
        assert [str(item.address) for item in kept.leaving] == ["batch_export.hand"]


def test_an_unmanaged_project_is_named_by_the_id_that_resources_use() -> None:
    sea = replace(export("sea"), parent=ParentRef(id="9"))
    options = PlanOptions(selection=Selection(parents=("9",)))
    live = live_of(live_project(1), live_project(9, "Sea"))
    plan = planned(desired_of(project(), sea), live, options=options)
    assert changed(plan) == {"batch_export.sea"}


def test_a_resource_of_another_environment_is_reported_as_such() -> None:
    context = replace(
        plan_context(PlanOptions(selection=Selection(targets=("ocean",)))),
        declared={Address("batch_export", "ocean"), *DESIRED.resources},
    )
    with pytest.raises(BadUsage, match=r"batch_export.ocean is not in environment staging"):
        select(DESIRED, LIVE, Policy(), KINDS, context=context)


def test_a_parent_that_must_be_created_cannot_be_excluded() -> None:
    desired = desired_of(project(), export())
    selection = Selection(excludes=("project.web",))
    with pytest.raises(BadUsage, match=r"project.web is excluded, but must be created"):
        planned(desired, live_of(), options=PlanOptions(selection=selection))


def test_what_a_plan_selected_is_selected_again_under_another_name() -> None:
    selection = Selection(targets=("Old lake",))
    first = planned(DESIRED, LIVE, options=PlanOptions(selection=selection))
    renamed = live_of(
        *LIVE.of("project"), live_export("e1", "New lake"), live_export("e2", "Sea", parent=2)
    )
    with pytest.raises(BadUsage, match="nothing matches 'Old lake'"):
        planned(DESIRED, renamed, options=PlanOptions(selection=selection))
    options = PlanOptions(selection=selection, planned_before=first.addresses)
    assert changed(planned(DESIRED, renamed, options=options)) == {"batch_export.lake"}


@pytest.mark.parametrize("pinned_id", [None, "e1"])
def test_a_parent_that_must_be_created_for_a_move_is_selected(pinned_id: str | None) -> None:
    moved = desired_of(
        project(), project("new"), export(parent="new", pinned_id=pinned_id, interval="day")
    )
    plan = planned(
        moved,
        live_of(live_project(), live_export()),
        options=PlanOptions(selection=Selection(targets=("batch_export.lake",))),
        base=desired_of(project(), export()),
    )
    assert [(change.id, change.depends_on) for change in plan.effective] == [
        ("project.new:create", ()),
        ("batch_export.lake:replace", ("project.new:create",)),
    ]


# Which objects a plan needs in full, of which only the short form of a list is known

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
