"""Kinds of workspaces: each with live state, files, and the variables of its commands."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.emulator import RunningEmulator, start_emulator

KEY = "phx_key_of_the_matrix_q7Z4"
IN_FILES, IN_SERVICE = "token-of-the-files-q7Z4", "token-in-the-service-q7Z4"
WEB_TOKEN = "phc_token_of_web_q7Z4"
HIDDEN = (KEY, IN_FILES, IN_SERVICE, WEB_TOKEN)
"""What no command may show: the key, the secrets of files and of live exports, a token."""
FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
_ONE, _TWO = "4dc8564d-bd82-1065-2f40-97f7c50f67cf", "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0"
_BOTH = "version: 1\ndefault: staging\nenvironments:\n  staging: %s\n  production: %s\n"


def _http(token: str) -> dict[str, Any]:
    """Return a destination that every server accepts, with a secret."""
    return {"type": "HTTP", "config": {"url": "https://us.i.posthog.com/batch/", "token": token}}


def _live(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "destination": _http(IN_SERVICE), **fields}


def _declared(name: str, **fields: Any) -> dict[str, Any]:
    own = {"destination": _http("${secret:env:RECONCILER_SECRET_TOKEN}"), **fields}
    return {"project": "web", "name": name, "interval": "hour", **own}


LIVE = [_live("Lake"), _live("Orders"), _live("Stray")]
"""One as declared, one to change, one that no file declares. Orders failed, Stray is paused."""
WEB = {"web": {"name": "Web"}}
EXPORTS = {
    "lake": _declared("Lake"),
    "orders": _declared("Orders", interval="day"),
    "fresh": _declared("Fresh"),
}
FILES = {"projects": WEB, "batch_exports": EXPORTS}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of workspace.

    `settings` is its reconciler.yaml, `options` are those of the service, `key` is what the API key
    may do. `stored` has fields of stored exports, by name, that the service does not accept today.
    """

    exports: list[dict[str, Any]] = field(default_factory=lambda: LIVE)
    files: Mapping[str, Any] = field(default_factory=lambda: FILES)
    settings: str = "version: 1\n"
    options: tuple[str, ...] = ()
    key: Mapping[str, Any] = field(default_factory=dict)
    integrations: list[dict[str, Any]] = field(default_factory=list)
    stored: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """Return its files by name."""
        # What is written twice in Python is no anchor in YAML.
        plain = json.loads(json.dumps(self.files))
        return {"reconciler.yaml": self.settings, "all.yaml": yaml.safe_dump(plain)}

    def environ(self, service: RunningEmulator) -> dict[str, str]:
        """Return the variables of its commands."""
        own = {"KEY": KEY, "RECONCILER_SECRET_TOKEN": IN_FILES, **service.environ()}
        if "organization:" in self.settings:
            del own["RECONCILER_ORGANIZATION"], own["RECONCILER_API_KEY"]
        return own

    @contextmanager
    def service(self, folder: Path) -> Iterator[RunningEmulator]:
        """Run a service with the live state, which its snapshot `new` keeps."""
        seed, database = folder / "seed.json", folder / "service.db"
        seed.write_text(json.dumps(self._seed()), encoding="utf-8")
        with start_emulator(seed=seed, db=database, extra=self.options):
            pass
        self._store(database)
        with start_emulator(db=database, extra=self.options) as running:
            running.admin("POST", "snapshots/new")
            yield running

    def _seed(self) -> dict[str, Any]:
        """Return two organizations, the first with two projects."""
        web = {"id": 1, "name": "Web", "api_token": WEB_TOKEN, "batch_exports": self.exports}
        other = {"id": 3, "name": "Web", "batch_exports": [_live("Lake")]}
        failing = [{"match": {"name": "Orders"}, "status": "Failed"}]
        return {
            "organizations": [
                {"id": _ONE, "name": "Acme", "projects": [web, {"id": 2, "name": "App"}]},
                {"id": _TWO, "name": "Other", "projects": [other]},
            ],
            "keys": [{"value": KEY, **self.key}],
            "integrations": self.integrations,
            "lived": "6h",
            "events": [{"ago": "5h", "outcomes": failing}, {"ago": "3h", "pause": "Stray"}],
        }

    def _store(self, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection, connection:
            for row, text in connection.execute("SELECT rowid, body FROM exports").fetchall():
                body = json.loads(text)
                body |= self.stored.get(body["name"], {})
                values = (json.dumps(body).encode(), row)
                connection.execute("UPDATE exports SET body = ? WHERE rowid = ?", values)


_2026 = ("--dialect", "2026")
_BUCKET = {"bucket_name": "b", "region": "eu-central-1", "prefix": "events/"}
_READING = [f"{what}:read" for what in ("batch_export", "project", "organization", "integration")]


def _integrated(name: str | int) -> dict[str, Any]:
    return {"type": "AwsS3", "integration": name, "config": _BUCKET}


KINDS: dict[str, Kind] = {
    "plain": Kind(),
    "integrations": Kind(
        exports=[*LIVE, _live("Bucket", destination=_integrated(7))],
        files={
            "projects": WEB,
            "batch_exports": {
                **EXPORTS,
                "bucket": _declared("Bucket", destination=_integrated("lake")),
            },
        },
        integrations=[{"id": 7, "project": 1, "kind": "aws-s3", "config": {"name": "lake"}}],
        options=_2026,
    ),
    "defaults": Kind(
        files={
            "defaults": {"batch_export": {"project": "web", "interval": "${var:every}"}},
            "projects": WEB,
            "batch_exports": {
                **EXPORTS,
                "lake": {
                    "name": "Lake",
                    "destination": EXPORTS["lake"]["destination"],
                    "overrides": {"staging": {"model": "events"}, "production": {"paused": True}},
                },
            },
        },
        settings=_BOTH % ("{vars: {every: hour}}", "{vars: {every: day}}"),
    ),
    "environments": Kind(settings=_BOTH % ("{}", "{}")),
    "organizations": Kind(
        settings=_BOTH
        % tuple(f"{{organization: {own}, api_key: '${{env:KEY}}'}}" for own in (_ONE, _TWO))
    ),
    "ambiguous": Kind(exports=[_live("Lake", paused=True), *LIVE]),
    "calendar": Kind(
        stored={
            "Lake": {"start_at": FIRST, "end_at": LAST, "created_at": FIRST},
            "Orders": {"start_at": LAST, "end_at": LAST, "created_at": LAST},
            "Stray": {"start_at": FIRST, "end_at": FIRST, "last_updated_at": LAST},
        }
    ),
    "unknown-type": Kind(
        stored={
            "Orders": {"destination": {"type": "Glacier", "config": {"to": "h", "sas_key": "x"}}},
            "Stray": {"destination": {"type": "Glacier", "config": {"sas_key": IN_SERVICE}}},
        }
    ),
    "2025": Kind(options=("--dialect", "2025")),
    "2026": Kind(options=_2026),
    "no-list": Kind(options=(*_2026, "--no-organization-list")),
    "limited-key": Kind(
        files={"projects": {"web": {"name": "Web", "id": 1}}, "batch_exports": EXPORTS},
        key={"projects": [1]},
        options=_2026,
    ),
    "reading-key": Kind(key={"scopes": _READING}, options=_2026),
}
"""The kinds. Each has one thing that the plain one has not."""
