"""The steps that every call of the interface passes: faults, throttle, errors, request log."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reconciler.emulator.access import Operation, caller_of, permitted
from reconciler.emulator.admin import UNEXPECTED, RequestLog
from reconciler.emulator.faults.effect import Exchange
from reconciler.emulator.faults.lists import Lag
from reconciler.emulator.faults.rules import Fault
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

    def __post_init__(self) -> None:
        self.set_faults(self.faults)

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
        if response.status_code == 401 and self.world.dialect.integrations:
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
