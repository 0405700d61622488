"""`drift`: what changed in live state since the base, who changed it, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from reconciler.commands.drift import Attribution, DriftedField, DriftedObject
from reconciler.model.public import as_json
from reconciler.model.schemas import schema
from reconciler.model.values import path_text
from reconciler.render.options import COMMENT_LIMIT
from tests.conftest import StartService
from tests.support.cli import write
from tests.support.drifting import Applied
from tests.support.emulator import DIALECTS
from tests.support.reports import written

FILES = {
    "reconciler.yaml": "version: 1\n",
    "resources.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  daily:
    project: web
    name: Daily
    interval: hour
    paused: false
    destination: &http
      type: HTTP
      config: {url: "https://us.i.posthog.com/batch/", token: "${secret:env:RECONCILER_SECRET_KEY}"}
  lake:
    project: web
    name: Lake
    interval: hour
    destination: *http
""",
}
SECRETS = {"RECONCILER_SECRET_KEY": "a-secret-value"}
EU = {"type": "HTTP", "config": {"url": "https://eu.i.posthog.com/batch/"}}
URL = "destination.config.url"


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def applied(tmp_path: Path, service_of: StartService, dialect: str) -> Iterator[Applied]:
    running = service_of(None, "--dialect", dialect)
    yield Applied.of(tmp_path / "w", running, FILES, **SECRETS)
    running.reset()


def fields(item: DriftedObject) -> dict[str, DriftedField]:
    return {path_text(field.path): field for field in item.fields}


def test_only_live_changes_of_managed_fields_are_drift(applied: Applied) -> None:
    assert applied.drift().report.empty
    applied.change("Daily", interval="day", paused=True, end_at="2030-01-01T00:00:00Z")
    applied.change("Lake", destination=EU)
    text = applied.text("resources.yaml").replace("name: Lake", "name: Lake\n    paused: true")
    write(applied.folder, {"resources.yaml": text})
    applied.running.clear_requests()
    result = applied.drift().report
    assert [method for method, _ in applied.running.writes()] == []
    daily, lake = result.objects
    assert set(fields(daily)) == {"interval", "paused"}
    assert set(fields(lake)) == {URL}
    assert (daily.fields[0].change.before, daily.fields[0].change.after) == ("day", "hour")
    assert (result.compared, result.unmanaged, result.deleted) == (3, 1, ())
    assert [str(item.address) for item in applied.drift("daily").report.objects] == [
        "batch_export.daily"
    ]


def test_trap_15_64_only_what_the_activity_log_shows_is_attributed(
    applied: Applied, dialect: str
) -> None:
    applied.change("Daily", interval="day", paused=True)
    applied.change("Lake", destination=EU)
    result = applied.drift().report
    daily, lake = result.objects
    assert fields(lake)[URL].attribution is None
    known = [field.attribution for field in daily.fields]
    if dialect == "interface":
        assert known == [None, None]
        assert ["the author is unknown" in remark for remark in result.remarks] == [True]
        return
    assert not result.remarks
    assert all(isinstance(item, Attribution) and item.at for item in known)
    # Before July 2026 a write by key is attributed to the service.
    people = {item.by for item in known if item is not None}
    assert people == {None} if dialect == "2025" else None not in people
    # An entry that does not show the live value says nothing about it.
    applied.change("Daily", paused=False)
    (daily,) = (item for item in applied.drift("daily").report.objects)
    assert set(fields(daily)) == {"interval"}


@pytest.mark.parametrize("dialect", ["2026"], indirect=True)
def test_a_server_that_refuses_its_log_is_asked_once(applied: Applied) -> None:
    applied.change("Daily", interval="day")
    applied.change("Lake", interval="day")
    refused = {"match": {"path": "*/activity_log/"}, "fault": "error", "status": 402}
    applied.running.admin("PUT", "faults", [refused])
    applied.running.clear_requests()
    result = applied.drift().report
    asked = [item for item in applied.running.requests() if "activity_log" in item["path"]]
    assert len(asked) == 1
    (remark,) = result.remarks
    assert re.match("the author is unknown: GET .*: 402: ", remark)
    assert len(result.objects) == 2
    assert applied.drift(attribute=False).report.remarks == ()


