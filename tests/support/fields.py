"""Every field of both kinds and of every destination type, with values for three stages.

A field with fewer values keeps its last one. A None removes the field from the file.
"""

from __future__ import annotations

from typing import Any

S3 = {"bucket_name": ["b", "c"], "region": ["r", "s"], "prefix": ["p/", "q/"]}
FILES = {
    "compression": ["gzip", "brotli", None],
    "file_format": ["JSONLines", "Parquet"],
    "max_file_size_mb": [5, 6, None],
    "exclude_events": [["b", "a"], ["c"], None],
    "include_events": [["x"], [], None],
}
SQL = {
    "host": ["h", "i"],
    "database": ["d", "e"],
    "schema": ["s", "t"],
    "table_name": ["x", "y"],
    "port": [5433, 5434],
    "user": ["${secret:env:RECONCILER_SECRET_U}"] * 2,
    "password": ["${secret:env:RECONCILER_SECRET_P}"] * 2,
}
AWS_KEYS = {
    "aws_access_key_id": ["${secret:env:RECONCILER_SECRET_U}"] * 2,
    "aws_secret_access_key": ["${secret:env:RECONCILER_SECRET_P}"] * 2,
}
ENCRYPTED = {"encryption": ["AES256", "aws:kms", None], "kms_key_id": ["k", "l", None]}
SNOWFLAKE = {
    "database": ["d", "e"],
    "warehouse": ["w", "v"],
    "schema": ["s", "t"],
    "table_name": ["x", "y"],
    "role": ["r", "q", None],
}
DATABRICKS = {
    "http_path": ["h", "i"],
    "catalog": ["c", "d"],
    "schema": ["s", "t"],
    "table_name": ["x", "y"],
    "use_variant_type": [False, True],
    "use_automatic_schema_evolution": [False, True],
}

