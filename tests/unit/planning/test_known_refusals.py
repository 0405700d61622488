"""Changes that servers are known to refuse are policy violations, with place and fix."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.diagnostics import Mark
from reconciler.kinds import behaviour_of
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan, Refusal
from reconciler.model.resource import Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import Policy
from reconciler.model.values import SecretRef
from tests.support.worlds import (
    BY_NAME,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

WEB = project()
OLD = Dialect.INTERFACE
AWS: dict[str, Any] = {
    "type": "AwsS3",
    "config": {"bucket_name": "b", "region": "r", "prefix": "p/"},
    "integration": 7,
}
POSTGRES: dict[str, Any] = {
    "type": "Postgres",
    "config": {"host": "h", "database": "d", "schema": "s", "table_name": "t"},
    "integration": 7,
}
FILTER = {"key": "$browser", "type": "event", "value": "x"}
ENDED = {"end_at": "2026-05-20T00:00:00Z", "created_at": "2026-01-01T00:00:00Z"}
"""An export whose end passed 12 days before the plan."""


def plan_of(
    resource: Resource,
    *live: LiveObject,
    dialect: Dialect | None = Dialect.V2026,
    policy: Policy | None = None,
) -> Plan:
    resources = (resource,) if resource.address == WEB.address else (WEB, resource)
    objects = live or (live_project(),)
    return planned(desired_of(*resources), live_of(*objects, dialect=dialect), policy)


def ids(plan: Plan) -> set[str]:
    return {refusal.rule for refusal in plan.refusals}


def one(plan: Plan) -> Refusal:
    (refusal,) = plan.refusals
    return refusal


MOVED = export(
    parent="app", destination=AWS, lifecycle=Lifecycle(renamed_from=("Lake",), allow_replace=True)
)
IN_WEB = live_export(destination=AWS)
CASES: dict[str, tuple[Resource, tuple[LiveObject, ...], set[str]]] = {
    "S3 in a new project": (export(), (), {"not-accepted"}),
    "another name of an S3 export": (
        export(name="New", pinned_id="e1"), (live_project(), live_export()), set(),
    ),
    "another prefix of an S3 export": (
        export(destination=s3(prefix="new/")), (live_project(), live_export()),
        {"not-accepted"},
    ),
    "a deletion of an S3 export": (
        export(state=State.ABSENT), (live_project(), live_export()), set(),
    ),
    "a pause of an S3 export": (export(paused=True), (live_project(), live_export()), set()),
    "AwsS3": (export(destination=AWS), (), set()),
    "AwsS3 without an integration": (
        export(destination={**AWS, "integration": None}), (), {"field-required"},
    ),
    "AwsS3 with keys": (
        export(
            destination={
                "type": "AwsS3",
                "config": {**AWS["config"], "aws_access_key_id": SecretRef.of("env", "ID")},
            }
        ),
        (),
        {"field-required", "not-accepted"},
    ),
    "AzureBlob without an integration": (
        export(destination={"type": "AzureBlob", "config": {"container_name": "c"}}), (),
        {"field-required"},
    ),
    "AwsS3 that loses its integration": (
        export(destination={**AWS, "integration": None}), (live_project(), IN_WEB),
        {"field-required"},
    ),
    "Postgres that loses its integration": (
        export(destination={**POSTGRES, "integration": None}),
        (live_project(), live_export(destination=POSTGRES)), set(),
    ),
    "no project": (export(parent=None, destination=AWS), (), {"project-required"}),
    "access control": (project(access_control=False), (), {"not-accepted"}),
    "no access control": (project(access_control=None), (), set()),
    "access control of a live project": (
        project(access_control=True), (live_project(access_control=False),),
        {"not-accepted"},
    ),
    "an update after the end": (
        export(destination=AWS, name="New", pinned_id="e1"),
        (live_project(), live_export(destination=AWS, **ENDED)),
        {"schedule-deleted"},
    ),
    "a pause after the end": (
        export(destination=AWS, paused=True),
        (live_project(), live_export(destination=AWS, **ENDED)),
        {"schedule-deleted"},
    ),
    "an update soon after the last write": (
        export(destination=AWS, name="New", pinned_id="e1"),
        (
            live_project(),
            live_export(destination=AWS, **ENDED, last_updated_at="2026-05-30T00:00:00Z"),
        ),
        set(),
    ),
    "an update of a paused export after the end": (
        export(destination=AWS, name="New", pinned_id="e1"),
        (live_project(), live_export(destination=AWS, paused=True, **ENDED)),
        set(),
    ),
    "an end in the past": (export(destination=AWS, end_at="2020-01-01"), (), set()),
    "a query where no export has one": (
        export(destination=AWS, sql_query="select event from events"), (), {"query-not-accepted"},
    ),
    "a query where another export has one": (
        export(destination=AWS, sql_query="select event from events"),
        (
            live_project(),
            live_export("e2", "Other", incremental_mode="APPEND", hogql_query="select 1"),
        ),
        set(),
    ),
    "I15: a replacement takes filters over that its model may not have": (
        export(
            destination=AWS, model="persons", lifecycle=Lifecycle(allow_replace=True)
        ),
        (live_project(), live_export(destination=AWS, model="events", filters=[FILTER])),
        {"filters-not-accepted"},
    ),
    "filters of events": (export(destination=AWS, filters=[FILTER]), (), set()),
    "filters of sessions": (
        export(destination=AWS, filters=[FILTER], model="sessions"), (), {"filters-not-accepted"},
    ),
    "a replacement without the filters": (
        export(
            destination=AWS, model="persons", filters=None,
            lifecycle=Lifecycle(allow_replace=True),
        ),
        (live_project(), live_export(destination=AWS, model="events", filters=[FILTER])),
        set(),
    ),
    "a query on a server of spring 2026": (
        export(destination=AWS, sql_query="select event from events"),
        (live_project(), live_export("e2", "Other", timezone="UTC")),
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_experience_19_what_the_server_refuses_is_a_policy_violation(case: str) -> None:
    resource, live, expected = CASES[case]
    plan = plan_of(resource, *live)
    assert ids(plan) == expected
    for refusal in plan.refusals:
        attempted = Policy(attempt=(refusal.rule,))
        assert refusal.rule not in ids(plan_of(resource, *live, policy=attempted))
    assert not plan_of(resource, *live, dialect=None).refusals or "after the end" in case


@pytest.mark.parametrize(("integration", "refused"), [(7, True), (8, False), (None, False)])
def test_an_integration_does_not_move_to_another_project(
    integration: int | None, *, refused: bool
) -> None:
    app = project("app")
    moved = Resource(
        MOVED.address,
        {**MOVED.spec, "destination": {**AWS, "integration": integration}},
        parent=ParentRef(key="app"),
        lifecycle=MOVED.lifecycle,
        pinned_id="e1",
    )
    live = live_of(live_project(), live_project(2, "App"), IN_WEB, dialect=Dialect.V2026)
    plan = planned(desired_of(WEB, app, moved), live)
    assert ("integration-of-another-project" in ids(plan)) is refused


def test_a_known_refusal_names_the_place_the_fix_and_the_way_to_try_it() -> None:
    whole, tag = Mark("a.yaml", 1, 1), Mark("a.yaml", 4, 7)
    declared = export()
    resource = Resource(
        declared.address,
        declared.spec,
        parent=declared.parent,
        mark=whole,
        marks={("destination",): whole, ("destination", "type"): tag},
    )
    refusal = one(plan_of(resource))
    assert refusal.at == tag
    assert refusal.message.startswith("batch_export.lake: the server (dialect 2026)")
    assert refusal.allow is not None
    assert "AwsS3 or S3Compatible" in refusal.allow
    assert "policy: {attempt: [not-accepted]}" in refusal.allow


def test_addresses_are_refused_by_servers_of_2026_and_escaped() -> None:
    url = "https://a/\x1b[31m\n"
    resource = export(destination={"type": "HTTP", "config": {"url": url, "token": "t"}})
    assert one(plan_of(resource)).message.isprintable()
    for dialect in (Dialect.INTERFACE, Dialect.V2025):
        assert ids(plan_of(resource, dialect=dialect)) == set()


def test_ids_are_unique_and_explained() -> None:
    known = {
        item
        for kind in BY_NAME.values()
        for item in (*behaviour_of(kind).refusals, *behaviour_of(kind).rules)
    }
    assert len({item.id for item in known}) == len(known)
    for item in known:
        parts = item.meaning.split("\n\n")
        assert [part.strip()[-1] for part in parts] == [".", "."], item.id


IGNORED: list[tuple[Resource, LiveObject, str]] = [
    (export(timezone="Europe/Berlin"), live_export("e2", "Other"), "not-accepted"),
    (export(timezone="Europe/Berlin"), live_export(), "not-accepted"),
    (export(timezone="Europe/Berlin"), live_export(timezone="UTC"), ""),
    (export(timezone="UTC"), live_export("e2", "Other"), ""),
    (export(timezone=None), live_export(), ""),
    (export(interval="day"), live_export(), ""),
    (project(onboarding_tasks={"a": "completed"}), live_export(), "not-accepted"),
]


@pytest.mark.parametrize(("resource", "live", "rule"), IGNORED)
def test_a_field_that_the_server_lacks_is_refused_as_every_plan_would_repeat_it(
    resource: Resource, live: LiveObject, rule: str
) -> None:
    for dialect in (Dialect.V2025, None):
        plan = plan_of(resource, live_project(), live, dialect=dialect)
        expected = {rule} if rule and dialect is not None else set()
        assert ids(plan) & {"not-accepted"} == expected


def test_plan_v9_a_near_miss_is_refused_unless_live_has_it_or_the_policy_attempts_it() -> None:
    wanted = export(interval="dayly", destination=s3(prefix="new/"))
    (refusal,) = plan_of(wanted, dialect=OLD).refusals
    assert refusal.rule == "unknown-value"
    assert refusal.message == "unknown value 'dayly' for interval of batch_export.lake"
    assert refusal.allow is not None
    assert refusal.allow.startswith("did you mean 'day'? to send it anyway: `policy: {attempt:")
    attempted = plan_of(wanted, dialect=OLD, policy=Policy(attempt=("unknown-value",)))
    assert ids(attempted) == set()
    live = live_export(interval="dayly")
    assert ids(plan_of(wanted, live_project(), live, dialect=OLD)) == set()
    hourly = live_export(interval="hour")
    assert ids(plan_of(wanted, live_project(), hourly, dialect=OLD)) == {"unknown-value"}


def test_plan_v9_a_near_miss_in_the_body_of_a_destination_is_refused() -> None:
    wrong = export(destination=s3(file_format="Parquett"))
    assert ids(plan_of(wrong, dialect=OLD)) == {"unknown-value"}
    assert ids(plan_of(export(destination=s3(file_format="Avro")), dialect=OLD)) == set()


@pytest.mark.parametrize("dialect", [None, *Dialect])
def test_model_c_schedules_are_deleted_by_real_servers_only(dialect: Dialect | None) -> None:
    live = live_of(live_project(), live_export(**ENDED), dialect=dialect)
    plan = planned(desired_of(WEB, export(paused=True)), live)
    is_refused = dialect in (Dialect.V2025, Dialect.V2026)
    assert [refusal.rule for refusal in plan.refusals] == ["schedule-deleted"] * is_refused
