"""The schemas know every field of the interface, and of the destinations of all its servers."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.schemas import schema, schema_names

PROJECT_FIELDS = [
    *("app_urls", "name", "slack_incoming_webhook", "anonymize_ips"),
    *("completed_snippet_onboarding", "test_account_filters"),
    *("test_account_filters_default_checked", "path_cleaning_filters", "is_demo", "timezone"),
    *("data_attributes", "person_display_name_properties", "correlation_config"),
    *("autocapture_opt_out", "autocapture_exceptions_opt_in", "autocapture_web_vitals_opt_in"),
    *("autocapture_exceptions_errors_to_ignore", "capture_console_log_opt_in"),
    *("capture_performance_opt_in", "session_recording_opt_in"),
    *("session_recording_sample_rate", "session_recording_minimum_duration_milliseconds"),
    *("session_recording_linked_flag", "session_recording_network_payload_capture_config"),
    *("session_replay_config", "access_control", "week_start_day", "primary_dashboard"),
    *("live_events_columns", "recording_domains", "inject_web_apps", "extra_settings"),
    *("modifiers", "has_completed_onboarding_for", "surveys_opt_in", "heatmaps_opt_in"),
]
"""Those that the interface lists in request bodies (2.4)."""

PROJECT_NULLABLE = [
    *("test_account_filters", "path_cleaning_filters", "data_attributes"),
    *("correlation_config", "autocapture_exceptions_errors_to_ignore"),
    *("session_recording_linked_flag", "session_recording_network_payload_capture_config"),
    *("session_replay_config", "extra_settings", "modifiers", "has_completed_onboarding_for"),
]

EVENTS = {"exclude_events?", "include_events?"}
FILES = {"bucket_name!", "region!", "prefix!", "compression?", "file_format=", "max_file_size_mb?"}
ENCRYPTED = {"encryption?", "kms_key_id?"}
KEYS = {"aws_access_key_id*", "aws_secret_access_key*"}
TABLE = {"schema=", "table_name=", "has_self_signed_cert="}
DESTINATIONS = {
    "S3": FILES | ENCRYPTED | KEYS | {"endpoint_url?", "use_virtual_style_addressing="},
    "AwsS3": FILES | ENCRYPTED | KEYS | {"legacy_parquet_extension="},
    "S3Compatible": FILES | KEYS | {"use_virtual_style_addressing=", "legacy_parquet_extension="},
    "Snowflake": {
        *("account", "user*", "database!", "warehouse!", "schema!", "table_name="),
        *("authentication_type=", "password*", "private_key*", "private_key_passphrase*", "role?"),
    },
    "Postgres": TABLE | {"user*", "password*", "host", "database!", "port="},
    "Redshift": {
        *("user*", "password*", "host", "database!", "schema=", "table_name=", "port="),
        *("properties_data_type=", "mode=", "copy_inputs?"),
    },
    "BigQuery": {
        *("project_id", "dataset_id!", "private_key*", "private_key_id*", "token_uri*"),
        *("client_email*", "table_id=", "use_json_type="),
    },
    "Databricks": {
        *("http_path!", "catalog!", "schema!", "table_name!", "use_variant_type="),
        "use_automatic_schema_evolution=",
    },
    "AzureBlob": {
        *("container_name!", "prefix=", "compression?", "file_format=", "max_file_size_mb?"),
        "legacy_parquet_extension=",
    },
    "HTTP": {"url!", "token*"},
    "Workflows": {"hog_function_id!"},
    "NoOp": {"arg="},
}
"""By type: `!` is required, `*` secret, `?` takes null, `=` has a default."""


def _takes_null(node: dict[str, Any]) -> bool:
    return "null" in node["type"]


def test_every_project_field_of_the_interface_is_known() -> None:
    properties = schema("project")["properties"]
    assert set(PROJECT_FIELDS) <= set(properties)
    # Two of them are nullable by the interface, and refuse null on every real server.
    refused = {"test_account_filters", "autocapture_exceptions_errors_to_ignore", "data_attributes"}
    refusing = {name for name in PROJECT_NULLABLE if not _takes_null(properties[name])}
    assert refusing <= refused


@pytest.mark.parametrize("name", DESTINATIONS)
def test_every_config_field_of_a_destination_is_known(name: str) -> None:
    document = schema(f"destinations/{name}")
    properties = document["properties"]
    for documented in DESTINATIONS[name] | EVENTS:
        signed = documented[-1] in "!*?="
        field, sign = (documented[:-1], documented[-1]) if signed else (documented, "")
        node = properties[field]
        assert (field in document.get("required", ())) == (sign == "!"), field
        assert node.get("x-secret", False) == (sign == "*"), field
        assert sign != "?" or _takes_null(node), field
        assert sign != "=" or "default" in node, field


def test_every_destination_has_a_schema() -> None:
    here = {name.removeprefix("destinations/") for name in schema_names() if "destinations" in name}
    assert here == {*DESTINATIONS, "FileDownload"}
    (known,) = [schema("batch_export")["properties"]["destination"]["properties"]["type"]]
    assert set(known["x-open-enum"]) == here
