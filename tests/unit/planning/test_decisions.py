"""What the planner decides, case by case. No network, no service."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import Origin, Plan, Reason, Refusal, SecretUse
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import Limit, PlanOptions, Policy, Selection
from reconciler.model.values import SecretRef
from reconciler.planning.inventory import Inventory
from tests.support.worlds import (
    desired_of,
    export,
    inventory_of,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    with_secrets,
)

WEB = project()
NO_OP = {"type": "NoOp", "config": {}}


def actions(plan: Plan) -> list[tuple[str, str]]:
    return [(change.action.value, str(change.address)) for change in plan.effective]


def one(plan: Plan):
    (change,) = plan.effective
    return change


# Comparison


@pytest.mark.parametrize(
    ("declared", "answered"),
    [
        ({"start_at": "2026-01-01T01:00:00+01:00"}, {"start_at": "2026-01-01T00:00:00Z"}),
        ({"start_at": "2026-01-01"}, {"start_at": "2026-01-01T00:00:00Z"}),
        ({"model": None}, {"model": "events"}),
        ({"name": " Lake "}, {"name": "Lake"}),
        ({"destination": s3(compression=None)}, {"destination": s3()}),
        ({"destination": s3(file_format="JSONLines")}, {"destination": s3()}),
        (
            {"destination": s3(use_virtual_style_addressing=True)},
            {"destination": s3(use_virtual_style_addressing="True")},
        ),
        (
            {"destination": s3(max_file_size_mb=5)},
            {"destination": s3(max_file_size_mb="5")},
        ),
        (
            {"destination": s3(exclude_events=["b", "a"])},
            {"destination": s3(exclude_events=["a", "b"])},
        ),
        ({"destination": s3(exclude_events=[])}, {"destination": s3()}),
        (
            {"sql_query": "select event, toInt(1+1) as n from events"},
            {
                "sql_query": None,
                "schema": {"hogql_query": "SELECT event, toInt(plus(1, 1)) AS n FROM events"},
            },
        ),
        ({"destination": s3()}, {"destination": s3(legacy_parquet_extension=False)}),
    ],
)
def test_a_value_as_the_server_stores_it_is_no_change(declared, answered) -> None:
    desired = desired_of(WEB, export(**declared))
    assert planned(desired, live_of(live_project(), live_export(**answered))).empty


@pytest.mark.parametrize(
    ("declared", "answered"),
    [
        ({"session_recording_sample_rate": 0.4}, {"session_recording_sample_rate": "0.40"}),
        ({"modifiers": {"a": 1}}, {"modifiers": {"a": 1, "b": 2}}),
        ({"modifiers": {"a": None}}, {"modifiers": None}),
        (
            {"session_replay_config": {"x": {"a": 1}}},
            {"session_replay_config": {"x": {"a": 1, "b": 2}}},
        ),
        ({"extra_settings": {"k": 1}}, {"extra_settings": {"k": 1, "recorder_script": "p"}}),
        ({"app_urls": ["b", "", "a"]}, {"app_urls": ["a", "b"]}),
        (
            {"autocapture_exceptions_errors_to_ignore": []},
            {"autocapture_exceptions_errors_to_ignore": None},
        ),
        ({"correlation_config": {"b": 1, "a": 2}}, {"correlation_config": {"a": 2, "b": 1}}),
    ],
)
def test_a_setting_as_the_server_stores_it_is_no_change(declared, answered) -> None:
    assert planned(desired_of(project(**declared)), live_of(live_project(**answered))).empty


def test_null_and_false_differ_in_a_three_state_boolean() -> None:
    plan = planned(
        desired_of(project(surveys_opt_in=False)), live_of(live_project(surveys_opt_in=None))
    )
    assert one(plan).body == {"surveys_opt_in": False}


def test_live_keys_of_a_replaced_object_are_sent_too() -> None:
    plan = planned(
        desired_of(project(extra_settings={"k": 2})),
        live_of(live_project(extra_settings={"k": 1, "recorder_script": "p"})),
    )
    assert one(plan).body == {"extra_settings": {"k": 2, "recorder_script": "p"}}


def test_what_is_sent_with_a_change_has_live_values_if_it_is_ignored() -> None:
    life = Lifecycle(ignore_changes=("timezone", "destination.config.file_format"))
    files = {"destination": s3(file_format="JSONLines", compression="brotli"), "timezone": "UTC"}
    body = {"destination": s3(file_format="Parquet", compression="gzip"), "interval": "day"}
    live = live_export(timezone="Europe/Berlin", **body)
    live = live_of(live_project(), live, dialect=Dialect.V2026)
    change = one(planned(desired_of(WEB, export(lifecycle=life, **files)), live))
    assert {item.path[-1] for item in change.fields} == {"interval", "compression"}
    assert change.body["timezone"] == change.seen["timezone"] == "Europe/Berlin"
    config = {"file_format": "Parquet", "compression": "brotli"}
    assert change.body["destination"]["config"] == config


def test_nothing_is_ignored_inside_of_another_type() -> None:
    life = Lifecycle(ignore_changes=("destination.config",))
    places = {"host": "h", "database": "d", "schema": "s", "table_name": "t"}
    live = live_of(live_project(), live_export(destination={"type": "Postgres", "config": places}))
    places = {**places, "host": "other"}
    resource = export(lifecycle=life, destination={"type": "Redshift", "config": places})
    change = one(planned(desired_of(WEB, resource), live))
    assert {item.path[-1] for item in change.fields} == {"type", "host"}
    assert change.body["destination"]["config"] == places


def test_ignore_changes_leaves_a_field_unchanged() -> None:
    life = Lifecycle(ignore_changes=("destination.config.prefix", "paused"))
    desired = desired_of(WEB, export(lifecycle=life, paused=True, destination=s3(prefix="new/")))
    assert planned(desired, live_of(live_project(), live_export())).empty


# Bodies


def test_a_patch_of_a_destination_contains_its_type_and_integration() -> None:
    desired = desired_of(WEB, export(destination=s3(prefix="new/")))
    live = live_export(destination={**s3(), "integration": 7})
    plan = planned(desired, live_of(live_project(), live))
    assert one(plan).body == {
        "destination": {"type": "S3", "integration": 7, "config": {"prefix": "new/"}}
    }


def test_compression_is_sent_with_the_file_format() -> None:
    desired = desired_of(WEB, export(destination=s3(compression="zstd")))
    live = live_export(destination=s3(file_format="Parquet", compression="snappy"))
    plan = planned(desired, live_of(live_project(), live))
    assert one(plan).body["destination"]["config"] == {
        "compression": "zstd",
        "file_format": "Parquet",
    }


def test_offsets_are_sent_with_the_interval() -> None:
    desired = desired_of(WEB, export(interval="day", timezone="UTC", offset_hour=5))
    live = live_export(interval="day", timezone="UTC", offset_hour=0)
    plan = planned(desired, live_of(live_project(), live, dialect=Dialect.V2026))
    assert one(plan).body == {"interval": "day", "timezone": "UTC", "offset_hour": 5}


@pytest.mark.parametrize(
    ("dialect", "names"),
    [
        (Dialect.INTERFACE, {"sql_query"}),
        (Dialect.V2025, {"hogql_query"}),
        (Dialect.V2026, {"hogql_query"}),
        (None, {"sql_query", "hogql_query"}),
    ],
)
def test_a_query_is_sent_under_the_name_of_the_dialect(dialect, names) -> None:
    desired = desired_of(WEB, export(sql_query="select event from events"))
    change = planned(desired, live_of(live_project(), dialect=dialect)).effective[0]
    assert {name for name in change.body if name.endswith("_query")} == names


def test_a_paused_export_is_created_paused() -> None:
    plan = planned(desired_of(WEB, export(paused=True)), live_of(live_project()))
    assert actions(plan) == [("create", "batch_export.lake")]
    assert one(plan).body["paused"] is True


def test_a_dashboard_is_set_after_the_create() -> None:
    change = one(planned(desired_of(project(primary_dashboard=4)), live_of()))
    assert "primary_dashboard" not in change.body
    assert change.after_create == {"primary_dashboard": 4}


# Identity


def test_a_rename_is_an_update() -> None:
    desired = desired_of(WEB, export(name="New", lifecycle=Lifecycle(renamed_from=("Lake",))))
    change = one(planned(desired, live_of(live_project(), live_export())))
    assert change.action is Action.UPDATE
    assert change.body == {"name": "New"}
    assert Reason.RENAMED in change.reasons


def refused(plan: Plan, rule: str, *addresses: str) -> Refusal:
    """Return the only refusal of a plan without changes of the addresses."""
    (refusal,) = plan.refusals
    assert (refusal.rule, [*map(str, refusal.addresses)]) == (rule, [*addresses])
    assert not {str(change.address) for change in plan.changes} & {*addresses}
    return refusal


def test_duplicate_live_names_are_an_error() -> None:
    live = live_of(live_project(), live_export("a"), live_export("b"))
    refusal = refused(planned(desired_of(WEB, export()), live), "ambiguous", "batch_export.lake")
    assert "2 live batch_exports are named 'Lake': id a" in refusal.message
    assert "{lake: {id: a}}" in (refusal.allow or "")
    assert [str(item.address) for item in refusal.objects] == [
        "batch_export.id:a",
        "batch_export.id:b",
    ]


def renamed(resource: Resource, *names: str) -> Resource:
    return replace(resource, lifecycle=Lifecycle(renamed_from=names))


@pytest.mark.parametrize("names", [("A", "B"), ("B", "A"), ("B ", "A", "B")])
@pytest.mark.parametrize(
    ("resource", "live", "pin"),
    [
        (project(name="New"), (live_project(4, "A"), live_project(7, "B")), "{web: {id: 4}}"),
        (export(name="New", parent=None), (live_export("4", "A"), live_export("7", "B")), "lake"),
    ],
)
def test_model_f5_two_objects_with_former_names_are_ambiguous(
    resource: Resource, live: tuple[LiveObject, ...], pin: str, names: tuple[str, ...]
) -> None:
    plan = planned(desired_of(renamed(resource, *names)), live_of(*live))
    refusal = refused(plan, "ambiguous", str(resource.address))
    first, second = refusal.message.split("; ")
    assert first.startswith(f"{resource.address}: 2 live {resource.address.kind}s may be")
    assert ["id 4" in first, "name 'A'" in first] == [True, True]
    assert ["id 7" in second, "name 'B'" in second] == [True, True]
    assert "keep only the intended name in `lifecycle.renamed_from`" in (refusal.allow or "")
    assert pin in (refusal.allow or "")
    # What the hint says.
    plan = planned(desired_of(renamed(resource, "B")), live_of(*live))
    assert one(plan).live_id == "7"
    pinned = replace(renamed(resource, *names), pinned_id="4")
    assert one(planned(desired_of(pinned), live_of(*live))).live_id == "4"


def test_an_id_selects_one_of_two_duplicates() -> None:
    live = live_of(live_project(), live_export("a"), live_export("b"))
    plan = planned(desired_of(WEB, export(pinned_id="b", interval="day")), live)
    assert one(plan).live_id == "b"


def test_an_id_that_does_not_exist_is_an_error() -> None:
    pinned = replace(export(pinned_id="zz"), marks={("id",): Mark("lake.yaml", 4, 9)})
    plan = planned(desired_of(WEB, pinned), live_of(live_project()))
    refusal = refused(plan, "unresolved", "batch_export.lake")
    assert refusal.message == "batch_export.lake: no live batch_export has the id 'zz'"
    assert refusal.at == Mark("lake.yaml", 4, 9)


def test_two_resources_that_claim_one_object_are_an_error() -> None:
    desired = desired_of(WEB, export(), export("other", name="Lake2", pinned_id="e1"))
    desired_same = desired_of(WEB, export("a", pinned_id="e1"), export("b", pinned_id="e1"))
    live = live_of(live_project(), live_export())
    assert actions(planned(desired, live)) == [
        ("update", "batch_export.other"),
        ("create", "batch_export.lake"),
    ]
    refused(planned(desired_same, live), "ambiguous", "batch_export.a", "batch_export.b")


def test_names_are_matched_within_the_project() -> None:
    live = live_of(live_project(1), live_project(2, "App"), live_export("x", parent=2))
    assert actions(planned(desired_of(WEB, export()), live)) == [("create", "batch_export.lake")]


def test_an_export_of_a_project_named_by_id_needs_no_declaration() -> None:
    desired = desired_of(replace(export(), parent=ParentRef(id="1")))
    assert planned(desired, live_of(live_project(), live_export())).empty


# Replacement


def test_a_type_change_is_a_replacement_where_the_server_fixes_it() -> None:
    desired = desired_of(WEB, export(destination={"type": "NoOp", "config": {}}))
    live = [live_project(), live_export(paused=True, end_at="2030-01-01T00:00:00Z", timezone="UTC")]
    in_place = planned(desired, live_of(*live))
    assert one(in_place).action is Action.UPDATE
    replaced = planned(desired, live_of(*live, dialect=Dialect.V2026))
    change = one(replaced)
    assert change.action is Action.REPLACE
    assert change.body["paused"] is True
    assert change.body["end_at"] == "2030-01-01T00:00:00Z"
    assert [refusal.rule for refusal in replaced.refusals] == ["allow_replace"]
    allowed = planned(
        desired, live_of(*live, dialect=Dialect.V2026), options=PlanOptions(allow_replace=True)
    )
    assert allowed.refusals == ()
    assert "history-lost" in {consequence.rule for consequence in change.consequences}


def test_a_move_is_detected_by_the_git_base() -> None:
    app = project("app")
    live = live_of(live_project(1), live_project(2, "App"), live_export())
    plan = planned(
        desired_of(WEB, app, export(parent="app")), live, base=desired_of(WEB, app, export())
    )
    change = one(plan)
    assert change.action is Action.REPLACE
    assert change.reasons == (Reason.MOVED,)
    assert (change.parent_id, change.old_parent_id) == ("2", "1")


# Secrets


@pytest.mark.parametrize(
    ("base_key", "version", "rotate", "use"),
    [
        ("KEY", None, (), SecretUse.UNREADABLE),
        ("OLD", None, (), SecretUse.REFERENCE_CHANGED),
        ("KEY", "2", (), SecretUse.VERSION_CHANGED),
        ("KEY", None, ("*",), SecretUse.ROTATE),
        ("KEY", None, ("lake",), SecretUse.ROTATE),
    ],
)
def test_when_a_secret_is_sent(base_key, version, rotate, use) -> None:
    base = export(destination=with_secrets())
    base.spec["destination"]["config"]["aws_secret_access_key"] = SecretRef.of("env", base_key)
    desired = desired_of(WEB, export(destination=with_secrets(), secret_version=version))
    plan = planned(
        desired,
        live_of(live_project(), live_export()),
        base=desired_of(WEB, base),
        options=PlanOptions(rotate=rotate),
    )
    if use is SecretUse.UNREADABLE:
        assert plan.empty
        return
    notes = {str(note.path[-1]): note for note in one(plan).secrets}
    assert notes["aws_secret_access_key"].use is use
    assert "aws_secret_access_key" in one(plan).body["destination"]["config"]
    assert one(plan).body["destination"]["type"] == "S3"


@pytest.mark.parametrize("rotate", [False, True])
def test_an_ignored_destination_keeps_its_type_when_secrets_change(*, rotate: bool) -> None:
    """`ignore_changes` covers secrets. Where one is sent on request, the live type is sent, too."""
    life, live = Lifecycle(ignore_changes=("destination",)), live_export(destination=NO_OP)
    plan = planned(
        desired_of(WEB, export(destination=with_secrets(), lifecycle=life)),
        live_of(live_project(), live),
        base=desired_of(WEB, export(destination=NO_OP, lifecycle=life)),
        options=PlanOptions(rotate=("lake",) if rotate else ()),
    )
    bodies = [change.body for change in plan.effective]
    assert [body["destination"]["type"] for body in bodies] == ["NoOp"] * rotate


def test_a_change_of_type_in_place_needs_the_secrets() -> None:
    live = live_export(destination={"type": "NoOp", "config": {}})
    plan = planned(
        desired_of(WEB, export(destination=with_secrets())), live_of(live_project(), live)
    )
    assert {note.use for note in one(plan).secrets} == {SecretUse.NEEDED}
    assert set(one(plan).body["destination"]["config"]) >= {"aws_access_key_id", "prefix"}


# The git base


@pytest.mark.parametrize(
    ("base", "live", "origin"),
    [("a/", "a/", Origin.FILES), ("b/", "x/", Origin.LIVE), ("a/", "x/", Origin.BOTH)],
)
def test_the_origin_of_a_difference(base, live, origin) -> None:
    plan = planned(
        desired_of(WEB, export(destination=s3(prefix="b/"))),
        live_of(live_project(), live_export(destination=s3(prefix=live))),
        base=desired_of(WEB, export(destination=s3(prefix=base))),
    )
    (field,) = one(plan).fields
    assert field.origin is origin


def test_a_removed_key_is_reset_to_null_or_the_default() -> None:
    base = export(
        end_at="2030-01-01T00:00:00Z",
        destination=s3(compression="gzip", use_virtual_style_addressing=True),
    )
    live = live_export(
        end_at="2030-01-01T00:00:00Z",
        destination=s3(compression="gzip", use_virtual_style_addressing=True),
    )
    plan = planned(
        desired_of(WEB, export()), live_of(live_project(), live), base=desired_of(WEB, base)
    )
    change = one(plan)
    assert change.body["end_at"] is None
    assert change.body["destination"]["config"] == {
        "compression": None,
        "use_virtual_style_addressing": False,
    }
    assert all(field.reset for field in change.fields)


def test_a_removed_setting_goes_back_to_its_documented_default() -> None:
    """The contradiction in findings/plan.md: it was documented, and "the API cannot reset it"."""
    plan = planned(
        desired_of(project()),
        live_of(live_project(session_recording_opt_in=True)),
        base=desired_of(project(session_recording_opt_in=True)),
    )
    assert one(plan).body == {"session_recording_opt_in": False}
    assert one(plan).reasons == (Reason.REMOVED_KEY,)
    assert [item.rule for item in one(plan).consequences] == ["capture-turned-off"]


def test_a_removed_key_that_the_api_cannot_reset_is_a_note() -> None:
    plan = planned(
        desired_of(project()),
        live_of(live_project(anonymize_ips=True)),
        base=desired_of(project(anonymize_ips=True)),
    )
    assert plan.empty
    assert "stays-as-it-is" in {note.code for note in plan.notes}


def test_a_removed_part_of_a_merged_object_is_set_to_null() -> None:
    plan = planned(
        desired_of(project(modifiers={"a": 1})),
        live_of(live_project(modifiers={"a": 1, "b": 2})),
        base=desired_of(project(modifiers={"a": 1, "b": 2})),
    )
    assert one(plan).body == {"modifiers": {"a": 1, "b": None}}


def test_removal_from_the_files_deletes_only_with_prune() -> None:
    live = live_of(live_project(), live_export())
    base = desired_of(WEB, export())
    kept = planned(desired_of(WEB), live, base=base)
    assert kept.empty
    assert [str(item.address) for item in kept.leaving] == ["batch_export.lake"]
    gone = planned(desired_of(WEB), live, Policy(prune=True), base=base)
    assert actions(gone) == [("delete", "batch_export.lake")]
    assert one(gone).reasons == (Reason.REMOVED_FROM_FILES,)
    never_ours = planned(desired_of(WEB), live, Policy(prune=True), base=desired_of(WEB))
    assert never_ours.empty


# Deletion and policy


def test_deleting_a_project_requires_its_policy_key_and_lists_consequences() -> None:
    gone = replace(project(), state=State.ABSENT)
    live = live_of(live_project(), live_export("a", "A"), live_export("b", "B"))
    plan = planned(desired_of(gone), live)
    assert [refusal.rule for refusal in plan.refusals] == ["allow_project_deletion"]
    *exports, deletion = plan.effective
    assert [change.live_id for change in exports] == ["a", "b"]
    (lost,) = [item.message for item in deletion.consequences if item.rule == "project-data-lost"]
    assert "2 batch exports, managed or not ('A', 'B')" in lost
    assert planned(desired_of(gone), live, Policy(deletable=frozenset({"project"}))).refusals == ()


def test_protect_applies_to_a_removed_resource() -> None:
    base = desired_of(WEB, export(lifecycle=Lifecycle(protect=True)))
    live = live_of(live_project(), live_export())
    plan = planned(desired_of(WEB), live, Policy(prune=True), base=base)
    assert [refusal.rule for refusal in plan.refusals] == ["protect"]


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        (Limit(0), True),
        (Limit(1), False),
        (Limit(30, percent=True), True),
        (Limit(50, percent=True), False),
    ],
)
def test_limits_are_absolute_or_a_percentage(limit, refused) -> None:
    desired = desired_of(WEB, export(state=State.ABSENT))
    live = live_of(live_project(), live_export())
    plan = planned(desired, live, Policy(max_deletes=limit))
    assert bool(plan.refusals) is refused


@pytest.mark.parametrize(
    ("count", "state", "policy", "refused"),
    [
        (10, None, {}, False),
        (11, None, {}, True),
        (11, State.ABSENT, {}, False),
        (11, State.ABSENT, {"max_deletes": Limit(10)}, True),
        (11, None, {"max_deletes": Limit(11)}, False),
    ],
)
def test_without_max_deletes_at_most_ten_removed_resources_are_deleted(
    count: int, state: State | None, policy: dict[str, Limit], *, refused: bool
) -> None:
    """A written limit counts everything that is lost, the default what no line asks for."""
    exports = [export(f"e{number}", name=f"E{number}") for number in range(count)]
    live = [live_export(f"id{number}", f"E{number}") for number in range(count)]
    absent = [replace(item, state=state) for item in exports] if state is not None else []
    plan = planned(
        desired_of(WEB, *absent),
        live_of(live_project(), *live),
        Policy(prune=True, **policy),
        base=desired_of(WEB, *exports),
    )
    assert len(plan.effective) == count
    assert [refusal.rule for refusal in plan.refusals] == ["max_deletes"] * refused
    if refused and not policy:
        assert "set `policy: {max_deletes: 11}`" in (plan.refusals[0].allow or "")


def test_a_denied_consequence_is_a_refusal() -> None:
    desired = desired_of(WEB, export(destination=s3(prefix="new/")))
    live = live_of(live_project(), live_export())
    plan = planned(desired, live, Policy(deny=("destination-moved",)))
    assert [refusal.rule for refusal in plan.refusals] == ["deny"]


def test_an_ignored_name_is_not_changed_and_cannot_be_declared() -> None:
    live = live_of(live_project(), live_export(), live_export("t", "tmp-1"))
    policy = Policy(prune=True, ignore=("tmp-*",))
    plan = planned(desired_of(WEB, export()), live, policy)
    assert plan.empty
    assert [ignored.name for ignored in plan.ignored] == ["tmp-1"]
    declared = planned(
        desired_of(WEB, export("tmp", name="tmp-1")), live, Policy(ignore=("tmp-*",))
    )
    assert [refusal.rule for refusal in declared.refusals] == ["ignore"]


# Order


def test_parents_come_first_and_deletions_last_children_before_parents() -> None:
    gone = replace(project("old"), state=State.ABSENT)
    child = export("child", parent="old", name="C", state=State.ABSENT)
    new = project("new")
    live = live_of(live_project(1, "Old"), live_export("c", "C"))
    plan = planned(desired_of(gone, child, new, export("fresh", parent="new")), live)
    assert actions(plan) == [
        ("create", "project.new"),
        ("create", "batch_export.fresh"),
        ("delete", "batch_export.child"),
        ("delete", "project.old"),
    ]
    assert plan.effective[1].depends_on == ("project.new:create",)
    assert plan.effective[3].depends_on == ("batch_export.child:delete",)


def test_a_name_is_freed_before_it_is_taken() -> None:
    lifecycle = Lifecycle(renamed_from=("Alpha",))
    renamed = replace(project("a", name="Beta"), lifecycle=lifecycle, pinned_id="1")
    new = project("b", name="Alpha")
    plan = planned(desired_of(renamed, new), live_of(live_project(1, "Alpha")))
    assert actions(plan) == [("update", "project.a"), ("create", "project.b")]
    assert plan.effective[1].depends_on == ("project.a:update",)


def test_two_projects_that_swap_names_are_refused_with_a_hint() -> None:
    def pinned(key: str, name: str, identity: str):
        return replace(project(key, name=name), pinned_id=identity)

    live = live_of(live_project(1, "A"), live_project(2, "B"))
    plan = planned(desired_of(pinned("a", "B", "1"), pinned("b", "A", "2")), live)
    assert [refusal.rule for refusal in plan.refusals] == ["name-circle"]
    assert "temporary name" in (plan.refusals[0].allow or "")


def test_an_export_that_moves_to_a_project_which_takes_the_old_name_stays_in_the_plan() -> None:
    old = replace(project("old", name="Web"), pinned_id="1", state=State.ABSENT)
    moved = export(parent="new", pinned_id="e1")
    live = live_of(live_project(1, "Web"), live_export())
    plan = planned(desired_of(old, project("new", name="Web"), moved), live)
    assert actions(plan) == [
        ("create", "project.new"),
        ("replace", "batch_export.lake"),
        ("delete", "project.old"),
    ]
    refused = next(refusal for refusal in plan.refusals if refusal.rule == "name-circle")
    assert list(map(str, refused.addresses)) == ["project.new", "project.old"]


def test_pausing_comes_before_an_update_and_unpausing_after() -> None:
    changed = s3(prefix="new/")
    pausing = planned(
        desired_of(WEB, export(paused=True, destination=changed)),
        live_of(live_project(), live_export()),
    )
    assert [change.action for change in pausing.effective] == [Action.PAUSE, Action.UPDATE]
    unpausing = planned(
        desired_of(WEB, export(paused=False, destination=changed)),
        live_of(live_project(), live_export(paused=True)),
    )
    assert [change.action for change in unpausing.effective] == [Action.UPDATE, Action.UNPAUSE]


# Selection


def test_a_target_includes_the_parent_that_must_be_created() -> None:
    desired = desired_of(WEB, project("app"), export(), export("other"))
    selection = Selection(targets=("batch_export.lake",))
    plan = planned(desired, live_of(), options=PlanOptions(selection=selection))
    assert actions(plan) == [("create", "project.web"), ("create", "batch_export.lake")]
    assert {"partial", "dependencies-follow"} <= {note.code for note in plan.notes}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(kinds=("project",)), {"project.web", "project.app"}),
        (Selection(parents=("app",)), {"project.app", "batch_export.b"}),
        (Selection(excludes=("*.app", "batch_export.b")), {"project.web", "batch_export.a"}),
    ],
)
def test_the_selection_of_a_plan(selection, expected) -> None:
    desired = desired_of(WEB, project("app"), export("a"), export("b", parent="app"))
    live = live_of(live_project(1, timezone="X"), live_project(2, "App", timezone="X"))
    changed = desired_of(
        *(
            replace(resource, spec={**resource.spec, "timezone": "UTC"})
            if resource.address.kind == "project"
            else resource
            for resource in desired.resources.values()
        )
    )
    plan = planned(changed, live, options=PlanOptions(selection=selection))
    assert {str(change.address) for change in plan.effective} == expected


# What is in a project that is deleted

DELETABLE = frozenset({"project"})
GIT = Policy(prune=True, deletable=DELETABLE)
PROTECTED = export(lifecycle=Lifecycle(protect=True))
LAKE_IN_WEB = live_of(live_project(), live_project(2, "App"), live_export())


def of_web(
    policy: Policy, base: Desired | Inventory, *resources: Resource, only: str = "*"
) -> list[str]:
    options = PlanOptions(selection=Selection(targets=(only,)), allow_replace=True)
    desired = desired_of(project("app"), *resources)
    plan = planned(desired, LAKE_IN_WEB, policy, options=options, base=base)
    assert "project.web:delete" in [change.id for change in plan.effective]
    return [refusal.rule for refusal in plan.refusals]


@pytest.mark.parametrize("parent", [ParentRef(id="1"), ParentRef(name="Web")])
def test_a_project_with_a_declared_export_is_not_deleted(parent) -> None:
    inside = replace(export(), parent=parent)
    base = desired_of(WEB, project("app"), export())
    assert of_web(GIT, base, inside) == ["declared-inside"]
    absent = replace(WEB, state=State.ABSENT)
    assert of_web(Policy(deletable=DELETABLE), base, absent, inside) == ["declared-inside"]


def test_a_project_is_not_deleted_before_its_export_has_moved() -> None:
    base = desired_of(WEB, project("app"), export())
    moved = export(parent="app", destination=with_secrets())
    assert of_web(GIT, base, moved) == []
    assert of_web(GIT, base, moved, only="project.web") == ["declared-inside"]


def test_a_project_with_a_protected_export_is_not_deleted_by_a_partial_plan() -> None:
    base = desired_of(WEB, project("app"), PROTECTED)
    assert of_web(GIT, base) == ["protect"]
    assert of_web(GIT, base, only="project.web") == ["protect"]


def test_a_project_with_a_kept_or_ignored_export_is_not_deleted() -> None:
    base = inventory_of(desired_of(WEB, project("app"), export()), LAKE_IN_WEB)
    lake = replace(base.every[export().address], elsewhere="other.yaml may declare it")
    base = replace(base, every={**base.every, export().address: lake})
    assert of_web(GIT, base) == ["kept"]
    assert of_web(replace(GIT, ignore=("La*",)), desired_of(WEB, project("app"))) == ["ignore"]


@pytest.mark.parametrize(
    ("spec", "live", "sent"),
    [
        pytest.param({"offset_hour": 7}, {}, {"offset_day": 3, "offset_hour": 7}, id="hour"),
        pytest.param({"offset_day": 1}, {}, {"offset_day": 1, "offset_hour": 5}, id="day"),
        pytest.param(
            {"offset_hour": 5, "timezone": "Europe/Berlin"},
            {"timezone": "UTC"},
            {"offset_day": 3, "offset_hour": 5, "timezone": "Europe/Berlin"},
            id="zone",
        ),
        pytest.param({"interval": "day", "offset_hour": 7}, {}, {"offset_hour": 7}, id="interval"),
        pytest.param({"end_at": "2027-01-01"}, {}, {}, id="another field"),
    ],
)
def test_fidelity_week_a_patch_of_one_offset_keeps_the_other(
    spec: dict[str, Any], live: dict[str, Any], sent: dict[str, Any]
) -> None:
    week = {"interval": "week", "offset_day": 3, "offset_hour": 5, "timezone": "UTC", **live}
    own = export(**{"interval": "week", **spec})
    state = live_of(live_project(), live_export(**week), dialect=Dialect.V2026)
    (change,) = planned(desired_of(project(), own), state).effective
    body = {name: value for name, value in (change.body or {}).items() if name in week}
    body.pop("interval", None)
    assert body == sent
    kept = [item.message for item in change.consequences if item.rule == "offset-kept"]
    assert bool(kept) is (sent.keys() - spec.keys() > set())
    assert ("offset_day" in change.seen) is ("offset_day" in sent)


@pytest.mark.parametrize("written", ["01", " 1", "2"])
def test_an_id_that_no_project_has_creates_nothing(written: str) -> None:
    """The service may read it as another id: then every plan would create one more."""
    lake = replace(export(), parent=ParentRef(id=written))
    live = live_of(live_project(), live_export())
    refusal = refused(planned(desired_of(lake), live), "unresolved", "batch_export.lake")
    assert f"no live project has the id '{written}'" in refusal.message
    absent = replace(lake, state=State.ABSENT)
    assert planned(desired_of(absent, project()), live).empty
