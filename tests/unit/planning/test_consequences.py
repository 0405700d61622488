"""What a plan says about its changes: facts of the change, and what is lost, shown or widened."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kinds import behaviour_of
from reconciler.kinds.batch_export import DESTINATION
from reconciler.model.kind import Dialect
from reconciler.model.plan import Consequence, Effect, Plan, Severity
from reconciler.model.resource import State
from reconciler.model.values import CLEARED, SecretRef
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

CAPTURE, MASKING, ACCESS = "capture-turned-on", "masking-reduced", "web-access-widened"
LESS, RETENTION = "capture-turned-off", "retention-changed"
MASKS, GROUPS = "session_recording_masking_config", "session_recording_trigger_groups"
PAYLOAD = "session_recording_network_payload_capture_config"


def rules(plan: Plan, about: str = "") -> dict[str, Consequence]:
    return {
        item.rule: item
        for change in plan.effective
        for item in change.consequences
        if str(change.address).startswith(about)
    }


def of_project(live: dict[str, Any] | None, declared: dict[str, Any]) -> dict[str, Consequence]:
    """Return the consequences of a change of a project, or of its creation without live fields."""
    at_service = live_of(*([] if live is None else [live_project(**live)]))
    return rules(planned(desired_of(project(**declared)), at_service))


def of_export(
    live: dict[str, Any] | None, declared: dict[str, Any], dialect: Dialect = Dialect.V2026
) -> dict[str, Consequence]:
    """Return the same for an export."""
    objects = [live_project(), *([] if live is None else [live_export(**live)])]
    plan = planned(desired_of(project(), export(**declared)), live_of(*objects, dialect=dialect))
    return rules(plan, "batch_export")


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


def test_experience_6_places_are_fields_and_every_summary_shows_them() -> None:
    assert IN_PLACE.keys() == DESTINATION.variants.keys()
    for tag, fields in DESTINATION.variants.items():
        names = {field.name for field in fields if not field.secret}
        assert DESTINATION.places.get(tag, {}).keys() == IN_PLACE[tag] <= names
        example = {"type": tag, "config": dict.fromkeys(names, "x")}
        for name in IN_PLACE[tag]:
            config = {**example["config"], name: "SHOWN"}
            assert "SHOWN" in DESTINATION.summary({**example, "config": config})


ACME = s3(bucket_name="acme", prefix="web/", region="eu-central-1", compression="gzip")
TO_7 = {"type": "Postgres", "config": {"database": "d"}, "integration": 7}
KAFKA = {"type": "Kafka", "config": {"topic": "t", "api_key": "k", "size": 3}}


@pytest.mark.parametrize(
    ("destination", "summary"),
    [
        (ACME, "S3 s3://acme/web/ (eu-central-1), JSONLines gzip"),
        (TO_7, "Postgres d.public.events, integration 7"),
        (KAFKA, "Kafka topic t, size 3"),
        ({"type": "NoOp"}, "NoOp"),
        (None, ""),
    ],
)
def test_a_destination_is_described_in_one_line(destination: Any, summary: str) -> None:
    assert DESTINATION.summary(destination) == summary


PAUSED, UNPAUSED = {"paused": True}, {"paused": False}
ENDED = {"end_at": "2026-05-31"}
IN_UTC, IN_TOKYO = {"timezone": "UTC"}, {"timezone": "Asia/Tokyo"}
DAILY, TOO_LATE = {"interval": "day"}, "ends-in-the-past gap-before-unpausing"
JUST_NOW = {"last_paused_at": "2026-06-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("live", "declared", "expected"),
    [
        pytest.param(None, ENDED, "ends-in-the-past", id="create with an end"),
        pytest.param(ENDED, PAUSED | ENDED, "", id="pause after its end"),
        pytest.param(PAUSED | JUST_NOW, UNPAUSED, "", id="unpause at once"),
        pytest.param(PAUSED | ENDED, UNPAUSED, TOO_LATE, id="unpause after its end"),
        pytest.param({}, {"name": "New", "pinned_id": "e1"}, "", id="name"),
        pytest.param(IN_UTC, IN_TOKYO, "", id="zone of hours"),
        pytest.param(IN_UTC | DAILY, IN_TOKYO | DAILY, "schedule-moved", id="zone of days"),
    ],
)
def test_every_consequence_is_a_fact_of_the_change(
    live: dict[str, Any] | None, declared: dict[str, Any], expected: str
) -> None:
    found = of_export(live, declared, Dialect.INTERFACE)
    assert sorted(found) == expected.split()


def test_an_end_in_the_past_is_no_danger_for_what_the_plan_pauses() -> None:
    """A saved plan of which the pause was made was refused: the danger was gone."""
    rule = "ends-in-the-past"
    assert of_export({}, ENDED, Dialect.INTERFACE)[rule].severity is Severity.DANGER
    for live in ({}, PAUSED):
        found = of_export(live, PAUSED | ENDED, Dialect.INTERFACE)
        assert found[rule].severity is Severity.WARNING


# Volumes


def run(status: str = "Completed", rows: int | None = 1, **more: Any) -> dict[str, Any]:
    created = {"created_at": "2026-05-31T00:00:00Z"}
    return {"status": status, "records_completed": rows, **created, **more}


def of_toggle(live: dict[str, Any], declared: dict[str, Any]) -> dict[str, str]:
    """Return the messages by rule."""
    return {rule: item.message for rule, item in of_export(live, declared).items()}


def test_the_volume_of_missed_runs_is_the_median_of_completed_ones() -> None:
    runs = [run("Failed", 0), run(rows=1_200_000), run(rows=9_000_000), run(rows=1_100_000)]
    message = of_toggle({"latest_runs": runs}, PAUSED)["runs-missed-while-paused"]
    assert "hourly runs (about 1.2 M rows each)" in message
    gone = of_toggle({"latest_runs": runs}, {"state": State.ABSENT})
    assert "about 1.2 M rows a run" in gone["history-lost"]


@pytest.mark.parametrize("runs", [None, [], [run("Failed", 5)], ["odd"], [run(rows=None)]])
def test_without_completed_runs_nothing_is_said_about_volumes(runs: Any) -> None:
    assert "rows" not in of_toggle({"latest_runs": runs}, PAUSED)["runs-missed-while-paused"]


WEEK = {"last_paused_at": "2026-05-13T00:00:00Z", "offset_day": 1}
"""Weeks from a Monday, as 2026-06-01 is one."""


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
        ("week", WEEK, "3 runs"),
        ("week", WEEK, "--from 2026-05-11T00:00:00Z --to 2026-06-01T00:00:00Z"),
    ],
)
def test_unpausing_counts_the_runs_that_were_missed(
    interval: str, extra: dict[str, Any], words: str
) -> None:
    live = {"interval": interval, "last_paused_at": "2026-05-31T12:20:00Z", **PAUSED, **extra}
    found = of_toggle(live, {"interval": interval, **UNPAUSED})
    assert words in found["gap-before-unpausing"]


# Pauses by the service


def unpaused(*runs: dict[str, Any]) -> dict[str, str]:
    return of_toggle({**PAUSED, **JUST_NOW, "latest_runs": list(runs)}, UNPAUSED)


FAILED = run("Failed", None, latest_error="NoSuchBucket: the bucket\n\x1b[31macme does not exist")


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([FAILED] * 3 + [run()], "the last 3 runs failed"),
        ([FAILED] * 10, "at least the last 10 runs failed"),
        ([FAILED] * 2 + [run()], None),
        ([run(), FAILED, FAILED, FAILED], None),
        ([run("Cancelled"), FAILED, FAILED, FAILED], "the last 3 runs failed"),
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


# What is collected, shown or exported

WIDENED: list[tuple[str, str, Any, Any]] = [
    *((CAPTURE, f"{name}_opt_in", False, True) for name in ("session_recording", "heatmaps")),
    *((CAPTURE, f"{name}_opt_in", None, True) for name in ("surveys", "capture_console_log")),
    (CAPTURE, "autocapture_opt_out", True, False),
    (CAPTURE, "autocapture_opt_out", True, None),
    (CAPTURE, "autocapture_exceptions_errors_to_ignore", ["a", "b"], ["a"]),
    (CAPTURE, "session_recording_sample_rate", "0.10", 0.5),
    (CAPTURE, "session_recording_sample_rate", "0.10", None),
    (CAPTURE, "session_recording_linked_flag", {"id": 1, "key": "f"}, None),
    (CAPTURE, "session_recording_linked_flag", {"id": 1, "key": "f"}, {"id": 2, "key": "g"}),
    (CAPTURE, GROUPS, {"version": 2, "groups": []}, None),
    (CAPTURE, PAYLOAD, {"recordHeaders": True}, {"recordHeaders": True, "recordBody": True}),
    (CAPTURE, "session_recording_minimum_duration_milliseconds", 5000, 0),
    (CAPTURE, "session_recording_minimum_duration_milliseconds", 5000, None),
    (CAPTURE, "logs_settings", {"capture": False}, {"capture": True}),
    (RETENTION, "session_recording_retention_period", "90d", "1y"),
    (RETENTION, "logs_settings", {"retention_days": 14}, {"retention_days": 30}),
    (CAPTURE, "session_replay_config", None, {"ai_config": {"opt_in": True}}),
    (CAPTURE, "conversations_settings", {"widget_enabled": False}, {"widget_enabled": True}),
    (MASKING, MASKS, {"maskAllInputs": True}, {"maskAllInputs": False}),
    (MASKING, MASKS, None, {"maskAllInputs": False}),
    (MASKING, MASKS, {"maskTextSelector": ".a, .b"}, {"maskTextSelector": ".b"}),
    (MASKING, MASKS, {"blockSelector": "#x"}, None),
    (ACCESS, "app_urls", ["https://a.example"], ["https://a.example", "https://b.example"]),
    (ACCESS, "recording_domains", ["https://a.example"], ["https://b.example"]),
    (ACCESS, "recording_domains", ["https://a.example"], None),
    (ACCESS, "inject_web_apps", None, True),
]


@pytest.mark.parametrize(("rule", "field", "before", "after"), WIDENED)
def test_plan_v4_what_widens_collection_or_access_is_a_consequence(
    rule: str, field: str, before: Any, after: Any
) -> None:
    found = of_project({field: before}, {field: after})
    assert found[rule].effect is Effect.ELSEWHERE
    assert not found.keys() - {rule, LESS}


NARROWED = [
    case
    for case in WIDENED
    if not (case[0] == RETENTION or "linked" in case[1] or case[3] == ["https://b.example"])
]
"""Those whose other direction is known to widen nothing."""
LOSES = [
    *((LESS, name, now, was) for rule, name, was, now in WIDENED if rule in (CAPTURE, MASKING)),
    *((rule, name, now, was) for rule, name, was, now in WIDENED if rule == RETENTION),
    (LESS, "anonymize_ips", False, True),
    (LESS, "recording_domains", None, ["https://a.example"]),
    (LESS, "recording_domains", ["https://a.example", "https://b.example"], ["https://a.example"]),
    (LESS, "session_recording_sample_rate", 1, 0),
    (LESS, "session_recording_linked_flag", None, {"id": 1, "key": "f"}),
    (LESS, GROUPS, {"version": 2, "groups": [1]}, {"version": 2, "groups": [1, 2]}),
    (LESS, "autocapture_exceptions_errors_to_ignore", [], [".*"]),
    (RETENTION, "session_recording_retention_period", "1y", "30d"),
    (RETENTION, "session_recording_retention_period", "1y", "for ever"),
    (RETENTION, "logs_settings", {"retention_days": 30}, {"retention_days": None}),
]


@pytest.mark.parametrize(("rule", "field", "after", "before"), NARROWED)
def test_plan_v4_narrowing_is_not(rule: str, field: str, after: Any, before: Any) -> None:
    assert rule not in of_project({field: before}, {field: after})


@pytest.mark.parametrize(("rule", "field", "before", "after"), LOSES)
def test_r9_what_captures_or_keeps_less_loses_data(
    rule: str, field: str, before: Any, after: Any
) -> None:
    assert of_project({field: before}, {field: after})[rule].effect is Effect.LOST


HOOK = SecretRef.of("env", "HOOK")
SENT = "project notifications are sent to ${secret:env:HOOK}; check who reads them"
NOT_SENT = "project notifications are no longer sent to a webhook"


@pytest.mark.parametrize(
    ("before", "after", "message"), [(None, HOOK, SENT), ("https://a", CLEARED, NOT_SENT)]
)
def test_r9_where_notifications_go_is_a_consequence(before: Any, after: Any, message: str) -> None:
    field = "slack_incoming_webhook"
    live, declared = live_of(live_project(**{field: before})), project(**{field: after})
    plan = planned(desired_of(declared), live, base=desired_of(project()))
    (found,) = rules(plan).values()
    assert found.message == message


_NEUTRAL = {
    *("name", "is_demo", "completed_snippet_onboarding", "has_completed_onboarding_for"),
    *("onboarding_tasks", "person_display_name_properties", "live_events_columns"),
    *("survey_config", "extra_settings", "primary_dashboard", "default_data_theme"),
}
"""The fields without a consequence: they affect pages of the service only, or nothing known."""


def test_r9_each_field_of_projects_has_a_decision() -> None:
    kind = BY_NAME["project"]
    decided = {name for rule in behaviour_of(kind).rules for (name,) in rule.of}
    assert not decided & _NEUTRAL
    assert {field.name for field in kind.fields} == decided | _NEUTRAL


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"session_replay_config": {"record_canvas": True}}, {CAPTURE}),
        ({MASKS: {"maskAllInputs": False}}, {MASKING}),
        ({"inject_web_apps": True}, {ACCESS}),
        ({"anonymize_ips": True, "autocapture_opt_out": False}, set()),
        ({"recording_domains": ["https://a.example"], "app_urls": []}, set()),
        ({"session_recording_sample_rate": 0.5, "session_recording_opt_in": False}, set()),
        ({MASKS: {"maskAllInputs": True, "maskTextSelector": "*"}}, set()),
    ],
)
def test_plan_v4_a_new_project_is_compared_with_safe_defaults(
    declared: dict[str, Any], expected: set[str]
) -> None:
    assert of_project(None, declared).keys() - {"new-api-token"} == expected


def hogql(query: str, **more: Any) -> dict[str, Any]:
    return {"model": "hogql", "sql_query": query, **more}


@pytest.mark.parametrize(
    ("live", "declared", "expected"),
    [
        (None, {"model": "persons"}, True),
        ({"model": "events"}, {"model": "persons"}, True),
        ({"model": "persons"}, {"model": "persons", "interval": "day"}, False),
        (None, hogql("select id from persons"), True),
        (None, hogql("select person.properties.email from events"), True),
        (None, hogql("select person_id from events"), False),
        (None, hogql("select 'person' from events /* persons */"), False),
        ({"model": "persons"}, {"model": "events"}, False),
    ],
)
def test_plan_v4_persons_are_more_than_other_columns(
    live: dict[str, Any] | None, declared: dict[str, Any], expected: bool
) -> None:
    assert ("persons-exported" in of_export(live, declared, Dialect.V2025)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select 1", True),
        ("select event from events where timestamp >= {data_interval_start}", False),
        ("select event from events where timestamp >= { data_interval_start }", False),
        ("select event from events where timestamp < {data_interval_end}", True),
        ("select 1 from events -- where timestamp >= {data_interval_start}", True),
        ("select 1 /* {data_interval_start} */ from events", True),
        ("select '{data_interval_start}' from events", True),
        ("select '--', 'it''s' from events where timestamp >= {data_interval_start}", False),
        ("-- all\nselect 1 from events where timestamp >= {data_interval_start}", False),
    ],
)
def test_plan_v5_a_query_without_the_interval_exports_all_rows(query: str, expected: bool) -> None:
    """S3: comments and texts do not count."""
    rule, declared = "query-without-interval", hogql(query)
    assert (rule in of_export(None, declared)) == expected
    assert (rule in of_export(hogql("select 2"), declared)) == expected
    assert rule not in of_export({**declared}, {**declared, "interval": "day"})
    assert rule not in of_export(None, {**declared, "incremental_mode": "MERGE"})
    assert rule not in of_export(None, {"sql_query": query}, Dialect.V2025)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select 1 -- note from events where timestamp >= {data_interval_start}", True),
        ("-- note select 1", True),
        ("select 1 from events -- all of them", False),
        ("select '-- from' from events", False),
        ("select 1 /* -- */ from events", False),
        ("select 1 -- from here\nfrom events", False),
    ],
)
def test_s3_a_comment_that_hides_the_rest_of_a_folded_query(query: str, expected: bool) -> None:
    assert ("query-in-comment" in of_export(None, hogql(query))) == expected


def to_s3(**config: Any) -> dict[str, Any]:
    return {"destination": s3(**config)}


def excluding(*names: str, **config: Any) -> dict[str, Any]:
    return to_s3(exclude_events=[*names], **config)


def including(*names: str, **config: Any) -> dict[str, Any]:
    return to_s3(include_events=[*names], **config)


ALL, KMS = to_s3(), to_s3(encryption="aws:kms", kms_key_id="ours")
OTHER_KEY = to_s3(encryption="aws:kms", kms_key_id="theirs")
LOST, MORE = "events-changed lost:", "events-changed elsewhere: exported from now on:"
ENCRYPTION = "encryption-changed elsewhere: new files are"
MODIFIERS, INTERVAL = "query-modifiers-changed", "interval-changed"
FROM_START = "select 1 where {data_interval_start}"
SWAP = {"dataWarehouseEventsModifiers": [{"table_name": "partners"}]}
SWAPPED = hogql(FROM_START, hogql_modifiers=SWAP)
FILTERS = [{"type": "event", "key": "a"}], [{"type": "event", "key": "b"}]
NO_FILTERS, FILTER_A, FILTER_B = ({"filters": filters} for filters in ([], *FILTERS))
MODIFIERS_A, MODIFIERS_B = (hogql(FROM_START, hogql_modifiers={key: 1}) for key in "ab")
MERGE, APPEND = (hogql(FROM_START, incremental_mode=mode) for mode in ("MERGE", "APPEND"))
OTHER_TABLES = "dataWarehouseEventsModifiers: the query reads other tables in place of events"
READERS = "readers must accept new and exported data"
FAR, SOON = {"start_at": "2099-01-01"}, {"start_at": "2026-06-02"}
IN_2099 = "no runs are scheduled before 2099-01-01T00:00:00Z, for 26,511 days"
END, EARLIER = {"end_at": "2027-01-01"}, {"end_at": "2026-06-02"}
FIVE, SCHEDULE = {"interval": "every 5 minutes"}, "the schedule changes immediately"
RANGES = "new files or batches cover other ranges, past ones stay as they are"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ALL, including("a"), f"{LOST} no longer exported: all others"),
        (including("a"), including(), f"{MORE} all others"),
        (
            including("a", "b"),
            including("b", "c"),
            f"{LOST} no longer exported: a; exported from now on: c",
        ),
        (
            excluding("a"),
            including("a", "b", exclude_events=[]),
            f"{LOST} no longer exported: all others; exported from now on: a",
        ),
        (including("a"), including("a", exclude_events=["b"]), ""),
        (
            KMS,
            to_s3(encryption="AES256"),
            f"{ENCRYPTION} encrypted with AES256, no longer with aws:kms",
        ),
        (KMS, OTHER_KEY, f"{ENCRYPTION} encrypted with another key of aws:kms"),
        (ALL, KMS, f"{ENCRYPTION} encrypted with aws:kms"),
        # A key without encryption is none.
        (ALL, to_s3(kms_key_id="k"), ""),
        (ALL, to_s3(max_file_size_mb=5), ""),
        (None, SWAPPED, f"{MODIFIERS} elsewhere: {OTHER_TABLES}"),
        (MODIFIERS_A, MODIFIERS_B, f"{MODIFIERS} form: a, b: the query has other results"),
        (None, FAR, f"start-moved lost: {IN_2099}"),
        ({}, SOON, "start-moved delayed: no runs are scheduled before 2026-06-02T00:00:00Z"),
        (None, {"start_at": "2026-01-01"}, ""),
        (None, {"start_at": "2026-06-30"}, ""),
        (END, EARLIER, "end-moved lost: no runs are scheduled after 2026-06-02T00:00:00Z"),
        ({"end_at": "2026-12-01"}, END, ""),
        (END, {"end_at": None}, ""),
        ({}, {"interval": "week"}, f"{INTERVAL} delayed: {SCHEDULE} (hour → week): {RANGES}"),
        ({}, FIVE, f"{INTERVAL} form: {SCHEDULE} (hour → every 5 minutes): {RANGES}"),
        (NO_FILTERS, FILTER_A, "events-changed lost: more filters exclude events"),
        (FILTER_A, {"filters": None}, "events-changed elsewhere: fewer filters exclude events"),
        (FILTER_A, FILTER_B, "events-changed lost: other filters choose the events"),
        (MERGE, APPEND, f"format-changed form: incremental_mode: {READERS}"),
    ],
)
def test_r5_what_data_loses_or_shows_is_a_consequence(
    before: dict[str, Any] | None, after: dict[str, Any], expected: str
) -> None:
    found = of_export(before, after).values()
    shown = [f"{item.rule} {item.effect.name.lower()}: {item.message}" for item in found]
    assert shown == ([expected] if expected else [])


def test_a_certificate_that_is_no_longer_checked_is_a_consequence() -> None:
    rule, checked = "certificate-not-checked", _postgres()
    for unchecked in ({"has_self_signed_cert": True}, {"has_self_signed_cert": True, "port": 1}):
        after = _postgres(**unchecked)
        assert rule in of_export(None, {"destination": after})
        assert rule in of_export({"destination": checked}, {"destination": after})
        assert rule not in of_export({"destination": after}, {"destination": checked})
        assert rule not in of_export(
            {"destination": after}, {"destination": _postgres(port=2) | after}
        )
    assert rule not in of_export({"destination": checked}, {"destination": _postgres(port=2)})


def _postgres(**config: Any) -> dict[str, Any]:
    whole = {"host": "db.example", "database": "d", "table_name": "t", **config}
    return {"type": "Postgres", "config": whole}


@pytest.mark.parametrize("host", ["DB.Example", "db.example.", "DB.EXAMPLE."])
def test_the_same_host_in_capitals_or_with_a_final_dot_is_no_other_place(host: str) -> None:
    after = {"destination": _postgres(host=host)}
    assert "destination-moved" not in of_export({"destination": _postgres()}, after)


def test_plan_v3_another_bucket_ranks_above_another_prefix() -> None:
    """The region of another bucket is not another region."""
    for config, effect in (
        ({"bucket_name": "c", "prefix": "q/"}, Effect.ELSEWHERE),
        ({"bucket_name": "c", "region": "s"}, Effect.ELSEWHERE),
        ({"endpoint_url": "https://x.example"}, Effect.ELSEWHERE),
        ({"prefix": "q/"}, Effect.FORM),
    ):
        found = of_export(ALL, to_s3(**config), Dialect.V2025)
        assert found.keys() - {"credentials-to-new-address"} == {"destination-moved"}
        assert found["destination-moved"].effect is effect


def test_consequences_are_ranked_by_severity_then_effect() -> None:
    ranked = [
        Consequence("x", severity, "m", effect).rank
        for severity in (Severity.DANGER, Severity.WARNING, Severity.INFO)
        for effect in (Effect.LOST, Effect.ELSEWHERE, Effect.DELAYED, Effect.FORM, Effect.OTHER)
    ]
    assert ranked == sorted(set(ranked))


def test_plan_v5_a_replacement_shows_another_reference_too() -> None:
    app, keys = project("app"), [SecretRef.of("env", name) for name in ("OLD", "NEW")]
    old, new = (s3(aws_access_key_id=key, aws_secret_access_key=key) for key in keys)
    plan = planned(
        desired_of(project(), app, export(destination=new, parent="app")),
        live_of(live_project(), live_project(2, "App"), live_export()),
        base=desired_of(project(), app, export(destination=old)),
    )
    assert "secret-reference-changed" in rules(plan)
