"""`pull`: drift goes into the files at the right layer; then the plan is empty."""

from __future__ import annotations

import json
import random
import re
from difflib import unified_diff
from pathlib import Path

import pytest

from reconciler.commands.drift_write import pull_summary
from reconciler.commands.edits import differences_as_text
from reconciler.model.values import path_text
from tests.conftest import LONG, StartService
from tests.support.cli import write
from tests.support.drifting import Applied
from tests.support.emulator import RunningEmulator

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
FILE = """\
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
SECRETS = {"RECONCILER_SECRET_ID": "an-access-key", "RECONCILER_SECRET_KEY": "a-secret-value"}
PRODUCTION = {"environment": "production"}


@pytest.fixture
def applied(tmp_path: Path, emulator: RunningEmulator) -> Applied:
    files = {"reconciler.yaml": SETTINGS, "resources.yaml": FILE}
    return Applied.of(tmp_path / "w", emulator, files, "production", "staging", **SECRETS)


def changed(applied: Applied) -> list[str]:
    lines = unified_diff(FILE.splitlines(), applied.text("resources.yaml").splitlines(), n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def plan_is_empty(applied: Applied, *environments: str | None) -> bool:
    codes = [
        applied.run("plan", "--detailed-exitcode", environment=name).code for name in environments
    ]
    return codes == [0] * len(environments)


COMMENTED = """\
projects:
  web:
    name: Web
    # Legal asked for this.
    path_cleaning_filters:
      - alias: /user/:id  # users
        regex: '/user/[0-9]+'
    timezone: UTC  # of the office
