"""The steps that every call of the interface passes: faults, throttle, errors, request log."""

from __future__ import annotations

import secrets
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reconciler.emulator.access import Operation, caller_of, permitted
from reconciler.emulator.destination_types import ALL_SECRETS
from reconciler.emulator.fault_effects import Exchange, Lag
from reconciler.emulator.faults import Fault
from reconciler.emulator.refusal import (
    Refusal,
    forbidden,
    method_not_allowed,
    not_found,
    server_error,
)
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.timeline import Timeline
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An ASGI application of one path, which takes every method."""

    answer: Callable[[Request], Awaitable[Response]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self.answer(Request(scope, receive, send))
        await response(scope, receive, send)


@dataclass(slots=True)
class Gate:
    """The state that all paths share."""

    world: World
    timeline: Timeline
    log: RequestLog
    throttle: Throttle
    faults: list[Fault] = field(default_factory=list)

    def set_faults(self, faults: list[Fault]) -> None:
        """Replace the rules of faults."""
        self.faults = faults
        if any(isinstance(fault.effect, Lag) for fault in faults):
            clock = self.world.clock
            self.world.store.keep_history(lambda: clock.now().timestamp())

    def guarding(self, operations: Mapping[str, Operation]) -> Endpoint:
        """Return the endpoint of a path with its operations by method."""

        async def proceed(request: Request) -> Response:
            return await self._answered(request, operations)

        async def answer(request: Request) -> Response:
            body = await request.body()
            method, path = request.method, request.scope["path"]
            fault = next((rule for rule in self.faults if rule.fires(method, path, body)), None)
            try:
                await self.world.deferred.run_due()
                self.timeline.catch_up_all()
                if fault is None:
                    response = await proceed(request)
                else:
                    response = await fault.effect.answer(Exchange(request, self.world, proceed))
            except Exception as error:  # noqa: BLE001 - the service answers 500 for its own faults
                response = _unexpected(request, error)
            response.headers["Date"] = formatdate(self.world.clock.now().timestamp(), usegmt=True)
            self.log.add(request, body, response.status_code, fault.kind if fault else None)
            return response

        return Endpoint(answer)

    async def _answered(self, request: Request, operations: Mapping[str, Operation]) -> Response:
        try:
            return await self._called(request, operations)
        except Refusal as refusal:
            return self._refused(refusal, request)

    def _refused(self, refusal: Refusal, request: Request) -> Response:
        response = refusal.response()
        if response.status_code == 401 and self.world.dialect.newest:
            # Since 2026 (service.md, 5).
            metadata = f"{request.base_url}.well-known/oauth-protected-resource"
            response.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{metadata}"'
        return response

    async def _called(self, request: Request, operations: Mapping[str, Operation]) -> Response:
        """Return the answer of the operation. Raise Refusal.

        Authentication and permission come before the throttle, and the throttle before anything
        else: 401 and 403 cost no budget, 400 and 404 do (service.md, 5).
        """
        if not operations:
            raise not_found("Endpoint not found.")
        store = self.world.store
        caller = caller_of(request, store)
        operation = operations.get("GET" if request.method == "HEAD" else request.method)
        if operation is None and request.method == "PATCH" and {"GET", "POST"} <= set(operations):
            # The service asks for the scope of a write before it finds that lists have no PATCH.
            permitted(request, operations["POST"], caller, store)
            raise method_not_allowed(request.method)
        if operation is None:
            # Only sessions get 405: for a key, a method without a declared scope is forbidden.
            raise forbidden("This action does not support personal API key access")
        call = permitted(request, operation, caller, store)
        self.throttle.admit(
            request.headers.get("authorization", ""), self.world.clock.now().timestamp()
        )
        return await operation.handler(call)


def _unexpected(request: Request, error: Exception) -> Response:
    """Return a 500 of a fault of this program, after a line about it on stderr."""
    name = type(error).__name__
    request.scope[UNEXPECTED] = name
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    request_line = f"{request.method} {quote(request.url.path)}"
    sys.stderr.write(f"emulator: {name} in {request_line} ({place})\n")
    return server_error().response()
