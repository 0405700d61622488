"""The ASGI application: every path of the interface by dialect, and the switchboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from reconciler.emulator.access import INTERNAL, Operation
from reconciler.emulator.activity import ActivityLog
from reconciler.emulator.backfills import ExportBackfills
from reconciler.emulator.batch_exports import BatchExports
from reconciler.emulator.destination_tests import DestinationTests
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.gate import Gate, RequestLog
from reconciler.emulator.identity import Identity
from reconciler.emulator.integrations import Integrations
from reconciler.emulator.logs import ExportLogs
from reconciler.emulator.projects import Projects
from reconciler.emulator.runs import ExportRuns
from reconciler.emulator.switchboard import Switchboard
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import World

Paths: TypeAlias = dict[str, Mapping[str, Operation]]
_reads = partial(Operation, scope="batch_export:read")
_writes = partial(Operation, scope="batch_export:write")
_reads_project = partial(Operation, scope="project:read", on_project=True)
_writes_project = partial(Operation, scope="project:write", on_project=True)


def paths_of_interface(
    world: World, exports: BatchExports, tests: DestinationTests, timeline: Timeline
) -> Paths:
    """Return every path with its operations by method. One without operations answers 404."""
    inside = _inside(world, exports, timeline)
    paths: Paths = {}
    # `environments` is an alias of `projects` here (service.md, 1.10).
    for place in ("projects/{project}", "environments/{project}", "organizations/{organization}"):
        base = f"/api/{place}/batch_exports/"
        if place.startswith("organizations") and not world.dialect.organization_list:
            continue
        if place.startswith("organizations"):
            paths |= _below(base, _of_exports(exports))
            paths |= _below(base, {rest: inside[rest] for rest in world.dialect.organization_paths})
        else:
            # The steps come before `{id}/`, which matches their paths, too.
            paths |= _below(base, _of_tests(world, tests))
            paths |= _below(base, _of_exports(exports)) | _below(base, inside)
    paths |= _of_projects(world) | _of_identity(world) | _of_activity(world)
    return paths | _of_integrations(world)


def _below(base: str, paths: Paths) -> Paths:
    return {f"{base}{rest}": operations for rest, operations in paths.items()}


def _of_projects(world: World) -> Paths:
    below = "/api/organizations/{organization}/projects/"
    projects = Projects(world)
    collection = {
        "GET": Operation(projects.listed, scope="project:read"),
        "POST": Operation(projects.created, scope="project:write"),
    }
    paths: Paths = {below: collection}
    if world.dialect.real:
        paths["/api/projects/"] = collection
    for base in (below, "/api/projects/", "/api/environments/"):
        paths |= {
            f"{base}{{id}}/{rest}": operations
            for rest, operations in _of_project(world, projects).items()
        }
    return paths


def _of_project(world: World, projects: Projects) -> Paths:
    """Return the operations of one project, by the rest of their path."""
    keys = not world.dialect.real
    # There, the operation asks for the scope that the fields need (service.md, 4.2).
    patched = _reads_project if world.dialect.older else _writes_project
    return {
        "": {
            "GET": _reads_project(projects.retrieved),
            "PATCH": patched(projects.patched),
            "PUT": _writes_project(projects.patched),
            "DELETE": _writes_project(projects.deleted),
        },
        "activity/": {"GET": _reads_project(projects.retrieved, with_key=keys)},
        "is_generating_demo_data/": {"GET": _reads_project(projects.retrieved, with_key=keys)},
        "reset_token/": {"PATCH": _writes_project(projects.token_reset, with_key=keys)},
    }


def _of_identity(world: World) -> Paths:
    identity = Identity(world)
    paths: Paths = {
        "/api/users/@me/": {"GET": Operation(identity.me, scope="user:read")},
        "/api/organizations/": {"GET": Operation(identity.organizations, "organization:read")},
        "/api/organizations/{organization}/": {
            "GET": Operation(identity.organization, "organization:read", hides_organization=True)
        },
    }
    if world.dialect.real:
        refused = {"GET": Operation(identity.key, with_key=False)}
        paths |= {
            "/api/personal_api_keys/@current/": {"GET": Operation(identity.key)},
            "/api/personal_api_keys/": refused,
            "/api/personal_api_keys/{id}/": refused,
        }
    return paths


def _of_activity(world: World) -> Paths:
    """Return the activity log; the interface does not have it."""
    listed = {"GET": Operation(ActivityLog(world).listed, scope="activity_log:read")}
    bases = ("projects", "environments") if world.dialect.real else ()
    return {f"/api/{base}/{{project}}/activity_log/": listed for base in bases}


def _of_integrations(world: World) -> Paths:
    """Return the integrations of a project; only the newest servers have their scopes."""
    if not world.dialect.newest:
        return {}
    integrations = Integrations(world)
    reads = partial(Operation, scope="integration:read")
    writes = partial(Operation, scope="integration:write")
    return _below(
        "/api/projects/{project}/integrations/",
        {
            "": {"GET": reads(integrations.listed), "POST": writes(integrations.created)},
            "{id}/": {
                "GET": reads(integrations.retrieved),
                "DELETE": writes(integrations.destroyed),
            },
        },
    )


def _of_exports(exports: BatchExports) -> Paths:
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


def _of_tests(world: World, tests: DestinationTests) -> Paths:
    """Return the destination test steps. The interface does not have them (service.md, 11)."""
    newest = world.dialect.newest
    reads = partial(Operation, scope="batch_export:read" if newest else INTERNAL)
    writes = partial(Operation, scope="batch_export:write" if newest else INTERNAL)
    paths: Paths = {
        "test/": {"GET": reads(tests.listed)},
        "run_test_step_new/": {"POST": writes(tests.ran_for_new)},
        "{id}/run_test_step/": {"POST": writes(tests.ran_for_existing)},
    }
    return paths if world.dialect.real else {path: {} for path in paths}


def _inside(world: World, exports: BatchExports, timeline: Timeline) -> Paths:
    """Return runs, logs and backfills of an export; only the paths that the dialect has."""
    dialect: Dialect = world.dialect
    runs = ExportRuns(world, timeline.runs)
    logs = ExportLogs(world, runs, timeline.runs)
    backfills = ExportBackfills(world, timeline.backfills, exports.fields.shown)
    paths: Paths = {
        "{id}/logs/": {"GET": _reads(logs.of_export, with_key=not dialect.older)},
        "{id}/runs/": {"GET": _reads(runs.listed)},
        "{id}/runs/{run}/": {"GET": _reads(runs.retrieved)},
        "{id}/runs/{run}/logs/": {"GET": _reads(logs.of_run, with_key=not dialect.older)},
    }
    if dialect.real:
        paths["{id}/runs/{run}/cancel/"] = {"POST": _writes(runs.cancelled)}
    if "backfill" in dialect.backfill_paths:
        paths["{id}/backfill/"] = {"POST": _writes(backfills.created)}
    if "backfills" in dialect.backfill_paths:
        paths["{id}/backfills/"] = {
            "GET": _reads(backfills.listed),
            "POST": _writes(backfills.created),
        }
        paths["{id}/backfills/{backfill}/"] = {"GET": _reads(backfills.retrieved)}
        paths["{id}/backfills/{backfill}/cancel/"] = {"POST": _writes(backfills.cancelled)}
    return paths


def build(world: World, replant: Callable[[], None], *, throttle: Throttle) -> Starlette:
    """Return the application over a filled store. `replant` empties the store and fills it."""
    timeline = Timeline(world)
    gate = Gate(world, timeline, RequestLog(), throttle)
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