"""


def test_i16_a_list_with_comments_is_left_out_with_its_place(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    files = {"reconciler.yaml": "version: 1\n", "resources.yaml": COMMENTED}
    applied = Applied.of(tmp_path / "w", emulator, files, **SECRETS)
    project = next(item for item in emulator.state()["projects"] if item["name"] == "Web")
    body = {"path_cleaning_filters": None, "timezone": "Asia/Tokyo"}
    emulator.call("PATCH", f"/api/projects/{project['id']}/", body).raise_for_status()
    ran = applied.run("drift", "--write")
    assert ran.code == 3
    assert (
        "left out: project.web path_cleaning_filters: resources.yaml:5:5: cannot edit a value "
        "with a comment that it would remove\n"
    ) in ran.err
    assert applied.text("resources.yaml") == COMMENTED.replace("UTC", "Asia/Tokyo")


def test_values_go_to_the_layer_where_nothing_else_changes(applied: Applied) -> None:
    applied.change("Shared", interval="week")
    applied.change("Only", interval="day", paused=True)
    config = {**applied.live("Only")["destination"]["config"], "prefix": "n/"}
    applied.change("Only", destination={"type": "S3", "config": config})
    pulled = applied.pull(**PRODUCTION).report
    assert {(str(item.address), path_text(item.path), item.layer) for item in pulled.placed} == {
        ("batch_export.shared", "interval", "override production"),
        ("batch_export.only", "interval", "resource"),
        ("batch_export.only", "paused", "resource"),
        ("batch_export.only", "destination.config.prefix", "resource"),
    }
    assert changed(applied) == [
        "-      production: {interval: day}  # daily is enough",
        "+      production: {interval: week}  # daily is enough",
        "-    interval: 'hour'   # quoted",
        "+    interval: day   # quoted",
        '-        prefix: "o/"',
        "+        prefix: n/",
        "+    paused: true",
    ]
    assert applied.text("reconciler.yaml") == SETTINGS
    assert plan_is_empty(applied, "production", "staging")


def test_what_other_environments_share_goes_into_an_override(applied: Applied) -> None:
    applied.change("Shared S", interval="day", paused=True)
    applied.change("Variable", interval="day")
    pulled = applied.pull(environment="staging").report
    # Production has an interval of its own already.
    layers = {path_text(item.path): item.layer for item in pulled.placed}
    assert layers == {"interval": "resource", "paused": "override staging"}
    (item,) = applied.pull("variable", **PRODUCTION).report.placed
    assert item.layer == "override production"
    assert changed(applied) == [
        "-    interval: hour  # for all",
        "+    interval: day  # for all",
        "+      staging:",
        "+        paused: true",
        "+    overrides:",
        "+      production:",
        "+        interval: day",
    ]
    assert plan_is_empty(applied, "production", "staging")


def test_x5_the_places_are_those_of_the_values_in_the_new_files(applied: Applied) -> None:
    """Values of defaults go into overrides, and each edit moves the lines of those below."""
    applied.change("Shared S", paused=True)
    applied.change("Variable S", paused=True, interval="week")
    ran = applied.run("drift", "--write", environment="staging")
    assert ran.code == 2
    printed = re.findall(r"(\S+):(\d+):(\d+): set (\w+) of batch_export\.(\w+) \((.*)\)", ran.err)
    assert [(key, field, layer) for *_, field, key, layer in printed] == [
        ("shared", "paused", "override staging"),
        ("variable", "interval", "override staging"),
        ("variable", "paused", "override staging"),
    ]
    after = {name: applied.text(name).splitlines() for name, *_ in printed}
    values = [after[name][int(line) - 1][int(column) - 1 :] for name, line, column, *_ in printed]
    assert values == ["true", "week", "true"]
    assert after["resources.yaml"][int(printed[0][1]) - 1] == "        paused: true"


def test_a_preview_writes_nothing(applied: Applied) -> None:
    applied.change("Only", interval="day")
    pulled = applied.pull(write=False, **PRODUCTION).report
    assert changed(applied) == []
    patch = differences_as_text(pulled.changes)
    assert "-    interval: 'hour'   # quoted\n+    interval: day" in patch
    summary = pull_summary(pulled, "Would write").splitlines()
    assert summary[-1] == "Would write 1 value to 1 file"


def test_a_known_secret_in_a_live_field_is_not_written(applied: Applied) -> None:
    config = {**applied.live("Only")["destination"]["config"], "prefix": "a-secret-value/"}
    applied.change("Only", interval="day", destination={"type": "S3", "config": config})
    pulled = applied.pull(**PRODUCTION).report
    assert [(path_text(item.path), item.reason) for item in pulled.left_out] == [
        ("destination.config.prefix", "it contains a known secret")
    ]
    assert "a-secret-value" not in applied.text("resources.yaml")
    ran = applied.run("drift", "--write", "--format", "json", **PRODUCTION)
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
    applied = Applied.of(tmp_path / "w", running, files, **SECRETS)
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


def test_a_place_that_cannot_be_edited_is_left_out(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    noop = "destination: {type: S3, config: {bucket_name: b, region: r, prefix: p, " + ", ".join(
        f'aws_{name}: "${{secret:env:RECONCILER_SECRET_{variable}}}"'
        for name, variable in (("access_key_id", "ID"), ("secret_access_key", "KEY"))
    )
    fields = f"interval: hour, project: web, {noop}}}}}"
    files = {
        "reconciler.yaml": "version: 1\n",
        "web.yaml": "projects:\n  web: {name: Web}\n",
        "flow.yaml": f"{{batch_exports: {{flow: {{name: Flow, {fields}}}}}}}\n",
        "block.yaml": f"batch_exports:\n  block: {{name: Block, {fields}}}\n",
    }
    applied = Applied.of(tmp_path / "w", emulator, files, **SECRETS)
    applied.change("Flow", interval="day")
    applied.change("Block", interval="day")
    pulled = applied.pull().report
    assert [item.address.key for item in pulled.placed] == ["block"]
    assert [(item.address.key, item.reason) for item in pulled.left_out] == [
        ("flow", "flow.yaml:1:1: cannot edit a value with keys that do not begin their lines")
    ]


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


def test_a_conflict_is_left_out(applied: Applied) -> None:
    applied.change("Only", interval="day")
    write(applied.folder, {"resources.yaml": FILE.replace("'hour'   #", "week   #")})
    pulled = applied.pull(**PRODUCTION).report
    assert (pulled.placed, len(pulled.left_out)) == ((), 1)
    assert "conflict" in pulled.left_out[0].reason


COUNT = 200 if LONG else 16


def generated(count: int) -> str:
    """Return files as people write them: anchors, aliases, merge keys, comments, flow style."""
    lines = [
        "projects:",
        '  web: {name: "Web${var:suffix}", lifecycle: {beside: [Web]}}',
        "batch_exports:",
    ]
    for number in range(count):
        config = [
            f"&c{number} {{bucket_name: b, region: r, prefix: p/, <<: *secrets}}",
            "{<<: *secrets, bucket_name: b, region: r, prefix: 'p/'}  # flow",
            f'{{<<: *c{number - number % 4}, prefix: "p/"}}',
            f"*c{number - number % 4}",
        ][number % 4]
        if not number:
            config = config.replace(
                "<<: *secrets",
                "<<: &secrets {aws_access_key_id: &id "
                '"${secret:env:RECONCILER_SECRET_ID}", aws_secret_access_key: '
                '"${secret:env:RECONCILER_SECRET_KEY}"}',
            )
        interval = ["hour  # plain", '"hour"', "'${var:interval}'", "hour"][number % 4]
        lines += [
            f"  # Export {number}.",
            f"  e{number}:  # key",
            "    project: web",
            f'    name: "E{number}${{var:suffix}}"',
            f"    interval: {interval}",
            "    destination:",
            "      type: S3",
            f"      config: {config}",
        ]
        if number % 5 == 0:
            lines += ["    overrides:", "      production:", "        paused: false  # on"]
        if number % 7 == 0:
            lines += ["    environments: [production]"]
        lines += [""]
    return "\n".join(lines)


ALONE = """\
version: 1
vars: {suffix: "", interval: hour}
defaults: {batch_export: {paused: false}}
"""


@pytest.mark.parametrize("settings", [SETTINGS, ALONE], ids=["two environments", "one"])
def test_after_pull_the_plan_is_empty_and_only_drift_changed(
    tmp_path: Path, emulator: RunningEmulator, settings: str
) -> None:
    is_alone = settings is ALONE
    environments = () if is_alone else ("production", "staging")
    choice = random.Random(14)  # noqa: S311 - reproducible test data
    text = generated(COUNT)
    if is_alone:
        text = text.replace("    environments: [production]\n", "").replace(
            "production:", "default:"
        )
    files = {"reconciler.yaml": settings, "resources.yaml": text}
    applied = Applied.of(tmp_path / "w", emulator, files, *environments, **SECRETS)
    wanted = 0
    for number in range(COUNT):
        name = f"E{number}"
        config = applied.live(name)["destination"]["config"]
        fields = choice.sample(
            ["interval", "paused", "prefix", "compression"], choice.randint(1, 2)
        )
        wanted += len({*fields} - {"compression"})
        if "interval" in fields:
            applied.change(name, interval=choice.choice(["day", "week"]))
        if "paused" in fields:
            applied.change(name, paused=True)
        new = {"prefix": f"{name}: # ${{x}}/", "compression": "gzip"}
        config |= {field: new[field] for field in fields if field in new}
        applied.change(name, destination={"type": "S3", "config": config})
    before = applied.text("resources.yaml").splitlines()
    pulled = applied.pull(environment=None if is_alone else "production").report
    # What an alias shares is refused, and what is written is no drift any more.
    assert all("an anchor, an alias or a merge key" in item.reason for item in pulled.left_out)
    again = applied.pull(environment=None if is_alone else "production").report
    assert again.placed == ()
    left, still = ({(item.address, item.path) for item in x.left_out} for x in (pulled, again))
    assert left == still
    assert applied.text("reconciler.yaml") == settings
    after = applied.text("resources.yaml")
    assert all(line.partition("#")[2] in after for line in before)
    assert len(pulled.placed) + len(pulled.left_out) == wanted
    assert bool(pulled.left_out) == is_alone
    assert len(set(before) - set(after.splitlines())) <= len(pulled.placed)


def test_the_command_writes_and_reports(applied: Applied) -> None:
    applied.change("Only", interval="day")
    patch = applied.run("drift", "--write", "--diff", **PRODUCTION)
    assert (patch.code, changed(applied)) == (2, [])
    assert "+    interval: day   # quoted" in patch.out
    ran = applied.run("drift", "--write", "only", **PRODUCTION)
    assert ran.code == 2
    assert "resources.yaml:33:15: set interval of batch_export.only (resource)\n" in ran.err
    assert "Wrote 1 value to 1 file\n" in ran.err
    applied.change("Only", paused=True)
    before = applied.run("drift", "--no-attribute", "--format", "json", **PRODUCTION)
    wrote = applied.run("drift", "--write", "--format", "json", **PRODUCTION)
    assert (wrote.code, json.loads(wrote.out)) == (2, json.loads(before.out))
    again = applied.run("drift", "--write", **PRODUCTION)
    assert (again.code, "No drift." in again.err) == (0, True)
    applied.running.call("DELETE", applied.path_of("Shared")).raise_for_status()
    gone = applied.run("drift", "--write", **PRODUCTION)
    assert gone.code == 3
    assert "left out: batch_export.shared: its live object was deleted" in gone.err


def test_a_byte_order_mark_and_line_ends_stay(tmp_path: Path, emulator: RunningEmulator) -> None:
    text = "\ufeff" + FILE.replace("\n", "\r\n")
    files = {"reconciler.yaml": SETTINGS}
    folder = write(tmp_path / "w", files)
    (folder / "resources.yaml").write_bytes(text.encode())
    applied = Applied.of(folder, emulator, files, "production", **SECRETS)
    applied.change("Only", interval="day")
    applied.pull(**PRODUCTION)
    expected = text.replace("'hour'   #", "day   #")
    assert (folder / "resources.yaml").read_bytes() == expected.encode()
