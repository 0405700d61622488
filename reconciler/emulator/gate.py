"""What every call of the imitated interface goes through: faults, throttle, errors, the log."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reconciler.emulator.access import Operation, caller_of, permitted
from reconciler.emulator.admin import RequestLog
from reconciler.emulator.connections import abort
from reconciler.emulator.disturbance import Disturbance
from reconciler.emulator.faults import Fault
from reconciler.emulator.refusal import Refusal, forbidden, not_found, server_error
from reconciler.emulator.runs import Runs
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.world import World

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_PROXY_PAGE = b"<html><head><title>Bad Gateway</title></head><body>Bad Gateway</body></html>"


@dataclass(slots=True)
class Gate:
    """Shared by all paths."""

    world: World
    runs: Runs
    log: RequestLog
    throttle: Throttle
    disturbance: Disturbance
    faults: list[Fault] = field(default_factory=list)

    def guarding(self, operations: Mapping[str, Operation]) -> Endpoint:
        """One path with its operations by method."""

        async def answer(request: Request) -> Response:
            body = await request.body()
            fault = next(
                (each for each in self.faults if each.fires(request.method, request.url.path)), None
            )
            if fault is None:
                response = await self._answered(request, operations)
            else:
                response = await self._disturbed(request, operations, fault)
            self.log.add(request, body, response.status_code, fault.kind if fault else None)
            return response

        return answer

    async def _answered(self, request: Request, operations: Mapping[str, Operation]) -> Response:
        for identity in self.world.store.due_exports(self.world.clock.now().timestamp()):
            export = self.world.store.export(identity)
            if export is not None:
                self.runs.catch_up(export)
        try:
            return await self._called(request, operations)
        except Refusal as refusal:
            return refusal.response()
        except Exception as error:  # noqa: BLE001 - the service answers 500 for its own faults
            where = f"{type(error).__name__} in {request.method} {request.url.path}"
            sys.stderr.write(f"emulator: {where}\n")
            return server_error().response()

    async def _called(self, request: Request, operations: Mapping[str, Operation]) -> Response:
        """Answer by the operation. Raise Refusal.

        Authentication and permission come before the throttle, and the throttle before anything
        else: 401 and 403 cost no budget, 400 and 404 do (docs/service.md, 5).
        """
        if not operations:
            raise not_found("Endpoint not found.")
        store = self.world.store
        caller = caller_of(request, store)
        operation = operations.get(request.method)
        if operation is None:
            # 405 is for sessions: a key is refused for want of a declared scope.
            raise forbidden("This action does not support personal API key access.")
        call = permitted(request, operation, caller, store)
        self.throttle.admit(
            request.headers.get("authorization", ""), self.world.clock.now().timestamp()
        )
        return await operation.handler(call)

    async def _disturbed(
        self, request: Request, operations: Mapping[str, Operation], fault: Fault
    ) -> Response:
        match fault.kind:
            case "latency":
                await asyncio.sleep(fault.seconds)
                return await self._answered(request, operations)
            case "throttle":
                headers = {"Retry-After": str(fault.retry_after)}
                return Refusal(
                    429, "throttled_error", "throttled", "Request was throttled.", headers=headers
                ).response()
            case "edit":
                self.disturbance.edit(request, fault.set)
                return await self._answered(request, operations)
            case "stale":
                self.disturbance.shift(request, fault.change)
                return await self._answered(request, operations)
            case "truncate" | "slow":
                response = await self._answered(request, operations)
                return _in_pieces(response, fault)
            case _:
                return await self._broken(request, operations, fault)

    async def _broken(
        self, request: Request, operations: Mapping[str, Operation], fault: Fault
    ) -> Response:
        if fault.after:
            await self._answered(request, operations)
        if fault.kind == "drop":
            abort(request)
            return Response(status_code=499)
        if fault.kind == "html":
            return Response(_PROXY_PAGE, status_code=fault.status, media_type="text/html")
        refusal = Refusal(fault.status, "server_error", "error", "A server error occurred.")
        return refusal.response()


def _in_pieces(response: Response, fault: Fault) -> Response:
    """Half of the body with the length of the whole, or the whole of it, slowly."""
    body = bytes(response.body)
    headers = {"content-length": str(len(body)), "content-type": "application/json"}

    async def half() -> AsyncIterator[bytes]:
        yield body[: len(body) // 2]

    async def slowly() -> AsyncIterator[bytes]:
        step = max(1, len(body) // 10)
        for at in range(0, len(body), step):
            await asyncio.sleep(fault.seconds / 10)
            yield body[at : at + step]

    pieces = half() if fault.kind == "truncate" else slowly()
    return StreamingResponse(pieces, status_code=response.status_code, headers=headers)
