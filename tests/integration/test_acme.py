"""The example, end to end: what a first user does on the command line."""

from __future__ import annotations

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


def test_experience_22_the_demo_runs_to_its_end_without_colours_in_a_file() -> None:
    ran = reconciler("demo")
    assert ran.code == 0, ran.err
    assert "No changes" in ran.out
    assert "destination-moved" in ran.out
    assert "Applied: 1 updated, 1 unpaused" in ran.out
    assert "\x1b" not in ran.out
