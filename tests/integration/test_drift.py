"""`drift`: what changed in live state, who changed it; with `--write`, the values in the files."""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from pathlib import Path

import pytest

from reconciler.commands.drifted import Attribution, DriftedField, DriftedObject, pull_summary
from reconciler.model.public import as_json
from reconciler.model.values import path_text
from tests.conftest import StartService
from tests.support.cli import write
from tests.support.drifting import Applied
from tests.support.emulator import DIALECTS, RunningEmulator
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
def applied(tmp_path: Path, service_of: StartService, dialect: str) -> Applied:
    running = service_of(None, "--dialect", dialect)
    return Applied.of(tmp_path / "w", running, FILES, **SECRETS)


def fields(item: DriftedObject) -> dict[str, DriftedField]:
    return {path_text(field.path): field for field in item.fields}


def test_trap_15_64_only_what_the_activity_log_shows_is_attributed(
    applied: Applied, dialect: str
) -> None:
    """The model compares what is drift, also of what was deleted and declared again (model F8)."""
    applied.change("Daily", interval="day", paused=True, end_at="2030-01-01T00:00:00Z")
    applied.change("Lake", destination=EU)
    result = applied.drift().report
    assert (result.compared, result.unmanaged) == (3, 1)
    daily, lake = result.objects
    assert set(fields(daily)) == {"interval", "paused"}
    assert fields(lake)[URL].attribution is None
    known = [field.attribution for field in daily.fields]
    if dialect == "interface":
        assert known == [None, None]
        assert ["the author is unknown" in remark for remark in result.remarks] == [True]
        return
    assert not result.remarks
    assert all(isinstance(item, Attribution) and item.at for item in known)
    assert re.search(r", 20[0-9T:-]{17}Z\)", written("drift", "text", result))
    # Before July 2026 a write by key is attributed to the service.
    people = {item.by for item in known if item is not None}
    assert people == {None} if dialect == "2025" else None not in people
    # An entry that does not show the live value says nothing about it.
    applied.change("Daily", paused=False)
    (daily,) = applied.drift("daily").report.objects
    assert set(fields(daily)) == {"interval"}


@pytest.mark.parametrize("dialect", ["2025"], indirect=True)
def test_a_conflict_is_named_and_not_written(applied: Applied) -> None:
    applied.change("Daily", interval="day")
    text = applied.text("resources.yaml").replace(
        "interval: hour\n    paused", "interval: week\n    paused"
    )
    write(applied.folder, {"resources.yaml": text})
    result = applied.drift().report
    assert result.objects[0].fields[0].conflict
    assert "conflict: the configuration changed too" in written("drift", "text", result)
    assert '"conflict": true' in as_json(result)
    pulled = applied.pull().report
    assert pulled.placed == ()
    assert [item.reason.partition(":")[0] for item in pulled.left_out] == ["conflict"]


def test_m2_a_pause_by_the_service_is_named_also_if_paused_is_unmanaged(applied: Applied) -> None:
    """M2: drift and plan said nothing of an export whose files do not set `paused`."""
    rules = [{"match": {"name": "Lake"}, "status": "Failed", "error": "No access."}]
    note = "note: paused by the service after failures: batch_export.lake"
    applied.running.admin("PUT", "outcomes", rules)
    applied.running.advance(hours=12)
    for command in ("drift", "plan"):
        ran = applied.run(command)
        assert (ran.code, note in ran.out) == (0, True)
    rules[0]["match"] = {"name": "Daily"}
    applied.running.admin("PUT", "outcomes", rules)
    applied.running.advance(hours=12)
    (daily,) = applied.drift().report.objects
    assert (set(fields(daily)), daily.paused_by_service) == ({"paused"}, True)
    shown = written("drift", "text", applied.drift().report)
    assert "paused by the service after failures" in shown.replace(note, "")
    # The service is no person.
    assert [field.attribution.by for field in daily.fields if field.attribution] in ([None], [])
    applied.change("Daily", interval="day")
    assert applied.pull().report.left_out == ()
    assert "paused: true" in applied.text("resources.yaml")


