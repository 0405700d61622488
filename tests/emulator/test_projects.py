"""Facts about projects: service.md, section 4."""

from __future__ import annotations

import pytest

from tests.emulator.facts import OLD, REAL, Api, fact, invalid, refused


def projects(api: Api) -> str:
    return f"{api.organization}projects/"


def make(api: Api, **fields: object) -> dict:
    answer = api.call("POST", projects(api), {"name": "New", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def change(api: Api, project: dict, **fields: object):
    return api.call("PATCH", f"{projects(api)}{project['id']}/", fields)


@fact(
    "4.1",
    "names are not required, trimmed, not blank, short, and unique in the newest servers: 409",
    rules=(38, 42),
)
def test_project_names(api: Api) -> None:
    first = api.call("POST", projects(api), {}).json()["name"]
    second = api.call("POST", projects(api), {}).json()["name"]
    assert first == "Default project"
    assert second == ("Default project 2" if api.dialect == "2026" else "Default project")
    assert make(api, name=" Shop ")["name"] == "Shop"
    refused(api.call("POST", projects(api), {"name": " "}), 400, "blank", "name")
    refused(api.call("POST", projects(api), {"name": "x" * 201}), 400, "max_length", "name")
    answer = api.call("POST", projects(api), {"name": " wEB "})
    if api.dialect == "2026":
        refused(answer, 409, "conflict")
        assert answer.json()["type"] == "server_error"
        project = make(api)
        refused(change(api, project, name="web"), 409, "conflict")
        assert change(api, project, name="New").status_code == 200
    else:
        assert answer.status_code == 201


@fact("4.1", "a create overwrites some of the values that were sent", "2026", rules=(29,))
def test_values_that_a_create_overwrites(api: Api) -> None:
    wanted = [{"key": "email", "value": "x", "type": "person", "operator": "exact"}]
    project = make(api, test_account_filters=wanted, extra_settings={"a": 1})
    assert project["test_account_filters"] != wanted
    assert project["extra_settings"] == {"a": 1, "recorder_script": "posthog-recorder"}
    assert project["primary_dashboard"] is not None
    assert (
        change(api, project, test_account_filters=wanted).json()["test_account_filters"] == wanted
    )


@pytest.mark.parametrize(
    ("field", "sent", "code"),
    [
        ("timezone", "Mars/One", "invalid_choice"),
        ("week_start_day", 2, "invalid_choice"),
        ("week_start_day", 6, "invalid_choice"),
        ("week_start_day", True, "invalid_choice"),
        ("session_recording_sample_rate", "0.123", "max_decimal_places"),
        ("session_recording_sample_rate", 2, "max_value"),
        ("session_recording_sample_rate", -1, "min_value"),
        ("session_recording_sample_rate", "x", "invalid_input"),
        ("session_recording_minimum_duration_milliseconds", 30001, "max_value"),
        ("session_recording_linked_flag", {"id": 1}, "invalid_input"),
        ("session_recording_network_payload_capture_config", {"x": 1}, "invalid_input"),
        ("session_replay_config", [], "invalid_input"),
        ("session_replay_config", {"foo": 1}, "invalid_input"),
        ("primary_dashboard", 999999, "does_not_exist"),
        ("primary_dashboard", "many", "incorrect_type"),
        ("app_urls", None, "null"),
        ("test_account_filters", None, "null"),
    ],
)
@fact("4.2", "invalid values of single settings are refused", rules=(32,))
def test_wrong_settings(api: Api, field: str, sent: object, code: str) -> None:
    refused(change(api, make(api), **{field: sent}), 400, code, field)


@pytest.mark.parametrize("sent", [None, "x", {}, ["x" * 300], ["a", None], ["a", 1], ["é" * 60]])
@fact("4.2", "errors to ignore are a list of text with at most 300 characters of JSON")
def test_errors_to_ignore(api: Api, sent: object) -> None:
    project = make(api)
    invalid(change(api, project, autocapture_exceptions_errors_to_ignore=sent))
    kept = ["é" * 40]
    changed = change(api, project, autocapture_exceptions_errors_to_ignore=kept).json()
    assert changed["autocapture_exceptions_errors_to_ignore"] == kept


_GROUP = {"id": "a", "sampleRate": 0.5, "conditions": {"matchType": "all"}, "minDurationMs": 0}


def _groups(*groups: object) -> dict:
    return {"version": 2, "groups": list(groups)}


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        ("modifiers", {"unknownField": True}),
        ("modifiers", {"bounceRateDurationSeconds": 121}),
        ("modifiers", {"bounceRateDurationSeconds": 0}),
        ("modifiers", {"bounceRateDurationSeconds": "10"}),
        ("session_recording_masking_config", {"zzz": 1}),
        ("session_recording_masking_config", {"maskAllInputs": "yes"}),
        ("session_recording_masking_config", {"blockSelector": 1}),
        ("session_recording_trigger_groups", {"a": 1}),
        ("session_recording_trigger_groups", _groups({**_GROUP, "sampleRate": 2})),
        ("session_recording_trigger_groups", _groups({**_GROUP, "minDurationMs": -1})),
        ("logs_settings", {"retention_days": 99}),
        ("logs_settings", {"retention_days": True}),
        ("test_account_filters", [{"key": "a"}]),
        ("test_account_filters", {"key": "a"}),
        ("test_account_filters", [{"key": "a", "type": "cohort", "operator": "exact"}]),
        ("session_recording_trigger_groups", {"version": 2}),
        ("session_recording_trigger_groups", _groups("text")),
        ("session_recording_trigger_groups", _groups({"id": "a", "sampleRate": 1})),
        ("session_recording_trigger_groups", _groups({**_GROUP, "sampleRate": None})),
        ("session_recording_trigger_groups", _groups({**_GROUP, "minDurationMs": 1.5})),
        ("session_recording_trigger_groups", _groups({**_GROUP, "conditions": []})),
        ("session_recording_trigger_groups", _groups({**_GROUP, "conditions": {"matchType": 1}})),
        ("session_recording_trigger_groups", {**_groups(), "fallbackSampleRate": 2}),
        ("session_recording_linked_flag", {"id": True, "key": "a"}),
        ("session_recording_linked_flag", {"id": 1.5, "key": "a"}),
        ("session_recording_linked_flag", {"id": "x", "key": "a"}),
        ("path_cleaning_filters", [{"alias": "a"}]),
        ("path_cleaning_filters", [{"alias": "a", "regex": "("}]),
        ("path_cleaning_filters", [{"alias": r"\\\1 \2", "regex": "(a)"}]),
    ],
)
@fact("4.2", "only the newest servers refuse some invalid settings", rules=(30,))
def test_wrong_newer_settings(api: Api, field: str, sent: object) -> None:
    """I17."""
    answer = change(api, make(api), **{field: sent})
    if api.dialect == "2026" or (api.dialect == "2025" and "masking" in field):
        bounce = "bounceRateDurationSeconds"
        attr = f"{field}__{bounce}" if bounce in str(sent) else field
        invalid(answer, attr)
    else:
        assert answer.status_code == 200


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


