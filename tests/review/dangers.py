"""The dangerous changes of the pull requests."""

from __future__ import annotations

from reconciler.model.kind import Dialect
from tests.review.pull_requests import (
    PROJECT,
    URL,
    Danger,
    aws,
    azure,
    bigquery,
    databricks,
    export,
    http,
    postgres,
    redshift,
    s3,
    secret,
)

_CONTACTS = "SELECT properties.email AS email FROM persons"
_HOURLY = "SELECT event FROM events WHERE timestamp >= {data_interval_start}"
_OTHER_TABLE = {"dataWarehouseEventsModifiers": [{"table_name": "salaries"}]}
_EVIL, _FORGOTTEN = "evil.example", "forgotten-bucket"
_CARDS = "card_number_typed"
_V2026 = Dialect.V2026
_INTERFACE = Dialect.INTERFACE


def _table(integration: int) -> dict[str, object]:
    config = {"database": "dwh", "table_name": "sink"}
    return {"type": "Postgres", "config": config, "integration": integration}


_ADDRESSES = (
    Danger(
        "new export sends known secrets to a new host",
        (_EVIL,),
        "creates",
        (None, export(postgres(host=_EVIL))),
    ),
    Danger("host changed", (_EVIL,), "moves", (export(postgres()), export(postgres(host=_EVIL)))),
    Danger(
        "host and type changed",
        (_EVIL,),
        "moves",
        (export(postgres()), export(postgres("Redshift", host=_EVIL))),
    ),
    Danger(
        "bucket replaced by a table on another host",
        (_EVIL,),
        "moves",
        (
            export(s3()),
            export(postgres(host=_EVIL, user=secret("AWS_ID"), password=secret("AWS_KEY"))),
        ),
    ),
    Danger(
        "port changed",
        ("db.acme.example:6666",),
        "moves",
        (export(postgres()), export(postgres(port=6666))),
    ),
    Danger(
        "endpoint changed",
        (_EVIL,),
        "equal updates",
        (export(s3()), export(s3(endpoint_url="https://s3.evil.example"))),
    ),
    Danger(
        "bucket of copies changed",
        ("evil-copies",),
        "moves",
        (export(redshift()), export(redshift(s3_bucket="evil-copies"))),
    ),
    Danger(
        "address of events changed",
        (_EVIL,),
        "paused",
        (export(http(URL)), export(http("https://evil.example/batch/"))),
    ),
    Danger(
        "integration changed",
        ("666",),
        "moves",
        (export(_table(2)), export(_table(666))),
        dialect=_V2026,
    ),
    Danger(
        "known secret sent to another known host",
        ("AWS_KEY", "db.acme.example"),
        "moves",
        (export(postgres()), export(postgres(password=secret("AWS_KEY")))),
    ),
    Danger(
        "reference of a secret changed behind a rotation",
        ("ADMIN_TOKEN",),
        "rotations",
        (
            export(s3(), secret_version="1"),
            export(s3(aws_secret_access_key=secret("ADMIN_TOKEN")), secret_version="2"),
        ),
    ),
)
_PLACES = (
    Danger(
        "new export to a new bucket",
        ("evil-bucket",),
        "creates",
        (None, export(s3(bucket_name="evil-bucket"))),
    ),
    Danger(
        "bucket changed",
        ("evil-bucket",),
        "moves",
        (export(s3()), export(s3(bucket_name="evil-bucket"))),
    ),
    Danger(
        "bucket changed in an update that many have",
        ("evil-bucket",),
        "equal updates",
        (export(s3(max_file_size_mb=5)), export(s3(bucket_name="evil-bucket", max_file_size_mb=6))),
    ),
    Danger(
        "paused export of a forgotten bucket unpaused",
        (_FORGOTTEN,),
        "unpaused",
        (
            export(s3(bucket_name=_FORGOTTEN), paused=True),
            export(s3(bucket_name=_FORGOTTEN), paused=False),
        ),
    ),
)
_DATA = (
    Danger(
        "new export with a query over persons",
        ("sink", "query"),
        "creates",
        (None, export(s3(), sql_query=_CONTACTS)),
        dialect=_INTERFACE,
    ),
    Danger(
        "query without a range of time",
        ("sink", "query"),
        "creates",
        (None, export(aws(), model="hogql", hogql_query=_CONTACTS)),
        dialect=_V2026,
    ),
    Danger(
        "new export of persons",
        ("sink", "persons"),
        "creates",
        (None, export(s3(), model="persons")),
    ),
    Danger(
        "events replaced by persons",
        ("sink", "persons"),
        "moves",
        (export(s3()), export(s3(), model="persons")),
    ),
    Danger(
        "excluded event exported again",
        (_CARDS,),
        "moves",
        (
            export(s3(bucket_name="acme-partner", exclude_events=[_CARDS])),
            export(s3(bucket_name="acme-partner", exclude_events=[])),
        ),
    ),
    Danger(
        "event excluded",
        (_CARDS,),
        "equal updates",
        (export(s3()), export(s3(exclude_events=[_CARDS]))),
    ),
)
_FORM = (
    Danger(
        "region changed", ("us-east-9",), "updates", (export(s3()), export(s3(region="us-east-9")))
    ),
    Danger(
        "encryption removed",
        ("sink", "not encrypted"),
        "moves",
        (export(s3(encryption="AES256")), export(s3(encryption=None))),
    ),
    Danger(
        "first run in many years",
        ("sink", "2099"),
        "moves",
        (export(s3()), export(s3(), start_at="2099-01-01T00:00:00Z")),
    ),
    Danger(
        "hours become weeks",
        ("sink", "week"),
        "moves",
        (export(s3()), {**export(s3()), "interval": "week"}),
    ),
    Danger(
        "other table in place of events",
        ("sink", "in place of events"),
        "updates",
        (
            export(aws(), model="hogql", hogql_query=_HOURLY),
            export(aws(), model="hogql", hogql_query=_HOURLY, hogql_modifiers=_OTHER_TABLE),
        ),
        dialect=_V2026,
    ),
    Danger(
        "certificate of the server not checked",
        ("sink", "certificate"),
        "moves",
        (export(postgres()), export(postgres(has_self_signed_cert=True))),
    ),
    Danger(
        "file format changed",
        ("Parquet",),
        "updates",
        (export(s3()), export(s3(file_format="Parquet"))),
    ),
)
_PROJECTS = (
    Danger(
        "new project records its visitors",
        ("sink", "captured"),
        "new projects",
        (None, {"name": "Sink", "session_recording_opt_in": True}),
        PROJECT,
    ),
    Danger(
        "recording turned on",
        ("sink", "captured"),
        "projects",
        (
            {"name": "Sink", "session_recording_opt_in": False},
            {"name": "Sink", "session_recording_opt_in": True},
        ),
        PROJECT,
    ),
    Danger(
        "foreign domain may use the toolbar",
        (_EVIL,),
        "projects",
        (
            {"name": "Sink", "app_urls": ["https://acme.example"]},
            {"name": "Sink", "app_urls": ["https://acme.example", "https://evil.example"]},
        ),
        PROJECT,
    ),
    Danger(
        "masking turned off",
        ("sink", "masking-reduced"),
        "projects",
        (
            {"name": "Sink", "session_recording_masking_config": {"maskAllInputs": True}},
            {"name": "Sink", "session_recording_masking_config": {"maskAllInputs": False}},
        ),
        PROJECT,
        _V2026,
    ),
    Danger(
        "addresses of visitors stored",
        ("sink", "ip-anonymisation-off"),
        "projects",
        ({"name": "Sink", "anonymize_ips": True}, {"name": "Sink", "anonymize_ips": False}),
        PROJECT,
    ),
    *(
        Danger(
            name,
            shown,
            "projects",
            ({"name": "Sink", field: before}, {"name": "Sink", field: after}),
            PROJECT,
            _V2026,
        )
        for name, shown, field, before, after in (
            (
                *("nothing recorded any more", ("sink", "less data")),
                *("session_recording_sample_rate", 1, 0),
            ),
            (
                *("all errors ignored", ("sink", "less data")),
                *("autocapture_exceptions_errors_to_ignore", [], [".*"]),
            ),
            (
                *("recordings kept for a month", ("sink", "30d")),
                *("session_recording_retention_period", "1y", "30d"),
            ),
        )
    ),
    Danger(
        "first webhook of a project",
        ("sink", "ADMIN_TOKEN"),
        "projects",
        ({"name": "Sink"}, {"name": "Sink", "slack_incoming_webhook": secret("ADMIN_TOKEN")}),
        PROJECT,
        _INTERFACE,
    ),
)
_NAMES = ("private_key", "private_key_id", "client_email")
_LONG = {
    name: secret(f"RECONCILER_SECRET_PRODUCTION_OF_THE_WAREHOUSE_{name.upper()}") for name in _NAMES
}
_PARTNER = "acme-partner"
_COLUMNS = ", ".join(f"properties.campaign_{number:03}" for number in range(40))
_HOST = "${var:host}"
_IGNORED = {"ignore_changes": ["destination"]}
_CARELESS = (
    Danger(
        "address that issues tokens changed, secrets with long names",
        ("NEW_USER",),
        "moves",
        (
            export(bigquery("acme-dwh", **_LONG)),
            export(bigquery("acme-dwh", **_LONG, token_uri=secret("NEW_USER"))),
        ),
    ),
    Danger(
        "new container of Azure behind a known integration",
        ("evil-container",),
        "creates",
        (None, export(azure("evil-container"))),
        dialect=_V2026,
    ),
    Danger(
        "new catalog of Databricks behind a new integration",
        ("evil-catalog", "integration 9"),
        "creates",
        (None, export(databricks("evil-catalog", 9))),
    ),
    Danger(
        "variable of the workspace has another host",
        (_EVIL,),
        "moves",
        (export(postgres(host=_HOST)), export(postgres(host=_HOST))),
        workspace=({"vars": {"host": "db.acme.example"}}, {"vars": {"host": _EVIL}}),
        live=export(postgres()),
    ),
    Danger(
        "host with a letter of another alphabet",
        ("u0430cme.example",),
        "moves",
        (export(postgres()), export(postgres(host="db.\u0430cme.example"))),
    ),
    Danger(
        "destination written while it is ignored, ignored no longer",
        (_EVIL, "secrets env:PG_PASSWORD"),
        "moves",
        (export(postgres(host=_EVIL), lifecycle=_IGNORED), export(postgres(host=_EVIL))),
        live=export(postgres()),
    ),
    Danger(
        "absent resource with another host becomes present",
        (_EVIL, "secrets env:PG_PASSWORD"),
        "creates",
        (export(postgres(host=_EVIL), state="absent"), export(postgres(host=_EVIL))),
    ),
    Danger(
        "events sent to another project of the service",
        ("ADMIN_TOKEN",),
        "creates",
        (None, export({"type": "HTTP", "config": {"url": URL, "token": secret("ADMIN_TOKEN")}})),
    ),
    Danger(
        "query over persons with many columns for a partner",
        ("persons", _PARTNER),
        "moves",
        (
            export(s3(bucket_name=_PARTNER)),
            export(s3(bucket_name=_PARTNER), sql_query=f"SELECT {_COLUMNS} FROM persons"),
        ),
        dialect=_INTERFACE,
    ),
    Danger(
        "filters removed",
        ("sink", "filters"),
        "updates",
        (
            export(s3(), filters=[{"key": "$browser", "type": "event", "value": "Chrome"}]),
            export(s3()),
        ),
    ),
    Danger(
        "webhook of a project changed",
        ("ADMIN_TOKEN",),
        "projects",
        (
            {"name": "Sink", "slack_incoming_webhook": secret("NEW_USER")},
            {"name": "Sink", "slack_incoming_webhook": secret("ADMIN_TOKEN")},
        ),
        PROJECT,
        _INTERFACE,
    ),
    Danger(
        "export of a partner moved to another project",
        (f"s3://{_PARTNER}", "shop"),
        "moves",
        (
            export(s3(bucket_name=_PARTNER), lifecycle={"allow_replace": True}),
            {
                **export(s3(bucket_name=_PARTNER), lifecycle={"allow_replace": True}),
                "project": "shop",
            },
        ),
    ),
    Danger(
        "policy allows what it refused",
        ("policy", "deny"),
        "updates",
        (None, None),
        workspace=({"policy": {"deny": ["credentials-to-new-address"]}}, {}),
    ),
)
"""Pull requests that were written after the code was done."""
_LONG_HOST = f"db.acme.example.{'a' * 60}.{'b' * 60}.{'c' * 60}.evil.example"
_ATTACKS = (
    Danger(
        "known host as the user of another",
        (_EVIL,),
        "paused",
        (export(http(URL)), export(http("https://eu.i.posthog.com@evil.example/batch/"))),
    ),
    Danger(
        "known host as the begin of a long one",
        (_EVIL,),
        "moves",
        (export(postgres()), export(postgres(host=_LONG_HOST))),
    ),
    Danger(
        "persons after many columns of events",
        ("sink", "persons"),
        "creates",
        (None, export(s3(), sql_query=f"SELECT {_COLUMNS} FROM events JOIN persons ON 1 = 1")),
        dialect=_INTERFACE,
    ),
    Danger(
        "endpoint that looks like the known service",
        ("amazonaws.com.evil.example",),
        "moves",
        (
            export(s3(endpoint_url="https://s3.amazonaws.com")),
            export(s3(endpoint_url="https://s3.amazonaws.com.evil.example")),
        ),
    ),
    Danger(
        "file of secrets allowed",
        ("secret_files", "/run/other"),
        "updates",
        (None, None),
        workspace=({}, {"secret_files": ["/run/other"]}),
    ),
    Danger(
        "everything that is removed to be deleted",
        ("policy", "prune"),
        "updates",
        (None, None),
        workspace=({}, {"policy": {"prune": True, "max_deletes": 99}}),
    ),
    Danger(
        "only identified persons in an export of everything",
        ("sink", "model persons"),
        "moves",
        (
            export(s3(include_events=["order"])),
            export(s3(include_events=["order"]), model="persons"),
        ),
    ),
)
"""Pull requests of a second attack, which were written before a look at the code."""
_GIT = {"policy": {"prune": True}}
_DELETING = {"policy": {"prune": True, "allow_project_deletion": True}}
_LOSSES = (
    Danger(
        "export removed",
        ("sink", "history-lost"),
        "moves",
        (export(s3()), None),
        workspace=(_GIT, _GIT),
    ),
    Danger(
        "export replaced",
        ("sink", "history-lost"),
        "moves",
        (
            export(s3(), lifecycle={"allow_replace": True}),
            {**export(s3(), lifecycle={"allow_replace": True}), "project": "shop"},
        ),
    ),
    Danger(
        "project removed",
        ("sink", "project-data-lost"),
        "projects",
        ({"name": "Sink"}, None),
        PROJECT,
        workspace=(_DELETING, _DELETING),
    ),
    Danger(
        "protection removed",
        ("sink", "protection"),
        "updates",
        (export(s3(), lifecycle={"protect": True}), export(s3())),
    ),
)
_CHANGED = ("filters removed", "webhook of a project changed", "policy allows what it refused")
NEW_PLACES = (
    *(*_ADDRESSES, *_PLACES, *_DATA),
    *(danger for danger in _CARELESS if danger.name not in _CHANGED),
)
"""Dangers that the list of new places and queries has."""
_OTHERS = tuple(danger for danger in _CARELESS if danger.name in _CHANGED)
DANGERS = (*NEW_PLACES, *_OTHERS, *_ATTACKS, *_FORM, *_PROJECTS, *_LOSSES)
