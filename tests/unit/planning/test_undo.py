"""What undo plans, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.kind import Action, Dialect
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.policy import Limit, Policy, Prune
from reconciler.model.resource import Desired, Lifecycle, State
from reconciler.model.values import SecretRef
from reconciler.planning.undo import AppliedPlan, undo_plan
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
    s3,
)

WEB = project()
LIVE_WEB = live_project()


def undo_of(
    desired: Desired,
    before: Live,
    after: Live,
    policy: Policy | None = None,
    *,
    created: dict[Any, str] | None = None,
    applied_policy: Policy | None = None,
) -> Plan:
    """The undo of the plan that turned `before` into `desired`, where `after` is live now."""
    applied = planned(desired, before, applied_policy)
    undone = AppliedPlan(applied, created=created or {})
    return undo_plan(undone, desired, after, policy or Policy(), KINDS, context=plan_context())


def actions(plan: Plan) -> list[tuple[str, str]]:
    return [(change.action.value, str(change.address)) for change in plan.effective]


def notes(plan: Plan) -> list[str]:
    return [note.message for note in plan.notes]


def prefixes(old: str, new: str, **body: Any) -> tuple[Desired, Live, Live]:
    """An export whose prefix went from `old` to `new`."""
    desired = desired_of(WEB, export(destination=s3(prefix=new)))
    before = live_of(LIVE_WEB, live_export(destination=s3(prefix=old), **body))
    after = live_of(LIVE_WEB, live_export(destination=s3(prefix=new), **body))
    return desired, before, after


# A1: policy.ignore and `managed`


def test_undo_refuses_an_object_that_the_policy_ignores() -> None:
    desired, before, after = prefixes("old/", "new/")
    plan = undo_of(desired, before, after, Policy(ignore=("La*",)))
    assert actions(plan) == []
    assert [refusal.rule for refusal in plan.refusals] == ["ignore"]
    assert [str(address) for address in plan.refusals[0].addresses] == ["batch_export.lake"]


def test_undo_of_a_rename_refuses_an_ignored_live_name() -> None:
    desired = desired_of(WEB, export(name="tmp-lake", pinned_id="e1"))
    before = live_of(LIVE_WEB, live_export(name="Lake"))
    after = live_of(LIVE_WEB, live_export(name="tmp-lake"))
    plan = undo_of(desired, before, after, Policy(ignore=("tmp-*",)))
    assert actions(plan) == []
    assert [refusal.rule for refusal in plan.refusals] == ["ignore"]


def test_a_resource_pinned_to_an_ignored_object_is_refused_as_ignored() -> None:
    desired = desired_of(WEB, export(name="Lake", pinned_id="e1"))
    live = live_of(LIVE_WEB, live_export(name="tmp-lake"))
    plan = planned(desired, live, Policy(ignore=("tmp-*",)))
    assert [refusal.rule for refusal in plan.refusals] == ["ignore"]


def test_undo_of_a_create_refuses_an_ignored_object() -> None:
    desired = desired_of(WEB, export())
    before, after = live_of(LIVE_WEB), live_of(LIVE_WEB, live_export())
    plan = undo_of(desired, before, after, Policy(ignore=("Lake",)))
    assert actions(plan) == []
    assert [refusal.rule for refusal in plan.refusals] == ["ignore"]


@pytest.mark.parametrize("percent", [10.0, 40.0, 60.0])
def test_a_percentage_means_the_same_in_a_plan_and_in_its_undo(percent: float) -> None:
    """Four resources, of which two are live: one change is 50 % of the managed objects."""
    others = [export("one"), export("two")]
    desired, before, after = prefixes("old/", "new/")
    resources = {**desired.resources, **{other.address: other for other in others}}
    desired = replace(desired, resources=resources)
    policy = Policy(max_changes=Limit(percent, percent=True))
    undo = undo_of(desired, before, after, policy)
    same = replace(desired, resources={**resources, **desired_of(*_absent(others)).resources})
    plan = planned(same, before, policy)
    assert len(undo.effective) == len(plan.effective) == 1
    assert [refusal.message for refusal in undo.refusals] == [
        refusal.message for refusal in plan.refusals
    ]


def _absent(resources: list[Any]) -> list[Any]:
    return [replace(resource, state=State.ABSENT) for resource in resources]


def test_undo_leaves_the_rest_of_the_workspace_alone() -> None:
    desired, before, after = prefixes("old/", "new/")
    other = export("other", name="Other")
    desired = replace(desired, resources={**desired.resources, other.address: other})
    stray = live_export("stray", name="Stray")
    after = live_of(LIVE_WEB, *after.of("batch_export"), stray)
    plan = undo_of(desired, before, after, Policy(prune={"*": Prune.UNMANAGED}))
    # The undo of the create of `other`, which was never made, adds nothing either.
    assert actions(plan) == [("update", "batch_export.lake")]


def test_undo_honours_protection() -> None:
    desired = desired_of(WEB, export(lifecycle=Lifecycle(protect=True)))
    before, after = live_of(LIVE_WEB), live_of(LIVE_WEB, live_export())
    plan = undo_of(desired, before, after)
    assert [refusal.rule for refusal in plan.refusals] == ["protect"]


def test_undo_respects_ignore_changes() -> None:
    desired, before, after = prefixes("old/", "new/")
    applied = planned(desired, before)
    life = Lifecycle(ignore_changes=("destination.config.prefix",))
    now = desired_of(WEB, export(destination=s3(prefix="new/"), lifecycle=life))
    plan = undo_plan(AppliedPlan(applied), now, after, Policy(), KINDS, context=plan_context())
    assert plan.empty
    assert any("ignore_changes" in note for note in notes(plan))


# A2: fields of a destination by its type


def postgres(**config: Any) -> dict[str, Any]:
    whole = {"host": "h", "database": "d", "port": 5432, "table_name": "t", **config}
    return {"type": "Postgres", "config": whole}


def test_undo_restores_a_field_that_several_types_have() -> None:
    """`schema` has the default "public" in Postgres and another one in Snowflake."""
    desired = desired_of(WEB, export(destination=postgres(schema="events")))
    before = live_of(LIVE_WEB, live_export(destination=postgres()))
    after = live_of(LIVE_WEB, live_export(destination=postgres(schema="events")))
    plan = undo_of(desired, before, after)
    assert notes(plan) == []
    (change,) = plan.effective
    assert change.body == {"destination": {"type": "Postgres", "config": {"schema": "public"}}}


def test_undo_restores_a_default() -> None:
    desired = desired_of(WEB, export(destination=postgres(schema="public")))
    before = live_of(LIVE_WEB, live_export(destination=postgres(schema="events")))
    after = live_of(LIVE_WEB, live_export(destination=postgres()))
    plan = undo_of(desired, before, after)
    assert notes(plan) == []
    (change,) = plan.effective
    assert change.body == {"destination": {"type": "Postgres", "config": {"schema": "events"}}}


def test_undo_of_a_change_of_type_notes_what_is_missing() -> None:
    """The plan has only the fields of the new type, so the old destination is not known."""
    desired = desired_of(WEB, export(destination=postgres()))
    before = live_of(LIVE_WEB, live_export(destination=s3()))
    after = live_of(LIVE_WEB, live_export(destination=postgres()))
    plan = undo_of(desired, before, after)
    assert plan.empty
    assert any("destination.type" in note for note in notes(plan))


def test_undo_of_a_deletion_keeps_fields_of_its_type() -> None:
    desired = desired_of(WEB, export(state=State.ABSENT))
    before = live_of(LIVE_WEB, live_export(destination=postgres(schema="events")))
    plan = undo_of(desired, before, live_of(LIVE_WEB))
    (change,) = plan.effective
    assert change.action is Action.CREATE
    assert change.body is not None
    assert change.body["destination"] == postgres(schema="events")


# What make_plan decides for undo


def test_undo_of_a_deleted_project_creates_it_before_its_exports() -> None:
    desired = desired_of(project(), export(state=State.ABSENT))
    web = replace(desired.in_order()[1], state=State.ABSENT)
    desired = replace(desired, resources={**desired.resources, web.address: web})
    plan = undo_of(desired, live_of(LIVE_WEB, live_export()), live_of(dialect=Dialect.INTERFACE))
    assert actions(plan) == [("create", "project.web"), ("create", "batch_export.lake")]
    assert plan.effective[1].depends_on == ("project.web:create",)


@pytest.mark.parametrize("port", [5432, 5433])
def test_plan_d9_secrets_come_from_the_configuration_of_the_same_place(port: int) -> None:
    secrets = {name: SecretRef.of("env", "X") for name in ("user", "password")}
    before = live_of(LIVE_WEB, live_export(destination=postgres()))
    absent = export(state=State.ABSENT, destination=postgres(port=port, **secrets))
    plan = undo_of(desired_of(WEB, absent), before, live_of(LIVE_WEB))
    (change,) = plan.effective
    sent = {note.path[-1] for note in change.secrets if note.use.sent}
    is_same = port == 5432
    assert sent == (secrets.keys() if is_same else set())
    assert [refusal.rule for refusal in plan.refusals] == ["field-required"] * (not is_same)
    assert ("must be set again" in notes(plan)[-1]) is not is_same


def test_plan_d9_an_integration_of_a_deleted_project_is_refused() -> None:
    """It was deleted with the project. So an undo does not end after the create of the project."""
    aws = {"type": "AwsS3", "config": s3()["config"], "integration": 7}
    absent = export(state=State.ABSENT, destination=aws)
    desired = desired_of(replace(WEB, state=State.ABSENT), absent)
    before = live_of(LIVE_WEB, live_export(destination=aws), dialect=Dialect.V2026)
    plan = undo_of(desired, before, live_of(dialect=None))
    assert actions(plan) == [("create", "project.web"), ("create", "batch_export.lake")]
    assert [refusal.rule for refusal in plan.refusals] == ["integration-of-another-project"]


def test_undo_of_a_deletion_requires_the_parent() -> None:
    desired = desired_of(WEB, export(state=State.ABSENT))
    before = live_of(LIVE_WEB, live_export())
    plan = undo_of(desired, before, live_of(dialect=Dialect.INTERFACE))
    assert plan.empty
    assert any("no longer exists" in note for note in notes(plan))


def test_undo_follows_the_object_and_not_the_key() -> None:
    """The key was renamed since, but the object is the same."""
    desired, before, after = prefixes("old/", "new/")
    applied = planned(desired, before)
    renamed = desired_of(WEB, export("ocean", name="Lake", pinned_id="e1"))
    plan = undo_plan(AppliedPlan(applied), renamed, after, Policy(), KINDS, context=plan_context())
    assert actions(plan) == [("update", "batch_export.lake")]


@pytest.mark.parametrize("other", [{}, {"unmanaged": "kept"}])
def test_undo_of_a_merged_object_restores_only_its_keys(other: dict[str, str]) -> None:
    desired = desired_of(project(modifiers={"changed": "new", "added": "x"}))
    before = live_of(live_project(modifiers={"changed": "old", **other}))
    after = live_of(live_project(modifiers={"changed": "new", "added": "x", **other}))
    plan = undo_of(desired, before, after)
    assert notes(plan) == []
    assert [change.body for change in plan.effective] == [
        {"modifiers": {"changed": "old", "added": None}}
    ]


# Another object has the id, or the place, of one of the plan (D8)


@pytest.mark.parametrize(
    ("now", "note"),
    [
        ({"name": "Theirs"}, "id 1 is named 'Theirs' now: nothing is restored"),
        ({"uuid": "u2"}, "id 1 has another uuid now: nothing is restored"),
        ({"uuid": "u1"}, ""),
    ],
)
def test_plan_d8_a_project_is_recognized_by_id_name_and_uuid(
    now: dict[str, Any], note: str
) -> None:
    before = live_of(live_project(uuid="u1"))
    after = live_of(live_project(**{"uuid": "u1", "timezone": "Asia/Tokyo", **now}))
    plan = undo_of(desired_of(project(timezone="Asia/Tokyo")), before, after)
    assert actions(plan) == ([] if note else [("update", "project.web")])
    assert notes(plan) == ([f"project.web: {note}"] if note else [])


def test_plan_d8_an_export_is_recognized_by_created_at() -> None:
    desired, before, after = prefixes("old/", "new/")
    (lake,) = after.of("batch_export")
    other = replace(lake, body={**lake.body, "created_at": "2026-02-02T00:00:00Z"})
    assert undo_of(desired, before, live_of(LIVE_WEB, other)).empty


@pytest.mark.parametrize("name", ["Lake", "Sea"])
def test_plan_d8_an_undone_rename_does_not_hide_what_is_left(name: str) -> None:
    """An undo that was cut short left the new or the former name."""
    desired = desired_of(WEB, export(name="Sea", pinned_id="e1", paused=True))
    before = live_of(LIVE_WEB, live_export(name="Lake"))
    after = live_of(LIVE_WEB, live_export(name=name, paused=True))
    rest = [("update", "batch_export.lake")] if name == "Sea" else []
    assert actions(undo_of(desired, before, after)) == [*rest, ("unpause", "batch_export.lake")]


@pytest.mark.parametrize("created", [{export().address: "e7"}, {}])
def test_plan_d8_an_export_of_another_project_is_not_deleted(created: dict[Any, str]) -> None:
    """The project of the plan has the id of another one now."""
    theirs = live_of(live_project(name="Theirs"), live_export("e8"))
    plan = undo_of(desired_of(WEB, export()), live_of(LIVE_WEB), theirs, created=created)
    assert plan.empty
    assert notes(plan)[-1] == "batch_export.lake: already deleted: nothing is deleted"


def test_plan_d8_an_export_is_not_looked_for_outside_of_a_project_of_its_run() -> None:
    after = live_of(live_project(2, "Theirs"), live_export("e8", parent=2))
    plan = undo_of(desired_of(WEB, export()), live_of(), after)
    assert plan.empty


def test_plan_d8_a_deleted_export_is_not_created_in_another_project() -> None:
    desired = desired_of(WEB, export(state=State.ABSENT))
    theirs = live_of(live_project(name="Theirs"))
    plan = undo_of(desired, live_of(LIVE_WEB, live_export()), theirs)
    assert plan.empty
    assert "its project no longer exists: nothing is created" in notes(plan)[0]


# Objects that another key declares now


@pytest.mark.parametrize(
    "other",
    [
        {"name": "Lake"},
        {"name": "Other", "pinned_id": "new"},
    ],
)
def test_undo_refuses_to_delete_what_another_key_protects(other: dict[str, Any]) -> None:
    applied = planned(desired_of(WEB, export()), live_of(LIVE_WEB))
    protected = export("other", lifecycle=Lifecycle(protect=True), **other)
    plan = undo_plan(
        AppliedPlan(applied),
        desired_of(WEB, protected),
        live_of(LIVE_WEB, live_export("new")),
        Policy(),
        KINDS,
        context=plan_context(),
    )
    assert actions(plan) == [("delete", "batch_export.lake")]
    assert [refusal.rule for refusal in plan.refusals] == ["protect"]


def test_undo_leaves_what_another_key_ignores() -> None:
    desired, before, after = prefixes("old/", "new/")
    applied = planned(desired, before)
    ignoring = Lifecycle(ignore_changes=("destination.config.prefix",))
    other = export("other", name="Lake", lifecycle=ignoring)
    context = plan_context()
    plan = undo_plan(
        AppliedPlan(applied), desired_of(WEB, other), after, Policy(), KINDS, context=context
    )
    assert plan.empty
    assert "destination.config.prefix is not restored: it is in ignore_changes" in notes(plan)[0]


def test_undo_restores_what_was_deleted_with_a_project() -> None:
    absent = desired_of(replace(WEB, state=State.ABSENT))
    policy = Policy(deletable=frozenset({"project"}))
    before = live_of(LIVE_WEB, live_export("hand"))
    plan = undo_of(absent, before, live_of(), applied_policy=policy)
    assert actions(plan) == [("create", "project.web"), ("create", "batch_export.id:hand")]
