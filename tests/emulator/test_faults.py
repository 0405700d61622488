"""What faults do; the tests of the client rely on those that are not here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import Api, fact


def with_fault(
    api: Api, fault: str, match: dict[str, Any] | None = None, **parameters: Any
) -> None:
    """Set one rule, which fires once unless its match says otherwise."""
    rule = {"match": {"times": 1, **(match or {})}, "fault": fault, **parameters}
    api.emulator.admin("PUT", "faults", [rule])


def names(api: Api) -> list[str]:
    answer = api.call("GET", api.project)
    assert answer.status_code == 200, answer.text
    return [export["name"] for export in answer.json()["results"]]


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


@pytest.mark.parametrize(
    ("fault", "status"),
    [({"fault": "late", "status": 504}, 504), ({"fault": "hidden", "status": None}, 201)],
    ids=["late", "hidden"],
)
@fact("switchboard", "an export appears after its answer, with the clock", rules=(4, 45))
def test_what_appears_later(api: Api, fault: dict[str, Any], status: int) -> None:
    with_fault(api, match={"method": "POST"}, seconds=7200, **fault)
    made = api.call("POST", api.project, api.body(name="Late"))
    assert (made.status_code, names(api)) == (status, [])
    # The clock goes on meanwhile: an hour is more than any machine takes.
    api.emulator.advance(hours=1)
    assert names(api) == []
    api.emulator.advance(hours=1)
    assert names(api) == ["Late"]
    if status == 201:
        assert api.get(made.json())["created_at"] == made.json()["created_at"]


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
    ("rule", "message"),
    [
        ({"fault": "nope"}, "'fault' must be one of body, drop,"),
        ({"fault": "drop", "wen": "after"}, "drop: unknown key 'wen'; allowed: match, "),
        ({"fault": "drop", "when": "later"}, "'when' must be 'before' or 'after'"),
        ({"fault": "drop", "match": {"pth": "*"}}, "match: unknown key 'pth'; allowed: method"),
        ({"fault": "drop", "match": {"nth": "2"}}, "'nth' must be of type int"),
        ({"fault": "latency", "seconds": "long"}, "'seconds' must be of type float"),
        ({"fault": "latency", "seconds": -1}, "'seconds' must be between"),
        ({"fault": "error", "status": 999}, "'status' must be between 200 and 599"),
        ({"fault": "body"}, "one of 'value', 'text' and 'merge' is required"),
        ({"fault": "page", "cap": 0}, "'cap' must be at least 1"),
        ({"fault": "throttle", "retry_after": {"in": 1}}, "'retry_after' must be"),
    ],
)
def test_a_rule_that_is_not_valid(emulators, rule: Any, message: str) -> None:
    answer = emulators["interface"].http.put("/_emulator/faults", json=[rule])
    assert answer.status_code == 400
    assert message in answer.json()["error"]
