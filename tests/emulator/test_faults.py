"""Faults, by what a client gets and by what is stored afterwards.

tests/unit/service and tests/unit/applying rely on more of them.
"""

from __future__ import annotations

import json
import socket
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.emulator.facts import Api, fact
from tests.support.limits import TIMEOUT, time_limit, until


def with_fault(
    api: Api, fault: str, match: dict[str, Any] | None = None, **parameters: Any
) -> None:
    """Set one rule, which fires once unless its match says otherwise."""
    rule = {"match": {"times": 1, **(match or {})}, "fault": fault, **parameters}
    api.emulator.admin("PUT", "faults", [rule])


def names(api: Api, query: str = "") -> list[str]:
    answer = api.call("GET", f"{api.project}{query}")
    assert answer.status_code == 200, answer.text
    return [export["name"] for export in answer.json()["results"]]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fault", ["error", "drop"])
@fact(
    "switchboard",
    "errors answer, and connections break, before or after the write took effect",
    "interface",
    rules=(4, 45),
)
def test_errors_around_a_write(api: Api, fault: str, when: str) -> None:
    with_fault(
        api, fault, {"method": "POST"}, when=when, **{"error": {"status": 503}}.get(fault, {})
    )
    if fault == "error":
        assert api.call("POST", api.project, api.body()).status_code == 503
    else:
        with pytest.raises(httpx.TransportError):
            api.call("POST", api.project, api.body())
    assert api.call("GET", api.project).json()["count"] == (1 if when == "after" else 0)


@fact("switchboard", "answers are truncated, HTML, slow, throttled or late", "interface")
def test_unexpected_answers(api: Api) -> None:
    with_fault(api, "truncate")
    with pytest.raises(httpx.TransportError):
        api.call("GET", api.project)
    with_fault(api, "html", status=502)
    answer = api.call("GET", api.project)
    assert (answer.status_code, answer.headers["content-type"][:9]) == (502, "text/html")
    with_fault(api, "slow", seconds=0.01)
    assert api.call("GET", api.project).json()["count"] == 0
    with_fault(api, "latency", seconds=0.01)
    assert api.call("GET", api.project).status_code == 200
    with_fault(api, "throttle", retry_after=7)
    assert api.call("GET", api.project).headers["retry-after"] == "7"


@fact("switchboard", "a fault fires by count or by a probability with a seed", "interface")
def test_when_a_fault_fires(api: Api) -> None:
    nth = {"match": {"path": "*/batch_exports/", "nth": 2}, "fault": "error", "status": 500}
    api.emulator.admin("PUT", "faults", [nth])
    assert [api.call("GET", api.project).status_code for _ in range(3)] == [200, 500, 200]
    assert api.emulator.admin("GET", "faults")["faults"][0]["fired"] == 1
    dice = {"match": {"probability": 0.5}, "fault": "error", "seed": 4}

    def throws() -> list[int]:
        api.emulator.admin("PUT", "faults", [dice])
        return [api.call("GET", api.project).status_code for _ in range(12)]

    first = throws()
    assert throws() == first
    assert set(first) == {200, 500}


@pytest.mark.parametrize("kind", ["create", "delete"])
@fact("switchboard", "a list shifts between two pages", "interface", rules=(24,))
def test_a_list_that_shifts(api: Api, kind: str) -> None:
    for number in range(4):
        api.create(name=f"E{number}")
    api.emulator.admin("PUT", "faults", [{"match": {"times": 2}, "fault": "stale", "change": kind}])
    first = api.call("GET", f"{api.project}?limit=2").json()
    second = api.call("GET", f"{api.project}?limit=2&offset=2").json()
    assert second["count"] == first["count"] + (1 if kind == "create" else -1)
    shown = [export["name"] for export in first["results"] + second["results"]]
    assert len(set(shown)) < 4


# Work that takes effect later


@pytest.mark.parametrize("answer_with", ["error", "drop", "hang"])
@fact("switchboard", "a write takes effect after its 504 or time-out")
def test_a_late_write(api: Api, answer_with: str) -> None:
    with_fault(api, "late", {"method": "POST"}, seconds=7200, answer_with=answer_with)
    if answer_with == "error":
        assert api.call("POST", api.project, api.body(name="Late")).status_code == 504
    elif answer_with == "drop":
        with pytest.raises(httpx.TransportError):
            api.call("POST", api.project, api.body(name="Late"))
    else:
        give_up(api, api.body(name="Late"))
    assert names(api) == []
    # The clock goes on meanwhile: an hour is more than any machine takes.
    api.emulator.advance(hours=1)
    assert names(api) == []
    api.emulator.advance(hours=1)
    assert names(api) == ["Late"]


