"""Facts about projects: service.md, section 4."""

from __future__ import annotations

from typing import Any

from tests.emulator.facts import (
    ALL,
    NEWEST,
    OLD,
    REAL,
    YEAR,
    Api,
    Row,
    Table,
    answers,
    fact,
    facts,
    invalid,
    refused,
)

DENIED = "403 permission_denied"


def projects(api: Api) -> str:
    return f"{api.organization}projects/"


def make(api: Api, **fields: Any) -> dict[str, Any]:
    answer = api.call("POST", projects(api), {"name": "New", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def change(api: Api, project: dict[str, Any], *, key: str = "phx_all", **fields: Any) -> Any:
    return api.call("PATCH", f"{projects(api)}{project['id']}/", fields, key=key)


GROUP = {"id": "a", "sampleRate": 0.5, "conditions": {"matchType": "all"}, "minDurationMs": 0}
WEB, FLAG = {"id": 1}, {"id": "123", "key": "a"}
FILTER = {"key": "email", "value": "x", "type": "person", "operator": "exact"}
RATE, LINKED = "session_recording_sample_rate", "session_recording_linked_flag"
MILLISECONDS = "session_recording_minimum_duration_milliseconds"
NETWORK, REPLAY = (
    f"session_{name}_config" for name in ("recording_network_payload_capture", "replay")
)
MASKING, TRIGGERS = "session_recording_masking_config", "session_recording_trigger_groups"
IGNORED, BOUNCE = "autocapture_exceptions_errors_to_ignore", "bounceRateDurationSeconds"
BAD = "400 invalid_input"


def groups(*groups: object) -> dict[str, Any]:
    return {"version": 2, "groups": list(groups)}


def refusals(*refused: tuple[str, object, str]) -> list[Row]:
    """Refusals of single settings, with the code of each."""
    return [({}, {name: value}, f"400 {code} {name}") for name, value, code in refused]


def kept(**settings: object) -> list[Row]:
    return [({}, {name: value}, {name: value}) for name, value in settings.items()]


WRONG_IN_2025 = {MASKING: ({"zzz": 1}, {"maskAllInputs": "yes"}, {"blockSelector": 1})}
WRONG: dict[str, tuple[Any, ...]] = {
    "modifiers": ({"unknownField": True},),
    TRIGGERS: (
        *({"a": 1}, groups("text"), {**groups(), "fallbackSampleRate": 2}),
        *(
            groups({**GROUP, **wrong})
            for wrong in (
                *({"sampleRate": 2}, {"sampleRate": None}, {"minDurationMs": 1.5}),
                *({"conditions": []}, {"conditions": {"matchType": 1}}),
            )
        ),
    ),
    "logs_settings": ({"retention_days": 99}, {"retention_days": True}),
    "test_account_filters": ([{"key": "a"}], {"key": "a"}, [{**FILTER, "type": "cohort"}]),
    LINKED: tuple({"id": value, "key": "a"} for value in (True, 1.5, "x")),
    "path_cleaning_filters": ([{"alias": "a"}], [{"alias": "a", "regex": "("}]),
}
BOUNCES = [{"modifiers": {BOUNCE: value}} for value in (121, 0, "10")]
NEWER: dict[str, object] = {
    TRIGGERS: groups(GROUP),
    "session_recording_retention_period": "90d",
    "conversations_settings": {"a": 1},
    "onboarding_tasks": {"a": 1},
    "logs_settings": {"retention_days": 14},
    "default_data_theme": 3,
}
SETTINGS: Table = {
    ALL: {
        "invalid values of single settings are refused": [
            *refusals(
                ("timezone", "Mars/One", "invalid_choice"),
                ("week_start_day", 2, "invalid_choice"),
                ("week_start_day", True, "invalid_choice"),
                (RATE, "0.123", "max_decimal_places"),
                (RATE, 2, "max_value"),
                (RATE, -1, "min_value"),
                (RATE, "x", "invalid_input"),
                (MILLISECONDS, 30001, "max_value"),
                (LINKED, {"id": 1}, "invalid_input"),
                (NETWORK, {"x": 1}, "invalid_input"),
                (REPLAY, {"foo": 1}, "invalid_input"),
                ("primary_dashboard", 999999, "does_not_exist"),
                ("primary_dashboard", "many", "incorrect_type"),
                ("app_urls", None, "null"),
                ("test_account_filters", None, "null"),
                ("name", " ", "blank"),
                ("name", "x" * 201, "max_length"),
            ),
        ],
        "errors to ignore are a list of text with at most 300 characters of JSON": [
            *(
                ({}, {IGNORED: value}, BAD)
                for value in (None, "x", {}, ["x" * 300], ["a", None], ["a", 1], ["é" * 60])
            ),
            *kept(**{IGNORED: ["é" * 40]}),
        ],
        "the server normalises settings": [
            ({}, {RATE: 0.4}, {RATE: "0.40"}),
            ({}, {RATE: 1}, {RATE: "1.00"}),
            ({}, {MILLISECONDS: "500"}, {MILLISECONDS: 500}),
            (
                {},
                {"app_urls": ["https://a", None, "https://b"]},
                {"app_urls": ["https://a", "https://b"]},
            ),
            ({}, {"surveys_opt_in": "false"}, {"surveys_opt_in": False}),
            ({"name": "a"}, {"name": " Shop "}, {"name": "Shop"}),
        ],
    },
    OLD: {
        "some invalid settings are not refused (I17)": [
            ({}, sent, "200")
            for sent in (
                *BOUNCES,
                *({name: value} for name, values in WRONG.items() for value in values),
            )
        ],
        "settings that only the newest know are ignored": [
            ({}, {name: value}, {}) for name, value in NEWER.items()
        ],
        "access_control and the webhook are accepted (I17)": [
            ({}, {"access_control": False}, "200"),
            *kept(slack_incoming_webhook="https://x"),
        ],
        "the id of a flag stays text": kept(**{LINKED: FLAG}),
    },
    ("interface",): {
        "a masking and survey_config are ignored": [
            *(({}, {MASKING: value}, {}) for value in WRONG_IN_2025[MASKING]),
            ({}, {MASKING: {"maskAllInputs": True}}, {}),
            ({}, {"survey_config": {"a": 1}}, {}),
        ],
    },
    REAL: {
        "a masking is checked (I17)": [
            *refusals(*((MASKING, value, "invalid_input") for value in WRONG_IN_2025[MASKING])),
            *kept(**{MASKING: {"maskAllInputs": True}, "survey_config": {"a": 1}}),
        ],
    },
    YEAR: {
        "blank addresses, long descriptions and null characters are refused": [
            ({}, {"app_urls": [""]}, "400 blank app_urls__0"),
            ({}, {"recording_domains": [""]}, "400 blank recording_domains__0"),
            ({}, {"product_description": "x" * 1001}, "400 max_length product_description"),
            ({}, {"name": "a\0b"}, "400 null_characters_not_allowed name"),
        ],
        "a number for a merged setting crashes": [
            ({}, {"survey_config": 5}, "500"),
            ({}, {"modifiers": 5}, "500"),
        ],
    },
    NEWEST: {
        "more invalid settings are refused (I17)": [
            *(({}, sent, f"{BAD} modifiers__{BOUNCE}") for sent in BOUNCES),
            *refusals(*((name, value, "invalid_input") for name in WRONG for value in WRONG[name])),
        ],
        "access_control is refused, null ignored, and the webhook ignored (I17)": [
            ({}, {"access_control": False}, f"{BAD} access_control"),
            ({}, {"access_control": None}, {"access_control": False}),
            ({}, {"slack_incoming_webhook": "https://x"}, {}),
        ],
        "the id of a flag becomes a number": [({}, {LINKED: FLAG}, {LINKED: {**FLAG, "id": 123}})],
    },
}


@facts("4.2", SETTINGS, rules=(6, 30, 32, 33, 34, 36))
def test_settings(api: Api, row: Row) -> None:
    """The next read shows what the answer shows, and nothing that the server does not know."""
    existing, sent, expected = row
    project = make(api, **existing) if existing else WEB
    answer = change(api, project, **sent)
    answers(answer, expected)
    if answer.status_code == 200:
        assert api.call("GET", f"{projects(api)}{project['id']}/").json() == answer.json()
    if expected == {}:
        assert answer.json().get(next(iter(sent))) is None


@fact("4.1", "names are not required, and unique in the newest servers: 409", rules=(38, 42))
def test_project_names(api: Api) -> None:
    made = [api.call("POST", projects(api), {}).json()["name"] for _ in range(2)]
    second = "Default project 2" if api.dialect == "2026" else "Default project"
    assert made == ["Default project", second]
    answer = api.call("POST", projects(api), {"name": " wEB "})
    if api.dialect == "2026":
        refused(answer, 409, "conflict")
        assert answer.json()["type"] == "server_error"
        refused(change(api, make(api), name="web"), 409, "conflict")
    else:
        assert answer.status_code == 201


@fact("4.1", "a create overwrites some of the values that were sent", "2026", rules=(29,))
def test_values_that_a_create_overwrites(api: Api) -> None:
    project = make(api, test_account_filters=[FILTER], extra_settings={"a": 1})
    assert project["test_account_filters"] != [FILTER]
    assert project["extra_settings"] == {"a": 1, "recorder_script": "posthog-recorder"}
    answers(change(api, project, test_account_filters=[FILTER]), {"test_account_filters": [FILTER]})


@fact("4.1", "what real servers fill in on create", *REAL, rules=(29,))
def test_values_of_a_new_project(api: Api) -> None:
    project = make(api)
    filled: dict[str, Any] = {"path_cleaning_filters": [], "correlation_config": {}}
    filled |= dict.fromkeys(("capture_console_log_opt_in", "capture_performance_opt_in"), True)
    assert {name: project[name] for name in filled} == filled
    assert project["primary_dashboard"] is not None
    assert make(api, name="Other", correlation_config=None)["correlation_config"] is None


@fact("4.2", "primary_dashboard is a dashboard of the project; a create refuses it", rules=(29,))
def test_dashboards_of_projects(api: Api) -> None:
    assert change(api, {"id": 1}, primary_dashboard=7).json()["primary_dashboard"] == 7
    cleared = change(api, {"id": 1}, primary_dashboard=None)
    assert cleared.status_code == (500 if api.dialect == "2025" else 200)
    refused(change(api, {"id": 2}, primary_dashboard=7), 400, "does_not_exist", "primary_dashboard")
    project = make(api)
    made = project["primary_dashboard"]
    assert (made is not None) is (api.dialect != "interface")
    if made is not None:
        assert change(api, project, primary_dashboard=made).json()["primary_dashboard"] == made
    for sent in (1, None):
        answer = api.call("POST", projects(api), {"name": "x", "primary_dashboard": sent})
        invalid(answer, "primary_dashboard")


@fact("4.2", "merged settings keep the keys that were not sent; null is a value", rules=(30, 31))
def test_merged_settings(api: Api) -> None:
    """I17."""
    project = make(api, modifiers={"debug": True}, **{REPLAY: {"ai_config": {"x": 1, "y": 2}}})
    for sent, shown in (
        ({"timings": False}, {"debug": True, "timings": False}),
        ({"debug": None}, {"debug": None, "timings": False}),
        (None, None),
    ):
        answers(change(api, project, modifiers=sent), {"modifiers": shown})
    for ai, shown in (
        ({"y": 3}, {"x": 1, "y": 3}),
        ({"x": None, "y": [1]}, {"x": None, "y": [1]}),
        (None, None),
    ):
        answer = change(api, project, **{REPLAY: {"ai_config": ai, "record_canvas": True}})
        answers(answer, {REPLAY: {"ai_config": shown, "record_canvas": True}})
    project = make(api, name="Other", correlation_config={"a": 1})
    answers(change(api, project, correlation_config={"b": 2}), {"correlation_config": {"b": 2}})


@fact("4.2", "members may change a few fields; others refuse the whole request", rules=(35,))
def test_members(api: Api) -> None:
    allowed = {"surveys_opt_in": True}
    assert change(api, WEB, key="phx_member", **allowed).status_code == 200
    answers(change(api, WEB, key="phx_member", **allowed, timezone="UTC"), DENIED)


@fact("4.2", "a key that may only read projects changes settings in 2025, not the name", rules=(6,))
def test_keys_of_projects(api: Api) -> None:
    answer = change(api, WEB, key="phx_read", timezone="UTC")
    answers(answer, {"timezone": "UTC"} if api.dialect == "2025" else DENIED)
    answers(change(api, WEB, key="phx_read", name="x"), DENIED)
    project = make(api)
    ids = {name: project[name] for name in ("api_token", "id")}
    answers(change(api, project, api_token="mine", id=99), ids)


@fact("4.3", "2025 fails at each export that was deleted before its project", "2025", rules=(37,))
def test_a_project_whose_exports_were_deleted(api: Api) -> None:
    """Each DELETE removes one of them, with the other exports that come before it."""
    project = make(api)
    below = f"/api/projects/{project['id']}/batch_exports/"
    made = [api.call("POST", below, api.body(name=name)).json() for name in "abcd"]
    for export in (made[1], made[3]):
        assert api.call("DELETE", f"{below}{export['id']}/").status_code == 204
    path = f"{projects(api)}{project['id']}/"
    for left in (["c"], []):
        assert api.call("DELETE", path).status_code == 500
        assert [export["name"] for export in api.call("GET", below).json()["results"]] == left
    assert api.call("DELETE", path).status_code == 204
    refused(api.call("GET", path), 404, "not_found")


@fact("4.3", "the list shows a few fields")
def test_the_list_of_projects(api: Api) -> None:
    listed = api.call("GET", projects(api)).json()
    assert listed["count"] == 2
    assert {"id", "uuid", "api_token", "timezone"} <= set(listed["results"][0])
    assert "app_urls" not in listed["results"][0]
    assert "is_pending_deletion" not in listed["results"][0]


@fact("4.3", "old servers delete at once, the newest later; the name is free at once", rules=(37,))
def test_project_deletion(api: Api) -> None:
    project = make(api)
    path = f"{projects(api)}{project['id']}/"
    assert api.call("DELETE", path).status_code == 204
    if api.dialect == "2026":
        assert api.call("GET", path).json()["is_pending_deletion"] is True
        assert api.call("DELETE", path).status_code == 400
        make(api)
        api.emulator.advance(minutes=5)
    refused(api.call("GET", path), 404, "not_found")


@fact("4.2", "a changed retention of logs is recorded, and cannot change again for a day", "2026")
def test_retention_of_logs(api: Api) -> None:
    project = make(api)

    def keep(days: int) -> Any:
        return change(api, project, logs_settings={"retention_days": days})

    answers(keep(14), {"logs_settings": {"retention_days": 14}})
    assert keep(30).json()["logs_settings"].keys() == {"retention_days", "retention_last_updated"}
    assert "once per 24 hours" in invalid(keep(14), "logs_settings")
    assert keep(30).status_code == 200
    api.emulator.advance(hours=25)
    assert keep(14).status_code == 200
