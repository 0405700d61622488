"""Facts about keys, errors, limits and the fields of answers (service.md, 1, 5 and 6)."""

from __future__ import annotations

from tests.emulator.facts import Api, fact, refused
from tests.emulator.operations import get, no_op, of, runs


@fact("5", "a missing or malformed header and an unknown key answer 401")
def test_authentication(api: Api) -> None:
    http = api.emulator.http
    for header in ({}, {"Authorization": "bearer phx_all"}, {"Authorization": "Bearer phx_all x"}):
        refused(http.get(api.project, headers=header), 401, "not_authenticated")
    refused(api.call("GET", api.project, key="phx_nobody"), 401, "authentication_failed")


@fact("5", "a 403 names the missing scope; write includes read")
def test_scopes(api: Api) -> None:
    detail = refused(
        api.call("POST", api.project, api.body(), key="phx_read"), 403, "permission_denied"
    )
    assert "batch_export:write" in detail
    assert api.call("GET", api.project, key="phx_read").status_code == 200


@fact(
    "5",
    "a limited key gets 403 for other projects and organizations, and for the project list",
    rules=(41,),
)
def test_limits_of_keys(api: Api) -> None:
    answer = api.call("GET", "/api/projects/2/batch_exports/", key="phx_one")
    text = "API key does not have access to the requested project: ID 2."
    assert refused(answer, 403, "permission_denied") == text
    assert api.call("GET", api.project, key="phx_one").status_code == 200
    refused(
        api.call("GET", f"{api.organization}projects/", key="phx_one"), 403, "permission_denied"
    )
    assert api.call("GET", f"{api.organization}projects/1/", key="phx_one").json()["name"] == "Web"
    refused(
        api.call("GET", f"{api.organization}projects/", key="phx_org"), 403, "permission_denied"
    )


@fact("5", "unknown objects answer 404; exports of a foreign project answer 403")
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


@fact("5", "an undefined method answers 403 to a key", rules=(43,))
def test_wrong_methods(api: Api) -> None:
    refused(api.call("DELETE", api.project), 403, "permission_denied")


@fact("5", "broken JSON and other media types are refused; the object is looked up first")
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


def limit(api: Api, *windows: tuple[int, float]) -> None:
    listed = [{"calls": calls, "seconds": seconds} for calls, seconds in windows]
    api.emulator.admin("PUT", "throttle", {"windows": listed})


@fact("6", "the trailing slash is optional on every path")
def test_slashes(api: Api) -> None:
    made = api.call("POST", api.project.rstrip("/"), api.body())
    assert made.status_code == 201
    assert api.call("PATCH", f"{api.project}{made.json()['id']}", {"name": "x"}).status_code == 200


@fact(
    "6",
    "each key has 480 calls a minute and 4,800 an hour; a 401 does not count",
    rules=(44,),
)
def test_throttling(api: Api) -> None:
    limit(api, (3, 60), (5, 3600))
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


@fact("6", "a 403 for a missing scope does not count against the limits")
def test_a_missing_scope_does_not_count(api: Api) -> None:
    limit(api, (2, 60))
    answers = [api.call("POST", api.project, {}, key="phx_read").status_code for _ in range(4)]
    assert answers == [403, 403, 403, 403]
    assert api.call("GET", api.project, key="phx_read").status_code == 200


@fact("6", "a 400 and a 404 count against the limits")
def test_errors_that_count(api: Api) -> None:
    limit(api, (2, 60))
    refused(api.call("GET", f"{api.project}no-uuid/"), 404, "not_found")
    refused(api.call("POST", api.project, {}), 400, "required", "name")
    refused(api.call("GET", api.project), 429, "throttled")


@fact("6", "limits can have any window; Retry-After is in whole seconds")
def test_windows_of_any_length(api: Api) -> None:
    limit(api, (1, 61.99), (3, 3600))
    assert api.call("GET", api.project).status_code == 200
    answer = api.call("GET", api.project)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "62")
    api.emulator.advance(seconds=61.99)
    assert api.call("GET", api.project).status_code == 200
    api.emulator.advance(seconds=61.99)
    # The refused call counted for the longer window: it is full now.
    assert api.call("GET", api.project).status_code == 429
    answer = api.emulator.http.put("/_emulator/throttle", json={"windows": [{"calls": 0}]})
    assert answer.status_code == 400


@fact("5", "a 401 of the newest servers has the header WWW-Authenticate")
def test_www_authenticate(api: Api) -> None:
    for answer in (api.emulator.http.get(api.project), api.call("GET", api.project, key="no")):
        named = answer.headers.get("www-authenticate", "")
        assert named.startswith("Bearer resource_metadata=") is (api.dialect == "2026")


@fact("1.10", "an offset beyond the integers of the database returns an empty page")
def test_a_huge_offset(api: Api) -> None:
    api.create()
    for path in (api.project, f"{api.organization}projects/"):
        page = api.call("GET", f"{path}?offset=117316177986728960720896").json()
        assert page["results"] == []
        assert page["count"] >= 1


@fact("5", "OPTIONS requires a key; HEAD answers as GET, without a body")
def test_other_methods(api: Api) -> None:
    refused(api.emulator.http.options(api.project), 401, "not_authenticated")
    refused(api.call("OPTIONS", api.project), 403, "permission_denied")
    answer = api.call("HEAD", api.project)
    assert (answer.status_code, answer.content) == (200, b"")


@fact("1.1", "an export shows these fields and no others")
def test_the_fields_of_an_export(api: Api) -> None:
    common = (
        "id team_id name model destination interval paused created_at last_updated_at "
        "last_paused_at start_at end_at latest_runs schema"
    )
    own = {
        "interface": "sql_query",
        "2025": "filters",
        "2026": "filters hogql_query hogql_modifiers timezone offset_day offset_hour primary_key "
        "version_key incremental_mode",
    }
    export = api.get(api.create())
    assert set(export) == set(f"{common} {own[api.dialect]}".split())


@fact("2", "a run shows these fields and no others")
def test_the_fields_of_a_run(api: Api) -> None:
    common = (
        "id status records_completed latest_error data_interval_start data_interval_end cursor "
        "created_at finished_at last_updated_at records_total_count batch_export"
    )
    own = {
        "interface": "",
        "2025": "backfill bytes_exported",
        "2026": "backfill bytes_exported records_failed batch_export_on_demand",
    }
    export = api.create(**no_op())
    api.emulator.advance(hours=1)
    assert set(runs(api, export)[0]) == set(f"{common} {own[api.dialect]}".split())


@fact("7.3", "an end that no calendar passes does no harm")
def test_fidelity_2025_end_at_the_end_of_time(api: Api) -> None:
    export, last = api.create(**no_op()), "9999-12-31T23:59:59Z"
    assert api.patch(export, end_at=last).status_code == 200
    assert api.call("POST", of(api, export, "pause/"), {}).status_code == 200
    assert api.call("POST", of(api, export, "unpause/"), {"backfill": True}).status_code == 200
    api.emulator.advance(hours=2)
    assert get(api, of(api, export))["end_at"] == last
    assert [request["error"] for request in api.emulator.requests() if request["error"]] == []