@pytest.mark.parametrize("dialect", ["2026"], indirect=True)
def test_deleted_and_unmanaged_objects_are_counted(applied: Applied) -> None:
    applied.running.call("DELETE", applied.path_of("Daily")).raise_for_status()
    path = applied.path_of("Lake").rsplit("/", 2)[0] + "/"
    config = {**EU["config"], "token": "t"}
    body = {"name": "New", "interval": "hour", "destination": {"type": "HTTP", "config": config}}
    applied.running.call("POST", path, body).raise_for_status()
    result = applied.drift().report
    assert [str(address) for address in result.deleted] == ["batch_export.daily"]
    assert (result.objects, result.unmanaged) == ((), 2)
    assert "1 live object deleted since the apply: batch_export.daily" in written(
        "drift", "text", result
    )
    assert "2 unmanaged objects" in written("drift", "markdown", result)


@pytest.mark.parametrize("dialect", ["2026"], indirect=True)
def test_model_f8_what_the_base_deletes_was_not_deleted_live(applied: Applied) -> None:
    present = applied.text("resources.yaml")
    absent = present.replace("    name: Lake", "    state: absent\n    name: Lake")
    write(applied.folder, {"resources.yaml": absent})
    applied.git.commit("delete")
    assert applied.run("apply", "--auto-approve").code == 0
    assert applied.drift().report.empty
    # Declared again: the plan creates it, and nobody deleted it in the service.
    write(applied.folder, {"resources.yaml": present})
    assert "1 to create" in applied.run("plan").out
    assert applied.drift().report.empty
    assert applied.run("drift").code == 0


@pytest.mark.parametrize("dialect", ["2025"], indirect=True)
def test_a_conflict_is_named(applied: Applied) -> None:
    applied.change("Daily", interval="day")
    text = applied.text("resources.yaml").replace(
        "interval: hour\n    paused", "interval: week\n    paused"
    )
    write(applied.folder, {"resources.yaml": text})
    result = applied.drift().report
    assert result.objects[0].fields[0].conflict
    assert "conflict: the configuration changed too" in written("drift", "text", result)
    assert '"conflict": true' in as_json(result)


def test_a_pause_by_the_service_is_named(applied: Applied) -> None:
    rule = {"match": {"name": "Daily"}, "status": "Failed", "error": "No access."}
    applied.running.admin("PUT", "outcomes", [rule])
    applied.running.advance(hours=12)
    (daily,) = applied.drift().report.objects
    assert (set(fields(daily)), daily.paused_by_service) == ({"paused"}, True)
    assert "paused by the service after failures" in written(
        "drift", "text", applied.drift().report
    )
    # The service is no person.
    assert [field.attribution.by for field in daily.fields if field.attribution] in ([None], [])
    applied.change("Daily", interval="day")
    assert applied.pull().report.left_out == ()
    assert "paused: true" in applied.text("resources.yaml")


def test_m2_a_pause_by_the_service_is_noted_if_paused_is_unmanaged(applied: Applied) -> None:
    """M2: drift and plan said nothing of it."""
    rule = {"match": {"name": "Lake"}, "status": "Failed", "error": "No access."}
    applied.running.admin("PUT", "outcomes", [rule])
    applied.running.advance(hours=12)
    for command in ("drift", "plan"):
        ran = applied.run(command)
        assert ran.code == 0
        assert "note: paused by the service after failures: batch_export.lake" in ran.out


@pytest.mark.parametrize("dialect", ["2026"], indirect=True)
def test_the_command_exits_with_2_for_drift(applied: Applied) -> None:
    assert applied.run("drift").code == 0
    applied.change("Daily", interval="day")
    ran = applied.run("drift", "dai*")
    assert ran.code == 2
    assert 'batch_export.daily "Daily" in Web  resources.yaml:4' in ran.out
    assert 'interval  "hour" -> "day"  (by ' in ran.out
    assert "Drift in 1 of 1 resource (1 field)." in ran.out
    as_json = json.loads(applied.run("drift", "--format", "json").out)
    assert as_json["objects"][0]["fields"][0]["live"] == "day"
    assert as_json["objects"][0]["at"]["line"] == 4
    Draft202012Validator(schema("drift")).validate(as_json)
    drift = applied.drift().report
    long = written("drift", "markdown", replace(drift, objects=drift.objects * 5000))
    assert "more fields\n" in long
    assert 60_000 < len(long) <= COMMENT_LIMIT
    markdown = applied.run("drift", "--format", "markdown", "--no-attribute").out
    assert '| `batch_export.daily` "Daily" | `interval` | `"hour"` | `"day"` |' in markdown
    assert applied.run("drift", "nothing").code == 64
