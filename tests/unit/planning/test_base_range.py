"""What the commits from the git base to HEAD decide, case by case."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Note, Origin, Plan, Reason, SecretUse
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.planning.base import Base
from tests.support.worlds import (
    base_of,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    with_secrets,
)

WEB, APP = project(), project("app")
RENAMED = replace(project("lab", name="New"), lifecycle=Lifecycle(renamed_from=("Lab", "App")))
PRUNE = Policy(prune={"*": Prune.GIT}, deletable=frozenset({"project"}))


def actions(plan: Plan) -> list[tuple[str, str, str | None]]:
    return [(change.action.value, str(change.address), change.live_id) for change in plan.effective]


def codes(plan: Plan) -> dict[str, str]:
    return {note.code: note.message for note in plan.notes}


def about(plan: Plan) -> dict[str, Address | None]:
    return {note.code: note.about for note in plan.notes}


# Names and places


def test_a_name_of_any_commit_identifies_the_object() -> None:
    first, second = (desired_of(WEB, export(name=name)) for name in ("Lake", "Pond"))
    for live_name in ("Lake", "Pond"):
        plan = planned(
            desired_of(WEB, export(name="Sea")),
            live_of(live_project(), live_export(name=live_name)),
            base=base_of(first, second),
        )
        assert actions(plan) == [("update", "batch_export.lake", "e1")]
        assert plan.effective[0].body == {"name": "Sea"}


def test_a_place_of_any_commit_identifies_the_object() -> None:
    plan = planned(
        desired_of(WEB, APP, project("lab"), export(parent="lab")),
        live_of(
            live_project(1),
            live_project(2, "App"),
            live_project(3, "Lab"),
            live_export(parent=2),
        ),
        base=base_of(desired_of(WEB, APP, export()), desired_of(WEB, APP, export(parent="app"))),
    )
    (change,) = plan.effective
    assert change.action is Action.REPLACE
    assert (change.old_parent_id, change.parent_id) == ("2", "3")


def test_a_pin_of_the_base_identifies_the_object_without_the_pin() -> None:
    plan = planned(
        desired_of(WEB, export(name="Sea")),
        live_of(live_project(), live_export(name="Other")),
        base=desired_of(WEB, export(pinned_id="e1")),
    )
    assert actions(plan) == [("update", "batch_export.lake", "e1")]


def test_two_names_of_the_base_that_are_both_live_are_an_error() -> None:
    live = live_of(live_project(), live_export("a"), live_export("b", "Pond"))
    with pytest.raises(AmbiguousIdentity) as error:
        planned(
            desired_of(WEB, export(name="Sea")),
            live,
            base=base_of(desired_of(WEB, export()), desired_of(WEB, export(name="Pond"))),
        )
    assert "2 live batch_exports may be this resource" in error.value.message
    assert error.value.candidates == (("batch_export", "a"), ("batch_export", "b"))


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_former_name_that_another_project_has_is_of_that_project(is_committed: bool) -> None:
    """Project 3 was never App, so the export in it was never `lake`."""
    desired = desired_of(APP, RENAMED, export(name="Sea", parent="app"))
    base = desired_of(APP, project("lab"), export(parent="app"))
    live = live_of(
        live_project(2, "App"),
        live_project(3, "Lab"),
        live_export("a", parent=2),
        live_export("b", parent=3),
    )
    plan = planned(desired, live, base=base_of(base, desired) if is_committed else base)
    assert ("update", "batch_export.lake", "a") in actions(plan)


def test_a_former_name_leads_to_a_project_until_another_one_has_it() -> None:
    """Project 3 was App. Another project gets this name, and the export moves to it."""
    desired = desired_of(APP, RENAMED, export(parent="app"))
    base = base_of(desired_of(APP, export(parent="app")), desired_of(RENAMED, export(parent="lab")))
    live = live_of(live_project(3, "New"), live_export("b", parent=3))
    plan = planned(desired, live, base=base)
    assert ("replace", "batch_export.lake", "b") in actions(plan)


# Removed resources


@pytest.mark.parametrize("declared_in", [0, 1, 2])
def test_what_any_commit_declared_and_is_gone_is_removed(declared_in: int) -> None:
    commits = [desired_of(WEB) for _ in range(3)]
    commits[declared_in] = desired_of(WEB, export())
    live = live_of(live_project(), live_export())
    plan = planned(desired_of(WEB), live, PRUNE, base=base_of(*commits))
    assert actions(plan) == [("delete", "batch_export.lake", "e1")]
    assert plan.effective[0].reasons == (Reason.REMOVED_FROM_FILES,)
    kept = planned(desired_of(WEB), live, base=base_of(*commits))
    assert kept.empty
    assert "batch_export.lake" in codes(kept)["removed-but-kept"]


def test_what_was_absent_at_every_commit_is_not_removed() -> None:
    absent = desired_of(WEB, export(state=State.ABSENT))
    live = live_of(live_project(), live_export())
    assert planned(desired_of(WEB), live, PRUNE, base=absent).empty
    present = desired_of(WEB, export())
    plan = planned(desired_of(WEB), live, PRUNE, base=base_of(present, absent))
    assert actions(plan) == [("delete", "batch_export.lake", "e1")]


@pytest.mark.parametrize("protected_in", [0, 1])
def test_plan_v10_protection_at_any_commit_protects(protected_in: int) -> None:
    commits = [desired_of(WEB, export()) for _ in range(2)]
    marked = replace(export(lifecycle=Lifecycle(protect=True)), mark=Mark("old.yaml", 7))
    commits[protected_in] = desired_of(WEB, marked)
    plan = planned(
        desired_of(WEB), live_of(live_project(), live_export()), PRUNE, base=base_of(*commits)
    )
    (refusal,) = plan.refusals
    # The line is no longer in the files.
    assert (refusal.rule, refusal.at) == ("protect", None)


def test_protection_under_another_key_protects() -> None:
    renamed = desired_of(WEB, export("pond", name="Lake", lifecycle=Lifecycle(protect=True)))
    plan = planned(
        desired_of(WEB),
        live_of(live_project(), live_export()),
        PRUNE,
        base=base_of(desired_of(WEB, export()), renamed),
    )
    assert [refusal.rule for refusal in plan.refusals] == ["protect"]


def test_a_removed_resource_that_may_be_two_objects_is_not_deleted() -> None:
    plan = planned(
        desired_of(WEB),
        live_of(live_project(), live_export("a"), live_export("b", "Pond")),
        PRUNE,
        base=base_of(desired_of(WEB, export()), desired_of(WEB, export(name="Pond"))),
    )
    assert plan.empty
    assert codes(plan)["removed-unclear"].endswith("id a, b")


def test_a_key_with_another_project_today_deletes_nothing() -> None:
    """The key of the base is of another project now: either could have the removed export."""
    plan = planned(
        desired_of(project("web", name="New"), project("old", name="Web")),
        live_of(live_project(1), live_project(2, "New"), live_export(parent=1)),
        PRUNE,
        base=desired_of(WEB, export()),
    )
    assert plan.effective == ()
    assert about(plan)["removed-unclear"] == Address("batch_export", "lake")


def test_a_resource_that_only_another_environment_has_is_not_pruned() -> None:
    address = export().address
    reason = "its `environments` exclude staging"
    base = base_of(desired_of(WEB, export()), kept={address: reason})
    live = live_of(live_project(), live_export())
    plan = planned(desired_of(WEB), live, PRUNE, base=base)
    assert plan.empty
    assert (
        codes(plan)["kept"] == f"no longer managed, and not deleted: batch_export.lake ({reason})"
    )
    plan = planned(desired_of(WEB), live, Policy(prune={"*": Prune.UNMANAGED}), base=base)
    assert actions(plan) == [("delete", "batch_export.lake", "e1")]


# Projects whose key changed


def _renamed_key(**spec: str) -> tuple[Desired, Desired, Live]:
    """A project with another key, one export renamed, one moved and one removed."""
    before = desired_of(
        project("store", name="Shop"),
        APP,
        export("kept", parent="store"),
        export("moved", parent="store"),
        export("gone", parent="store"),
    )
    after = desired_of(
        project("shop2", name="Shop", **spec),
        APP,
        export("kept", name="New", parent="shop2", destination=with_secrets()),
        export("moved", parent="app", destination=with_secrets()),
    )
    live = live_of(
        live_project(1, "Shop"),
        live_project(2, "App"),
        live_export("e1", "Kept"),
        live_export("e2", "Moved"),
        live_export("e3", "Gone"),
    )
    return before, after, live


def test_another_key_of_the_project_with_renames_moves_and_removals() -> None:
    before, after, live = _renamed_key()
    plan = planned(after, live, PRUNE, base=before)
    assert sorted(actions(plan)) == [
        ("delete", "batch_export.gone", "e3"),
        ("replace", "batch_export.moved", "e2"),
        ("update", "batch_export.kept", "e1"),
    ]


def test_another_key_and_name_of_the_project_at_once() -> None:
    before, after, live = _renamed_key()
    shop = project("shop2", name="Shop 2")
    renamed = {
        **after.resources,
        shop.address: type(shop)(
            shop.address, shop.spec, lifecycle=Lifecycle(renamed_from=("Shop",))
        ),
    }
    desired = desired_of(*renamed.values())
    expected = [
        ("delete", "batch_export.gone", "e3"),
        ("replace", "batch_export.moved", "e2"),
        ("update", "batch_export.kept", "e1"),
    ]
    plan = planned(desired, live, PRUNE, base=before)
    assert sorted(actions(plan)) == [*expected, ("update", "project.shop2", "1")]
    done = live_of(live_project(1, "Shop 2"), *live.of("project")[1:], *live.of("batch_export"))
    assert sorted(actions(planned(desired, done, PRUNE, base=before))) == expected


def test_keys_of_two_projects_that_swap() -> None:
    before = desired_of(WEB, APP, export("lake", parent="web"))
    after = desired_of(
        project("web", name="App"),
        project("app", name="Web"),
        export("lake", name="New", parent="app"),
    )
    live = live_of(live_project(1), live_project(2, "App"), live_export())
    assert actions(planned(after, live, base=before)) == [("update", "batch_export.lake", "e1")]


def test_a_protected_export_does_not_vanish_with_the_key_of_its_project() -> None:
    shop, protected = project("store", name="Shop"), Lifecycle(protect=True)
    before = desired_of(shop, export("gone", parent="store", lifecycle=protected))
    live = live_of(live_project(1, "Shop"), live_export("e1", "Gone"))
    plan = planned(desired_of(project("shop2", name="Shop")), live, PRUNE, base=before)
    assert [refusal.rule for refusal in plan.refusals] == ["protect"]


def test_a_removed_project_and_its_exports_are_both_removed() -> None:
    live = live_of(live_project(1), live_project(2, "App"), live_export())
    plan = planned(desired_of(APP), live, PRUNE, base=desired_of(WEB, APP, export()))
    assert actions(plan) == [
        ("delete", "batch_export.lake", "e1"),
        ("delete", "project.web", "1"),
    ]


STORE_TO_SHOP2 = [
    ("delete", "batch_export.gone", "e3"),
    ("replace", "batch_export.moved", "e2"),
    ("update", "batch_export.kept", "e1"),
]
SHOP_REFS = [ParentRef(id="1"), ParentRef(name="Shop")]


def _in_parent(desired: Desired, key: str, ref: ParentRef) -> Desired:
    """Return the configuration with another reference to a project, which it does not declare."""
    return desired_of(
        *(
            replace(resource, parent=ref) if resource.parent == ParentRef(key=key) else resource
            for resource in desired.resources.values()
            if resource.address != Address("project", key)
        )
    )


def _with(desired: Desired, *resources: Resource) -> Desired:
    return desired_of(*{**desired.resources, **desired_of(*resources).resources}.values())


@pytest.mark.parametrize("ref", SHOP_REFS)
def test_experience_2_a_project_named_by_id_or_name_at_the_base_has_a_key_now(
    ref: ParentRef,
) -> None:
    before, after, live = _renamed_key()
    plan = planned(after, live, PRUNE, base=_in_parent(before, "store", ref))
    assert sorted(actions(plan)) == STORE_TO_SHOP2


@pytest.mark.parametrize("ref", SHOP_REFS)
def test_experience_2_a_project_with_a_key_at_the_base_is_named_by_id_or_name_now(
    ref: ParentRef,
) -> None:
    before, after, live = _renamed_key()
    plan = planned(_in_parent(after, "shop2", ref), live, base=before)
    assert sorted(actions(plan)) == STORE_TO_SHOP2[1:]
    assert "batch_export.gone" in codes(plan)["removed-but-kept"]


@pytest.mark.parametrize("live_name", ["Shop", "Shop 2"])
def test_experience_2_a_project_is_pinned_only_now(live_name: str) -> None:
    before, after, live = _renamed_key()
    pinned = replace(project("shop2", name="Shop 2"), pinned_id="1")
    live = live_of(live_project(1, live_name), *live.of("project")[1:], *live.of("batch_export"))
    if live_name == "Shop 2":  # Applied before, from a commit of the range.
        before = _with(before, replace(project("store", name="Shop"), pinned_id="1"))
    plan = planned(_with(after, pinned), live, PRUNE, base=before)
    assert [action for action in sorted(actions(plan)) if "export" in action[1]] == STORE_TO_SHOP2


def test_experience_2_the_key_of_a_project_changes_twice_in_the_range() -> None:
    before, after, live = _renamed_key()
    middle = _with(
        _in_parent(before, "store", ParentRef(key="middle")), project("middle", name="Shop")
    )
    plan = planned(after, live, PRUNE, base=base_of(before, middle))
    assert sorted(actions(plan)) == STORE_TO_SHOP2


def test_experience_2_the_old_key_belongs_to_another_project_now() -> None:
    before = desired_of(project("store", name="Shop"), APP, export("kept", parent="store"))
    after = desired_of(
        project("shop2", name="Shop"),
        project("store", name="App"),
        export("kept", name="New", parent="shop2"),
    )
    live = live_of(live_project(1, "Shop"), live_project(2, "App"), live_export("e1", "Kept"))
    assert actions(planned(after, live, base=before)) == [("update", "batch_export.kept", "e1")]


def test_experience_2_a_removal_from_a_project_that_is_unknown_now_is_noted() -> None:
    """Its project was renamed in the UI, and is pinned under another key now."""
    shop = replace(project("shop2", name="Shop"), pinned_id="1")
    live = live_of(live_project(1, "By hand"), live_export("e1", "Gone"))
    before = desired_of(project("store", name="Shop"), export("gone", parent="store"))
    plan = planned(desired_of(shop), live, PRUNE, base=before)
    assert actions(plan) == [("update", "project.shop2", "1")]
    assert codes(plan)["removed-elsewhere"].endswith("id e1")
    plan = planned(desired_of(shop), live_of(live_project(1, "By hand")), PRUNE, base=before)
    assert "removed-elsewhere" not in codes(plan)


def test_experience_2_another_key_and_name_without_a_former_name_is_pointed_out() -> None:
    before, after, live = _renamed_key()
    del before.resources[Address("batch_export", "gone")]
    plan = planned(_with(after, project("shop2", name="Market")), live, base=before)
    assert ("create", "project.shop2", None) in actions(plan)
    assert [refusal.rule for refusal in plan.refusals] == ["allow_replace", "allow_replace"]
    (note,) = [note for note in plan.notes if note.code == "look-alike"]
    assert note.about == Address("project", "shop2")
    assert "renamed_from" in note.message


# Projects that another key took over, by a name that they had in between


@pytest.fixture
def taken_over() -> tuple[Base, Live]:
    """`web` was called Web, App and Web again, of which the first project got App only.

    Today the first project is `app`, and `web` is a project that was created since.
    """
    base = base_of(
        desired_of(WEB, export()),
        desired_of(project("web", name="App")),
        desired_of(APP, WEB),
    )
    return base, live_of(live_project(1, "App"), live_project(2, "Web"), live_export(parent=1))


def test_a_removed_export_in_a_project_of_another_key_is_not_forgotten(
    taken_over: tuple[Base, Live],
) -> None:
    base, live = taken_over
    head = desired_of(project("app", name="Sea"), project("web", name="Land"))
    plan = planned(head, live, PRUNE, base=base)
    assert [change.action for change in plan.effective] == [Action.UPDATE] * 2
    note = codes(plan)["removed-unclear"]
    assert note.endswith("not deleted, since it is not certain that it is id e1")
    assert about(plan)["removed-unclear"] == Address("batch_export", "lake")


@pytest.mark.parametrize("name", ["Lake", "Pond"])
def test_an_export_in_a_project_of_another_key_is_not_created_again(
    taken_over: tuple[Base, Live], name: str
) -> None:
    base, live = taken_over
    head = desired_of(
        project("app", name="Sea"), project("web", name="Land"), export(parent="web", name=name)
    )
    with pytest.raises(AmbiguousIdentity) as error:
        planned(head, live, PRUNE, base=base)
    assert "lake: a live batch_export in another place may be this resource" in error.value.message
    assert error.value.candidates == (("batch_export", "e1"),)
    assert "pin it: batch_exports: {lake: {id: e1}}" in str(error.value.hint)


def test_an_export_in_a_project_of_another_key_is_reported_beside_that_of_its_name(
    taken_over: tuple[Base, Live],
) -> None:
    base, live = taken_over
    second = live_of(*live.of("project"), *live.of("batch_export"), live_export("e2", parent=2))
    with pytest.raises(AmbiguousIdentity) as error:
        planned(desired_of(APP, WEB, export()), second, PRUNE, base=base)
    assert "2 live batch_exports may be this resource" in error.value.message


@pytest.mark.parametrize("name", ["Web", "App"])
def test_model_g1_a_former_name_of_a_resource_that_is_unchanged_is_free(name: str) -> None:
    """Unchanged are the resource, loaded twice, and the name of its project at all commits."""
    renamed = Lifecycle(renamed_from=("Pond",))
    versions = [desired_of(project(name=name), export(lifecycle=renamed)) for name in (name, "Web")]
    live = live_of(live_project(1), live_export("e1"), live_export("e2", "Pond"))
    if name == "Web":
        assert planned(versions[1], live, base=base_of(*versions)).empty
    else:
        with pytest.raises(AmbiguousIdentity):
            planned(versions[1], live, base=base_of(*versions))


def test_a_project_is_followed_over_several_keys_and_names() -> None:
    """Web led to App by the key `web`, App to Lab by the key `app`."""
    base = base_of(
        desired_of(WEB, export()),
        desired_of(project("web", name="App")),
        desired_of(APP, WEB),
        desired_of(project("app", name="Lab"), WEB),
        desired_of(project("lab"), APP, WEB),
    )
    live = live_of(live_project(1, "Lab"), live_project(2, "Web"), live_export(parent=1))
    plan = planned(desired_of(project("lab"), WEB), live, PRUNE, base=base)
    assert plan.effective == ()
    assert about(plan)["removed-unclear"] == Address("batch_export", "lake")


def test_an_export_of_the_name_in_an_unrelated_project_is_left_alone() -> None:
    base = base_of(desired_of(WEB, APP, export()), desired_of(WEB, APP))
    live = live_of(live_project(1), live_project(2, "App"), live_export(parent=2))
    plan = planned(desired_of(WEB, APP), live, PRUNE, base=base)
    assert plan.effective == ()
    assert "removed-unclear" not in codes(plan)


# Secrets and fields


@pytest.mark.parametrize(
    ("versions", "is_sent", "is_noted"),
    [
        ((None, None), False, False),
        (("1", None), True, True),
        ((None, "1"), True, False),
        (("1", "2"), True, False),
    ],
)
def test_experience_11_a_secret_that_differs_from_any_commit_is_sent(
    versions, is_sent, is_noted
) -> None:
    commits = [
        desired_of(WEB, export(destination=with_secrets(), secret_version=version))
        for version in versions
    ]
    plan = planned(
        desired_of(WEB, export(destination=with_secrets())),
        live_of(live_project(), live_export()),
        base=base_of(*commits),
    )
    uses = {note.use for change in plan.effective for note in change.secrets}
    assert uses == ({SecretUse.VERSION_CHANGED} if is_sent else set())
    assert ("secrets-sent-again" in codes(plan)) is is_noted


def test_the_origin_of_a_difference_compares_with_the_oldest_commit() -> None:
    commits = [desired_of(WEB, export(destination=s3(prefix=prefix))) for prefix in ("a/", "b/")]
    plan = planned(
        desired_of(WEB, export(destination=s3(prefix="b/"))),
        live_of(live_project(), live_export(destination=s3(prefix="a/"))),
        base=base_of(*commits),
    )
    assert plan.effective[0].fields[0].origin is Origin.FILES


def test_a_field_that_any_commit_declared_and_is_gone_is_reset() -> None:
    with_end = desired_of(WEB, export(end_at="2030-01-01T00:00:00Z"))
    plan = planned(
        desired_of(WEB, export()),
        live_of(live_project(), live_export(end_at="2030-01-01T00:00:00Z")),
        base=base_of(desired_of(WEB, export()), with_end),
    )
    assert plan.effective[0].body == {"end_at": None}


def test_a_key_of_a_merged_object_that_any_commit_declared_is_removed() -> None:
    commits = [desired_of(project(modifiers=keys)) for keys in ({"a": 1}, {"a": 1, "b": 2})]
    plan = planned(
        desired_of(project(modifiers={"a": 1})),
        live_of(live_project(modifiers={"a": 1, "b": 2, "c": 3})),
        base=base_of(*commits),
    )
    assert plan.effective[0].body == {"modifiers": {"a": 1, "b": None}}


def test_a_field_of_another_type_in_the_range_is_no_removed_field() -> None:
    other = {"type": "NoOp", "config": {}}
    plan = planned(
        desired_of(WEB, export(destination=other)),
        live_of(live_project(), live_export(destination=other)),
        base=base_of(desired_of(WEB, export()), desired_of(WEB, export(destination=other))),
    )
    assert plan.empty
    assert plan.notes == ()


# What the plan records


def test_a_plan_records_its_base_and_the_notes_on_it() -> None:
    note = Note("base-note", "a note")
    time = datetime(2026, 5, 23, 12, tzinfo=UTC)
    base = base_of(desired_of(WEB), commits=14, time=time, notes=(note,))
    plan = planned(desired_of(WEB), live_of(live_project()), base=base)
    assert plan.source.base == "c0ffee"
    assert plan.source.base_commits == 14
    assert plan.source.base_time == "2026-05-23T12:00:00Z"
    assert plan.notes == (note,)


# Two keys of one object


def renamed(key: str, *names: str) -> Resource:
    return export(key, lifecycle=Lifecycle(renamed_from=names))


OLD = live_of(live_project(), live_export("e1", "Old"))


@pytest.mark.parametrize("key", ["a", "c"])
def test_a_former_name_that_is_given_counts_before_the_base_of_another_key(key: str) -> None:
    base = desired_of(WEB, export("b", name="Old"))
    plan = planned(desired_of(WEB, export("b"), renamed(key, "Old")), OLD, base=base)
    assert set(actions(plan)) == {
        ("update", f"batch_export.{key}", "e1"),
        ("create", "batch_export.b", None),
    }


@pytest.mark.parametrize(("first", "second"), ["ab", "ba"])
def test_an_object_that_two_keys_may_have_is_ambiguous(first: str, second: str) -> None:
    commits = [
        desired_of(WEB, export(first, name="Old")),
        desired_of(WEB, export(first, name="New"), export(second, name="Old")),
    ]
    head = desired_of(WEB, export(first, name="Newer"), export(second, name="Newest"))
    with pytest.raises(AmbiguousIdentity, match=r"export.a and batch_export.b claim the same live"):
        planned(head, OLD, base=base_of(*commits))


def test_a_former_name_of_two_resources_is_ambiguous() -> None:
    by_id = replace(renamed("c", "Old"), parent=ParentRef(id="1"))
    with pytest.raises(AmbiguousIdentity, match="claim the same live batch_export"):
        planned(desired_of(WEB, renamed("a", "Old"), by_id), OLD)


# Removed resources that may be one of several objects


def named(key: str, name: str, **lifecycle: bool) -> Resource:
    return replace(project(key, name=name), lifecycle=Lifecycle(**lifecycle))


X_AND_Y = live_of(live_project(1, "X"), live_project(2, "Y"), live_project(3))


def swapped(first: str, second: str, **lifecycle: bool) -> Base:
    return base_of(
        desired_of(WEB, named(first, "X", **lifecycle)),
        desired_of(WEB, named(first, "Y", **lifecycle), named(second, "X")),
    )


@pytest.mark.parametrize(("first", "second"), ["bc", "cb"])
def test_the_order_of_keys_does_not_decide_which_removed_objects_are_deleted(
    first: str, second: str
) -> None:
    plan = planned(desired_of(WEB), X_AND_Y, PRUNE, base=swapped(first, second))
    assert set(actions(plan)) == {
        ("delete", f"project.{second}", "1"),
        ("delete", f"project.{first}", "2"),
    }
    assert plan.refusals == ()


@pytest.mark.parametrize(("first", "second"), ["bc", "cb"])
def test_what_may_be_a_protected_resource_is_not_deleted(first: str, second: str) -> None:
    plan = planned(desired_of(WEB), X_AND_Y, PRUNE, base=swapped(first, second, protect=True))
    refused = {refusal.addresses for refusal in plan.refusals}
    assert (Address("project", second),) in refused


def test_pruning_unmanaged_objects_deletes_nothing_that_may_be_protected() -> None:
    policy = Policy(prune={"*": Prune.UNMANAGED})
    twins = live_of(live_project(), live_export("e1"), live_export("e2"))
    protected = desired_of(WEB, export(lifecycle=Lifecycle(protect=True)))
    plan = planned(desired_of(WEB), twins, policy, base=protected)
    assert [refusal.rule for refusal in plan.refusals] == ["protect", "protect"]
    plan = planned(desired_of(WEB), twins, policy, base=desired_of(WEB, export()))
    assert len(plan.effective) == 2
    assert plan.refusals == ()
    assert plan.notes == ()


def test_what_is_deleted_has_no_note_that_it_is_kept() -> None:
    kept = {Address("batch_export", "lake"): "its file is not loaded"}
    base = Base(desired_of(WEB, export()), "c0ffee", kept=kept)
    live = live_of(live_project(), live_export())
    plan = planned(desired_of(WEB), live, Policy(prune={"*": Prune.UNMANAGED}), base=base)
    assert actions(plan) == [("delete", "batch_export.lake", "e1")]
    assert plan.notes == ()


EXCHANGED = (project("web", name="App"), project("app", name="Web"))


@pytest.mark.parametrize("parent", ["web", "app"])
def test_model_f3_exchanged_keys_take_over_nothing(parent: str) -> None:
    """The export of App is somebody else's: at the base, `lake` was in Web."""
    base = base_of(desired_of(project("web"), project("app"), export("lake", name="Alpha")))
    theirs = live_export("e1", "Alpha", parent=2)
    live = live_of(live_project(1, "Web"), live_project(2, "App"), theirs)
    desired = desired_of(*EXCHANGED, export("lake", name="Beta", parent=parent))
    with pytest.raises(AmbiguousIdentity, match=r"batch_export\.lake: .* in another place may be"):
        planned(desired, live, base=base)
