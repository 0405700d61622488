"""A list is read completely or not at all, also if it changes while it is read."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from reconciler.errors import IncompleteList, InvalidResponse
from reconciler.kinds import kinds_by_name
from reconciler.service.operations import ObjectCalls
from reconciler.service.pages import MOST_OBJECTS, complete_list
from tests.conftest import StartService
from tests.support.emulator import RunningEmulator
from tests.support.transport import VirtualClock, connected, mocked
from tests.support.worlds import live_export

PATH = "/api/organizations/org/projects/"


def start(service_of: StartService, count: int) -> RunningEmulator:
    projects = [{"name": f"P{number}"} for number in range(count)]
    organization = {"id": "org", "name": "O", "projects": projects}
    seed = {"organizations": [organization], "keys": [{"value": "phx_all"}]}
    running = service_of(seed)
    running.clear_requests()
    return running


@pytest.fixture
def many(service_of: StartService) -> RunningEmulator:
    """Return a service with 250 projects."""
    return start(service_of, 250)


def read(
    running: RunningEmulator, clock: VirtualClock | None = None, progress: Any = lambda *_: None
) -> list[str]:
    """Return the names that the list of projects has."""

    async def run() -> list[Any]:
        async with connected(running, clock) as transport:
            return await complete_list(transport, PATH, on_page=progress)

    return [project["name"] for project in asyncio.run(run())]


def cap(size: int) -> list[Any]:
    return [{"fault": "page", "cap": size}]


@pytest.mark.parametrize(
    ("count", "rules", "expected"),
    [
        *((count, [], [100] * max(1, -(-count // 100))) for count in (0, 1, 100, 101, 250)),
        *((250, cap(size), -(-250 // size)) for size in (1, 7, 50, 99)),
        (250, [{"match": {"nth": 2}, "fault": "page", "drop": 3}], 4),
        # Long lists take larger pages if the server gives them.
        (2_250, [], [100, *5 * [500]]),
        (2_250, cap(100), [*22 * [100], 500]),
        (2_250, [{"match": {"nth": 2}, "fault": "error", "status": 400}], [*23 * [100], 500]),
    ],
    ids=str,
)
def test_f2_a_list_is_followed_by_what_arrived(
    service_of: StartService, count: int, rules: list[Any], expected: list[int] | int
) -> None:
    running = start(service_of, count)
    running.admin("PUT", "faults", rules)
    seen: list[tuple[int, int]] = []
    names = read(running, progress=lambda *page: seen.append(page))
    assert names == [f"P{number}" for number in range(count)]
    assert (seen[0][1], seen[-1]) == (count, (count, count))
    sizes = [int(parse_qs(request["query"])["limit"][0]) for request in running.requests()]
    assert (len(sizes) if isinstance(expected, int) else sorted(sizes)) == expected


def test_a_list_that_changed_while_it_was_read_is_read_again(many: RunningEmulator) -> None:
    clock = VirtualClock()
    many.admin("PUT", "faults", [{"match": {"nth": 2}, "fault": "stale"}])
    assert len(read(many, clock)) == 251
    assert len(many.requests()) == 6
    assert clock.pauses == [0.5]


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ({"fault": "page", "count": 0}, "100 of 0 objects"),
        ({"fault": "page", "count": 100}, "a next page after 100 of 100 objects"),
        ({"fault": "page", "count": "-1"}, "250 of 249 objects"),
        ({"fault": "page", "count": MOST_OBJECTS}, f"250 of {MOST_OBJECTS} objects"),
        ({"fault": "page", "drop": 1}, "249 of 250 objects"),
        ({"fault": "stale", "change": "delete"}, "the list changed while it was read, count was"),
    ],
)
def test_f2_a_list_that_contradicts_itself_in_three_readings_is_an_error(
    many: RunningEmulator, fault: dict[str, Any], seen: str
) -> None:
    clock = VirtualClock()
    many.admin("PUT", "faults", [fault])
    with pytest.raises(IncompleteList) as error:
        read(many, clock)
    assert error.value.message.startswith(f"GET {PATH}: incomplete list in 3 readings: {seen}")
    assert error.value.hint is not None
    assert clock.pauses == [0.5, 2.0]


PAGE = {"count": 1, "next": None, "results": [{"id": 1}]}
NO_PAGES: list[Any] = [None, [], {}, "text", {**PAGE, "results": {}}, {**PAGE, "results": None}]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        *((value, "not a page of objects") for value in NO_PAGES),
        ({**PAGE, "results": [1]}, "item 1 is 1, an object was expected"),
        ({**PAGE, "results": [{}]}, "item 1 has the id missing"),
        ({**PAGE, "results": [{"id": 1}, {"id": None}]}, "item 2 has the id null"),
        ({**PAGE, "results": [{"id": "../2"}]}, 'item 1 has the id "../2"'),
        ({**PAGE, "results": [{"id": {"x": "secret"}}]}, "item 1 has the id an object"),
        ({**PAGE, "next": 5}, "next is 5"),
        *(
            ({**PAGE, "count": count}, f"count is {shown}, a number was expected")
            for count, shown in (("3", '"3"'), (None, "null"), (True, "true"), (2.5, "2.5"))
        ),
        ({"next": None, "results": []}, "count is missing, a number was expected"),
        *(
            ({**PAGE, "count": count}, f"count is {count}, a number from 0 to 200000")
            for count in (-1, MOST_OBJECTS + 1, 10_000_000)
        ),
        ({"count": 1, "results": [{"id": 1}]}, "next is missing"),
    ],
)
def test_f2_a_page_of_another_shape_is_an_error_at_once(
    many: RunningEmulator, value: object, problem: str
) -> None:
    many.admin("PUT", "faults", [{"fault": "body", "value": value, "status": 200}])
    with pytest.raises(InvalidResponse, match=problem):
        read(many)
    assert len(many.requests()) == 1


def read_from(pages: Any) -> tuple[list[Any], list[httpx.Request]]:
    """Return what is read from a function of offset and limit, and the requests."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        query = dict(request.url.params)
        return httpx.Response(200, json=pages(int(query.get("offset", 0)), int(query["limit"])))

    async def run() -> list[Any]:
        async with mocked(answer) as transport:
            return await complete_list(transport, PATH)

    try:
        return asyncio.run(run()), requests
    except IncompleteList as error:
        return [error.message], requests


