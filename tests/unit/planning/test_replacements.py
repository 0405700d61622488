"""Replacements, and exports at the same place. Case by case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.kind import Action, Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Lifecycle
from reconciler.model.settings import PlanOptions, Policy
from reconciler.model.values import SecretRef
from tests.support.worlds import (
    PureServer,
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

WEB, APP = project(), project("app")
NO_OP = {"type": "NoOp", "config": {}}
BASE = desired_of(WEB, APP, export())
ALLOWED = PlanOptions(allow_replace=True)


def moved_live(*exports: LiveObject) -> Live:
    return live_of(live_project(1), live_project(2, "App"), *exports)


def codes(plan: Plan) -> list[str]:
    return [note.code for note in plan.notes]


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_a_replacement_shows_that_it_pauses_or_unpauses(before: bool, after: bool) -> None:
    live = moved_live(live_export(paused=before))
    desired = desired_of(WEB, APP, export(parent="app", paused=after))
    (change,) = planned(desired, live, options=ALLOWED, base=BASE).effective
    shown = {item.path: (item.before, item.after) for item in change.fields}
    assert (change.action, shown["paused",]) == (Action.REPLACE, (before, after))
    rules = {consequence.rule for consequence in change.consequences}
    assert ("gap-before-unpausing" in rules, "runs-missed-while-paused" in rules) == (before, after)
    assert [place.again for place in change.new] == [before]


SNOWFLAKE = {"database": "d", "warehouse": "w", "schema": "s", "account": "a"}
COPY = {"s3_bucket": "b", "region_name": "r", "authorization": "role", "bucket_credentials": 7}
REDSHIFT = {"database": "d", "mode": "COPY", "copy_inputs": COPY}


@pytest.mark.parametrize(
    ("dialect", "destination", "code", "message"),
    [
        (
            Dialect.V2025,
            s3(),
            "credentials-not-readable",
            "does not return aws_access_key_id, aws_secret_access_key, which",
        ),
        (
            Dialect.V2025,
            {"type": "Snowflake", "config": {**SNOWFLAKE, "password": SecretRef.of("env", "X")}},
            "credentials-not-readable",
            "does not return user, which",
        ),
        (
            Dialect.V2026,
            {"type": "Redshift", "integration": 8, "config": REDSHIFT},
            "integration-of-another-project",
            "integration 7 belongs to the project that the export moves from",
        ),
    ],
)
def test_a_move_that_would_lose_what_it_cannot_copy_is_refused(
    dialect: Dialect, destination: dict[str, Any], code: str, message: str
) -> None:
    live = replace(moved_live(live_export(destination=destination)), dialect=dialect)
    wanted = {**destination, "integration": 9} if dialect is Dialect.V2026 else destination
    desired = desired_of(WEB, APP, export(parent="app", destination=wanted))
    (refusal,) = planned(desired, live, options=ALLOWED, base=BASE).refusals
    assert refusal.rule == code
    assert message in refusal.message
    attempted = Policy(attempt=(code,))
    assert not planned(desired, live, attempted, options=ALLOWED, base=BASE).refusals


@pytest.mark.parametrize(
    ("before", "after"), [(s3(), with_secrets()), (NO_OP, s3()), (s3(), NO_OP)]
)
def test_a_move_that_loses_no_credentials_is_not_refused(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    live = replace(moved_live(live_export(destination=before)), dialect=Dialect.V2025)
    desired = desired_of(WEB, APP, export(parent="app", destination=after))
    assert not planned(desired, live, options=ALLOWED, base=BASE).refusals


def test_policy_deny_sees_what_else_a_replacement_changes() -> None:
    changed = {"interval": "day", "destination": with_secrets(prefix="q/")}
    live, policy = moved_live(live_export()), Policy(deny=("interval-changed", "destination-moved"))
    desired = desired_of(WEB, APP, export(parent="app", **changed))
    plan = planned(desired, live, policy, options=ALLOWED, base=BASE)
    assert [refusal.rule for refusal in plan.refusals] == ["deny", "deny"]


def test_a_replacement_keeps_ignored_and_unmanaged_values() -> None:
    config = {"compression": "gzip", "exclude_events": ["signup"], "prefix": "live/"}
    destination = with_secrets(prefix="files/")
    of_former_type = {"host": "db.example"}
    stored = s3(**config, **of_former_type)
    live = moved_live(live_export(interval="day", paused=True, destination=stored, end_at=None))
    ignored = ("destination.config.prefix", "end_at", "interval", "paused")
    values = {"destination": destination, "end_at": "2030-01-01T00:00:00Z", "paused": False}
    desired = desired_of(
        WEB, APP, export(parent="app", lifecycle=Lifecycle(ignore_changes=ignored), **values)
    )
    plan = planned(desired, live, options=ALLOWED, base=BASE)
    (change,) = plan.effective
    assert change.body is not None
    sent = change.body["destination"]["config"]
    assert (sent.items() >= config.items(), sent.keys() & of_former_type) == (True, set())
    assert (change.body["interval"], change.body["paused"]) == ("day", True)
    assert "end_at" not in change.body
    assert {item.path for item in change.fields} == {("project",)}
    server = PureServer(live)
    server.apply(plan)
    assert planned(desired, server.live(), options=ALLOWED, base=desired).empty


def test_a_replacement_shows_ignored_values_that_it_cannot_keep() -> None:
    live = moved_live(live_export(destination=NO_OP))
    desired = desired_of(
        WEB,
        APP,
        replace(
            export(parent="app", destination=with_secrets(), name="Sea"),
            lifecycle=Lifecycle(ignore_changes=("destination", "name")),
        ),
    )
    (change,) = planned(desired, live, options=ALLOWED, base=BASE).effective
    paths = {item.path for item in change.fields}
    assert paths >= {("project",), ("name",), ("destination", "type")}


@pytest.mark.parametrize(
    ("other", "is_noted"),
    [
        (live_export("e9", parent=2), True),
        (live_export("e9", "Other", parent=2), True),
        (live_export("e9", parent=2, destination=s3(prefix="other/")), False),
        (live_export("e9", parent=2, interval="day"), True),
    ],
)
def test_a_second_export_at_the_same_place_is_noted(other: LiveObject, *, is_noted: bool) -> None:
    desired = desired_of(WEB, APP, export(destination=with_secrets()))
    noted = codes(planned(desired, moved_live(live_export(), other)))
    assert ("same-place" in noted) is is_noted


def test_a_replacement_resets_what_was_removed_from_the_configuration() -> None:
    """The plan shows the reset, so the new object must not get the former value."""
    first = desired_of(project(), project("b"), export(end_at="2030-01-01T00:00:00Z"))
    head = desired_of(project(), project("b"), export(parent="b"))
    old = live_export(end_at="2030-01-01T00:00:00Z", timezone="Asia/Tokyo")
    server = PureServer(live_of(live_project(), live_project(2, "B"), old))
    options = PlanOptions(allow_replace=True)
    plan = planned(head, server.live(), options=options, base=first)
    (change,) = plan.effective
    assert [(item.path, item.after) for item in change.fields if item.reset] == [
        (("end_at",), None)
    ]
    assert "end_at" not in (change.body or {})
    assert (change.body or {})["timezone"] == "Asia/Tokyo"
    server.apply(plan)
    assert planned(head, server.live(), options=options, base=first).empty


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
