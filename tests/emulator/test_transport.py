"""Facts about keys, errors, limits and the fields of answers (service.md, 1, 5 and 6)."""

from __future__ import annotations

from typing import Any

from tests.emulator.facts import (
    ALL,
    NEWEST,
    OLD,
    REAL,
    Api,
    Table,
    answers,
    fact,
    facts,
    refused,
)
from tests.emulator.operations import get, no_op, of, runs

NO, GONE, UNKNOWN = "403 permission_denied", "404 not_found", "018c0000-0000-0000-0000-000000000001"
THEIRS = "/api/organizations/0188461e-55a4-0000-1cb3-0b1d3b6c6ac0/"
SESSION_ONLY = f"{NO}: This action does not support personal API key access"
PROJECTS, ME, KEYS = "{organization}projects/", "/api/users/@me/", "/api/personal_api_keys/"
OURS = "/api/projects/1/"


def no_scope(scope: str) -> str:
    return f"{NO}: API key missing required scope '{scope}'"


Call = tuple[str, str | dict[str, Any]]
"""A key, a method and a path, and the answer as in a row of `facts`."""
REQUESTS: Table = {
    ALL: {
        "an unknown key": [("nobody GET {exports}", "401 authentication_failed")],
        "a 403 names the missing scope; write includes read": [
            ("read POST {exports}", no_scope("batch_export:write")),
            ("read GET {exports}", {"count": 0}),
            (f"read GET {ME}", no_scope("user:read")),
            ("read GET {organization}", no_scope("organization:read")),
        ],
        "a limited key gets 403 elsewhere, for the list of projects and for the organization": [
            (
                "one GET /api/projects/2/batch_exports/",
                f"{NO}: API key does not have access to the requested project: ID 2.",
            ),
            ("one GET {exports}", {"count": 0}),
            (f"one GET {PROJECTS}", NO),
            (f"one GET {PROJECTS}1/", {"name": "Web"}),
            (f"org GET {PROJECTS}", NO),
            (
                "one GET {organization}",
                f"{NO}: API keys with scoped projects are only supported on...",
            ),
        ],
        "an organization is 404 to a key of another, and to a user outside": [
            ("org GET {organization}", GONE),
            (f"org GET {THEIRS}", {"name": "Theirs"}),
            (f"all GET {THEIRS}", GONE),
            ("org GET /api/organizations/", {"count": 1}),
        ],
        "unknown objects answer 404; exports of a foreign project answer 403": [
            ("all GET /api/projects/9/batch_exports/", NO),
            *(
                (f"all GET {path}", GONE)
                for path in (
                    *("/api/projects/77/batch_exports/", "/api/projects/x/batch_exports/"),
                    *("{exports}no-uuid/", f"{{exports}}{UNKNOWN}/", f"{PROJECTS}9/"),
                    *("/api/organizations/x/projects/", "/api/nonsense", "/api/_emulator/settings"),
                    "/api/projects/9/",
                )
            ),
            (f"all PATCH {PROJECTS}9/", GONE),
        ],
        "an undefined method answers 403 to a key": [
            ("all DELETE {exports}", NO),
        ],
        "the role of a key's user": [
            (f"{key} GET {OURS}", {"effective_membership_level": level})
            for key, level in (("all", 15), ("admin", 8), ("member", 1))
        ],
        "a key that may only read deletes no project, a member creates none": [
            (f"read DELETE {PROJECTS}1/", NO),
            (f"member POST {PROJECTS}", NO),
        ],
    },
    OLD: {
        "a key without scopes can do everything": [("empty GET {exports}", {"count": 0})],
        "no integrations": [(f"all GET {OURS}integrations/", "404")],
    },
    ("interface",): {
        "keys and the activity are not part of it": [
            (f"all GET {KEYS}@current/", GONE),
            (f"all GET {KEYS}", GONE),
            (f"activity GET {OURS}activity_log/", GONE),
        ],
        "two actions answer the project": [
            (f"all GET {PROJECTS}1/activity/", {"name": "Web"}),
            (f"all GET {PROJECTS}1/is_generating_demo_data/", {"name": "Web"}),
        ],
    },
    REAL: {
        "keys read themselves only": [
            (f"nobody GET {KEYS}@current/", "401 authentication_failed"),
            (f"all GET {KEYS}", NO),
        ],
        "two actions refuse keys": [
            (f"all GET {PROJECTS}1/activity/", SESSION_ONLY),
            (f"all GET {PROJECTS}1/is_generating_demo_data/", SESSION_ONLY),
        ],
        "the activity has a scope of its own": [
            (f"read GET {OURS}activity_log/", no_scope("activity_log:read")),
            ("one GET /api/projects/2/activity_log/", NO),
        ],
    },
    NEWEST: {
        "a key without scopes can do nothing": [("empty GET {exports}", NO)],
        "integrations have a scope": [
            (f"read GET {OURS}integrations/", no_scope("integration:read")),
            (f"early GET {OURS}integrations/", {"results": []}),
        ],
        "without the paid feature the log answers 402": [
            ("activity GET /api/projects/9/activity_log/", "402 payment_required"),
        ],
    },
}


@facts("5, 10, 12", REQUESTS, rules=(40, 41, 42, 43))
def test_requests(api: Api, row: Call) -> None:
    call, expected = row
    key, method, path = call.split(maxsplit=2)
    path = path.format(exports=api.project, organization=api.organization)
    answers(
        api.call(method, path, {} if method in ("POST", "PATCH") else None, key=f"phx_{key}"),
        expected,
    )


@fact("5", "a missing or malformed header answers 401, in 2026 with WWW-Authenticate")
def test_authentication(api: Api) -> None:
    http, named = api.emulator.http, "Bearer resource_metadata="
    for header in ({}, {"Authorization": "bearer phx_all"}, {"Authorization": "Bearer phx_all x"}):
        answer = http.get(api.project, headers=header)
        refused(answer, 401, "not_authenticated")
        challenge = answer.headers.get("www-authenticate", "")
        assert challenge.startswith(named) is (api.dialect == "2026")


def limit(api: Api, *windows: tuple[int, float]) -> None:
    listed = [{"calls": calls, "seconds": seconds} for calls, seconds in windows]
    api.emulator.admin("PUT", "throttle", {"windows": listed})


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


@fact("20", "integrations are listed oldest first, also those of a kind", "2026")
def test_the_list_of_integrations(api: Api) -> None:
    for query, ids in (
        ("", [3, 4, 5, 7, 10, 11, 12, 13, 14, 15]),
        ("?kind=aws-s3", [7, 15]),
    ):
        page = get(api, f"{OURS}integrations/{query}")
        assert [item["id"] for item in page["results"]] == ids
