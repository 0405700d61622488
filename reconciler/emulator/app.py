"""The ASGI application: routes, the request log, and errors in the service's shape."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from reconciler.emulator.access import caller_of
from reconciler.emulator.admin import Admin, RequestLog
from reconciler.emulator.clock import Clock
from reconciler.emulator.refusal import Refusal, forbidden, not_found, server_error
from reconciler.emulator.resources.batch_exports import BatchExports
from reconciler.emulator.resources.projects import Projects
from reconciler.emulator.store import Store

Operation: TypeAlias = Callable[[Request], Awaitable[Response]]

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def build(store: Store, clock: Clock, replant: Callable[[], None]) -> Starlette:
    """The application over a filled store. `replant` empties the store and fills it again."""
    log = RequestLog()
    routes: list[BaseRoute] = []
    for path, operations in _interface(store, clock).items():
        endpoint = _gate(operations, store, log)
        # The trailing slash is optional on every route (service-facts, section 6).
        routes += [Route(each, endpoint, methods=[*_METHODS]) for each in (path, path.rstrip("/"))]
    admin = Admin(store, log, replant)
    routes += [
        Route("/_emulator/requests", admin.requests, methods=["GET", "DELETE"]),
        Route("/_emulator/state", admin.state),
        Route("/_emulator/reset", admin.reset, methods=["POST"]),
        Route("/{rest:path}", _gate({}, store, log), methods=[*_METHODS]),
    ]
    return Starlette(routes=routes)


def _interface(store: Store, clock: Clock) -> Mapping[str, Mapping[str, Operation]]:
    """Every path of the interface with its operations by method."""
    exports = BatchExports(store, clock)
    projects = Projects(store, clock)
    of_exports: dict[str, Mapping[str, Operation]] = {
        "": {"GET": exports.listed, "POST": exports.created},
        "{id}/": {
            "GET": exports.retrieved,
            "PATCH": exports.patched,
            "PUT": exports.put,
            "DELETE": exports.deleted,
        },
        "{id}/pause/": {"POST": exports.paused},
        "{id}/unpause/": {"POST": exports.unpaused},
    }
    paths: dict[str, Mapping[str, Operation]] = {}
    for place in ("organizations/{organization}", "projects/{project}"):
        for rest, operations in of_exports.items():
            paths[f"/api/{place}/batch_exports/{rest}"] = operations
    paths["/api/organizations/{organization}/projects/"] = {
        "GET": projects.listed,
        "POST": projects.created,
    }
    paths["/api/organizations/{organization}/projects/{id}/"] = {
        "GET": projects.retrieved,
        "PATCH": projects.patched,
        "DELETE": projects.deleted,
    }
    return paths


def _gate(operations: Mapping[str, Operation], store: Store, log: RequestLog) -> Operation:
    """One path: finds the operation, answers errors, logs the request."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        try:
            response = await _operation(request, operations, store)(request)
        except Refusal as refusal:
            response = refusal.response()
        except Exception as error:  # noqa: BLE001 - the imitated service answers 500 for its faults
            sys.stderr.write(
                f"emulator: {type(error).__name__} in {request.method} {request.url.path}\n"
            )
            response = server_error().response()
        log.add(request, body, response.status_code)
        return response

    return answer


def _operation(request: Request, operations: Mapping[str, Operation], store: Store) -> Operation:
    """Raises Refusal for a path without operations, or a method that the path lacks."""
    if not operations:
        raise not_found("Endpoint not found.")
    operation = operations.get(request.method)
    if operation is None:
        caller_of(request, store)
        # With a key it is no 405: an action without a scope refuses keys (service-facts 5).
        raise forbidden("This action does not support personal API key access.")
    return operation
