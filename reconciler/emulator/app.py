"""The ASGI application: every path of the interface, and the switchboard."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from reconciler.emulator.admin import RequestLog
from reconciler.emulator.faults.rules import Fault
from reconciler.emulator.gate import Gate
from reconciler.emulator.resources.batch_exports import BatchExports
from reconciler.emulator.resources.destination_tests import DestinationTests
from reconciler.emulator.routes import paths_of_interface
from reconciler.emulator.switchboard import Switchboard
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import World


def build(
    world: World, replant: Callable[[], None], *, throttle: Throttle, faults: list[Fault]
) -> Starlette:
    """Return the application over a filled store. `replant` empties the store and fills it."""
    timeline = Timeline(world)
    gate = Gate(world, timeline, RequestLog(), throttle, faults)
    exports = BatchExports(world, timeline)
    tests = DestinationTests(world, exports.fields)
    routes: list[BaseRoute] = []
    board = Switchboard(gate, exports.fields, tests.rules, replant)
    for path, operations in paths_of_interface(world, exports, tests, timeline).items():
        endpoint = gate.guarding(operations)
        # The trailing slash is optional on every route (service.md, 6).
        routes += [Route(slash, endpoint) for slash in (path, path.rstrip("/"))]
    routes += _switchboard(board)
    routes.append(Route("/{rest:path}", gate.guarding({})))
    return Starlette(routes=routes)


def _switchboard(board: Switchboard) -> list[BaseRoute]:
    return [
        Route("/_emulator/requests", board.requests, methods=["GET", "DELETE"]),
        Route("/_emulator/state", board.state),
        Route("/_emulator/reset", board.reset, methods=["POST"]),
        Route("/_emulator/clock", board.clock, methods=["GET", "POST"]),
        Route("/_emulator/faults", board.faults, methods=["GET", "PUT", "DELETE"]),
        Route("/_emulator/throttle", board.throttle, methods=["GET", "PUT", "DELETE"]),
        Route("/_emulator/snapshots/{name}", board.snapshot, methods=["POST"]),
        Route("/_emulator/snapshots/{name}/restore", board.restore, methods=["POST"]),
        Route("/_emulator/test_steps", board.test_steps, methods=["GET", "PUT", "DELETE"]),
        Route("/_emulator/settings", board.settings, methods=["GET", "PUT", "DELETE"]),
        Route("/_emulator/outcomes", board.outcomes, methods=["GET", "PUT", "DELETE"]),
    ]
