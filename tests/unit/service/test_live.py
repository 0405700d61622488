"""Which calls are made to read live state, what they find, and which answers are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.errors import Forbidden, InvalidResponse, NotFound
from reconciler.model.event import Event, Listener, Reading
from reconciler.model.kind import Kind, Paths
from reconciler.model.live import Live, LiveObject, Routes
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.service.live import Depth, live_object, read_live
from tests.conftest import StartService
from tests.support.emulator import RunningEmulator
from tests.support.transport import connected, resolver
from tests.support.worlds import BY_NAME, KINDS, export, project

NO_OP = {"type": "NoOp", "config": {}}
SEED = {
    "organizations": [
        {
            "id": "org",
            "name": "O",
            "projects": [{"id": 1, "name": "Web"}, {"id": 2, "name": "App"}],
        }
    ],
    "keys": [
        {"value": "phx_all"},
        {"value": "phx_web", "projects": [1]},
        {"value": "phx_no_scope", "scopes": ["user:read"]},
    ],
}


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    running = service_of(SEED)
    for project_id, name in ((1, "Lake"), (1, "River"), (2, "Sea")):
        body = {"name": name, "interval": "hour", "destination": NO_OP}
        path = f"/api/projects/{project_id}/batch_exports/"
        running.call("POST", path, body).raise_for_status()
    running.clear_requests()
    return running


def read(
    running: RunningEmulator,
    *resources: Resource,
    key: str = "phx_all",
    kinds: tuple[Kind, ...] = KINDS,
    organization: str = "org",
    listen: Listener | None = None,
    **depth: Any,
) -> Live:
    desired = Desired("test", running.base_url, organization, {r.address: r for r in resources})

    async def run() -> Live:
        secrets = resolver(RECONCILER_API_KEY=key)
        async with connected(running, secrets=secrets, listen=listen) as transport:
            return await read_live(transport, desired, kinds=kinds, depth=Depth(**depth))

    return asyncio.run(run())


def of_projects(item: LiveObject) -> bool:
    return item.kind == "project"


def fail(running: RunningEmulator, path: str, **fault: Any) -> None:
    """Let calls of a path fail."""
    running.admin("PUT", "faults", [{"match": {"path": path}, **fault}])


def paths(running: RunningEmulator) -> list[str]:
    return sorted(request["path"] for request in running.requests())


def names(live: Live, kind: str = "batch_export") -> list[str]:
    return sorted(item.name for item in live.of(kind))


def test_without_resources_each_kind_takes_one_list(running: RunningEmulator) -> None:
    live = read(running)
    assert paths(running) == [
        "/api/organizations/org/batch_exports/",
        "/api/organizations/org/projects/",
    ]
    assert names(live) == ["Lake", "River", "Sea"]
    assert names(live, "project") == ["App", "Web"]
    assert live.unlisted == frozenset()


def test_resources_take_no_further_call(running: RunningEmulator) -> None:
    pinned = export("river", pinned_id=running.exports()["River"]["id"], destination=NO_OP)
    web = replace(project("web"), pinned_id="1")
    live = read(running, web, export(destination=NO_OP), pinned)
    assert len(paths(running)) == 2
    assert {item.name: item.complete for item in live.of("project")} == {"Web": False, "App": False}
    assert all(item.complete for item in live.of("batch_export"))


@pytest.mark.parametrize(
    ("in_full", "count"),
    [(of_projects, 4), (lambda item: item.name == "App", 3)],
)
def test_a_caller_can_read_objects_in_full(
    running: RunningEmulator, in_full: Callable[[LiveObject], bool], count: int
) -> None:
    live = read(running, in_full=in_full)
    assert len(paths(running)) == count
    assert sum(item.complete for item in live.of("project")) == count - 2


def test_an_object_that_is_not_listed_is_read_by_id(running: RunningEmulator) -> None:
    live_id = running.exports()["Lake"]["id"]
    fail(running, "*/batch_exports/", fault="page", drop=3, count=0)
    assert names(read(running)) == []
    assert names(read(running, export(pinned_id=live_id, destination=NO_OP))) == ["Lake"]
    assert names(read(running, ids=frozenset({live_id, "unknown"}))) == ["Lake"]


def test_a_key_that_is_limited_to_a_project_reads_it_by_id(running: RunningEmulator) -> None:
    lake = Resource(
        export().address, {"name": "Lake", "destination": NO_OP}, parent=ParentRef(id="1")
    )
    live = read(running, lake, key="phx_web")
    assert names(live) == ["Lake", "River"]
    assert names(live, "project") == ["Web"]
    assert live.unlisted == {"project", "batch_export"}
    assert "/api/projects/1/batch_exports/" in paths(running)
    # A parent may be given as an id, too.
    live = read(running, key="phx_web", parents=frozenset({"1", "not an id/"}))
    assert names(live, "project") == ["Web"]


@pytest.mark.parametrize(
    ("resources", "how", "message"),
    [
        ([project("web")], {"key": "phx_web"}, "may not list the projects of .* org; without `id`"),
        ([], {"key": "phx_no_scope"}, "missing required scope"),
        ([], {"organization": "nope"}, "404"),
    ],
    ids=["a name and a limited key", "a missing scope", "an unknown organization"],
)
def test_what_can_not_be_read_is_an_error(
    running: RunningEmulator, resources: list[Resource], how: dict[str, Any], message: str
) -> None:
    with pytest.raises((Forbidden, NotFound), match=message):
        read(running, *resources, **how)


def test_a_kind_without_a_list_for_the_organization_is_read_by_parent(
    running: RunningEmulator,
) -> None:
    parent, child = KINDS
    child = replace(child, paths=Paths(child.paths.collection))
    assert names(read(running, kinds=(parent, child))) == ["Lake", "River", "Sea"]
    assert paths(running)[-2:] == [
        "/api/projects/1/batch_exports/",
        "/api/projects/2/batch_exports/",
    ]


DETAIL = "/api/organizations/org/projects/1/"


@pytest.mark.parametrize(
    "fault", [{"fault": "body", "merge": {"name": None}}, {"fault": "other_id"}], ids=str
)
def test_f1_an_odd_answer_for_a_pinned_object_is_an_error(
    running: RunningEmulator, fault: dict[str, Any]
) -> None:
    """tests/integration/test_plan.py has those for listed objects."""
    fail(running, DETAIL, **fault)
    web = replace(project("web"), pinned_id="1")
    with pytest.raises(InvalidResponse, match=f"GET {DETAIL}: "):
        read(running, web, key="phx_web")


def test_a_404_for_an_object_that_is_no_longer_listed_means_that_it_is_gone(
    running: RunningEmulator,
) -> None:
    lists = {"path": "*/projects/", "from": 2}
    rules = [
        {"match": {"path": DETAIL}, "fault": "error", "status": 404},
        {
            "match": lists,
            "fault": "body",
            "merge": {"count": 1, "results": [{"id": 2, "name": "App"}]},
        },
    ]
    running.admin("PUT", "faults", rules)
    assert names(read(running, in_full=of_projects), "project") == ["App"]


def test_ids_that_are_paths_are_not_read(running: RunningEmulator) -> None:
    assert names(read(running, ids=frozenset({"../projects/1"}))) == ["Lake", "River", "Sea"]
    assert len(paths(running)) == 2


def test_progress_is_reported_for_every_collection(running: RunningEmulator) -> None:
    events: list[Event] = []
    read(running, in_full=of_projects, listen=events.append)
    reading = [event for event in events if isinstance(event, Reading)]
    assert Reading("projects", 2, 2) in reading
    assert Reading("batch_exports", 3, 3) in reading
    assert reading[-1] == Reading("projects in full", 2, 2)


# One answer

PROJECT, EXPORT = BY_NAME["project"], BY_NAME["batch_export"]
BODY = {"id": "e1", "name": "Lake", "team_id": 2}
UNPLACED = {"id": "e1", "name": "Lake"}


def export_of(body: Any, expected_id: str | None = "e1", parent_id: str | None = None) -> Any:
    routes, label = Routes(EXPORT, "o", parent_id), "GET /api/exports/e1/"
    return live_object(routes, body, expected_id=expected_id, complete=True, label=label)


def test_an_object_has_its_id_name_and_parent_as_text() -> None:
    live = export_of(BODY)
    assert (live.kind, live.id, live.name, live.parent_id) == ("batch_export", "e1", "Lake", "2")
    assert live.complete
    assert export_of(BODY, None) == export_of(BODY, parent_id="2") == live
    assert export_of(UNPLACED, parent_id="7").parent_id == "7"
    body, routes = {"id": 7, "name": "Web"}, Routes(PROJECT, "o")
    live = live_object(routes, body, expected_id="7", complete=False, label="GET /")
    assert (live.id, live.parent_id, live.complete) == ("7", None, False)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (None, "the response is empty, an object was expected"),
        ([BODY], "the response is a list, an object was expected"),
        ({}, "id is missing, a number or text was expected"),
        ({**BODY, "id": True}, "id is true, a number or text was expected"),
        ({**BODY, "id": 1.0}, r"id is 1\.0, a number or text was expected"),
        ({**BODY, "id": "e1/../e2"}, "id is .*, a number or text was expected"),
        ({**BODY, "id": "e2"}, "id is e2, e1 was expected"),
        ({"id": "e1", "team_id": 2}, "name is missing, text was expected"),
        ({**BODY, "name": None}, "name is null, text was expected"),
        (UNPLACED, "team_id is missing, a number was expected"),
        ({**BODY, "team_id": {"id": 2}}, "team_id is an object, a number was expected"),
    ],
)
def test_f1_an_answer_of_another_shape_or_object_is_an_error(body: Any, problem: str) -> None:
    with pytest.raises(InvalidResponse, match=f"^GET /api/exports/e1/: {problem}") as error:
        export_of(body)
    assert error.value.hint is not None


def test_an_object_of_another_parent_is_an_error() -> None:
    for team, problem in ((2, "is 2, 7 was expected"), (None, "is null, a number was expected")):
        with pytest.raises(InvalidResponse, match=f"team_id {problem}"):
            export_of({**BODY, "team_id": team}, parent_id="7")
