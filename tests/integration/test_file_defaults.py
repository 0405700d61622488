"""`defaults:` of a resource file in every command that reads or edits files, and `show`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reconciler.files.loading import load
from tests.conftest import ROOT
from tests.support.cli import Ran, reconciler, write
from tests.support.drifting import Applied
from tests.support.emulator import RunningEmulator
from tests.support.importing import run_import, run_plan
from tests.support.tours import check_printed

WORKSPACE = """\
version: 1
defaults:
  batch_export: {paused: true}
environments: {staging: {}, production: {}}
"""
PROJECTS = "projects:\n  web: {name: Web}\n  app: {name: App}\n"
LAKE = """\
# Exports to the lake.
defaults:
  batch_export:
    project: web  # most of them
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: acme
        region: eu-central-1
        aws_access_key_id: ${secret:env:RECONCILER_SECRET_ID}
        aws_secret_access_key: ${secret:env:RECONCILER_SECRET_KEY}

batch_exports:
  lake-web: {name: Events of web, destination: {config: {prefix: web/}}}
  lake-app: {project: app, name: Events of app, destination: {config: {prefix: app/}}}
"""
SETTINGS = "version: 1\n"
FILES = {"projects.yaml": PROJECTS, "lake.yaml": LAKE}
PAGE = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
SECRETS = {"RECONCILER_SECRET_ID": "an-access-key", "RECONCILER_SECRET_KEY": "a-secret-value"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", {"reconciler.yaml": WORKSPACE, **FILES})


@pytest.fixture
def applied(tmp_path: Path, emulator: RunningEmulator) -> Applied:
    files = {"reconciler.yaml": SETTINGS, **FILES}
    return Applied.of(tmp_path / "w", emulator, files, **SECRETS)


def run(folder: Path, command: str, *words: str) -> Ran:
    return reconciler(command, "-C", folder, *words)


def test_show_names_the_file_of_the_defaults(folder: Path) -> None:
    ran = run(folder, "show", "lake-app", "-e", "staging")
    lines = {line.split(":")[0].strip(): line for line in ran.out.splitlines()}
    assert lines["interval"].endswith("# lake.yaml:5 defaults of lake.yaml")
    assert lines["paused"].endswith("# reconciler.yaml:3 defaults")
    assert lines["project"].endswith(
        "# lake.yaml:16 resource; overrides web (lake.yaml:4 defaults of lake.yaml)"
    )


def test_pull_writes_into_the_resource(applied: Applied) -> None:
    applied.change("Events of app", interval="day")
    config = {**applied.live("Events of web")["destination"]["config"], "region": "us-east-1"}
    applied.change("Events of web", destination={"type": "S3", "config": config})
    placed = applied.pull().report.placed
    assert {(str(item.address), item.layer, str(item.at)) for item in placed} == {
        ("batch_export.lake-app", "resource", "lake.yaml:16:98"),
        ("batch_export.lake-web", "resource", "lake.yaml:15:80"),
    }
    assert applied.text("lake.yaml") == LAKE.replace(
        "prefix: web/", "prefix: web/, region: us-east-1"
    ).replace("prefix: app/}}", "prefix: app/}}, interval: day")
    assert applied.run("plan", "--detailed-exitcode").code == 0


def test_pull_writes_into_the_defaults_of_the_only_resource(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    text = "".join(line for line in LAKE.splitlines(keepends=True) if "lake-app" not in line)
    files = {"reconciler.yaml": SETTINGS, "projects.yaml": PROJECTS, "lake.yaml": text}
    applied = Applied.of(tmp_path / "w", emulator, files, **SECRETS)
    applied.change("Events of web", interval="day")
    (placed,) = applied.pull().report.placed
    assert placed.layer == "defaults of lake.yaml"
    assert applied.text("lake.yaml") == text.replace("interval: hour", "interval: day")
    assert applied.run("plan", "--detailed-exitcode").code == 0


def test_mv_follows_the_project_of_the_defaults(folder: Path) -> None:
    before = load(folder, environment="staging", environ={}).desired
    ran = run(folder, "mv", "web", "shop")
    assert ran.err == "Renamed project.web to project.shop in 2 files\n"
    assert (folder / "lake.yaml").read_text() == LAKE.replace("project: web", "project: shop")
    after = load(folder, environment="staging", environ={}).desired
    assert [item.spec for item in after.in_order()] == [item.spec for item in before.in_order()]


def test_promote_writes_overrides_over_the_defaults(folder: Path) -> None:
    assert run(folder, "compare", "staging", "production").code == 0
    own = "prefix: app/}}, overrides: {staging: {interval: day}}}"
    write(folder, {"lake.yaml": LAKE.replace("prefix: app/}}}", own)})
    compared = run(folder, "compare", "staging", "production")
    assert compared.code == 2
    assert "day in staging, hour in production" in compared.out
    ran = run(folder, "promote", "--from", "staging", "--to", "production")
    assert ran.code == 0, ran.err
    text = (folder / "lake.yaml").read_text()
    assert text.partition("batch_exports:")[0] == LAKE.partition("batch_exports:")[0]
    assert run(folder, "compare", "staging", "production").code == 0


def test_import_beside_defaults_writes_what_differs(applied: Applied) -> None:
    path = applied.running.path_of("Events of app").rpartition("/batch_exports/")[0]
    config = applied.live("Events of app")["destination"]["config"] | {"prefix": "new/"}
    config |= {"aws_access_key_id": "another-key", "aws_secret_access_key": "another-secret"}
    body = {"name": "New", "interval": "hour", "destination": {"type": "S3", "config": config}}
    applied.running.call("POST", f"{path}/batch_exports/", body).raise_for_status()
    ran = run_import(applied.folder, applied.running, **SECRETS)
    assert ran.code == 0, ran.err
    text = applied.text("lake.yaml")
    assert text.startswith(LAKE)
    new = yaml.safe_load(text)["batch_exports"]["new"]
    assert new["project"] == "app"
    assert "interval" not in new
    assert new["destination"] == {"type": "S3", "config": {"prefix": "new/"}}
    assert run_plan(applied.folder, applied.running, **SECRETS).code == 0


def example(name: str) -> str:
    """Return the first block of the documentation that begins with the name of a file."""
    return PAGE.partition(f"```yaml\n# {name}\n")[2].partition("```")[0]


def test_the_examples_of_the_documentation_are_valid_and_work_as_printed(tmp_path: Path) -> None:
    own = {
        "reconciler.yaml": SETTINGS,
        "projects.yaml": PROJECTS,
        "lake.yaml": example("lake.yaml"),
    }
    # The lines of origins count the name of the file, too.
    first = {name: f"# {name}\n{example(name)}" for name in ("reconciler.yaml", "exports/web.yaml")}
    for name, files in (("own", own), ("first", first)):
        ran = run(write(tmp_path / name, files), "validate", "--strict")
        assert ran.code == 0, ran.out
    words, _, printed = PAGE.partition("$ reconciler show ")[2].partition("```")[0].partition("\n")
    check_printed(words, printed, run(tmp_path / "first", "show", *words.split()).out)


# `show NAME`: no network, no secret, no key.

SHOWN = ROOT / "tests/golden/resolved/workspace"
ADDRESS = "batch_export.web-events-s3"


def line_of(text: str) -> int:
    """Return the number of the line of the exports that begins with a text."""
    lines = (SHOWN / "exports/events.yaml").read_text(encoding="utf-8").splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.strip().startswith(text))
    return number


def show(*words: str | Path, folder: Path = SHOWN) -> Ran:
    return reconciler("show", *words, "-C", folder, "--trust-workspace")


@pytest.mark.parametrize("name", [ADDRESS, "web-events-s3"])
def test_x8_a_resource_is_shown_with_the_origin_of_each_field(name: str) -> None:
    shown = show(name)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == (SHOWN / "../expected/staging.txt").read_text(encoding="utf-8")


def test_an_unknown_resource_is_reported_with_a_hint(tmp_path: Path) -> None:
    unknown = show("batch_export.web-events-s4")
    assert unknown.code == 64
    assert "did you mean batch_export.web-events-s3?" in unknown.err
    elsewhere = show("prod-only")
    line = line_of("environments: [production]")
    where = f"is not in environment staging: exports/events.yaml:{line} limits it to production"
    told = f"error: batch_export.prod-only {where}\n  hint: use -e production\n"
    assert (elsewhere.code, elsewhere.err) == (1, told)
    files = {
        "reconciler.yaml": "version: 1\nenv: [NOPE]\n",
        "a.yaml": 'projects: {a: {name: "${env:NOPE}"}}\n',
    }
    unset = show("a", folder=write(tmp_path, files))
    assert unset.code == 1
    assert "a.yaml:1:22: error: environment variable NOPE is not set" in unset.err


def test_options_of_files_and_of_resources_do_not_mix(tmp_path: Path) -> None:
    plan = write(tmp_path, {"plan.json": "{}"}) / "plan.json"
    for arguments, code, words in (
        ((), 64, "Missing argument"),
        ((plan, "-e", "staging"), 64, "-e and --strict require a resource"),
        ((ADDRESS, "--show-unmanaged"), 64, "--show-unmanaged requires a file"),
        ((ADDRESS, "--run", "1"), 64, "--run requires a file"),
        ((plan, "--run", "1"), 1, "plan.json is not an audit log"),
        ((plan,), 1, "plan.json: not a plan file"),
        ((tmp_path / "none.json",), 1, "none.json can't be read"),
    ):
        refused = reconciler("show", *arguments)
        assert (refused.code, refused.out) == (code, "")
        assert words in refused.err
