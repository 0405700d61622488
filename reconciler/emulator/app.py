"""The ASGI application: every path of the interface, and the switchboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from reconciler.emulator.access import Operation
from reconciler.emulator.admin import RequestLog
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.disturbance import Disturbance
from reconciler.emulator.faults import Fault
from reconciler.emulator.gate import Gate
from reconciler.emulator.resources.batch_exports import BatchExports
from reconciler.emulator.resources.identity import Identity
from reconciler.emulator.resources.projects import Projects
from reconciler.emulator.resources.runs import ExportRuns
from reconciler.emulator.runs import Runs
from reconciler.emulator.switchboard import Switchboard
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.world import World

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_Paths = dict[str, Mapping[str, Operation]]
_reads = partial(Operation, scope="batch_export:read")
_writes = partial(Operation, scope="batch_export:write")
_reads_project = partial(Operation, scope="project:read", on_project=True)
_writes_project = partial(Operation, scope="project:write", on_project=True)


def build(
    world: World, replant: Callable[[], None], *, throttle: Throttle, faults: list[Fault]
) -> Starlette:
    """Return the application over a filled store. `replant` empties the store and fills it."""
    runs = Runs(world)
    gate = Gate(world, runs, RequestLog(), throttle, Disturbance(world), faults)
    exports = BatchExports(world, runs)
    routes: list[BaseRoute] = []
    for path, operations in _interface(world, exports, runs).items():
        endpoint = gate.guarding(operations)
        # The trailing slash is optional on every route (docs/service.md, 6).
        routes += [Route(slash, endpoint, methods=_METHODS) for slash in (path, path.rstrip("/"))]
    routes += _switchboard(Switchboard(gate, exports.fields, replant))
    routes.append(Route("/{rest:path}", gate.guarding({}), methods=_METHODS))
    return Starlette(routes=routes)


def _interface(world: World, exports: BatchExports, runs: Runs) -> _Paths:
    identity = Identity(world)
    inside = ExportRuns(world, exports, runs)
    paths: _Paths = {}
    # `environments` is another name of `projects` (docs/service.md, 1.10).
    for place in ("projects/{project}", "environments/{project}", "organizations/{organization}"):
        base = f"/api/{place}/batch_exports/"
        paths |= {f"{base}{rest}": found for rest, found in _of_exports(exports).items()}
        paths |= {f"{base}{rest}": found for rest, found in _inside(world, inside).items()}
    paths |= _of_projects(world)
    paths["/api/users/@me/"] = {"GET": Operation(identity.me)}
    paths["/api/organizations/"] = {"GET": Operation(identity.organizations)}
    paths["/api/organizations/{organization}/"] = {"GET": Operation(identity.organization)}
    return paths


def _of_projects(world: World) -> _Paths:
    projects = Projects(world)
    keys = not world.dialect.session_actions
    one: Mapping[str, Operation] = {
        "GET": _reads_project(projects.retrieved),
        "PATCH": _writes_project(projects.patched),
        "PUT": _writes_project(projects.patched),
        "DELETE": _writes_project(projects.deleted),
    }
    actions: _Paths = {
        "activity/": {"GET": _reads_project(projects.activity, with_key=keys)},
        "is_generating_demo_data/": {"GET": _reads_project(projects.demo_data, with_key=keys)},
        "reset_token/": {"PATCH": _writes_project(projects.token_reset, with_key=keys)},
    }
    below = "/api/organizations/{organization}/projects/"
    paths: _Paths = {
        below: {
            "GET": Operation(projects.listed, scope="project:read"),
            "POST": Operation(projects.created, scope="project:write"),
        }
    }
    for base in (below, "/api/projects/", "/api/environments/"):
        paths[f"{base}{{id}}/"] = one
        paths |= {f"{base}{{id}}/{rest}": operations for rest, operations in actions.items()}
    return paths


def _of_exports(exports: BatchExports) -> _Paths:
    return {
        "": {"GET": _reads(exports.listed), "POST": _writes(exports.created)},
        "{id}/": {
            "GET": _reads(exports.retrieved),
            "PATCH": _writes(exports.patched),
            "PUT": _writes(exports.put),
            "DELETE": _writes(exports.deleted),
        },
        "{id}/pause/": {"POST": _writes(exports.paused)},
        "{id}/unpause/": {"POST": _writes(exports.unpaused)},
    }


def _inside(world: World, inside: ExportRuns) -> _Paths:
    """Runs, logs and backfills. A path that this server lacks does not exist."""
    dialect: Dialect = world.dialect
    paths: _Paths = {
        "{id}/logs/": {"GET": _reads(inside.export_logs, with_key=dialect.logs_for_keys)},
        "{id}/runs/": {"GET": _reads(inside.listed)},
        "{id}/runs/{run}/": {"GET": _reads(inside.retrieved)},
        "{id}/runs/{run}/logs/": {"GET": _reads(inside.run_logs)},
        "{id}/runs/{run}/retry/": {"POST": _writes(inside.retried)},
        "{id}/runs/{run}/cancel/": {"POST": _writes(inside.cancelled)},
    }
    if "backfill" in dialect.backfill_paths:
        paths["{id}/backfill/"] = {"POST": _writes(inside.backfilled)}
    if "backfills" in dialect.backfill_paths:
        paths["{id}/backfills/"] = {
            "GET": _reads(inside.backfills),
            "POST": _writes(inside.backfilled),
        }
        paths["{id}/backfills/{backfill}/cancel/"] = {"POST": _writes(inside.backfill_cancelled)}
    return paths


def _switchboard(board: Switchboard) -> list[BaseRoute]:
    return [
        Route("/_emulator/requests", board.requests, methods=["GET", "DELETE"]),
        Route("/_emulator/state", board.state),
        Route("/_emulator/reset", board.reset, methods=["POST"]),
        Route("/_emulator/clock", board.clock, methods=["GET", "POST"]),
        Route("/_emulator/faults", board.faults, methods=["GET", "PUT", "DELETE"]),
        Route("/_emulator/throttle", board.throttle, methods=["GET", "PUT"]),
        Route("/_emulator/snapshots/{name}", board.snapshot, methods=["POST"]),
        Route("/_emulator/snapshots/{name}/restore", board.restore, methods=["POST"]),
        Route("/_emulator/openapi.json", board.openapi),
    ]
