"""The dangerous changes of the pull requests."""

from __future__ import annotations

from typing import Any

from reconciler.model.kind import Dialect
from tests.review.pull_requests import (
    PROJECT,
    URL,
    Body,
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
_V2025, _V2026 = Dialect.V2025, Dialect.V2026
_INTERFACE = Dialect.INTERFACE


def _table(integration: int) -> dict[str, object]:
    config = {"database": "dwh", "table_name": "sink"}
    return {"type": "Postgres", "config": config, "integration": integration}


def _body(side: Body | None) -> Body | None:
    return export(side) if side is not None and "type" in side else side


def _words(shown: str | tuple[str, ...]) -> tuple[str, ...]:
    return (shown,) if isinstance(shown, str) else shown


def _of(
    name: str,
    shown: str | tuple[str, ...],
    before: Body | None,
    after: Body | None,
    among: str = "moves",
    **more: Any,
) -> Danger:
    """Return a danger of an export, given as it is before and after or as its destinations."""
    return Danger(name, _words(shown), among, (_body(before), _body(after)), **more)


def _new(name: str, shown: str | tuple[str, ...], body: Body, **more: Any) -> Danger:
    """Return a danger of a new export, given as it is or as its destination."""
    return _of(name, shown, None, body, "creates", **more)


def _setting(
    name: str, shown: str | tuple[str, ...], field: str, *values: Any, dialect: Dialect
) -> Danger:
    """Return a danger of a setting of a project, given before and after; None is not in a file."""
    before, after = (
        {"name": "Sink"} if value is None else {"name": "Sink", field: value} for value in values
    )
    return Danger(name, _words(shown), "projects", (before, after), PROJECT, dialect)


_ADDRESSES = (
    _new("new export sends known secrets to a new host", _EVIL, postgres(host=_EVIL)),
    _of("host changed", _EVIL, postgres(), postgres(host=_EVIL)),
    _of("host and type changed", _EVIL, postgres(), postgres("Redshift", host=_EVIL)),
    _of(
        "bucket replaced by a table on another host",
        _EVIL,
        s3(),
        postgres(host=_EVIL, user=secret("AWS_ID"), password=secret("AWS_KEY")),
    ),
    _of("port changed", "db.acme.example:6666", postgres(), postgres(port=6666)),
    _of(
        "endpoint changed", _EVIL, s3(), s3(endpoint_url="https://s3.evil.example"), "equal updates"
    ),
    _of("bucket of copies changed", "evil-copies", redshift(), redshift(s3_bucket="evil-copies")),
    _of(
        "address of events changed", _EVIL, http(URL), http("https://evil.example/batch/"), "paused"
    ),
    _of("integration changed", "666", _table(2), _table(666), dialect=_V2026),
    _of(
        "known secret sent to another known host",
        ("AWS_KEY", "db.acme.example"),
        postgres(),
        postgres(password=secret("AWS_KEY")),
    ),
    _of(
        "reference of a secret changed behind a rotation",
        "ADMIN_TOKEN",
        export(s3(), secret_version="1"),
        export(s3(aws_secret_access_key=secret("ADMIN_TOKEN")), secret_version="2"),
        "rotations",
    ),
)
_PLACES = (
    _new("new export to a new bucket", "evil-bucket", s3(bucket_name="evil-bucket")),
    _of(
        "bucket changed in an update that many have",
        "evil-bucket",
        s3(max_file_size_mb=5),
        s3(bucket_name="evil-bucket", max_file_size_mb=6),
        "equal updates",
    ),
    _of(
        "paused export of a forgotten bucket unpaused",
        _FORGOTTEN,
        export(s3(bucket_name=_FORGOTTEN), paused=True),
        export(s3(bucket_name=_FORGOTTEN), paused=False),
        "unpaused",
    ),
)
_PERSONS = ("sink", "persons")
_PARTNER = "acme-partner"
_BUT_CARDS = s3(bucket_name=_PARTNER, exclude_events=[_CARDS])
_DATA = (
    _new(
        "new export with a query over persons",
        ("sink", "query"),
        export(s3(), sql_query=_CONTACTS),
        dialect=_INTERFACE,
    ),
    _of("events replaced by persons", _PERSONS, s3(), export(s3(), model="persons")),
    _of(
        "excluded event exported again",
        _CARDS,
        _BUT_CARDS,
        s3(bucket_name=_PARTNER, exclude_events=[]),
    ),
    _of("event excluded", _CARDS, s3(), s3(exclude_events=[_CARDS]), "equal updates"),
)
_FORM = (
    _of(
        "first run in many years",
        ("sink", "2099"),
        s3(),
        export(s3(), start_at="2099-01-01T00:00:00Z"),
    ),
    _of(
        "other table in place of events",
        ("sink", "in place of events"),
        export(aws(), model="hogql", hogql_query=_HOURLY),
        export(aws(), model="hogql", hogql_query=_HOURLY, hogql_modifiers=_OTHER_TABLE),
        "updates",
        dialect=_V2026,
    ),
    _of(
        "certificate of the server not checked",
        ("sink", "certificate"),
        postgres(),
        postgres(has_self_signed_cert=True),
    ),
)
_RECORDED = {"name": "Sink", "session_recording_opt_in": True}
_ALL_URLS = ["https://acme.example", "https://evil.example"]
_MASKS = "session_recording_masking_config"
_LESS = ("sink", "less data")
_RATE = "session_recording_sample_rate"
_HOOK, _ADMIN = "slack_incoming_webhook", secret("ADMIN_TOKEN")
_PROJECTS = (
    Danger(
        "new project records its visitors",
        ("sink", "captured"),
        "new projects",
        (None, _RECORDED),
        PROJECT,
    ),
    _setting(
        "foreign domain may use the toolbar",
        _EVIL,
        "app_urls",
        _ALL_URLS[:1],
        _ALL_URLS,
        dialect=_V2025,
    ),
    _setting(
        "masking turned off",
        ("sink", "masking-reduced"),
        _MASKS,
        {"maskAllInputs": True},
        {"maskAllInputs": False},
        dialect=_V2026,
    ),
    _setting("nothing recorded any more", _LESS, _RATE, 1, 0, dialect=_V2026),
)
_NAMES = ("private_key", "private_key_id", "client_email")
_LONG = {
    name: secret(f"RECONCILER_SECRET_PRODUCTION_OF_THE_WAREHOUSE_{name.upper()}") for name in _NAMES
}
_COLUMNS = ", ".join(f"properties.campaign_{number:03}" for number in range(40))
_HOST = "${var:host}"
_IGNORED = {"ignore_changes": ["destination"]}
_MOVED = export(s3(bucket_name=_PARTNER), lifecycle={"allow_replace": True})
_CHROME = [{"key": "$browser", "type": "event", "value": "Chrome"}]
_CARELESS = (
    _of(
        "address that issues tokens changed, secrets with long names",
        "NEW_USER",
        bigquery("acme-dwh", **_LONG),
        bigquery("acme-dwh", **_LONG, token_uri=secret("NEW_USER")),
    ),
    _new(
        "new container of Azure behind a known integration",
        "evil-container",
        azure("evil-container"),
        dialect=_V2026,
    ),
    _new(
        "new catalog of Databricks behind a new integration",
        ("evil-catalog", "integration 9"),
        databricks("evil-catalog", 9),
    ),
    _of(
        "variable of the workspace has another host",
        _EVIL,
        postgres(host=_HOST),
        postgres(host=_HOST),
        workspace=({"vars": {"host": "db.acme.example"}}, {"vars": {"host": _EVIL}}),
        live=export(postgres()),
    ),
    _of(
        "host with a letter of another alphabet",
        "u0430cme.example",
        postgres(),
        postgres(host="db.\u0430cme.example"),
    ),
    _of(
        "destination written while it is ignored, ignored no longer",
        (_EVIL, "secrets env:PG_PASSWORD"),
        export(postgres(host=_EVIL), lifecycle=_IGNORED),
        postgres(host=_EVIL),
        live=export(postgres()),
    ),
    _of(
        "absent resource with another host becomes present",
        (_EVIL, "secrets env:PG_PASSWORD"),
        export(postgres(host=_EVIL), state="absent"),
        postgres(host=_EVIL),
        "creates",
    ),
    _new(
        "events sent to another project of the service",
        "ADMIN_TOKEN",
        {"type": "HTTP", "config": {"url": URL, "token": _ADMIN}},
    ),
    _of("filters removed", ("sink", "filters"), export(s3(), filters=_CHROME), s3(), "updates"),
    _setting(
        "webhook of a project changed",
        "ADMIN_TOKEN",
        _HOOK,
        secret("NEW_USER"),
        _ADMIN,
        dialect=_INTERFACE,
    ),
    _of(
        "export of a partner moved to another project",
        (f"s3://{_PARTNER}", "shop"),
        _MOVED,
        {**_MOVED, "project": "shop"},
    ),
    _of(
        "policy allows what it refused",
        ("policy", "deny"),
        None,
        None,
        "updates",
        workspace=({"policy": {"deny": ["credentials-to-new-address"]}}, {}),
    ),
)
"""Pull requests that were written after the code was done."""
_LONG_HOST = f"db.acme.example.{'a' * 60}.{'b' * 60}.{'c' * 60}.evil.example"
_HIDDEN = "https://eu.i.posthog.com@evil.example/batch/"
_OURS = "https://s3.amazonaws.com"
_ORDERS = s3(include_events=["order"])
_ATTACKS = (
    _of("known host as the user of another", _EVIL, http(URL), http(_HIDDEN), "paused"),
    _of("known host as the begin of a long one", _EVIL, postgres(), postgres(host=_LONG_HOST)),
    _new(
        "persons after many columns of events",
        _PERSONS,
        export(s3(), sql_query=f"SELECT {_COLUMNS} FROM events JOIN persons ON 1 = 1"),
        dialect=_INTERFACE,
    ),
    _of(
        "endpoint that looks like the known service",
        "amazonaws.com.evil.example",
        s3(endpoint_url=_OURS),
        s3(endpoint_url=f"{_OURS}.evil.example"),
    ),
    _of(
        "everything that is removed to be deleted",
        ("policy", "prune"),
        None,
        None,
        "updates",
        workspace=({}, {"policy": {"prune": True, "max_deletes": 99}}),
    ),
    _of(
        "only identified persons in an export of everything",
        ("sink", "model persons"),
        _ORDERS,
        export(_ORDERS, model="persons"),
    ),
)
"""Pull requests of a second attack, which were written before a look at the code."""
_GIT = {"policy": {"prune": True}}
_DELETING = {"policy": {"prune": True, "allow_project_deletion": True}}
_REPLACED = export(s3(), lifecycle={"allow_replace": True})
_LOST = ("sink", "history-lost")
_LOSSES = (
    _of("export removed", _LOST, s3(), None, workspace=(_GIT, _GIT)),
    _of("export replaced", _LOST, _REPLACED, {**_REPLACED, "project": "shop"}),
    Danger(
        "project removed",
        ("sink", "project-data-lost"),
        "projects",
        ({"name": "Sink"}, None),
        PROJECT,
        workspace=(_DELETING, _DELETING),
    ),
    _of(
        "protection removed",
        ("sink", "protection"),
        export(s3(), lifecycle={"protect": True}),
        s3(),
        "updates",
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
