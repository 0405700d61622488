"""What a plan says about its changes: facts of the change, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kinds import behaviour_of
from reconciler.kinds.batch_export import DESTINATION
from reconciler.model.kind import Action, Dialect, Field
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Resource, State
from reconciler.model.schemas import Boolean, Integer
from reconciler.model.settings import Policy
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
IN_PLACE = {
    "AwsS3": {"bucket_name", "prefix", "endpoint_url"},
    "AzureBlob": {"container_name", "prefix"},
    "BigQuery": {"project_id", "dataset_id", "table_id"},
    "Databricks": {"catalog", "schema", "table_name"},
    "FileDownload": set(),
    "HTTP": {"url"},
    "NoOp": set(),
    "Postgres": {"host", "port", "database", "schema", "table_name"},
    "Redshift": {"host", "port", "database", "schema", "table_name"},
    "S3": {"bucket_name", "prefix", "endpoint_url"},
    "S3Compatible": {"bucket_name", "prefix", "endpoint_url"},
    "Snowflake": {"account", "database", "schema", "table_name"},
    "Workflows": set(),
}
"""Which fields say where data goes, field by field: all others leave it where it is."""


def run(status: str = "Completed", rows: int | None = 1, **more: Any) -> dict[str, Any]:
    return {
        "status": status,
        "records_completed": rows,
        "created_at": "2026-05-31T00:00:00Z",
        **more,
    }


def rules(plan: Plan) -> dict[str, str]:
    """Return the messages of all changes by rule."""
    return {
        consequence.rule: consequence.message
        for change in plan.effective
        for consequence in change.consequences
    }


def updated(
    declared: dict[str, Any], live: dict[str, Any], dialect: Dialect = Dialect.V2025
) -> dict[str, str]:
    at_service = live_of(live_project(), live_export(**live), dialect=dialect)
    return rules(planned(desired_of(WEB, export(**declared)), at_service))


def values_of(field: Field) -> tuple[Any, Any]:
    if isinstance(field.type, Boolean):
        return False, True
    if isinstance(field.type, Integer):
        return 1, 2
    return ("old", "new")


PLAIN_FIELDS = [
    (tag, field)
    for tag, fields in DESTINATION.variants.items()
    for field in fields
    if not field.secret and field.name not in ("exclude_events", "include_events", "copy_inputs")
]


@pytest.mark.parametrize(
    ("tag", "field"), PLAIN_FIELDS, ids=[f"{tag}.{field.name}" for tag, field in PLAIN_FIELDS]
)
def test_experience_6_only_a_place_moves_the_destination(tag: str, field: Field) -> None:
    before, after = values_of(field)
    dialect = Dialect.V2026 if field.since is Dialect.V2026 else Dialect.V2025
    shown = updated(
        {"destination": {"type": tag, "config": {field.name: after}}},
        {"destination": {"type": tag, "config": {field.name: before}}},
        dialect,
    )
    assert ("destination-moved" in shown) is (field.name in IN_PLACE[tag])


def test_every_place_is_a_field_and_every_summary_has_fields_of_its_type() -> None:
    assert IN_PLACE.keys() == DESTINATION.variants.keys()
    for tag, fields in DESTINATION.variants.items():
        names = {field.name for field in fields if not field.secret}
        assert DESTINATION.places.get(tag, {}).keys() == IN_PLACE[tag] <= names
        example = {"type": tag, "config": dict.fromkeys(names, "x")}
        for name in IN_PLACE[tag]:
            config = {**example["config"], name: "SHOWN"}
            assert "SHOWN" in DESTINATION.summary({**example, "config": config})


@pytest.mark.parametrize(
    ("destination", "summary"),
    [
        (
            s3(bucket_name="acme", prefix="web/", region="eu-central-1", compression="gzip"),
            "S3 s3://acme/web/ (eu-central-1), JSONLines gzip",
        ),
        ({"type": "Postgres", "config": {"database": "d"}, "integration": 7},
         "Postgres d.public.events, integration 7"),
        ({"type": "Kafka", "config": {"topic": "t", "api_key": "k", "size": 3}},
         "Kafka topic t, size 3"),
        ({"type": "NoOp"}, "NoOp"),
        (None, ""),
    ],
)  # fmt: skip
def test_a_destination_is_described_in_one_line(destination: Any, summary: str) -> None:
    assert DESTINATION.summary(destination) == summary


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "dashboards); this"),
        (1, "dashboards) and 1 batch export, managed or not ('E0'); this"),
        (2, "dashboards) and 2 batch exports, managed or not ('E0', 'E1'); this"),
    ],
)
def test_terraform_texts_count_what_a_deleted_project_contains(count: int, words: str) -> None:
    gone = Resource(WEB.address, WEB.spec, state=State.ABSENT)
    inside = [live_export(f"e{n}", name=f"E{n}") for n in range(count)]
    plan = planned(desired_of(gone), live_of(live_project(), *inside))
    assert words in rules(plan)["project-data-lost"]


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "1 project would be deleted with all data"), (2, "2 projects would be deleted with all")],
)
def test_terraform_texts_count_deleted_projects(count: int, words: str) -> None:
    gone = [
        Resource(project(f"p{n}").address, project(f"p{n}").spec, state=State.ABSENT)
        for n in range(count)
    ]
    live = [live_project(n, f"P{n}") for n in range(count)]
    (refusal,) = planned(desired_of(*gone), live_of(*live)).refusals
    assert words in refusal.message


BY_ACTION: dict[str, tuple[Any, Any, set[str]]] = {
    "create": (export(), None, set()),
    "create without a project": (export(parent=None), None, {"organization-path"}),
    "create with an end": (export(end_at="2026-01-01"), None, {"ends-in-the-past"}),
    "pause": (export(paused=True), live_export(), {"runs-missed-while-paused"}),
    "pause after its end": (
        export(paused=True, end_at="2026-05-31"),
        live_export(end_at="2026-05-31"),
        set(),
    ),
    "unpause": (export(paused=False), live_export(paused=True), {"gap-before-unpausing"}),
    "unpause at once": (
        export(paused=False),
        live_export(paused=True, last_paused_at="2026-06-01T12:00:00Z"),
        set(),
    ),
    "unpause after its end": (
        export(paused=False),
        live_export(paused=True, end_at="2026-05-31"),
        {"gap-before-unpausing", "ends-in-the-past"},
    ),
    "name": (export(name="New", pinned_id="e1"), live_export(), set()),
    "zone of hours": (export(timezone="Asia/Tokyo"), live_export(timezone="UTC"), set()),
    "zone of days": (
        export(interval="day", timezone="Asia/Tokyo"),
        live_export(interval="day", timezone="UTC"),
        {"schedule-moved"},
    ),
    "delete": (export(state=State.ABSENT), live_export(), {"history-lost"}),
    "type in place": (
        export(destination={"type": "HTTP", "config": {"url": "https://a/"}}),
        live_export(),
        {"destination-type-changed"},
    ),
}


@pytest.mark.parametrize("case", BY_ACTION)
def test_every_consequence_is_a_fact_of_the_change(case: str) -> None:
    declared, live, expected = BY_ACTION[case]
    objects = [live_project(), *([live] if live is not None else [])]
    plan = planned(desired_of(WEB, declared), live_of(*objects))
    assert rules(plan).keys() == expected


def test_a_time_zone_of_a_project_moves_no_export() -> None:
    live = live_of(live_project(), live_export())
    message = rules(planned(desired_of(project(timezone="Asia/Tokyo")), live))
    assert "export" not in message["project-timezone-changed"]


# Volumes


def test_the_volume_of_missed_runs_is_the_median_of_completed_ones() -> None:
    runs = [run("Failed", 0), run(rows=1_200_000), run(rows=9_000_000), run(rows=1_100_000)]
    live = live_of(live_project(), live_export(latest_runs=runs))
    message = rules(planned(desired_of(WEB, export(paused=True)), live))
    assert "hourly runs (about 1.2 M rows each)" in message["runs-missed-while-paused"]
    gone = planned(desired_of(WEB, export(state=State.ABSENT)), live)
    assert "about 1.2 M rows a run" in rules(gone)["history-lost"]


@pytest.mark.parametrize("runs", [None, [], [run("Failed", 5)], ["odd"], [run(rows=None)]])
def test_without_completed_runs_nothing_is_said_about_volumes(runs: Any) -> None:
    live = live_of(live_project(), live_export(latest_runs=runs))
    message = rules(planned(desired_of(WEB, export(paused=True)), live))
    assert "rows" not in message["runs-missed-while-paused"]


@pytest.mark.parametrize(
    ("interval", "extra", "words"),
    [
        ("hour", {}, "24 runs skipped"),
        ("every 5 minutes", {}, "284 runs skipped"),
        ("day", {}, "1 run skipped since 2026-05-31T12:20:00Z is not made up for"),
        ("day", {}, "--from 2026-05-31T00:00:00Z --to 2026-06-01T00:00:00Z"),
        ("hour", {"end_at": "2026-05-31T15:00:00Z"}, "3 runs skipped"),
        ("hour", {}, "backfill -e staging batch_export.lake --from 2026-05-31T12:00:00Z"),
        ("odd", {}, "runs skipped since 2026-05-31T12:20:00Z are not made up for"),
    ],
)
def test_unpausing_counts_the_runs_that_were_missed(
    interval: str, extra: dict[str, Any], words: str
) -> None:
    live = live_export(
        interval=interval, paused=True, last_paused_at="2026-05-31T12:20:00Z", **extra
    )
    plan = planned(
        desired_of(WEB, export(paused=False, interval=interval)), live_of(live_project(), live)
    )
    assert words in rules(plan)["gap-before-unpausing"]


def test_weeks_start_on_the_day_of_the_export() -> None:
    """2026-06-01 is a Monday."""
    live = live_export(
        interval="week", paused=True, last_paused_at="2026-05-13T00:00:00Z", offset_day=1
    )
    plan = planned(
        desired_of(WEB, export(paused=False, interval="week")), live_of(live_project(), live)
    )
    message = rules(plan)["gap-before-unpausing"]
    assert "3 runs" in message
    assert "--from 2026-05-11T00:00:00Z --to 2026-06-01T00:00:00Z" in message


def test_volumes_are_not_part_of_a_plan_id() -> None:
    ids = {
        planned(
            desired_of(WEB, export(paused=True)),
            live_of(live_project(), live_export(latest_runs=[run(rows=rows)])),
        ).plan_id
        for rows in (1, 10**6)
    }
    assert len(ids) == 1


# Pauses by the service


def unpaused(*runs: dict[str, Any]) -> dict[str, str]:
    live = live_export(paused=True, last_paused_at="2026-06-01T00:00:00Z", latest_runs=list(runs))
    return rules(planned(desired_of(WEB, export(paused=False)), live_of(live_project(), live)))


FAILED = run("Failed", None, latest_error="NoSuchBucket: the bucket\n\x1b[31macme does not exist")


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([FAILED] * 3 + [run()], "its last 3 runs failed"),
        ([FAILED] * 10, "at least its last 10 runs failed"),
        ([FAILED] * 2 + [run()], None),
        ([run(), FAILED, FAILED, FAILED], None),
        ([run("Cancelled"), FAILED, FAILED, FAILED], "its last 3 runs failed"),
        ([], None),
    ],
)
def test_trap_20_an_export_that_the_service_paused_is_shown_as_such(
    runs: list[dict[str, Any]], words: str | None
) -> None:
    message = unpaused(*runs).get("paused-by-service")
    assert (words is None) is (message is None)
    if words is not None and message is not None:
        assert words in message
        assert "NoSuchBucket: the bucket" in message
        assert message.isprintable()


def test_an_error_of_a_run_is_cut() -> None:
    long = run("Failed", None, latest_error="x" * 500)
    assert "x" * 120 + "…" in unpaused(long, long, long)["paused-by-service"]


def test_trap_21_a_billing_limit_is_shown_before_unpausing() -> None:
    assert "billing-limit" in unpaused(run("FailedBilling", None), run())
    assert "billing-limit" not in unpaused(run(), run("FailedBilling", None))


def test_no_consequence_of_another_action_is_shown() -> None:
    """Every rule of every kind is judged for a deletion of everything."""
    objects: list[LiveObject] = [live_project(access_control=True), live_export(paused=True)]
    plan = planned(desired_of(project("other")), live_of(*objects), Policy(prune=True))
    deleted = [change for change in plan.effective if change.action is Action.DELETE]
    reached = {consequence.rule for change in deleted for consequence in change.consequences}
    allowed = {
        rule.id
        for kind in BY_NAME.values()
        for rule in behaviour_of(kind).rules
        if Action.DELETE in rule.actions
    }
    assert reached <= allowed == {"project-data-lost", "history-lost"}