def give_up(api: Api, body: dict[str, Any]) -> None:
    """Send a create, and close the connection without an answer once the service has it."""
    content = json.dumps(body)
    address = urlsplit(api.emulator.base_url)
    with (
        socket.create_connection((address.hostname, address.port), timeout=TIMEOUT) as connection,
        time_limit(api.emulator.process),
    ):
        connection.sendall(
            f"POST {api.project} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Authorization: Bearer phx_all\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n{content}".encode()
        )
        until(
            lambda: api.emulator.admin("GET", "faults")["faults"][0]["fired"], api.emulator.process
        )


@fact("switchboard", "a late write also happens in real time", "interface")
def test_a_late_write_in_real_time(api: Api) -> None:
    with_fault(api, "late", {"method": "POST"}, seconds=0.01)
    assert api.call("POST", api.project, api.body(name="Late")).status_code == 504
    # The timer and this request both let it happen: it happens once.
    for _ in range(1000):
        if names(api):
            break
    assert names(api) == ["Late"]


@fact("switchboard", "a new object becomes visible later than its created_at")
def test_a_hidden_object(api: Api) -> None:
    with_fault(api, "hidden", {"method": "POST"}, seconds=3600)
    made = api.call("POST", api.project, api.body(name="Hidden"))
    assert made.status_code == 201
    path = f"{api.project}{made.json()['id']}/"
    assert names(api) == []
    assert api.call("GET", path).status_code == 404
    api.emulator.advance(hours=1)
    shown = api.call("GET", path).json()
    assert shown["created_at"] == made.json()["created_at"]
    assert names(api) == ["Hidden"]
    with_fault(api, "hidden", {"method": "POST"}, seconds=3600, status=503)
    assert api.call("POST", api.project, api.body(name="Again")).status_code == 503
    api.emulator.advance(hours=1)
    assert names(api) == ["Again", "Hidden"]


@pytest.mark.parametrize("when", ["before", "after"])
@fact("switchboard", "another client makes the same call, before or after")
def test_a_duplicate_call(api: Api, when: str) -> None:
    with_fault(api, "twin", {"method": "POST"}, when=when)
    ours = api.call("POST", api.project, api.body(name="Twin")).json()["id"]
    exports = api.call("GET", api.project).json()["results"]
    assert [export["name"] for export in exports] == ["Twin", "Twin"]
    assert exports[0 if when == "before" else 1]["id"] == ours


# Lists


@fact("switchboard", "lists lag behind writes; single objects do not")
def test_a_list_that_lags(api: Api) -> None:
    kept, gone = api.create(name="Kept"), api.create(name="Gone")
    api.emulator.advance(hours=2)
    match = {"method": "GET", "path": "*/batch_exports/", "times": None}
    with_fault(api, "lag", match, seconds=3600)
    api.create(name="New")
    api.patch(kept, name="Renamed")
    api.call("DELETE", f"{api.project}{gone['id']}/")
    assert names(api) == ["Gone", "Kept"]
    assert api.call("GET", api.project).json()["count"] == 2
    assert api.get(kept)["name"] == "Renamed"
    api.emulator.advance(hours=1)
    assert names(api) == ["New", "Renamed"]


@pytest.mark.parametrize(
    ("count", "shown"), [("omit", None), ("+1", 3), ("-1", 1), (10**12, 10**12), (None, None)]
)
@fact("switchboard", "a list has no count or a wrong one", "interface")
def test_a_list_with_a_wrong_count(api: Api, count: Any, shown: Any) -> None:
    api.create(name="A")
    api.create(name="B")
    with_fault(api, "page", count=count)
    body = api.call("GET", api.project).json()
    assert body.get("count") == shown
    assert ("count" in body) is (count != "omit")
    # An answer without a body stays as it is.
    with_fault(api, "page", {"method": "DELETE"}, count=count)
    answer = api.call("DELETE", f"{api.project}{body['results'][0]['id']}/")
    assert (answer.status_code, answer.content) == (204, b"")


@fact("switchboard", "a list of projects lags or shifts between two pages", "interface")
def test_a_list_of_projects_that_lags_or_shifts(api: Api) -> None:
    path = f"{api.organization}projects/"
    before = api.call("GET", path).json()["count"]
    with_fault(api, "lag", {"path": path, "times": None}, seconds=3600)
    assert api.call("POST", path, {"name": "New"}).status_code == 201
    assert api.call("GET", path).json()["count"] == before
    api.emulator.advance(hours=1)
    assert api.call("GET", path).json()["count"] == before + 1
    for change, difference in (("create", 1), ("delete", -1)):
        with_fault(api, "stale", {"times": 2}, change=change)
        first = api.call("GET", f"{path}?limit=1").json()
        second = api.call("GET", f"{path}?limit=1&offset=1").json()
        assert second["count"] == first["count"] + difference


