"""What a plan says about changes that collect, show or export more, or send it elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Dialect
from reconciler.model.plan import Consequence, Effect, Plan, Severity
from reconciler.model.resource import Resource
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
    with_secrets,
)

CAPTURE, MASKING, ACCESS = "capture-turned-on", "masking-reduced", "web-access-widened"
LESS, RETENTION = "capture-turned-off", "retention-changed"
MASKS = "session_recording_masking_config"


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
    (CAPTURE, "session_recording_trigger_groups", {"version": 2, "groups": []}, None),
    (
        *(CAPTURE, "session_recording_network_payload_capture_config"),
        *({"recordHeaders": True}, {"recordHeaders": True, "recordBody": True}),
    ),
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
    (
        *(LESS, "session_recording_trigger_groups"),
        *({"version": 2, "groups": [1]}, {"version": 2, "groups": [1, 2]}),
    ),
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


@pytest.mark.parametrize(
    ("field", "before", "after", "message"),
    [
        (
            *("session_recording_retention_period", "1y", "30d"),
            "recordings are kept for 30d (before: 1y)",
        ),
        (
            *("slack_incoming_webhook", None, SecretRef.of("env", "HOOK")),
            "notifications of the project are sent to ${secret:env:HOOK}; check who reads them",
        ),
        (
            *("slack_incoming_webhook", "https://a.example", CLEARED),
            "notifications of the project are no longer sent to a webhook",
        ),
        (
            *("week_start_day", 0, 1),
            "weeks start on another day: expect other numbers, also for past dates",
        ),
    ],
)
def test_r9_a_consequence_says_what_follows(
    field: str, before: Any, after: Any, message: str
) -> None:
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


NEW_PROJECTS: list[tuple[dict[str, Any], set[str]]] = [
    ({"session_recording_opt_in": True}, {CAPTURE}),
    ({"session_replay_config": {"record_canvas": True}}, {CAPTURE}),
    ({MASKS: {"maskAllInputs": False}}, {MASKING}),
    ({"app_urls": ["https://evil.example"]}, {ACCESS}),
    ({"inject_web_apps": True}, {ACCESS}),
    ({"anonymize_ips": False}, {"ip-anonymisation-off"}),
    ({"anonymize_ips": True, "autocapture_opt_out": False}, set()),
    ({"recording_domains": ["https://a.example"], "app_urls": []}, set()),
    ({"session_recording_sample_rate": 0.5, "session_recording_opt_in": False}, set()),
    ({MASKS: {"maskAllInputs": True, "maskTextSelector": "*"}}, set()),
]


@pytest.mark.parametrize(("declared", "expected"), NEW_PROJECTS)
def test_plan_v4_a_new_project_is_compared_with_safe_defaults(
    declared: dict[str, Any], expected: set[str]
) -> None:
    found = of_project(None, declared)
    assert found.keys() - {"new-api-token"} == expected


def test_plan_v4_a_selector_for_everything_masks_no_less() -> None:
    after = {MASKS: {"maskTextSelector": "*"}}
    assert of_project({MASKS: {"maskTextSelector": ".a, .b"}}, after).keys() == {LESS}


def test_plan_v4_web_access_names_the_sites() -> None:
    declared = {"app_urls": ["https://evil.example"], "recording_domains": []}
    live = {"app_urls": [], "recording_domains": ["https://a.example"]}
    assert of_project(live, declared)[ACCESS].message == (
        "https://evil.example may use the toolbar; any site may record sessions"
    )


def test_plan_v4_what_is_no_longer_masked_is_named() -> None:
    declared = {MASKS: {"maskAllInputs": False, "maskTextSelector": ".b"}}
    assert of_project({MASKS: {"maskTextSelector": ".a, .b"}}, declared)[MASKING].message == (
        "no longer masked: maskAllInputs, maskTextSelector .a; check that recordings may show it"
    )


READS_PERSONS: list[tuple[dict[str, Any] | None, dict[str, Any], bool]] = [
    (None, {"model": "persons"}, True),
    ({"model": "events"}, {"model": "persons"}, True),
    ({"model": "persons"}, {"model": "persons", "interval": "day"}, False),
    (None, {"model": "hogql", "sql_query": "select id from persons"}, True),
    (None, {"model": "hogql", "sql_query": "select person.properties.email from events"}, True),
    (None, {"model": "hogql", "sql_query": "select person_id from events"}, False),
    (None, {"model": "hogql", "sql_query": "select 'person' from events /* persons */"}, False),
    ({"model": "persons"}, {"model": "events"}, False),
]


@pytest.mark.parametrize(("live", "declared", "expected"), READS_PERSONS)
def test_plan_v4_persons_are_more_than_other_columns(
    live: dict[str, Any] | None, declared: dict[str, Any], expected: bool
) -> None:
    assert ("persons-exported" in of_export(live, declared, Dialect.V2025)) == expected


QUERIES: list[tuple[str, bool]] = [
    ("select 1", True),
    ("select event from events where timestamp >= {data_interval_start}", False),
    ("select event from events where timestamp >= { data_interval_start }", False),
    ("select event from events where timestamp < {data_interval_end}", True),
    ("select 1 from events -- where timestamp >= {data_interval_start}", True),
    ("select 1 /* {data_interval_start} */ from events", True),
    ("select '{data_interval_start}' from events", True),
    ("select '--', 'it''s' from events where timestamp >= {data_interval_start}", False),
    ("-- all\nselect 1 from events where timestamp >= {data_interval_start}", False),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_plan_v5_a_query_without_the_interval_exports_all_rows(query: str, expected: bool) -> None:
    """S3: comments and texts do not count."""
    rule, declared = "query-without-interval", {"model": "hogql", "sql_query": query}
    assert (rule in of_export(None, declared)) == expected
    live = {"model": "hogql", "sql_query": "select 2"}
    assert (rule in of_export(live, declared)) == expected
    assert rule not in of_export({**declared}, {**declared, "interval": "day"})
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
    declared = {"model": "hogql", "sql_query": query}
    assert ("query-in-comment" in of_export(None, declared)) == expected


EVENTS: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
    ({}, {"exclude_events": ["b", "a"]}, "no longer exported: a, b"),
    ({"exclude_events": ["a"]}, {"exclude_events": []}, "exported from now on: a"),
    ({}, {"include_events": ["a"]}, "no longer exported: all others"),
    ({"include_events": ["a"]}, {"include_events": []}, "exported from now on: all others"),
    (
        {"include_events": ["a", "b"]},
        {"include_events": ["b", "c"]},
        "no longer exported: a; exported from now on: c",
    ),
    (
        {"exclude_events": ["a"]},
        {"exclude_events": [], "include_events": ["a", "b"]},
        "no longer exported: all others; exported from now on: a",
    ),
    ({"include_events": ["a"]}, {"include_events": ["a"], "exclude_events": ["b"]}, None),
]


@pytest.mark.parametrize(("before", "after", "expected"), EVENTS)
def test_plan_v5_events_that_are_lost_or_added_are_named(
    before: dict[str, Any], after: dict[str, Any], expected: str | None
) -> None:
    found = of_export({"destination": s3(**before)}, {"destination": s3(**after)}).values()
    expected_rules = {("events-changed", expected)} if expected is not None else set()
    assert {(item.rule, item.message) for item in found} == expected_rules


FORMS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"region": "s"}, {"region-changed": "bucket 'b' must be in region s, or all runs fail"}),
    (
        {"file_format": "Parquet", "compression": "zstd"},
        {"format-changed": "file_format, compression: readers must accept new and exported data"},
    ),
    ({"max_file_size_mb": 5}, {}),
]


@pytest.mark.parametrize(("config", "expected"), FORMS)
def test_plan_v5_region_and_format_are_consequences(
    config: dict[str, Any], expected: dict[str, str]
) -> None:
    found = of_export({"destination": s3()}, {"destination": s3(**config)}, Dialect.V2025)
    assert {rule: item.message for rule, item in found.items()} == expected


KMS = {"encryption": "aws:kms", "kms_key_id": "ours"}
HOGQL = {"model": "hogql", "sql_query": "select 1 where {data_interval_start}"}
FILTERS = [{"type": "event", "key": "a"}], [{"type": "event", "key": "b"}]
SCHEDULE = "the schedule changes immediately"
RANGES = "new files or batches cover other ranges, past ones stay as they are"
SWAP = {"dataWarehouseEventsModifiers": [{"table_name": "partners"}]}
DANGEROUS: list[tuple[dict[str, Any] | None, dict[str, Any], str, Effect, str]] = [
    (
        *({"destination": s3(**KMS)}, {"destination": s3(encryption=None, kms_key_id=None)}),
        *("encryption-changed", Effect.ELSEWHERE),
        "new files are not encrypted, no longer with aws:kms",
    ),
    (
        *({"destination": s3(**KMS)}, {"destination": s3(encryption="AES256")}),
        *("encryption-changed", Effect.ELSEWHERE),
        "new files are encrypted with AES256, no longer with aws:kms",
    ),
    (
        *({"destination": s3(**KMS)}, {"destination": s3(**KMS | {"kms_key_id": "theirs"})}),
        *("encryption-changed", Effect.ELSEWHERE),
        "new files are encrypted with another key of aws:kms",
    ),
    (
        *({"destination": s3()}, {"destination": s3(**KMS)}),
        *("encryption-changed", Effect.ELSEWHERE, "new files are encrypted with aws:kms"),
    ),
    (
        *(HOGQL, HOGQL | {"hogql_modifiers": SWAP}),
        *("query-modifiers-changed", Effect.ELSEWHERE),
        "dataWarehouseEventsModifiers: the query reads other tables in place of events",
    ),
    (
        *(None, HOGQL | {"hogql_modifiers": SWAP}),
        *("query-modifiers-changed", Effect.ELSEWHERE),
        "dataWarehouseEventsModifiers: the query reads other tables in place of events",
    ),
    (
        *(HOGQL | {"hogql_modifiers": {"a": 1}}, HOGQL | {"hogql_modifiers": {"b": 1}}),
        *("query-modifiers-changed", Effect.FORM, "a, b: the query has other results"),
    ),
    (
        *({}, {"start_at": "2099-01-01"}, "start-moved", Effect.LOST),
        "no runs are scheduled before 2099-01-01T00:00:00Z, for 26,511 days",
    ),
    (
        *(None, {"start_at": "2099-01-01"}, "start-moved", Effect.LOST),
        "no runs are scheduled before 2099-01-01T00:00:00Z, for 26,511 days",
    ),
    (
        *({}, {"start_at": "2026-06-02"}, "start-moved", Effect.DELAYED),
        "no runs are scheduled before 2026-06-02T00:00:00Z",
    ),
    (
        *({"end_at": "2027-01-01"}, {"end_at": "2026-06-02"}, "end-moved", Effect.LOST),
        "no runs are scheduled after 2026-06-02T00:00:00Z",
    ),
    (
        *({}, {"interval": "week"}, "interval-changed", Effect.DELAYED),
        f"{SCHEDULE} (hour → week): {RANGES}",
    ),
    (
        *({}, {"interval": "every 5 minutes"}, "interval-changed", Effect.FORM),
        f"{SCHEDULE} (hour → every 5 minutes): {RANGES}",
    ),
    (
        *({"filters": []}, {"filters": FILTERS[0]}, "events-changed", Effect.LOST),
        "more filters exclude events",
    ),
    (
        *({"filters": FILTERS[0]}, {"filters": None}, "events-changed", Effect.ELSEWHERE),
        "fewer filters exclude events",
    ),
    (
        *({"filters": FILTERS[0]}, {"filters": FILTERS[1]}, "events-changed", Effect.LOST),
        "other filters choose the events",
    ),
    (
        *(HOGQL | {"incremental_mode": "MERGE"}, HOGQL | {"incremental_mode": "APPEND"}),
        *("format-changed", Effect.FORM),
        "incremental_mode: readers must accept new and exported data",
    ),
]


@pytest.mark.parametrize(("before", "after", "rule", "effect", "message"), DANGEROUS)
def test_r5_what_data_loses_or_shows_is_a_consequence(
    before: dict[str, Any] | None, after: dict[str, Any], rule: str, effect: Effect, message: str
) -> None:
    found = of_export(before, after)[rule]
    assert (found.effect, found.message) == (effect, message)


def test_r5_other_starts_and_ends_lose_nothing() -> None:
    """Nor does a key without encryption."""
    assert of_export({}, {"destination": s3(kms_key_id="k")}) == {}
    for start in ("2026-01-01", "2026-06-30"):
        assert of_export(None, {"start_at": start}) == {}
    for end in ("2027-01-01", None):
        assert of_export({"end_at": "2026-12-01"}, {"end_at": end}) == {}


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


def test_plan_v5_the_region_of_another_bucket_is_not_one() -> None:
    declared = {"destination": s3(bucket_name="c", region="s")}
    found = of_export({"destination": s3()}, declared, Dialect.V2025)
    assert found.keys() == {"destination-moved"}


def moved(**config: Any) -> Effect:
    found = of_export({"destination": s3()}, {"destination": s3(**config)}, Dialect.V2025)
    return found["destination-moved"].effect


def test_plan_v3_another_bucket_ranks_above_another_prefix() -> None:
    assert moved(bucket_name="c", prefix="q/") is moved(endpoint_url="https://x.example")
    assert moved(bucket_name="c") is Effect.ELSEWHERE
    assert moved(prefix="q/") is Effect.FORM


def test_consequences_are_ranked_by_severity_then_effect() -> None:
    ranked = [
        Consequence("x", severity, "m", effect).rank
        for severity in (Severity.DANGER, Severity.WARNING, Severity.INFO)
        for effect in (Effect.LOST, Effect.ELSEWHERE, Effect.DELAYED, Effect.FORM, Effect.OTHER)
    ]
    assert ranked == sorted(set(ranked))


def with_key(name: str, **more: Any) -> Resource:
    destination = with_secrets()
    destination["config"]["aws_secret_access_key"] = SecretRef.of("env", name)
    return export(destination=destination, **more)


def test_plan_v5_a_replacement_shows_it_too() -> None:
    plan = planned(
        desired_of(project(), project("app"), with_key("NEW", parent="app")),
        live_of(live_project(), live_project(2, "App"), live_export()),
        base=desired_of(project(), project("app"), with_key("OLD")),
    )
    assert "secret-reference-changed" in rules(plan)
