"""Facts about keys, errors and limits (service-facts 5 and 6), and the switchboard itself."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.emulator.facts import Api, fact, refused
from tests.support.cli import reconciler
from tests.support.emulator import start_emulator


@fact("5", "401: no header, another form of it, an unknown key")
def test_authentication(api: Api) -> None:
    http = api.emulator.http
    for header in ({}, {"Authorization": "bearer phx_all"}, {"Authorization": "Bearer phx_all x"}):
        refused(http.get(api.project, headers=header), 401, "not_authenticated")
    refused(api.call("GET", api.project, key="phx_nobody"), 401, "authentication_failed")


@fact("5", "403: a missing scope is named; write includes read")
def test_scopes(api: Api) -> None:
    detail = refused(
        api.call("POST", api.project, api.body(), key="phx_read"), 403, "permission_denied"
    )
    assert "batch_export:write" in detail
    assert api.call("GET", api.project, key="phx_read").status_code == 200


@fact(
    "5",
    "limited keys: other projects and organizations are 403, the list of projects too",
    traps=(41,),
)
def test_limits_of_keys(api: Api) -> None:
    refused(
        api.call("GET", "/api/projects/2/batch_exports/", key="phx_one"), 403, "permission_denied"
    )
    assert api.call("GET", api.project, key="phx_one").status_code == 200
    refused(
        api.call("GET", f"{api.organization}projects/", key="phx_one"), 403, "permission_denied"
    )
    assert api.call("GET", f"{api.organization}projects/1/", key="phx_one").json()["name"] == "Web"
    refused(
        api.call("GET", f"{api.organization}projects/", key="phx_org"), 403, "permission_denied"
    )


@fact("5", "foreign and unknown objects: 404, but 403 for a foreign project's exports")
def test_foreign_objects(api: Api) -> None:
    refused(api.call("GET", "/api/projects/9/batch_exports/"), 403, "permission_denied")
    for path in (
        "/api/projects/77/batch_exports/",
        "/api/projects/x/batch_exports/",
        f"{api.project}no-uuid/",
        f"{api.project}018c0000-0000-0000-0000-000000000001/",
        "/api/organizations/x/projects/",
        f"{api.organization}projects/9/",
        "/api/nonsense",
    ):
        refused(api.call("GET", path), 404, "not_found")


@fact("5", "a method that is not there is 403 with a key", traps=(43,))
def test_wrong_methods(api: Api) -> None:
    refused(api.call("DELETE", api.project), 403, "permission_denied")


@fact("5", "broken JSON, other media types, odd bodies; look-ups come before validation")
def test_bodies(api: Api) -> None:
    http, headers = api.emulator.http, {"Authorization": "Bearer phx_all"}
    as_json = {**headers, "Content-Type": "application/json"}
    broken = http.post(api.project, headers=as_json, content=b"{")
    refused(broken, 400, "parse_error")
    assert broken.json()["type"] == "invalid_request"
    text = http.post(api.project, headers={**headers, "Content-Type": "text/csv"}, content=b"a")
    refused(text, 415, "unsupported_media_type")
    refused(http.post(api.project, headers=as_json, content=b"[]"), 400, "invalid_input")
    gone = http.patch(
        f"{api.project}018c0000-0000-0000-0000-000000000001/", headers=as_json, content=b"{"
    )
    refused(gone, 404, "not_found")


@fact("6", "the trailing slash is optional everywhere")
def test_slashes(api: Api) -> None:
    made = api.call("POST", api.project.rstrip("/"), api.body())
    assert made.status_code == 201
    assert api.call("PATCH", f"{api.project}{made.json()['id']}", {"name": "x"}).status_code == 200


@fact(
    "6",
    "480 a minute and 4,800 an hour for each key, with Retry-After; a 401 costs nothing",
    traps=(44,),
)
def test_throttling(api: Api) -> None:
    api.emulator.admin("PUT", "throttle", {"per_minute": 3, "per_hour": 5})
    for _ in range(2):
        api.call("GET", api.project, key="phx_nobody")
    answers = [api.call("GET", api.project) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    refused(answers[-1], 429, "throttled")
    assert answers[-1].json()["type"] == "throttled_error"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert api.call("GET", api.project, key="phx_read").status_code == 200
    api.emulator.advance(seconds=61)
    assert api.call("GET", api.project).status_code == 200
    # The call that the minute refused has counted for the hour.
    assert api.call("GET", api.project).status_code == 429


# The switchboard


@pytest.mark.parametrize("when", ["before", "after"])
@fact("switchboard", "errors before or after the write took effect", "interface", traps=(4, 45))
def test_errors_around_a_write(api: Api, when: str) -> None:
    rule = {"match": {"method": "POST"}, "fault": "error", "status": 503, "when": when}
    api.emulator.admin("PUT", "faults", [rule])
    assert api.call("POST", api.project, api.body()).status_code == 503
    assert api.call("GET", api.project).json()["count"] == (1 if when == "after" else 0)


@pytest.mark.parametrize("when", ["before", "after"])
@fact("switchboard", "connections that break before or after the write took effect", "interface")
def test_dropped_connections(api: Api, when: str) -> None:
    rule = {"match": {"method": "POST"}, "fault": "drop", "when": when}
    api.emulator.admin("PUT", "faults", [rule])
    with pytest.raises(httpx.TransportError):
        api.call("POST", api.project, api.body())
    assert api.call("GET", api.project).json()["count"] == (1 if when == "after" else 0)


@fact("switchboard", "truncated, HTML, slow and throttled answers, and latency", "interface")
def test_odd_answers(api: Api) -> None:
    def with_fault(**rule: object) -> None:
        api.emulator.admin("PUT", "faults", [{"match": {"times": 1}, **rule}])

    with_fault(fault="truncate")
    with pytest.raises(httpx.TransportError):
        api.call("GET", api.project)
    with_fault(fault="html", status=502)
    answer = api.call("GET", api.project)
    assert (answer.status_code, answer.headers["content-type"][:9]) == (502, "text/html")
    with_fault(fault="slow", seconds=0.01)
    assert api.call("GET", api.project).json()["count"] == 0
    with_fault(fault="latency", seconds=0.01)
    assert api.call("GET", api.project).status_code == 200
    with_fault(fault="throttle", retry_after=7)
    assert api.call("GET", api.project).headers["retry-after"] == "7"


@fact("switchboard", "the n-th call, a probability from a seed, and counts", "interface")
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


@fact("switchboard", "somebody else's edit just before a write", "interface")
def test_an_edit_just_before(api: Api) -> None:
    export = api.create()
    rule = {"match": {"method": "PATCH"}, "fault": "edit", "set": {"name": "Theirs"}}
    api.emulator.admin("PUT", "faults", [rule])
    assert api.patch(export, interval="day").json()["name"] == "Theirs"


@pytest.mark.parametrize("kind", ["create", "delete"])
@fact("switchboard", "a list that shifts between two pages", "interface", traps=(24,))
def test_a_list_that_shifts(api: Api, kind: str) -> None:
    for number in range(4):
        api.create(name=f"E{number}")
    api.emulator.admin("PUT", "faults", [{"match": {"times": 2}, "fault": "stale", "change": kind}])
    first = api.call("GET", f"{api.project}?limit=2").json()
    second = api.call("GET", f"{api.project}?limit=2&offset=2").json()
    assert second["count"] == first["count"] + (1 if kind == "create" else -1)
    names = [each["name"] for each in first["results"] + second["results"]]
    assert len(set(names)) < 4


@fact("switchboard", "rules that do not fit are told", "interface")
def test_bad_rules(api: Api) -> None:
    for rule in ({"fault": "nope"}, {"fault": "drop", "wen": "after"}, 5):
        answer = api.emulator.http.put("/_emulator/faults", json=[rule])
        assert answer.status_code == 400


@fact("switchboard", "requests are kept with secrets masked; state shows fingerprints", "interface")
def test_inspection(api: Api) -> None:
    api.create()
    for path in ("requests", "state"):
        text = json.dumps(api.emulator.admin("GET", path))
        assert "hidden" not in text
        assert "phx_" not in text
        assert "sha256:" in text


@fact("switchboard", "snapshots bring everything back", "interface")
def test_snapshots(api: Api) -> None:
    api.create()
    api.emulator.admin("POST", "snapshots/one")
    api.create()
    api.emulator.admin("POST", "snapshots/one/restore")
    assert api.call("GET", api.project).json()["count"] == 1


def test_faults_and_a_seed_from_files(tmp_path: Path) -> None:
    seed, faults = tmp_path / "seed.yaml", tmp_path / "faults.yaml"
    seed.write_text("organizations:\n- {name: O, projects: [{name: P}]}\n")
    faults.write_text("faults:\n- {fault: error, status: 504}\n")
    with start_emulator(seed=seed, extra=("--faults", str(faults))) as running:
        assert running.call("GET", "/api/organizations/").status_code == 504


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "a seed is a mapping with `organizations`"),
        ("{", "seed"),
        ("organizations: [{projects: [{name: P, batch_exports: [{name: X}]}]}]", "does not fit"),
    ],
)
def test_a_seed_that_does_not_fit_is_told(tmp_path: Path, text: str, told: str) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(text)
    ran = reconciler("emulator", "--seed", seed)
    assert ran.code == 1
    assert told in ran.err


def test_a_port_that_is_taken_is_told(api_port: int) -> None:
    ran = reconciler("emulator", "--port", str(api_port))
    assert ran.code == 1
    assert "can't listen" in ran.err


@pytest.fixture
def api_port(emulators) -> int:
    return int(emulators["interface"].base_url.rpartition(":")[2])
