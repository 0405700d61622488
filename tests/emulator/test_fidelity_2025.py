"""Rows of the comparison with the service's own code of 2025 (service.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.emulator.facts import REAL, Api, fact, invalid, refused
from tests.emulator.operations import of
from tests.support.emulator import RunningEmulator, start_emulator

QUERY = "select event from events"


def projects(api: Api) -> str:
    return f"{api.organization}projects/"


def make(api: Api, **fields: Any) -> dict[str, Any]:
    answer = api.call("POST", projects(api), {"name": "New", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def change(api: Api, project: dict[str, Any], *, key: str = "phx_all", **fields: Any) -> Any:
    return api.call("PATCH", f"{projects(api)}{project['id']}/", fields, key=key)


@fact("4.3", "/api/projects/ lists and creates in the current organization", *REAL)
def test_fidelity_2025_projects_without_an_organization(api: Api) -> None:
    assert api.call("GET", "/api/projects/").json() == api.call("GET", projects(api)).json() | {}
    made = api.call("POST", "/api/projects/", {"name": "New"})
    assert made.status_code == 201
    assert made.json()["organization"] == api.emulator.organization
    refused(api.call("GET", "/api/projects/", key="phx_one"), 403, "permission_denied")


@fact("4.2", "a key that may only read projects changes settings in 2025, not the name")
def test_fidelity_2025_settings_with_a_read_scope(api: Api) -> None:
    answer = change(api, {"id": 1}, key="phx_read", timezone="UTC")
    if api.dialect == "2025":
        assert answer.json()["timezone"] == "UTC"
    else:
        refused(answer, 403, "permission_denied")
    refused(change(api, {"id": 1}, key="phx_read", name="x"), 403, "permission_denied")
    path = f"{projects(api)}1/"
    refused(api.call("DELETE", path, key="phx_read"), 403, "permission_denied")


@fact("4.3", "2025 fails at each export that was deleted before its project", "2025", rules=(37,))
def test_fidelity_2025_project_deletion_after_exports(api: Api) -> None:
    """Each DELETE removes one of them, with the other exports that come before it."""
    project = make(api)
    below = f"/api/projects/{project['id']}/batch_exports/"
    made = [api.call("POST", below, api.body(name=name)).json() for name in "abcd"]
    for export in (made[1], made[3]):
        assert api.call("DELETE", f"{below}{export['id']}/").status_code == 204
    path = f"{projects(api)}{project['id']}/"
    assert api.call("DELETE", path).status_code == 500
    assert [export["name"] for export in api.call("GET", below).json()["results"]] == ["c"]
    assert api.call("DELETE", path).status_code == 500
    assert api.call("GET", below).json()["results"] == []
    assert api.call("DELETE", path).status_code == 204
    refused(api.call("GET", path), 404, "not_found")


@fact("4.3", "a project whose exports were not deleted before is deleted at once", "2025")
def test_fidelity_2025_project_deletion_with_exports(api: Api) -> None:
    project = make(api)
    api.call("POST", f"/api/projects/{project['id']}/batch_exports/", api.body())
    assert api.call("DELETE", f"{projects(api)}{project['id']}/").status_code == 204


@pytest.mark.parametrize(
    ("field", "value", "code", "attr"),
    [
        ("app_urls", [""], "blank", "app_urls__0"),
        ("recording_domains", [""], "blank", "recording_domains__0"),
        ("session_recording_masking_config", {"x": 1}, "invalid_input", None),
        ("product_description", "x" * 1001, "max_length", None),
        ("name", "a\0b", "null_characters_not_allowed", None),
    ],
)
@fact("4.2", "2025 refuses some settings", "2025")
def test_fidelity_2025_refused_settings(
    api: Api, field: str, value: object, code: str, attr: str | None
) -> None:
    refused(change(api, {"id": 1}, **{field: value}), 400, code, attr or field)


@fact("4.1", "what real servers fill in on create", *REAL, rules=(29,))
def test_fidelity_2025_values_of_a_new_project(api: Api) -> None:
    project = make(api)
    assert project["capture_console_log_opt_in"] is True
    assert project["capture_performance_opt_in"] is True
    assert project["path_cleaning_filters"] == []
    assert project["correlation_config"] == {}
    assert project["primary_dashboard"] is not None
    assert make(api, name="Other", correlation_config=None)["correlation_config"] is None


@pytest.mark.parametrize("model", ["", None])
@fact("1.1", "2025 stores a model that is null or blank", "2025")
def test_fidelity_2025_blank_model(api: Api, model: str | None) -> None:
    export = api.create(model=model)
    assert api.get(export)["model"] == model


@fact("1.1", "every 15 minutes came after 2025")
def test_fidelity_2025_every_15_minutes(api: Api) -> None:
    answer = api.post(interval="every 15 minutes")
    if api.dialect == "2025":
        refused(answer, 400, "invalid_choice", "interval")
    else:
        refused(answer, 403, "permission_denied")


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("select * from events", "Unsupported HogQL query"),
        ("select nope from events", "Invalid HogQL query: Unable to resolve field: nope"),
        ("select a from persons", "Query must only SELECT FROM events"),
        ("select event from events join persons on 1 = 1", "JOINs are not supported"),
        ("nonsense", "Failed to parse query"),
    ],
)
@fact("1.9", "2025 refuses queries for all columns and for unknown fields", "2025")
def test_fidelity_2025_refused_queries(api: Api, query: str, detail: str) -> None:
    answer = api.post(hogql_query=query)
    assert invalid(answer, "hogql_query") == detail


@fact("1.9", "2025 takes queries with a limit and with aliases", "2025", rules=(7,))
def test_fidelity_2025_query_with_limit(api: Api) -> None:
    query = "select event as e, count(*), NULL from events where e = 'a' limit 10"
    shown = api.create(hogql_query=query)["schema"]["hogql_query"]
    assert shown == ("SELECT event AS e, count(*), NULL FROM events WHERE equals(e, 'a') LIMIT 10")


@pytest.mark.parametrize("field", ["survey_config", "modifiers"])
@fact("4.2", "a number for a merged setting crashes 2025", "2025")
def test_fidelity_2025_numbers_for_objects(api: Api, field: str) -> None:
    assert change(api, {"id": 1}, **{field: 5}).status_code == 500


@fact("6", "bodies can be forms, whose values are text")
def test_fidelity_2025_form_body(api: Api) -> None:
    headers = {"Authorization": "Bearer phx_all"}
    form = api.emulator.http.post(api.project, data={"name": "x"}, headers=headers)
    refused(form, 400, "required", "destination")


@pytest.fixture(scope="module")
def without_addon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    old = {"name": "Old", "destination": {"type": "NoOp", "config": {}}}
    project = {"id": 1, "name": "Web", "batch_exports": [old]}
    organization = {"name": "Ours", "features": [], "projects": [project]}
    seed = {"organizations": [organization], "keys": [{"value": "phx_all"}]}
    file = tmp_path_factory.mktemp("seed") / "seed.json"
    file.write_text(json.dumps(seed))
    with start_emulator(seed=file, extra=("--dialect", "2025")) as running:
        yield running


@fact("1.1", "without the paid feature data_pipelines every write of an export is refused", "2025")
def test_fidelity_2025_without_the_addon(without_addon: RunningEmulator, dialect: str) -> None:
    """Reads, pauses and deletions work; a refusal of a field comes first."""
    api = Api(without_addon, dialect)
    export = without_addon.exports()["Old"]
    for answer in (
        api.post(),
        api.patch(export, name="x"),
        api.call("PUT", of(api, export), api.body()),
    ):
        detail = invalid(answer)
        assert detail == "The Data Pipelines addon is required for batch exports."
    refused(api.patch(export, name=""), 400, "blank", "name")
    assert api.call("POST", of(api, export, "pause/"), {}).status_code == 200
    assert api.call("DELETE", of(api, export)).status_code == 204
    organization = api.call("GET", "/api/organizations/@current/").json()
    assert organization["available_product_features"] == []