@pytest.mark.parametrize("dialect", ["2026"], indirect=True)
def test_the_command_exits_with_2_for_drift(applied: Applied) -> None:
    assert applied.run("drift").code == 0
    applied.change("Daily", interval="day")
    ran = applied.run("drift", "dai*")
    assert ran.code == 2
    assert 'batch_export.daily "Daily" in Web  resources.yaml:4' in ran.out
    assert 'interval  "hour" -> "day"  (by ' in ran.out
    assert "Drift in 1 of 1 resource (1 field)." in ran.out
    markdown = applied.run("drift", "--format", "markdown", "--no-attribute").out
    assert '| `batch_export.daily` "Daily" | `interval` | `"hour"` | `"day"` |' in markdown
    assert applied.run("drift", "nothing").code == 64
    # A server that refuses its log is asked once.
    applied.change("Lake", interval="day")
    applied.running.fail(402, path="*/activity_log/")
    applied.running.clear_requests()
    (remark,) = applied.drift().report.remarks
    assert re.match("the author is unknown: GET .*: 402: ", remark)
    paths = [item["path"] for item in applied.running.requests()]
    assert sum("activity_log" in path for path in paths) == 1


SETTINGS = """\
version: 1
vars: {suffix: "", interval: hour}  # of all
environments:
  production: {}
  staging:
    vars: {suffix: " S"}
defaults:
  batch_export:
    paused: false  # unless a file says otherwise
"""
LAYERS = """\
projects:
  web: {name: "Web${var:suffix}", lifecycle: {beside: [Web]}}
batch_exports:
  # Both environments have these.
  shared:
    project: web
    name: "Shared${var:suffix}"
    interval: hour  # for all
    destination: &noop
      type: S3
      config: &config
        bucket_name: b
        region: r
        prefix: p/
        exclude_events: # noise
          - $a  # first
          - $b
        aws_access_key_id: &id ${secret:env:RECONCILER_SECRET_ID}
        aws_secret_access_key: ${secret:env:RECONCILER_SECRET_KEY}
    overrides:
      production: {interval: day}  # daily is enough
  variable:
    project: web
    name: "Variable${var:suffix}"
    interval: "${var:interval}"
    destination: *noop

  # Only production.
  only:
    environments: [production]
    project: web
    name: 'Only'
    interval: 'hour'   # quoted
    destination:
      type: S3
      config:
        <<: *config
        prefix: "o/"
"""
KEYS = {**SECRETS, "RECONCILER_SECRET_ID": "an-access-key"}
PRODUCTION = {"environment": "production"}


@pytest.fixture
def layered(tmp_path: Path, emulator: RunningEmulator) -> Applied:
    files = {"reconciler.yaml": SETTINGS, "resources.yaml": LAYERS}
    return Applied.of(tmp_path / "w", emulator, files, "production", "staging", **KEYS)


