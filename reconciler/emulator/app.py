"""The ASGI application: every path of the interface, and the switchboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from reconciler.emulator.admin import RequestLog
from reconciler.emulator.disturbance import Disturbance
from reconciler.emulator.faults import Fault
from reconciler.emulator.gate import Gate, Operation
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


def build(
    world: World, replant: Callable[[], None], *, throttle: Throttle, faults: list[Fault]
) -> Starlette:
    """The application over a filled store. `replant` empties the store and fills it again."""
    runs = Runs(world)
    gate = Gate(world, runs, RequestLog(), throttle, Disturbance(world), faults)
    exports = BatchExports(world, runs)
    routes: list[BaseRoute] = []
    for path, operations in _interface(world, exports, runs).items():
        endpoint = gate.guarding(operations)
        # The trailing slash is optional on every route (service-facts, section 6).
        routes += [Route(each, endpoint, methods=_METHODS) for each in (path, path.rstrip("/"))]
    routes += _switchboard(Switchboard(gate, exports.fields, replant))
    routes.append(Route("/{rest:path}", gate.guarding({}), methods=_METHODS))
    return Starlette(routes=routes)


def _interface(world: World, exports: BatchExports, runs: Runs) -> _Paths:
    projects, identity = Projects(world), Identity(world)
    inside = ExportRuns(world, exports, runs)
    paths: _Paths = {}
    # `environments` is another name of `projects` (service-facts 1.10).
    for place in ("organizations/{organization}", "projects/{project}", "environments/{project}"):
        base = f"/api/{place}/batch_exports/"
        paths |= {f"{base}{rest}": found for rest, found in _of_exports(exports).items()}
        paths |= {f"{base}{rest}": found for rest, found in _inside(world, inside).items()}
    one: Mapping[str, Operation] = {
        "GET": projects.retrieved,
        "PATCH": projects.patched,
        "PUT": projects.patched,
        "DELETE": projects.deleted,
    }
    actions: _Paths = {
        "activity/": {"GET": projects.activity},
        "is_generating_demo_data/": {"GET": projects.demo_data},
        "reset_token/": {"PATCH": projects.token_reset},
    }
    for base in (
        "/api/organizations/{organization}/projects/",
        "/api/projects/",
        "/api/environments/",
    ):
        paths[f"{base}{{id}}/"] = one
        paths |= {f"{base}{{id}}/{rest}": found for rest, found in actions.items()}
    paths["/api/organizations/{organization}/projects/"] = {
        "GET": projects.listed,
        "POST": projects.created,
    }
    paths["/api/users/@me/"] = {"GET": identity.me}
    paths["/api/organizations/"] = {"GET": identity.organizations}
    paths["/api/organizations/{organization}/"] = {"GET": identity.organization}
    return paths


def _of_exports(exports: BatchExports) -> _Paths:
    return {
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


def _inside(world: World, inside: ExportRuns) -> _Paths:
    """Runs, logs and backfills. An address that this server lacks is simply not there."""
    paths: _Paths = {
        "{id}/logs/": {"GET": inside.export_logs},
        "{id}/runs/": {"GET": inside.listed},
        "{id}/runs/{run}/": {"GET": inside.retrieved},
        "{id}/runs/{run}/logs/": {"GET": inside.run_logs},
        "{id}/runs/{run}/retry/": {"POST": inside.retried},
        "{id}/runs/{run}/cancel/": {"POST": inside.cancelled},
    }
    if "backfill" in world.dialect.backfill_paths:
        paths["{id}/backfill/"] = {"POST": inside.backfilled}
    if "backfills" in world.dialect.backfill_paths:
        paths["{id}/backfills/"] = {"GET": inside.backfills, "POST": inside.backfilled}
        paths["{id}/backfills/{backfill}/cancel/"] = {"POST": inside.backfill_cancelled}
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
