"""Lists are complete, each object once, also if they change while they are read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reconciler.client import all_pages
from reconciler.errors import ServiceError
from tests.conftest import StartService
from tests.support.emulator import RunningEmulator
from tests.support.transport import connected

COUNT = 230
NAMES = [f"P{number}" for number in range(COUNT)]
SEED = {
    "organizations": [
        {"id": "org", "name": "O", "projects": [{"name": name} for name in NAMES]},
    ],
    "keys": [{"value": "phx_all"}],
}


@pytest.fixture
def many(service_of: StartService) -> RunningEmulator:
    running = service_of(SEED)
    running.clear_requests()
    return running


def names(running: RunningEmulator) -> list[str]:
    async def run() -> list[Any]:
        async with connected(running) as transport:
            return await all_pages(transport, "/api/organizations/org/projects/")

    return [project["name"] for project in asyncio.run(run())]


def test_a_long_list_takes_a_call_per_hundred_objects(many: RunningEmulator) -> None:
    assert sorted(names(many)) == sorted(NAMES)
    assert len(many.requests()) == 3


def test_a_page_that_misses_an_object_is_read_again(many: RunningEmulator) -> None:
    rule = {"match": {"path": "*/projects/", "nth": 2}, "fault": "page", "drop": 1}
    many.admin("PUT", "faults", [rule])
    assert sorted(names(many)) == sorted(NAMES)
    assert len(many.requests()) == 6


def test_an_object_on_two_pages_counts_once(many: RunningEmulator) -> None:
    many.admin("PUT", "faults", [{"match": {"nth": 2}, "fault": "page", "repeat": 5}])
    assert sorted(names(many)) == sorted(NAMES)
    assert len(many.requests()) == 3


def test_a_list_that_never_settles_is_taken_after_three_reads(many: RunningEmulator) -> None:
    many.admin("PUT", "faults", [{"fault": "page", "count": "+1"}])
    assert sorted(names(many)) == sorted(NAMES)
    assert len(many.requests()) == 9


@pytest.mark.parametrize("value", [[], {"results": {}}, {"results": [1]}])
def test_a_response_that_is_not_a_page_is_reported(many: RunningEmulator, value: object) -> None:
    many.admin("PUT", "faults", [{"fault": "body", "value": value, "status": 200}])
    with pytest.raises(ServiceError, match="the response is not a page of objects"):
        names(many)