@pytest.mark.parametrize(
    ("field", "sent", "kept"),
    [
        ("session_recording_sample_rate", 0.4, "0.40"),
        ("session_recording_sample_rate", 1, "1.00"),
        ("session_recording_minimum_duration_milliseconds", "500", 500),
        ("app_urls", ["https://a", None, "https://b"], ["https://a", "https://b"]),
        ("recording_domains", None, None),
        ("surveys_opt_in", None, None),
        ("surveys_opt_in", "false", False),
    ],
)
@fact("4.2", "the server normalises settings", rules=(33, 34))
def test_normalised_settings(api: Api, field: str, sent: object, kept: object) -> None:
    assert change(api, make(api), **{field: sent}).json()[field] == kept


@fact(
    "4.2",
    "merged settings keep the keys that were not sent, replaced ones lose them; null is a value",
    rules=(30, 31),
)
def test_merged_settings(api: Api) -> None:
    """I17."""
    project = make(
        api, modifiers={"debug": True}, session_replay_config={"ai_config": {"x": 1, "y": 2}}
    )
    both = {"debug": True, "timings": False}
    assert change(api, project, modifiers={"timings": False}).json()["modifiers"] == both
    cleared = {"debug": None, "timings": False}
    assert change(api, project, modifiers={"debug": None}).json()["modifiers"] == cleared
    assert change(api, project, modifiers=None).json()["modifiers"] is None
    deep = change(
        api, project, session_replay_config={"ai_config": {"y": 3}, "record_canvas": True}
    )
    assert deep.json()["session_replay_config"] == {
        "ai_config": {"x": 1, "y": 3},
        "record_canvas": True,
    }
    within = change(api, project, session_replay_config={"ai_config": {"x": None, "y": [1]}})
    assert within.json()["session_replay_config"]["ai_config"] == {"x": None, "y": [1]}
    gone = change(api, project, session_replay_config={"ai_config": None})
    assert gone.json()["session_replay_config"] == {"ai_config": None, "record_canvas": True}
    project = make(api, name="Other", correlation_config={"a": 1})
    assert change(api, project, correlation_config={"b": 2}).json()["correlation_config"] == {
        "b": 2
    }


