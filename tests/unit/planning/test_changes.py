"""What a plan does to objects, case by case: changes, replacements, names, what it saw."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.session import calls_of
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan, Reason, Refusal
from reconciler.model.resource import Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import Limit, PlanOptions, Policy
from reconciler.model.values import SecretRef
from tests.support.worlds import (
    KINDS,
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


def one(plan: Plan):
    (change,) = plan.effective
    return change


EXCEPTIONS = "autocapture_exceptions_errors_to_ignore"


@pytest.mark.parametrize(
    ("declared", "answered"),
    [
        (export(start_at="2026-01-01"), live_export(start_at="2026-01-01T00:00:00Z")),
        (export(name=" Lake "), live_export()),
        (project(name=" Web "), live_project()),
        (export(destination=s3(exclude_events=[])), live_export()),
        (project(modifiers={"a": None}), live_project(modifiers=None)),
        (project(app_urls=["b", "", "a"]), live_project(app_urls=["a", "b"])),
        (project(**{EXCEPTIONS: []}), live_project(**{EXCEPTIONS: None})),
        (
            project(correlation_config={"b": 1, "a": 2}),
            live_project(correlation_config={"a": 2, "b": 1}),
        ),
    ],
)
def test_a_value_as_the_server_stores_it_is_no_change(
    declared: Resource, answered: LiveObject
) -> None:
    parents = ([WEB], [live_project()]) if answered.parent_id else ([], [])
    assert planned(desired_of(*parents[0], declared), live_of(*parents[1], answered)).empty


def test_values_of_an_unknown_type_are_shown_as_they_are_written() -> None:
    wanted, lived = {"b": True, "n": 5432, "o": [True]}, {"b": False, "n": "5432", "o": ["True"]}
    files = desired_of(WEB, export(destination={"type": "New", "config": wanted}))
    created = one(planned(files, live_of(live_project()))).fields
    assert repr([item.after for item in created[-3:]]) == repr([*wanted.values()])
    live = live_export(destination={"type": "New", "config": lived})
    (field,) = one(planned(files, live_of(live_project(), live))).fields
    assert (field.before, field.after) == (False, True)


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


# Replacements, and exports at the same place. Case by case

APP = project("app")
BASE = desired_of(WEB, APP, export())
ALLOWED = PlanOptions(allow_replace=True)


def moved_live(*exports: LiveObject) -> Live:
    return live_of(live_project(1), live_project(2, "App"), *exports)


def moved(
    live: LiveObject,
    policy: Policy | None = None,
    dialect: Dialect = Dialect.INTERFACE,
    **values: Any,
) -> Plan:
    """Plan the move of an export to another project, with other values."""
    desired, at_service = desired_of(WEB, APP, export(parent="app", **values)), moved_live(live)
    at_service = replace(at_service, dialect=dialect)
    return planned(desired, at_service, policy, options=ALLOWED, base=BASE)


PLACE = {"database": "d", "warehouse": "w", "schema": "s", "account": "a"}
SNOWFLAKE = {"type": "Snowflake", "config": {**PLACE, "password": SecretRef.of("env", "X")}}
COPY = {"s3_bucket": "b", "region_name": "r", "authorization": "role", "bucket_credentials": 7}
REDSHIFT = {"type": "Redshift", "config": {"database": "d", "mode": "COPY", "copy_inputs": COPY}}
NOT_READABLE = "credentials-not-readable"


@pytest.mark.parametrize(
    ("before", "after", "code", "message"),
    [
        (s3(), s3(), NOT_READABLE, "not return aws_access_key_id, aws_secret_access_key, which"),
        (SNOWFLAKE, SNOWFLAKE, NOT_READABLE, "does not return user, which"),
        (
            {**REDSHIFT, "integration": 8},
            {**REDSHIFT, "integration": 9},
            "integration-of-another-project",
            "integration 7 belongs to the project that the export moves from",
        ),
        (s3(), with_secrets(), "", ""),
        (NO_OP, s3(), "", ""),
        (s3(), NO_OP, "", ""),
    ],
)
def test_a_move_that_would_lose_what_it_cannot_copy_is_refused(
    before: dict[str, Any], after: dict[str, Any], code: str, message: str
) -> None:
    live, dialect = live_export(destination=before), Dialect.V2025
    dialect = Dialect.V2026 if "integration" in before else dialect
    refusals = moved(live, dialect=dialect, destination=after).refusals
    assert [(item.rule, message in item.message) for item in refusals] == [(code, True)] * bool(
        code
    )
    assert not moved(live, Policy(attempt=(code,)), dialect, destination=after).refusals


def test_policy_deny_sees_what_else_a_replacement_changes() -> None:
    changed = {"interval": "day", "destination": with_secrets(prefix="q/")}
    policy = Policy(deny=("interval-changed", "destination-moved"))
    plan = moved(live_export(), policy, **changed)
    assert [refusal.rule for refusal in plan.refusals] == ["deny", "deny"]


def test_a_replacement_keeps_ignored_and_unmanaged_values() -> None:
    ignored = ("destination.config.prefix", "end_at", "interval", "paused")
    config = {"compression": "gzip", "prefix": "live/"}
    live = live_export(interval="day", paused=True, destination=s3(**config), end_at=None)
    values = {"destination": with_secrets(prefix="files/"), "end_at": "2030-01-01", "paused": False}
    life = Lifecycle(ignore_changes=ignored)
    (change,) = moved(live, lifecycle=life, **values).effective
    body = change.body or {}
    assert (body["interval"], body["paused"], "end_at" in body) == ("day", True, False)
    assert {name: body["destination"]["config"][name] for name in config} == config
    assert {item.path for item in change.fields} == {("project",)}


def test_a_replacement_shows_ignored_values_that_it_cannot_keep() -> None:
    life = Lifecycle(ignore_changes=("destination", "name"))
    values = {"destination": with_secrets(), "name": "Sea", "lifecycle": life}
    (change,) = moved(live_export(destination=NO_OP), **values).effective
    paths = {item.path for item in change.fields}
    assert paths >= {("project",), ("name",), ("destination", "type")}


@pytest.mark.parametrize("other", ["Lake", "Pond"])
def test_a_replacement_in_place_whose_new_object_exists_is_refused(other: str) -> None:
    """A run ended between the create and the deletion: no second new object is created."""
    to = {"type": "HTTP", "config": {"url": "https://eu.i.posthog.com/batch/", "token": "t"}}
    old = live_export("e1", destination=NO_OP)
    new = live_export("e2", other, destination={**to, "config": {"url": to["config"]["url"]}})
    before = desired_of(WEB, export(destination=NO_OP))
    record = inventory_of(before, live_of(live_project(), old))
    live = live_of(live_project(), old, new, dialect=Dialect.V2026)
    plan = planned(desired_of(WEB, export(destination=to)), live, options=ALLOWED, base=record)
    assert [item.rule for item in plan.refusals] == ["possible-duplicate"] * (other == "Lake")


# What a plan carries for readers: reasons


@pytest.mark.parametrize(
    ("live", "reason"), [({}, Reason.RENAMED), ({"interval": "day"}, Reason.FIELDS_DIFFER)]
)
def test_a_rename_is_a_reason_only_if_nothing_else_changes(
    live: dict[str, str], reason: Reason
) -> None:
    renamed = export(lifecycle=Lifecycle(renamed_from=("Pond",)))
    state = live_of(live_project(), live_export(name="Pond", **live))
    assert one(planned(desired_of(WEB, renamed), state)).reasons == (reason,)


# The estimated number of calls


def new_exports(count: int) -> Plan:
    exports = [export(f"e{number}") for number in range(count)]
    return planned(desired_of(WEB, *exports), live_of(live_project()))


def test_calls_are_lists_and_writes_with_a_verification() -> None:
    lists, verification, second_page = 2, 2, 1
    assert calls_of(planned(desired_of(), live_of()), KINDS) == 0
    assert calls_of(new_exports(1), KINDS) == 1 + lists + verification
    assert calls_of(new_exports(100), KINDS) == 100 + lists + verification
    assert calls_of(new_exports(101), KINDS) == 101 + lists + verification + second_page
    # Parents are checked again after their children.
    both = planned(desired_of(WEB, export()), live_of())
    assert calls_of(both, KINDS) == 2 + lists + 2 + 1 + verification
    live = live_of(live_project(), live_export(interval="day", paused=True))
    in_place = planned(desired_of(WEB, export(paused=False)), live)
    assert [change.action for change in in_place.effective] == [Action.UPDATE, Action.UNPAUSE]
    assert calls_of(in_place, KINDS) == 2 + verification
    plan = new_exports(1)
    whole = replace(plan.effective[0], action=Action.REPLACE, live_id="e1")
    assert calls_of(replace(plan, changes=(whole,)), KINDS) == 5 + lists + verification
    # What is deleted with its project costs no call.
    gone = replace(WEB, state=State.ABSENT)
    for exports in ([], [live_export(f"e{n}", f"E{n}") for n in range(9)]):
        deletion = planned(desired_of(gone), live_of(live_project(), *exports))
        assert calls_of(deletion, KINDS) == 4
