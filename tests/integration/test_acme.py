"""The example, end to end: what a first user does on the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.cli import reconciler
from tests.support.emulator import RunningEmulator

SECRET_NAMES = sorted(
    {
        name
        for path in (ROOT / "examples/acme/exports").glob("*.yaml")
        for name in re.findall(r"\$\{secret:env:(\w+)\}", path.read_text())
    }
)
SECRETS = {name: f"very-secret-{name.lower()}" for name in SECRET_NAMES}


@pytest.fixture
def environ(emulator: RunningEmulator) -> dict[str, str]:
    return {
        "ACME_STAGING_URL": emulator.base_url,
        "ACME_STAGING_ORGANIZATION": emulator.organization,
        "ACME_STAGING_API_KEY": emulator.api_key,
        **SECRETS,
    }


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples/acme", tmp_path / "acme"))


@pytest.fixture
def applied(acme: Path, environ: dict[str, str], emulator: RunningEmulator) -> Path:
    ran = reconciler("apply", "-C", acme, "--auto-approve", environ=environ)
    assert ran.code == 0, ran.err
    emulator.clear_requests()
    return acme


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_after_apply_a_second_plan_is_empty(acme: Path, environ: dict[str, str]) -> None:
    before = reconciler("plan", "-C", acme, "--detailed-exitcode", environ=environ)
    assert before.code == 2
    plan = "Plan: 15 to create, 0 to update, 0 to delete (15 resources; 1 unmanaged, list with"
    assert plan in before.out
    assert re.search(r"\n {6}22 calls, about [\w ]+\.\n$", before.out), before.out
    applied = reconciler("apply", "-C", acme, "--auto-approve", environ=environ)
    assert applied.code == 0, applied.err
    assert "Applied: 15 created" in applied.out
    after = reconciler("plan", "-C", acme, "--detailed-exitcode", environ=environ)
    assert after.code == 0
    assert "No changes" in after.out


def test_no_secret_is_ever_printed(acme: Path, environ: dict[str, str]) -> None:
    log = acme / "audit.jsonl"
    runs = [
        reconciler("validate", "-C", acme, environ=environ),
        reconciler("plan", "-C", acme, "--format", "json", environ=environ),
        reconciler("plan", "-C", acme, "--format", "markdown", environ=environ),
        reconciler("apply", "-C", acme, "--auto-approve", "--log-file", log, environ=environ),
        reconciler(
            "plan", "-C", acme, "--rotate-secrets", "--out", acme / "p.json", environ=environ
        ),
    ]
    printed = "".join(ran.out + ran.err for ran in runs)
    printed += log.read_text() + (acme / "p.json").read_text()
    assert "${secret:env:ACME_AWS_ACCESS_KEY_ID}" in printed
    for value in [*SECRETS.values(), environ["ACME_STAGING_API_KEY"]]:
        assert value not in printed


def test_a_change_of_paused_is_one_call_and_no_patch(
    applied: Path, environ: dict[str, str], emulator: RunningEmulator
) -> None:
    edit(applied / "exports/operations.yaml", "    paused: true\n", "    paused: false\n")
    edit(applied / "exports/warehouse.yaml", "project: web\n", "project: web\n    paused: true\n")
    plan = reconciler("plan", "-C", applied, environ=environ)
    assert "1 to pause, 1 to unpause" in plan.out
    assert reconciler("apply", "-C", applied, "--auto-approve", environ=environ).code == 0
    assert sorted(emulator.writes()) == [("POST", "pause"), ("POST", "unpause")]
    assert emulator.exports()["Web events to Snowflake"]["paused"] is True


def test_a_change_of_a_config_field_is_one_patch_without_secrets(
    applied: Path, environ: dict[str, str], emulator: RunningEmulator
) -> None:
    before = emulator.exports()["Web persons to S3"]
    edit(applied / "exports/lake.yaml", "prefix: web/persons/", "prefix: people/")
    assert reconciler("apply", "-C", applied, "--auto-approve", environ=environ).code == 0
    writes = [request for request in emulator.requests() if request["method"] != "GET"]
    assert [request["method"] for request in writes] == ["PATCH"]
    assert writes[0]["body"] == {"destination": {"type": "S3", "config": {"prefix": "people/"}}}
    after = emulator.exports()["Web persons to S3"]
    assert after["destination"]["config"]["prefix"] == "people/"
    assert after["secrets"] == before["secrets"] != {}


def test_rotating_secrets_sends_only_the_secrets(
    applied: Path, environ: dict[str, str], emulator: RunningEmulator
) -> None:
    before = emulator.exports()["Web persons to S3"]
    rotated = {**environ, "ACME_AWS_SECRET_ACCESS_KEY": "another-one"}
    ran = reconciler(
        *("apply", "-C", applied, "--auto-approve"),
        *("--rotate-secrets", "batch_export.web-persons-s3"),
        environ=rotated,
    )
    assert ran.code == 0, ran.err
    after = emulator.exports()["Web persons to S3"]
    assert after["secrets"]["aws_access_key_id"] == before["secrets"]["aws_access_key_id"]
    assert after["secrets"]["aws_secret_access_key"] != before["secrets"]["aws_secret_access_key"]
    assert [method for method, _ in emulator.writes()] == ["PATCH"]
    assert "another-one" not in ran.out + ran.err


def test_a_saved_plan_is_applied_unchanged(
    acme: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    made = reconciler("plan", "-C", acme, "--out", saved, environ=environ)
    assert saved.stat().st_mode & 0o777 == 0o600
    shown = reconciler("show", saved)
    # A saved plan does not contain the estimate, which depends on the limits of the moment.
    assert shown.out == re.sub(r" +\d+ calls, about .*\n$", "", made.out)
    ran = reconciler("apply", saved, "-C", acme, environ=environ)
    assert ran.code == 0, ran.err
    again = reconciler("apply", saved, "-C", acme, environ=environ)
    assert again.code == 0, again.err
    assert "No changes" in again.out


def test_a_plan_is_stale_when_live_state_was_modified(
    applied: Path, environ: dict[str, str], emulator: RunningEmulator, tmp_path: Path
) -> None:
    edit(applied / "exports/lake.yaml", "prefix: web/persons/", "prefix: people/")
    saved = tmp_path / "plan.json"
    assert reconciler("plan", "-C", applied, "--out", saved, environ=environ).code == 0
    export = emulator.exports()["Web persons to S3"]
    path = f"/api/projects/{export['team_id']}/batch_exports/{export['id']}/"
    moved = {"destination": {"type": "S3", "config": {"region": "us-east-1"}}}
    emulator.call("PATCH", path, moved).raise_for_status()
    emulator.clear_requests()
    ran = reconciler("apply", saved, "-C", applied, environ=environ)
    assert ran.code == 4
    assert (
        'destination.config.region "us-east-1" -> "eu-central-1" is not in the saved plan'
    ) in ran.err
    assert emulator.writes() == []


def test_a_plan_for_other_files_is_refused(
    applied: Path, environ: dict[str, str], emulator: RunningEmulator, tmp_path: Path
) -> None:
    edit(applied / "exports/lake.yaml", "prefix: web/persons/", "prefix: people/")
    saved = tmp_path / "plan.json"
    reconciler("plan", "-C", applied, "--out", saved, environ=environ)
    edit(applied / "exports/lake.yaml", "prefix: people/", "prefix: persons/")
    ran = reconciler("apply", saved, "-C", applied, environ=environ)
    assert ran.code == 4
    assert (
        'destination.config.prefix is "web/persons/" -> "persons/" now, '
        'the saved plan has "web/persons/" -> "people/"'
    ) in ran.err
    data = json.loads(saved.read_text())
    data["changes"][0]["body"]["destination"]["config"]["prefix"] = "evil/"
    saved.write_text(json.dumps(data))
    forged = reconciler("apply", saved, "-C", applied, environ=environ)
    assert forged.code == 1
    assert "plan was edited or damaged" in forged.err


def test_state_absent_deletes_and_max_deletes_refuses(
    applied: Path, environ: dict[str, str], emulator: RunningEmulator
) -> None:
    edit(
        applied / "exports/operations.yaml", "name: Dry run\n", "name: Dry run\n    state: absent\n"
    )
    ran = reconciler("apply", "-C", applied, "--auto-approve", environ=environ)
    assert ran.code == 0, ran.err
    assert "Dry run" not in emulator.exports()
    edit(applied / "reconciler.yaml", "max_deletes: 3", "max_deletes: 0")
    edit(
        applied / "exports/lake.yaml",
        "name: App events to S3\n",
        "name: App events to S3\n    state: absent\n",
    )
    emulator.clear_requests()
    ran = reconciler("apply", "-C", applied, "--auto-approve", environ=environ)
    assert ran.code == 5
    assert "reconciler.yaml:32:16" in ran.out
    assert "hint: set" in ran.out
    assert emulator.writes() == []


def test_apply_asks_for_approval_and_refuses_without_a_terminal(
    acme: Path, environ: dict[str, str], emulator: RunningEmulator
) -> None:
    ran = reconciler("apply", "-C", acme, environ=environ, stdin="y\n")
    assert ran.code == 64
    assert "--auto-approve" in ran.err
    assert emulator.writes() == []


def test_experience_22_the_demo_runs_to_its_end_without_colours_in_a_file() -> None:
    ran = reconciler("demo")
    assert ran.code == 0, ran.err
    assert "No changes" in ran.out
    assert "destination-moved" in ran.out
    assert "Applied: 1 updated, 1 unpaused" in ran.out
    assert "\x1b" not in ran.out