@fact("4.2", "access_control is refused and the webhook ignored", rules=(6, 36))
def test_retired_fields(api: Api) -> None:
    """I17."""
    answer = change(api, make(api), access_control=False)
    hook = change(api, make(api, name="Hook"), slack_incoming_webhook="https://x").json()
    if api.dialect == "2026":
        invalid(answer, "access_control")
        ignored = change(api, {"id": 1}, access_control=None)
        assert (ignored.status_code, ignored.json()["access_control"]) == (200, False)
        assert "slack_incoming_webhook" not in hook
    else:
        assert answer.status_code == 200
        assert hook["slack_incoming_webhook"] == "https://x"


@fact(
    "4.2", "members may change a few fields; any other field refuses the whole request", rules=(35,)
)
def test_members(api: Api) -> None:
    path = f"{projects(api)}1/"
    allowed = {"surveys_opt_in": True}
    assert api.call("PATCH", path, allowed, key="phx_member").status_code == 200
    refused(
        api.call("PATCH", path, {**allowed, "timezone": "UTC"}, key="phx_member"),
        403,
        "permission_denied",
    )
    refused(api.call("POST", projects(api), {}, key="phx_member"), 403, "permission_denied")


@fact(
    "4.2",
    "read-only values are ignored; the newest servers store the id of a flag as a number",
    rules=(6,),
)
def test_read_only_values(api: Api) -> None:
    project = make(api)
    changed = change(api, project, api_token="mine", id=99).json()
    assert (changed["api_token"], changed["id"]) == (project["api_token"], project["id"])
    sent = {"id": "123", "key": "a"}
    flag = change(api, project, session_recording_linked_flag=sent).json()
    wanted = 123 if api.dialect == "2026" else "123"
    assert flag["session_recording_linked_flag"] == {**sent, "id": wanted}


@fact("4.3", "the list shows a few fields and can be searched")
def test_the_list_of_projects(api: Api) -> None:
    make(api, name="Shop")
    listed = api.call("GET", projects(api)).json()
    assert listed["count"] == 3
    assert {"id", "uuid", "api_token", "timezone"} <= set(listed["results"][0])
    assert "app_urls" not in listed["results"][0]
    assert "is_pending_deletion" not in listed["results"][0]
    assert api.call("GET", f"{projects(api)}?search=sho").json()["count"] == 1


@fact("4.3", "old servers delete at once, the newest later; the name is free at once", rules=(37,))
def test_project_deletion(api: Api) -> None:
    project = make(api)
    path = f"{projects(api)}{project['id']}/"
    assert api.call("DELETE", path).status_code == 204
    if api.dialect != "2026":
        refused(api.call("GET", path), 404, "not_found")
        return
    assert api.call("GET", path).json()["is_pending_deletion"] is True
    assert api.call("GET", projects(api)).json()["count"] == 3
    assert api.call("DELETE", path).status_code == 400
    make(api)
    api.emulator.advance(minutes=5)
    refused(api.call("GET", path), 404, "not_found")


@fact(
    "4.3",
    "three actions answer the project in the interface; real servers refuse keys",
    rules=(40,),
)
def test_project_actions(api: Api) -> None:
    path = f"{projects(api)}1/"
    token = api.call("GET", path).json()["api_token"]
    calls = [
        api.call("GET", f"{path}activity/"),
        api.call("GET", f"{path}is_generating_demo_data/"),
        api.call("PATCH", f"{path}reset_token/", {}),
    ]
    if api.dialect != "interface":
        for answer in calls:
            assert "personal API key" in refused(answer, 403, "permission_denied")
        return
    assert [answer.json()["name"] for answer in calls] == ["Web"] * 3
    assert calls[2].json()["api_token"] not in (token, None)


@fact("4.3", "a project of another organization answers 404, its batch exports 403")
def test_projects_of_other_organizations(api: Api) -> None:
    for path in ("/api/projects/9/", "/api/environments/9/", f"{projects(api)}9/"):
        refused(api.call("GET", path), 404, "not_found")
        refused(api.call("PATCH", path, {"surveys_opt_in": True}), 404, "not_found")
    refused(api.call("GET", "/api/projects/9/batch_exports/"), 403, "permission_denied")