def changed(layered: Applied) -> list[str]:
    lines = unified_diff(LAYERS.splitlines(), layered.text("resources.yaml").splitlines(), n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def plan_is_empty(layered: Applied, *environments: str | None) -> bool:
    codes = [
        layered.run("plan", "--detailed-exitcode", environment=name).code for name in environments
    ]
    return codes == [0] * len(environments)


COMMENTED = """\
projects:
  web:
    name: Web
    app_urls: [https://a.example]
    # Legal asked for this.
    path_cleaning_filters:
      - alias: /user/:id  # users
        regex: '/user/[0-9]+'
    timezone: UTC  # of the office
"""


def test_i16_a_list_with_comments_is_left_out_with_its_place(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """X5: the place is that in the new file."""
    files = {"reconciler.yaml": "version: 1\n", "resources.yaml": COMMENTED}
    applied = Applied.of(tmp_path / "w", emulator, files)
    project = next(item for item in emulator.state()["projects"] if item["name"] == "Web")
    urls = [f"https://{'a' * 40}.{number}.example" for number in range(2)]
    body = {"path_cleaning_filters": None, "timezone": "Asia/Tokyo", "app_urls": urls}
    emulator.call("PATCH", f"/api/projects/{project['id']}/", body).raise_for_status()
    for options, line in (("--diff",), 6), ((), 8):
        ran = applied.run("drift", "--write", *options)
        assert ran.code == 3
        assert (
            f"left out: project.web path_cleaning_filters: resources.yaml:{line}:5: cannot edit a "
            "value with a comment that it would remove\n"
        ) in ran.err
    block = "".join(f"\n      - {url}" for url in urls)
    expected = COMMENTED.replace("UTC", "Asia/Tokyo").replace(" [https://a.example]", block)
    assert applied.text("resources.yaml") == expected


def test_x5_what_other_environments_share_goes_into_an_override_at_the_place_that_is_named(
    layered: Applied,
) -> None:
    """X5: each edit moves the lines of those below. Values of defaults go into overrides."""
    layered.change("Shared S", interval="day", paused=True)
    layered.change("Variable S", paused=True, interval="week")
    layered.change("Variable", interval="day")
    layered.change("Shared", interval="week")
    config = {**layered.live("Only")["destination"]["config"], "prefix": "n/"}
    changes = {"interval": "day", "paused": True}
    layered.change("Only", **changes, destination={"type": "S3", "config": config})
    ran = layered.run("drift", "--write", environment="staging")
    assert ran.code == 2
    printed = re.findall(r"(\S+):(\d+):(\d+): set (\w+) of batch_export\.(\w+) \((.*)\)", ran.err)
    text = layered.text("resources.yaml").splitlines()
    assert [
        (key, field, layer, text[int(line) - 1][int(column) - 1 :])
        for _, line, column, field, key, layer in printed
    ] == [
        # Production has an interval of its own already.
        ("shared", "interval", "resource", "day  # for all"),
        ("shared", "paused", "override staging", "true"),
        ("variable", "interval", "override staging", "week"),
        ("variable", "paused", "override staging", "true"),
    ]
    placed = layered.pull(**PRODUCTION).report.placed
    assert {(item.address.key, path_text(item.path), item.layer) for item in placed} == {
        ("shared", "interval", "override production"),
        ("variable", "interval", "override production"),
        ("only", "interval", "resource"),
        ("only", "paused", "resource"),
        ("only", "destination.config.prefix", "resource"),
    }
    assert changed(layered) == [
        "-    interval: hour  # for all",
        "+    interval: day  # for all",
        "-      production: {interval: day}  # daily is enough",
        "+      production: {interval: week}  # daily is enough",
        "+      staging:",
        "+        paused: true",
        "+    overrides:",
        "+      staging:",
        "+        interval: week",
        "+        paused: true",
        "+      production:",
        "+        interval: day",
        "-    interval: 'hour'   # quoted",
        "+    interval: day   # quoted",
        '-        prefix: "o/"',
        "+        prefix: n/",
        "+    paused: true",
    ]
    assert layered.text("reconciler.yaml") == SETTINGS
    assert plan_is_empty(layered, "production", "staging")


def test_a_known_secret_in_a_live_field_is_not_written(layered: Applied) -> None:
    secret = {"prefix": "a-secret-value/", "region": "https://h.example/?sig=a-secret-value1"}
    config = {**layered.live("Only")["destination"]["config"], **secret}
    layered.change("Only", interval="day", destination={"type": "S3", "config": config})
    pulled = layered.pull(**PRODUCTION).report
    assert {path_text(item.path): item.reason for item in pulled.left_out} == {
        "destination.config.prefix": "it contains a known secret",
        "destination.config.region": "it contains what looks like a secret",
    }
    assert "a-secret-value" not in layered.text("resources.yaml")
    ran = layered.run("drift", "--write", "--format", "json", **PRODUCTION)
    assert ran.code == 3
    assert "a-secret-value" not in pull_summary(pulled, "Wrote") + ran.out + ran.err


TYPED = """\
projects:
  web: {name: Web, session_recording_sample_rate: 0.5}
batch_exports:
  pg:
    name: Pg
    project: web
    interval: hour
    destination:
      type: Postgres
      config: {host: h, port: 5432, user: "${secret:env:RECONCILER_SECRET_ID}",
        password: "${secret:env:RECONCILER_SECRET_KEY}", database: d, schema: s, table_name: t,
        has_self_signed_cert: false}
"""


@pytest.mark.parametrize("dialect", ["interface", "2025"])
def test_fidelity_f1_values_that_come_as_text_are_written_typed(
    tmp_path: Path, service_of: StartService, dialect: str
) -> None:
    seed = {"organizations": [{"id": "org", "name": "O"}], "keys": [{"value": "phx_key"}]}
    running = service_of(seed, "--dialect", dialect)
    files = {"reconciler.yaml": "version: 1\n", "resources.yaml": TYPED}
    applied = Applied.of(tmp_path / "w", running, files, **KEYS)
    config = {"port": 5433, "has_self_signed_cert": True}
    password = {"user": "an-access-key", "password": "a-secret-value"}
    applied.change("Pg", destination={"type": "Postgres", "config": {**config, **password}})
    project = running.state()["projects"][0]["id"]
    changed = {"session_recording_sample_rate": "0.30"}
    running.call("PATCH", f"/api/projects/{project}/", changed).raise_for_status()
    ran = applied.run("drift", "--write")
    assert ran.code == 2
    assert ran.err.endswith("Wrote 3 values to 1 file\n3 API calls\n")
    text = applied.text("resources.yaml")
    config = "      config:\n        host: h\n        port: 5433\n        user: '${secret:"
    assert text.startswith(TYPED.partition("      config:")[0].replace("0.5", "0.3") + config)
    assert text.endswith("has_self_signed_cert: true\n")
    assert plan_is_empty(applied, None)


def test_only_values_that_make_the_files_invalid_are_left_out(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """Also others of the same resource and file are written."""
    projects = "projects:\n  web:\n    name: Web\n    timezone: UTC\n  app: {name: App}\n"
    other = "projects:\n  shop: {name: Shop, timezone: UTC}\n"
    files = {"reconciler.yaml": "version: 1\n", "projects.yaml": projects, "shop.yaml": other}
    applied = Applied.of(tmp_path / "w", emulator, files)
    ids = {item["name"]: item["id"] for item in emulator.state()["projects"]}
    for name, body in (
        ("App", {"name": "Old"}),
        ("Web", {"name": "App", "timezone": "Asia/Tokyo"}),
        ("Shop", {"timezone": "Asia/Tokyo"}),
    ):
        emulator.call("PATCH", f"/api/projects/{ids[name]}/", body).raise_for_status()
    pulled = applied.pull("web", "shop").report
    reason = 'project.web and project.app have the same name "App"'
    assert [(path_text(item.path), item.reason) for item in pulled.left_out] == [("name", reason)]
    assert applied.text("projects.yaml") == projects.replace("UTC", "Asia/Tokyo")
    assert applied.text("shop.yaml").endswith("  shop: {name: Shop, timezone: Asia/Tokyo}\n")


def test_the_command_writes_and_reports(layered: Applied) -> None:
    layered.change("Only", interval="day")
    patch = layered.run("drift", "--write", "--diff", **PRODUCTION)
    assert (patch.code, changed(layered)) == (2, [])
    assert "-    interval: 'hour'   # quoted\n+    interval: day   # quoted" in patch.out
    assert "Would write 1 value to 1 file\n" in patch.err
    ran = layered.run("drift", "--write", "only", **PRODUCTION)
    assert ran.code == 2
    assert "resources.yaml:33:15: set interval of batch_export.only (resource)\n" in ran.err
    assert "Wrote 1 value to 1 file\n" in ran.err
    layered.change("Only", paused=True)
    wrote = layered.run("drift", "--write", "--format", "json", **PRODUCTION)
    (item,) = json.loads(wrote.out)["objects"]
    assert (wrote.code, item["fields"][0]["live"], item["at"]["line"]) == (2, True, 29)
    again = layered.run("drift", "--write", **PRODUCTION)
    assert (again.code, "No drift." in again.err) == (0, True)
    layered.running.call("DELETE", layered.running.path_of("Shared")).raise_for_status()
    gone = layered.run("drift", "--write", **PRODUCTION)
    assert gone.code == 3
    assert "1 live object deleted since the apply: batch_export.shared" in gone.out
    assert "left out: batch_export.shared: its live object was deleted" in gone.err
