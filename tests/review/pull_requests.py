"""Pull requests with one dangerous change among harmless ones, as values and as files.

A harmless change writes the data that its place had before: no new place, no new query, no danger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from reconciler.model.kind import Dialect
from reconciler.model.live import Live
from tests.support.worlds import live_export, live_of, live_project

Body = Mapping[str, Any]
Pair = tuple[Body | None, Body | None]
"""A resource before and after a pull request, None where there is none."""
NUMBERS = (1, 20, 21, 60, 300)
"""How many harmless changes are around the dangerous one."""
URL = "https://eu.i.posthog.com/batch/"
EXPORT, PROJECT = "batch_exports", "projects"
SECRETS = (
    *("PG_USER", "PG_PASSWORD", "AWS_ID", "AWS_KEY"),
    *("HTTP_TOKEN", "GCP", "ADMIN_TOKEN", "NEW_USER"),
)
_WORKSPACE = {"version": 1, "resources": ["resources.yaml"], "secrets": SECRETS}
_UNSET: Mapping[Dialect, Body] = {
    Dialect.INTERFACE: {},
    Dialect.V2025: {"filters": None},
    Dialect.V2026: {"timezone": "UTC", "hogql_query": None, "incremental_mode": "APPEND"},
}
"""What servers fill in where an export has nothing."""
_COPY = {"s3_bucket": "acme-copies", "region_name": "eu-central-1", "authorization": "role"}


def secret(name: str) -> str:
    """Return a reference to a secret of the environment."""
    return f"${{secret:env:{name}}}"


def export(destination: Body, **fields: Any) -> Body:
    """Return an hourly export of a project that is there before."""
    return {
        "project": "web",
        "name": "Sink",
        "interval": "hour",
        **fields,
        "destination": destination,
    }


def postgres(kind: str = "Postgres", **config: Any) -> Body:
    """Return a table on the known host, with the secrets that this host has."""
    known = {
        "host": "db.acme.example",
        "database": "dwh",
        "table_name": "sink",
        "user": secret("PG_USER"),
        "password": secret("PG_PASSWORD"),
    }
    return {"type": kind, "config": {**known, **config}}


def redshift(**copied: Any) -> Body:
    """Return a table of Redshift that is filled by way of a bucket."""
    keys = {"aws_access_key_id": secret("AWS_ID"), "aws_secret_access_key": secret("AWS_KEY")}
    inputs = {**_COPY, "s3_key_prefix": "sink/", "bucket_credentials": keys, **copied}
    table = {"host": "wh.acme.example", "table_name": inputs["s3_key_prefix"].strip("/")}
    return postgres("Redshift", **table, mode="COPY", copy_inputs=inputs)


def s3(**config: Any) -> Body:
    """Return a prefix in the known bucket, with the secrets that this bucket has."""
    known = {
        "bucket_name": "acme-lake",
        "region": "eu-central-1",
        "prefix": "sink/",
        "aws_access_key_id": secret("AWS_ID"),
        "aws_secret_access_key": secret("AWS_KEY"),
    }
    return {"type": "S3", "config": {**known, **config}}


def aws(integration: int = 1, **config: Any) -> Body:
    """Return a prefix in the known bucket on servers of 2026."""
    known = {"bucket_name": "acme-lake", "region": "eu-central-1", "prefix": "sink/", **config}
    return {"type": "AwsS3", "config": known, "integration": integration}


def http(url: str) -> Body:
    """Return an address that events are sent to."""
    return {"type": "HTTP", "config": {"url": url, "token": secret("HTTP_TOKEN")}}


def azure(container: str) -> Body:
    """Return a container of the known account."""
    return {"type": "AzureBlob", "config": {"container_name": container}, "integration": 3}


def databricks(catalog: str, integration: int) -> Body:
    """Return a table in a catalog of Databricks."""
    config = {"http_path": "/sql", "catalog": catalog, "schema": "main", "table_name": "sink"}
    return {"type": "Databricks", "config": config, "integration": integration}


def bigquery(project: str, **secrets: str) -> Body:
    """Return a table in a project of Google."""
    names = ("private_key", "private_key_id", "token_uri", "client_email")
    keys = {**dict.fromkeys(names, secret("GCP")), **secrets}
    return {"type": "BigQuery", "config": {"project_id": project, "dataset_id": "dwh", **keys}}


@dataclass(frozen=True)
class Danger:
    """A dangerous change.

    shown
        What a reviewer has to see: the value, or the object and the consequence.
    among
        The harmless changes around it.
    sink
        The resource before and after the pull request.
    kind
        Its key in the files.
    workspace
        What reconciler.yaml has besides, before and after.
    live
        What is live, if it is not the resource before.
    """

    name: str
    shown: tuple[str, ...]
    among: str
    sink: Pair
    kind: str = EXPORT
    dialect: Dialect = Dialect.V2025
    workspace: tuple[Body, Body] = field(default=({}, {}))
    live: Body | None = None


@dataclass(frozen=True)
class PullRequest:
    """The files of a workspace before and after, by name, and live state as before."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    live: Live


def _name(number: int) -> str:
    """Return a name. Half of the names come before that of the dangerous resource."""
    return f"{'AZ'[number % 2]} {number:03}"


def _of_bucket(number: int, dialect: Dialect, prefix: str, **config: Any) -> Body:
    place = {"prefix": f"{prefix}n{number:03}/", **config}
    destination = aws(**place) if dialect is Dialect.V2026 else s3(**place)
    return export(destination, name=_name(number))


