"""The request log and the dump of stored objects, with secrets as fingerprints."""

from __future__ import annotations

import secrets
from collections import deque
from hashlib import blake2b
from typing import Any

import orjson
from starlette.requests import Request

from reconciler.emulator.destination_types import ALL_SECRETS
from reconciler.emulator.destinations import secret_values
from reconciler.emulator.resources.export_fields import ExportFields
from reconciler.emulator.resources.project_fields import ProjectFields
from reconciler.emulator.world import World

_SECRET_NAMES = ALL_SECRETS | {
    *("slack_incoming_webhook", "personal_api_key", "api_token", "live_events_token"),
    *("secret_api_token", "aws_access_key_id", "aws_secret_access_key"),
}
_KEPT_REQUESTS = 100_000
UNEXPECTED = "emulator.unexpected"
"""Key in the scope of a request: the name of an unexpected exception that became a 500."""


class Fingerprints:
    """Fingerprints that show whether two secrets are equal, and nothing else.

    The salt is new for each start, so that a list of likely secrets cannot be tried.
    """

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)

    def of(self, value: Any) -> str:
        """Return the fingerprint of one value."""
        return "salted:" + blake2b(str(value).encode(), digest_size=8, key=self._salt).hexdigest()

    def masked(self, value: Any) -> Any:
        """Return the same JSON with the values under names of secrets as fingerprints."""
        if isinstance(value, dict):
            return {
                name: self.of(item)
                if name in _SECRET_NAMES and item is not None
                else self.masked(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self.masked(item) for item in value]
        return value


class RequestLog:
    """Every request of the imitated interface, the newest hundred thousand."""

    def __init__(self) -> None:
        self.fingerprints = Fingerprints()
        self._entries: deque[dict[str, Any]] = deque(maxlen=_KEPT_REQUESTS)
        self._count = 0

    def add(self, request: Request, body: bytes, status: int, fault: str | None) -> None:
        """Record a request, secrets masked."""
        self._count += 1
        try:
            content = self.fingerprints.masked(orjson.loads(body)) if body else None
        except orjson.JSONDecodeError:
            content = f"({len(body)} bytes)"
        key = request.headers.get("authorization", "").partition(" ")[2]
        self._entries.append(
            {
                "n": self._count,
                "method": request.method,
                "path": request.scope["path"],
                "query": request.scope["query_string"].decode("latin-1"),
                "status": status,
                "body": content,
                "key": self.fingerprints.of(key) if key else None,
                "fault": fault,
                "error": request.scope.get(UNEXPECTED),
            }
        )

    def entries(self) -> list[dict[str, Any]]:
        """Return the recorded requests, oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Delete the recorded requests and restart the count."""
        self._entries.clear()
        self._count = 0


def state_of(
    world: World, exports: ExportFields, projects: ProjectFields, log: RequestLog
) -> dict[str, Any]:
    """Return all stored objects, secrets as the fingerprints of the log."""
    marks = log.fingerprints
    shown = []
    for organization in world.store.organizations():
        for project in world.store.projects(organization):
            inside = []
            stored = world.store.exports([project.id])
            for export, answer in zip(stored, exports.shown_all(stored), strict=True):
                kept = secret_values(export.body["destination"]["config"])
                secrets_of = {name: marks.of(value) for name, value in sorted(kept.items())}
                inside.append({**answer, "secrets": secrets_of})
            shown.append({**marks.masked(projects.shown(project)), "batch_exports": inside})
    return {"dialect": world.dialect.name, "projects": shown}
