"""The switchboard under `/_emulator/`: never part of the imitated interface, and without a key."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.destinations import DESTINATION_TYPES, secret_values
from reconciler.emulator.resources import batch_exports, projects
from reconciler.emulator.store import Store

_SECRET_NAMES = frozenset(name for each in DESTINATION_TYPES.values() for name in each.secrets) | {
    "slack_incoming_webhook",
    "personal_api_key",
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

    def add(self, request: Request, body: bytes, status: int) -> None:
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
            }
        )

    def entries(self) -> list[dict[str, Any]]:
        """Oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Forget them and count from one again."""
        self._entries.clear()
        self._count = 0


class Admin:
    """The switchboard's operations."""

    def __init__(self, store: Store, log: RequestLog, replant: Callable[[], None]) -> None:
        self._store = store
        self._log = log
        self._replant = replant

    async def requests(self, request: Request) -> Response:
        """GET every request so far; DELETE forgets them."""
        if request.method == "DELETE":
            self._log.clear()
            return Response(status_code=204)
        return JSONAnswer({"requests": self._log.entries()})

    async def state(self, request: Request) -> Response:
        """GET all stored objects, secrets as fingerprints."""
        del request
        found = []
        for organization in self._store.organizations():
            for project in self._store.projects(organization):
                exports = []
                for each in self._store.exports([project.id]):
                    destination = each.body["destination"]
                    kept = secret_values(destination["config"], destination["type"])
                    marks = {name: fingerprint(value) for name, value in sorted(kept.items())}
                    exports.append({**batch_exports.shown(each), "secrets": marks})
                found.append({**masked(projects.shown(project)), "batch_exports": exports})
        return JSONAnswer({"projects": found})

    async def reset(self, request: Request) -> Response:
        """POST: back to the seed."""
        del request
        self._replant()
        self._log.clear()
        return Response(status_code=204)