def _move(number: int, dialect: Dialect) -> Pair:
    return _of_bucket(number, dialect, ""), _of_bucket(number, dialect, "moved/")


def _resize(number: int, dialect: Dialect, size: int) -> Pair:
    before = _of_bucket(number, dialect, "", max_file_size_mb=size)
    return before, _of_bucket(number, dialect, "", max_file_size_mb=size + 1)


def _unpause(number: int, dialect: Dialect) -> Pair:
    body = _of_bucket(number, dialect, "")
    return {**body, "paused": True}, {**body, "paused": False}


def _rotate(number: int, dialect: Dialect) -> Pair:
    body = _of_bucket(number, dialect, "")
    return {**body, "secret_version": "1"}, {**body, "secret_version": "2"}


def _set_project(number: int, _: Dialect) -> Pair:
    name = _name(number)
    return {"name": name}, {"name": name, "data_attributes": [f"data-n{number:03}"]}


HARMLESS: Mapping[str, tuple[str, Callable[[int, Dialect], Pair]]] = {
    "moves": (EXPORT, _move),
    "updates": (EXPORT, lambda number, dialect: _resize(number, dialect, number + 1)),
    "equal updates": (EXPORT, lambda number, dialect: _resize(number, dialect, 5)),
    "creates": (EXPORT, lambda number, dialect: (None, _of_bucket(number, dialect, ""))),
    "unpaused": (EXPORT, _unpause),
    "paused": (EXPORT, lambda number, dialect: _unpause(number, dialect)[::-1]),
    "rotations": (EXPORT, _rotate),
    "projects": (PROJECT, _set_project),
    "new projects": (PROJECT, lambda number, dialect: (None, _set_project(number, dialect)[1])),
}
"""Harmless changes by name: their key in the files, and one of them by its number."""


def pull_request(
    danger: Danger | None, among: str, number: int, dialect: Dialect, *others: Danger
) -> PullRequest:
    """Return a pull request with a danger, if any, among a number of harmless changes.

    `others` are dangers of exports named sink-2, sink-3 and so on.
    """
    sides: list[dict[str, dict[str, Body]]] = []
    kind, harmless = HARMLESS[among]
    # The dangerous resource is in the middle of the files and of the plan.
    pairs = {
        (kind, _name(count).replace(" ", "").lower()): harmless(count, dialect)
        for count in range(number)
    }
    if danger is not None:
        pairs[danger.kind, "sink"] = danger.sink
    for count, other in enumerate(others, start=2):
        before, after = (body and {**body, "name": f"Sink {count}"} for body in other.sink)
        pairs[other.kind, f"sink-{count}"] = before, after
    for side in (0, 1):
        resources: dict[str, dict[str, Body]] = {
            PROJECT: {"web": {"name": "Web"}, "shop": {"name": "Shop"}},
            EXPORT: {f"known-{number}": body for number, body in enumerate(_known(dialect))},
        }
        for (kind, key), pair in sorted(pairs.items(), key=itemgetter(0)):
            if (body := pair[side]) is not None:
                resources[kind][key] = body
        sides.append(resources)
    workspace = danger.workspace if danger is not None else ({}, {})
    files = [
        {"reconciler.yaml": _text({**_WORKSPACE, **own}), "resources.yaml": _text(resources)}
        for own, resources in zip(workspace, sides, strict=True)
    ]
    live = {kind: dict(bodies) for kind, bodies in sides[0].items()}
    if danger is not None and danger.live is not None:
        live[danger.kind]["sink"] = danger.live
    return PullRequest(*files, _live(live, dialect))


def _known(dialect: Dialect) -> Iterator[Body]:
    """Yield exports that run before and after, so that their places are known."""
    places = [s3(prefix="known/"), postgres(table_name="known"), redshift(s3_key_prefix="known/")]
    places += [http(URL), bigquery("acme-dwh")]
    if dialect is Dialect.V2026:
        table = {"database": "dwh", "table_name": "known"}
        places = [aws(prefix="known/"), {"type": "Postgres", "config": table, "integration": 2}]
        places.append(azure("acme-container"))
    for number, place in enumerate(places):
        yield export(place, name=f"Known {number}")


def _text(content: Any) -> str:
    # JSON is YAML, and is written in a tenth of the time.
    return json.dumps(content, indent=2)


def _live(resources: Mapping[str, Mapping[str, Body]], dialect: Dialect) -> Live:
    """Return live state as it is after the resources were applied."""
    ids = {key: number for number, key in enumerate(resources[PROJECT], start=1)}
    projects = [
        live_project(ids[key], **_without(body, "lifecycle"))
        for key, body in resources[PROJECT].items()
    ]
    exports = [
        live_export(
            f"e{number}",
            parent=ids[body["project"]],
            **{**_UNSET[dialect], **_without(body, "project", "lifecycle", "secret_version")},
        )
        for number, body in enumerate(resources[EXPORT].values())
        if body.get("state") != "absent"
    ]
    return live_of(*projects, *exports, dialect=dialect)


def _without(body: Body, *names: str) -> dict[str, Any]:
    shown = {name: value for name, value in body.items() if name not in names}
    return json.loads(json.dumps(shown), object_hook=_public)


def _public(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if "${secret:" not in str(value)}
