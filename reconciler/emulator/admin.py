"""What was asked and what is stored: the inspecting half of the switchboard."""

from __future__ import annotations

from collections import deque
from hashlib import sha256
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


def fingerprint(value: Any) -> str:
    """Tells whether two secrets are the same, and nothing else about them."""
    return "sha256:" + sha256(str(value).encode()).hexdigest()[:16]


def masked(value: Any) -> Any:
    """The same JSON with every value under a secret's name replaced by its fingerprint."""
    if isinstance(value, dict):
        return {
            name: fingerprint(item) if name in _SECRET_NAMES and item is not None else masked(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


class RequestLog:
    """Every request of the imitated interface, the newest hundred thousand."""

    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=_KEPT_REQUESTS)
        self._count = 0

    def add(self, request: Request, body: bytes, status: int, fault: str | None) -> None:
        """Keep one, secrets masked."""
        self._count += 1
        try:
            content = masked(orjson.loads(body)) if body else None
        except orjson.JSONDecodeError:
            content = f"({len(body)} bytes)"
        key = request.headers.get("authorization", "").partition(" ")[2]
        self._entries.append(
            {
                "n": self._count,
                "method": request.method,
                "path": request.url.path,
                "query": str(request.url.query),
                "status": status,
                "body": content,
                "key": fingerprint(key) if key else None,
                "fault": fault,
            }
        )

    def entries(self) -> list[dict[str, Any]]:
        """Oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Forget them and count from one again."""
        self._entries.clear()
        self._count = 0


def state_of(world: World, exports: ExportFields, projects: ProjectFields) -> dict[str, Any]:
    """All stored objects, secrets as fingerprints."""
    found = []
    for organization in world.store.organizations():
        for project in world.store.projects(organization):
            inside = []
            for each in world.store.exports([project.id]):
                kept = secret_values(each.body["destination"]["config"])
                marks = {name: fingerprint(value) for name, value in sorted(kept.items())}
                inside.append({**exports.shown(each), "secrets": marks})
            found.append({**masked(projects.shown(project)), "batch_exports": inside})
    return {"dialect": world.dialect.name, "projects": found}
