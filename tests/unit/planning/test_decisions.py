"""What the planner decides, case by case. No network, no service."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan, Refusal
from reconciler.model.resource import Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import Limit, PlanOptions, Policy
from tests.support.worlds import (
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
        ({"destination": s3(max_file_size_mb=5)}, {"destination": s3(max_file_size_mb="5")}),
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


# Bodies


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


# Identity


def refused(plan: Plan, rule: str, *addresses: str) -> Refusal:
    """Return the only refusal of a plan without changes of the addresses."""
    (refusal,) = plan.refusals
    assert (refusal.rule, [*map(str, refusal.addresses)]) == (rule, [*addresses])
    assert not {str(change.address) for change in plan.changes} & {*addresses}
    return refusal


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


# Replacement


# Secrets


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


# The git base


# Deletion and policy


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


# Order


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


# Selection


# What is in a project that is deleted


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