INLINE: dict[str, dict[str, list[Any]]] = {
    "S3": {
        **S3,
        **FILES,
        **AWS_KEYS,
        **ENCRYPTED,
        "use_virtual_style_addressing": [True, False],
        "endpoint_url": ["https://a", "https://b", None],
    },
    "Snowflake": {
        **SNOWFLAKE,
        "account": ["a", "b"],
        "user": ["${secret:env:RECONCILER_SECRET_U}"] * 2,
        "authentication_type": ["password", "keypair"],
        "password": ["${secret:env:RECONCILER_SECRET_P}"] * 2,
        "private_key": ["${secret:env:RECONCILER_SECRET_P}"] * 2,
        "private_key_passphrase": ["${secret:env:RECONCILER_SECRET_P}"] * 2,
    },
    "Postgres": {**SQL, "has_self_signed_cert": [True, False]},
    "Redshift": {
        **SQL,
        "properties_data_type": ["super", "varchar"],
        "mode": ["COPY", "COPY"],
        "copy_inputs": [
            {
                "s3_bucket": bucket,
                "region_name": "r",
                "s3_key_prefix": "p",
                "authorization": "role",
                "bucket_credentials": {
                    "aws_access_key_id": "${secret:env:RECONCILER_SECRET_U}",
                    "aws_secret_access_key": "${secret:env:RECONCILER_SECRET_P}",
                },
            }
            for bucket in ("b", "c")
        ],
    },
    "BigQuery": {
        "project_id": ["p", "q"],
        "dataset_id": ["d", "e"],
        "table_id": ["t", "u"],
        "use_json_type": [True, False],
        **{
            name: ["${secret:env:RECONCILER_SECRET_P}"] * 2
            for name in ("private_key", "private_key_id", "token_uri", "client_email")
        },
    },
    "HTTP": {
        "url": ["https://eu.i.posthog.com/batch/", "https://us.i.posthog.com/batch/"],
        "token": ["${secret:env:RECONCILER_SECRET_P}"] * 2,
    },
    "NoOp": {"arg": ["a", "b"]},
    "Databricks": DATABRICKS,
}
BY_INTEGRATION: dict[str, dict[str, list[Any]]] = {
    "AwsS3": {**S3, **FILES, **ENCRYPTED, "legacy_parquet_extension": [False, False]},
    "S3Compatible": {**S3, **FILES, "use_virtual_style_addressing": [True, False]},
    "Snowflake": SNOWFLAKE,
    "Postgres": {
        "database": ["d", "e"],
        "schema": ["s", "t"],
        "table_name": ["x", "y"],
        "has_self_signed_cert": [True, False],
    },
    "Redshift": {
        "database": ["d", "e"],
        "host": ["h", "i"],
        "schema": ["s", "t"],
        "properties_data_type": ["super", "varchar"],
    },
    "BigQuery": {"dataset_id": ["d", "e"], "table_id": ["t", "u"], "use_json_type": [True, False]},
    "Databricks": DATABRICKS,
    "AzureBlob": {"container_name": ["c", "d"], "prefix": ["p", "q"], **FILES},
    "HTTP": INLINE["HTTP"],
    "NoOp": INLINE["NoOp"],
}
INTEGRATIONS = {
    "AwsS3": "aws-s3",
    "S3Compatible": "s3-compatible",
    "Snowflake": "snowflake",
    "Postgres": "postgresql",
    "Redshift": "aws-redshift",
    "BigQuery": "google-cloud-service-account",
    "Databricks": "databricks",
    "AzureBlob": "azure-blob",
}
EXPORT: dict[str, list[Any]] = {
    "interval": ["hour", "day", "week"],
    "model": ["events", "events", None],
    "paused": [True, False, True],
    "start_at": ["2026-01-01T01:00:00+01:00", "2026-02-01", None],
    "end_at": ["2030-01-01 00:00:00", "2031-01-01T00:00:00Z", None],
}
QUERIES = [
    "select event, toInt(1+1) as n from events",
    "SELECT event -- all of them\nFROM events where 1 = 1 /* and */ and event != 'x' -- end",
]
PROJECT: dict[str, list[Any]] = {
    "timezone": ["Europe/Berlin", "UTC"],
    "week_start_day": [1, 0, None],
    "app_urls": [["https://b", "", "https://a"], []],
    "recording_domains": [["https://a"], [], None],
    "anonymize_ips": [True, False],
    "completed_snippet_onboarding": [True, False],
    "is_demo": [True, False],
    "test_account_filters": [[{"key": "email", "type": "person", "value": "x"}], []],
    "test_account_filters_default_checked": [True, False, None],
    "path_cleaning_filters": [[{"alias": "a", "regex": "b"}], [], None],
    "data_attributes": [["data-x"], ["data-attr"]],
    "person_display_name_properties": [["email", "name"], ["name", "email"], None],
    "live_events_columns": [["b", "a"], ["a"], None],
    "correlation_config": [{"b": 1, "a": [1.0]}, {"a": 2}, None],
    "autocapture_opt_out": [True, False, None],
    "autocapture_exceptions_opt_in": [True, False, None],
    "autocapture_web_vitals_opt_in": [False, True, None],
    "autocapture_exceptions_errors_to_ignore": [["a"], []],
    "capture_console_log_opt_in": [True, False, None],
    "capture_performance_opt_in": [True, False, None],
    "session_recording_opt_in": [True, False],
    "session_recording_sample_rate": [0.4, "1", None],
    "session_recording_minimum_duration_milliseconds": [500, 0, None],
    "session_recording_linked_flag": [
        {"id": 1, "key": "a"},
        {"id": 1, "key": "a", "variant": "b"},
        None,
    ],
    "session_recording_network_payload_capture_config": [
        {"recordBody": True},
        {"recordHeaders": True},
        None,
    ],
    "session_replay_config": [{"ai_config": {"a": 1, "b": 2}}, {"record_canvas": True}, None],
    "modifiers": [{"debug": True, "timings": None}, {"timings": False}, None],
    "extra_settings": [{"a": 1}, {"a": 2, "b": 3}, None],
    "has_completed_onboarding_for": [{"a": True}, {}, None],
    "inject_web_apps": [True, False, None],
    "surveys_opt_in": [False, True, None],
    "heatmaps_opt_in": [True, False, None],
    "primary_dashboard": [5, 6, None],
}
RETIRED: dict[str, list[Any]] = {"access_control": [True, False]}
NEWER: dict[str, list[Any]] = {
    "onboarding_tasks": [{"a": 1}, None],
    "session_recording_masking_config": [{"maskAllInputs": True}, None],
    "session_recording_trigger_groups": [{"version": 2, "groups": []}, None],
    "session_recording_retention_period": ["90d", "1y"],
    "survey_config": [{"a": 1}, {"b": 2}, None],
    "conversations_settings": [{"a": 1}, {"b": 2}, None],
    "logs_settings": [{"retention_days": 14}, None],
    "default_data_theme": [3, None],
}


def at(values: dict[str, list[Any]], stage: int) -> dict[str, Any]:
    """Return the values of a stage; a field with fewer values keeps its last one."""
    return {name: stages[min(stage, len(stages) - 1)] for name, stages in values.items()}