@fact("4.2", "conversations_settings have a token while conversations are enabled", "2026")
def test_tokens_of_conversations(api: Api) -> None:
    """I17."""
    project = make(api, conversations_settings={"a": 1})
    both = change(api, project, conversations_enabled=True, conversations_settings={"b": 2}).json()
    token = both["conversations_settings"].pop("widget_public_token")
    assert (both["conversations_settings"], len(token) > 40) == ({"a": 1, "b": 2}, True)
    same = change(api, project, conversations_enabled=True).json()
    assert same["conversations_settings"]["widget_public_token"] == token
    off = change(api, project, conversations_enabled=False).json()
    assert off["conversations_settings"] == {"a": 1, "b": 2, "widget_public_token": None}


@fact("4.3", "a project is read and written without its organization; the level is that of the key")
def test_membership_levels(api: Api) -> None:
    for key, level in (("phx_all", 15), ("phx_admin", 8), ("phx_member", 1)):
        project = api.call("GET", "/api/projects/1/", key=key).json()
        assert project["effective_membership_level"] == level
    for base in ("/api/projects/1/", "/api/environments/1/"):
        assert api.call("GET", base).json()["name"] == "Web"
    assert api.call("PATCH", "/api/environments/1/", {"surveys_opt_in": True}).status_code == 200


@fact("5", "a key can read its user and organizations", *OLD, *REAL[1:])
def test_the_user_of_a_key(api: Api) -> None:
    me = api.call("GET", "/api/users/@me/").json()
    assert me["organization"]["name"] == "Ours"
    assert api.call("GET", "/api/organizations/").json()["count"] == 1
    assert api.call("GET", "/api/organizations/@current/").json()["name"] == "Ours"


@fact("4.2", "a changed retention of logs is recorded, and cannot change again for a day", "2026")
def test_retention_of_logs(api: Api) -> None:
    project = make(api)
    first = change(api, project, logs_settings={"retention_days": 14}).json()
    assert first["logs_settings"] == {"retention_days": 14}
    second = change(api, project, logs_settings={"retention_days": 30}).json()["logs_settings"]
    assert second.keys() == {"retention_days", "retention_last_updated"}
    answer = change(api, project, logs_settings={"retention_days": 14})
    assert "once per 24 hours" in invalid(answer, "logs_settings")
    assert change(api, project, logs_settings={"retention_days": 30}).status_code == 200
    api.emulator.advance(hours=25)
    assert change(api, project, logs_settings={"retention_days": 14}).status_code == 200


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("anonymize_ips", [True, False]),
        ("completed_snippet_onboarding", [True]),
        ("is_demo", [True]),
        ("week_start_day", [0, 1, None]),
        ("data_attributes", [["data-x"]]),
        ("person_display_name_properties", [["b", "a"], None]),
        ("live_events_columns", [["b", "a"], None]),
        ("has_completed_onboarding_for", [{"a": True}, None]),
        ("path_cleaning_filters", [[{"alias": "a", "regex": "b"}], None]),
        ("test_account_filters_default_checked", [True, None]),
        ("autocapture_opt_out", [True, False, None]),
        ("autocapture_exceptions_opt_in", [True, False, None]),
        ("autocapture_web_vitals_opt_in", [True, False, None]),
        ("capture_console_log_opt_in", [True, False, None]),
        ("capture_performance_opt_in", [True, False, None]),
        ("inject_web_apps", [True, False, None]),
        ("heatmaps_opt_in", [True, False, None]),
        ("session_recording_opt_in", [True, False]),
        ("session_recording_linked_flag", [{"id": 1, "key": "a"}, None]),
        ("session_recording_network_payload_capture_config", [{"recordBody": True}, None]),
        ("extra_settings", [{"a": 1}, None]),
    ],
)
@fact("4.2", "settings are stored as sent; null is a value of its own where allowed", rules=(33,))
def test_settings_are_kept(api: Api, field: str, values: list[object]) -> None:
    project = make(api)
    for value in values:
        assert change(api, project, **{field: value}).json()[field] == value
    read = api.call("GET", f"{projects(api)}{project['id']}/").json()
    assert read[field] == values[-1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session_recording_masking_config", {"maskAllInputs": True}),
        ("session_recording_trigger_groups", _groups(_GROUP)),
        ("session_recording_retention_period", "90d"),
        ("survey_config", {"a": 1}),
        ("conversations_settings", {"a": 1}),
        ("onboarding_tasks", {"a": 1}),
        ("logs_settings", {"retention_days": 14}),
        ("default_data_theme", 3),
    ],
)
@fact("4.2", "older servers ignore settings that only the newest know", rules=(6, 36))
def test_newer_settings(api: Api, field: str, value: object) -> None:
    changed = change(api, make(api), **{field: value}).json()
    known = {"2026": True, "2025": field.endswith(("masking_config", "survey_config"))}
    assert changed.get(field) == (value if known.get(api.dialect, False) else None)