def items(start: int, count: int) -> list[dict[str, int]]:
    return [{"id": number} for number in range(start, start + count)]


def test_the_address_of_the_next_page_is_not_followed() -> None:
    def pages(offset: int, limit: int) -> Any:
        following = "https://attacker.example/?offset=0" if offset == 0 else None
        return {"count": 150, "next": following, "results": items(offset, 100 - offset // 2)}

    read, requests = read_from(pages)
    assert len(read) == 150
    assert {request.url.host for request in requests} == {"service.example"}


@pytest.mark.parametrize(
    ("count", "second", "problem"),
    [
        (250, (True, items(0, 100)), "300 of 250 objects"),
        (250, (True, []), "100 of 250 objects"),
        (150, (False, items(99, 50)), "1 of 150 objects appear twice"),
    ],
    ids=["the offset is ignored", "an empty page before the end", "duplicates add up to the count"],
)
def test_f2_pages_that_contradict_each_other_are_an_error(
    count: int, second: tuple[bool, list[Any]], problem: str
) -> None:
    def page(offset: int, limit: int) -> Any:
        more, results = second if offset else (True, items(0, 100))
        return {"count": count, "next": "https://x.example" if more else None, "results": results}

    read, requests = read_from(page)
    assert read == [f"GET {PATH}: incomplete list in 3 readings: {problem}"]
    assert len(requests) <= 9


def test_f2_a_list_without_an_end_is_an_error() -> None:
    def pages(offset: int, limit: int) -> Any:
        return {"count": offset + 1_000, "next": "https://x.example", "results": items(offset, 1)}

    with pytest.raises(InvalidResponse, match="the list does not end"):
        read_from(pages)


def test_the_next_page_of_logs_begins_after_what_was_read() -> None:
    offsets: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        offsets.append(request.url.params.get("offset"))
        more = f"https://x.example/?page={len(offsets)}" if len(offsets) < 3 else None
        return httpx.Response(200, json={"next": more, "results": items(0, 2)})

    async def run() -> list[Any]:
        async with mocked(answer) as transport:
            calls = ObjectCalls(transport, kinds_by_name()["batch_export"], "org", live_export())
            return [line async for line in calls.listed("run_logs", run="r")]

    assert len(asyncio.run(run())) == 6
    assert offsets == [None, "2", "4"]