# Bodies


@pytest.mark.parametrize(
    ("parameters", "content"),
    [
        ({"text": ""}, b""),
        ({"value": None}, b"null"),
        ({"value": "words"}, b'"words"'),
    ],
)
@fact("switchboard", "empty, null and wrongly typed bodies, with or without the write")
def test_unexpected_bodies(api: Api, parameters: dict[str, Any], content: bytes) -> None:
    with_fault(api, "body", {"method": "POST"}, **parameters)
    answer = api.call("POST", api.project, api.body())
    assert (answer.status_code, answer.content) == (201, content)
    assert len(names(api)) == 1
    with_fault(api, "body", {"method": "POST"}, when="before", **parameters)
    answer = api.call("POST", api.project, api.body())
    assert (answer.status_code, answer.content) == (200, content)
    assert len(names(api)) == 1


@fact("switchboard", "gzip, also padded to many times the size", "interface")
def test_compressed_bodies(api: Api) -> None:
    api.create()
    with_fault(api, "gzip")
    answer = api.call("GET", api.project)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json()["count"] == 1
    with_fault(api, "gzip", megabytes=4, status=400)
    answer = api.call("GET", api.project)
    assert answer.num_bytes_downloaded < 50_000
    assert (answer.status_code, len(answer.content) > 4 * 2**20) == (400, True)
    assert answer.json()["count"] == 1


@fact("switchboard", "Retry-After is a number, a text, a date or missing", "interface")
def test_retry_after(api: Api) -> None:
    for value in (7, 10**9, "soon", "inf"):
        with_fault(api, "throttle", retry_after=value)
        assert api.call("GET", api.project).headers["retry-after"] == str(value)
    with_fault(api, "throttle", retry_after=None, status=503)
    answer = api.call("GET", api.project)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, False)
    with_fault(api, "throttle", retry_after={"date_in": 90})
    date = parsedate_to_datetime(api.call("GET", api.project).headers["retry-after"])
    now = api.emulator.admin("GET", "clock")["now"]
    assert date.isoformat()[:13] == now[:13]


# Rules


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (5, "fault must be a mapping"),
        ({"fault": "nope"}, "'fault' must be one of body, drop,"),
        ({"fault": ["drop"]}, "'fault' must be one of"),
        ({"fault": "drop", "wen": "after"}, "drop: unknown key 'wen'; allowed: match, "),
        ({"fault": "drop", "when": "later"}, "'when' must be 'before' or 'after'"),
        ({"fault": "drop", "match": {"pth": "*"}}, "match: unknown key 'pth'; allowed: method"),
        ({"fault": "drop", "match": []}, "match must be a mapping"),
        ({"fault": "drop", "match": {"nth": "2"}}, "'nth' must be of type int"),
        ({"fault": "drop", "match": {"body": 1}}, "match.body must be a mapping"),
        ({"fault": "latency", "seconds": "long"}, "'seconds' must be of type float"),
        ({"fault": "latency", "seconds": -1}, "'seconds' must be between"),
        ({"fault": "error", "status": 999}, "'status' must be between 200 and 599"),
        ({"fault": "late", "answer_with": "x"}, "'answer_with' must be one of error, drop, hang"),
        ({"fault": "body"}, "one of 'value', 'text' and 'merge' is required"),
        ({"fault": "body", "merge": {"a": 1}, "when": "before"}, "'merge' needs the answer"),
        ({"fault": "page", "cap": 0}, "'cap' must be at least 1"),
        ({"fault": "page", "count": "+many"}, "'count' must be"),
        ({"fault": "throttle", "retry_after": {"in": 1}}, "'retry_after' must be"),
        ({"fault": "slow", "pieces": 0}, "'pieces' must be at least 1"),
        ({"fault": "stale", "change": "x"}, "'change' must be"),
        ({"fault": "drop", "seed": []}, "'seed' must be a whole number"),
    ],
)
def test_a_rule_that_is_not_valid(emulators, rule: Any, message: str) -> None:
    answer = emulators["interface"].http.put("/_emulator/faults", json=[rule])
    assert answer.status_code == 400
    assert message in answer.json()["error"]
