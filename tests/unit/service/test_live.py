"""Which calls are made to read live state, and what they find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.errors import Forbidden, InvalidResponse, NotFound
from reconciler.model.event import Event, Listener, Reading
from reconciler.model.kind import Kind, Paths
from reconciler.model.live import Live, LiveObject
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.service.live import Depth, read_live
from tests.conftest import StartService
from tests.support.emulator import RunningEmulator
from tests.support.transport import connected, resolver
from tests.support.worlds import KINDS, export, project

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
    [(lambda item: item.kind == "project", 4), (lambda item: item.name == "App", 3)],
)
def test_a_caller_can_read_objects_in_full(
    running: RunningEmulator, in_full: Callable[[LiveObject], bool], count: int
) -> None:
    live = read(running, in_full=in_full)
    assert len(paths(running)) == count
    assert sum(item.complete for item in live.of("project")) == count - 2


def test_an_object_that_is_not_listed_is_read_by_id(running: RunningEmulator) -> None:
    live_id = running.exports()["Lake"]["id"]
    rule = {"match": {"path": "*/batch_exports/"}, "fault": "page", "drop": 3, "count": 0}
    running.admin("PUT", "faults", [rule])
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


def test_a_parent_may_be_given_as_an_id(running: RunningEmulator) -> None:
    live = read(running, key="phx_web", parents=frozenset({"1", "not an id/"}))
    assert names(live, "project") == ["Web"]


def test_a_limited_key_can_not_look_up_a_name(running: RunningEmulator) -> None:
    with pytest.raises(Forbidden, match=r"may not list the projects of organization org; without"):
        read(running, project("web"), key="phx_web")


def test_a_missing_scope_is_not_a_limited_key(running: RunningEmulator) -> None:
    with pytest.raises(Forbidden, match="missing required scope"):
        read(running, key="phx_no_scope")


def test_an_unknown_organization_is_reported(running: RunningEmulator) -> None:
    with pytest.raises(NotFound):
        read(running, organization="nope")


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
ODD_ANSWERS = [
    {"fault": "body", "text": "", "status": 200},
    {"fault": "body", "value": None, "status": 200},
    {"fault": "body", "value": [], "status": 200},
    {"fault": "body", "value": {}, "status": 200},
    {"fault": "body", "value": "Web", "status": 200},
    {"fault": "body", "merge": {"id": None}},
    {"fault": "body", "merge": {"name": None}},
    {"fault": "other_id"},
]


@pytest.mark.parametrize("fault", ODD_ANSWERS, ids=str)
def test_f1_an_odd_answer_for_a_listed_object_is_an_error(
    running: RunningEmulator, fault: dict[str, Any]
) -> None:
    running.admin("PUT", "faults", [{"match": {"path": DETAIL}, **fault}])
    with pytest.raises(InvalidResponse, match=f"GET {DETAIL}: "):
        read(running, in_full=lambda item: item.kind == "project")


@pytest.mark.parametrize("fault", ODD_ANSWERS, ids=str)
def test_f1_an_odd_answer_for_a_pinned_object_is_an_error(
    running: RunningEmulator, fault: dict[str, Any]
) -> None:
    running.admin("PUT", "faults", [{"match": {"path": DETAIL}, **fault}])
    web = replace(project("web"), pinned_id="1")
    with pytest.raises(InvalidResponse, match=f"GET {DETAIL}: "):
        read(running, web, key="phx_web")


def test_f1_a_404_for_an_object_that_is_still_listed_is_an_error(running: RunningEmulator) -> None:
    rule = {"match": {"path": DETAIL}, "fault": "error", "status": 404}
    running.admin("PUT", "faults", [rule])
    with pytest.raises(InvalidResponse, match=f"GET {DETAIL}: 404 for an object that is in the"):
        read(running, in_full=lambda item: item.kind == "project")
    lists = [path for path in paths(running) if path.endswith("/projects/")]
    assert len(lists) == 2


def test_a_404_for_an_object_that_is_no_longer_listed_means_that_it_is_gone(
    running: RunningEmulator,
) -> None:
    rules = [
        {"match": {"path": DETAIL}, "fault": "error", "status": 404},
        {
            "match": {"path": "*/projects/", "from": 2},
            "fault": "body",
            "value": {"count": 1, "next": None, "results": [{"id": 2, "name": "App"}]},
            "status": 200,
        },
    ]
    running.admin("PUT", "faults", rules)
    assert names(read(running, in_full=lambda item: item.kind == "project"), "project") == ["App"]


def test_an_object_pending_deletion_is_left_out_when_it_is_read_in_full(
    running: RunningEmulator,
) -> None:
    rule = {"match": {"path": DETAIL}, "fault": "body", "merge": {"is_pending_deletion": True}}
    running.admin("PUT", "faults", [rule])
    assert names(read(running), "project") == ["App", "Web"]
    assert names(read(running, in_full=lambda item: item.kind == "project"), "project") == ["App"]


@pytest.mark.parametrize("item", [{"id": 1}, {"id": 1, "name": 5}])
def test_f2_a_listed_object_without_a_name_is_an_error(
    running: RunningEmulator, item: dict[str, Any]
) -> None:
    value = {"count": 1, "next": None, "results": [item]}
    rule = {"match": {"path": "*/projects/"}, "fault": "body", "value": value, "status": 200}
    running.admin("PUT", "faults", [rule])
    with pytest.raises(InvalidResponse, match="name is"):
        read(running)


def test_f2_a_listed_export_without_a_project_is_an_error(running: RunningEmulator) -> None:
    value = {"count": 1, "next": None, "results": [{"id": "e", "name": "Lake"}]}
    rule = {"match": {"path": "*/batch_exports/"}, "fault": "body", "value": value, "status": 200}
    running.admin("PUT", "faults", [rule])
    with pytest.raises(InvalidResponse, match="team_id is missing"):
        read(running)


def test_ids_that_are_paths_are_not_read(running: RunningEmulator) -> None:
    assert names(read(running, ids=frozenset({"../projects/1"}))) == ["Lake", "River", "Sea"]
    assert len(paths(running)) == 2


def test_progress_is_reported_for_every_collection(running: RunningEmulator) -> None:
    events: list[Event] = []
    read(running, in_full=lambda item: item.kind == "project", listen=events.append)
    reading = [event for event in events if isinstance(event, Reading)]
    assert Reading("projects", 2, 2) in reading
    assert Reading("batch_exports", 3, 3) in reading
    assert reading[-1] == Reading("projects in full", 2, 2)
