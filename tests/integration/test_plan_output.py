"""The options of plans that decide how much is shown."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

EXPORT = """
  x{number}:
    project: web
    name: X{number}
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: b
        region: eu-central-1
        prefix: p{number}/
        aws_access_key_id: ${{secret:env:RECONCILER_SECRET_ID}}
        aws_secret_access_key: ${{secret:env:RECONCILER_SECRET_KEY}}
"""
FILES = {
    "reconciler.yaml": "version: 1\n",
    "all.yaml": "projects: {web: {name: Web}}\nbatch_exports:"
    + "".join(EXPORT.format(number=number) for number in range(24)),
}


def test_experience_8_verbose_and_summary_are_options_of_plan_and_show(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    workspace, saved = write(tmp_path / "w", FILES), tmp_path / "plan.json"
    environ = {**emulator.environ(), "COLUMNS": "120"}
    plan = reconciler("plan", "-C", workspace, "--out", saved, environ=environ)
    assert "+ 24 batch exports in Web" in plan.out
    assert " calls, about " in plan.out.splitlines()[-1]
    assert max(map(len, plan.out.splitlines())) > 100
    shown = reconciler("show", saved, "--verbose", environ=environ)
    assert shown.out.count("destination.config.bucket_name") == 24
    assert emulator.organization in shown.out
    for command in (("plan", "-C", workspace), ("show", saved)):
        summary = reconciler(*command, "--summary", environ=environ).out
        assert "batch exports in" not in summary
        assert "Plan: 25 to create" in summary


def test_experience_26_columns_count_in_a_pipe(emulator: RunningEmulator, tmp_path: Path) -> None:
    workspace = write(tmp_path, FILES)
    for columns in (60, 80):
        environ = {**emulator.environ(), "COLUMNS": str(columns)}
        plan = reconciler("plan", "-C", workspace, environ=environ)
        assert max(map(len, plan.out.splitlines())) <= columns


def test_a_comment_names_the_workspace_in_the_repository(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    workspace = write(tmp_path / "deploy", {"reconciler.yaml": "version: 1\n"})
    options = ("-C", workspace, "--no-inventory", "--format", "markdown")
    plan = reconciler("plan", *options, environ=emulator.environ())
    assert plan.out.startswith("<!-- reconciler: default deploy -->\n### default: no changes\n")


def test_a_cut_comment_and_the_audit_log_name_the_same_job(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    numbers = range(300)
    projects = "".join(f"  p{number}: {{name: P{number}}}\n" for number in numbers)
    exports = "".join(
        EXPORT.format(number=number).replace("project: web", f"project: p{number}")
        for number in numbers
    )
    files = FILES | {"all.yaml": f"projects:\n{projects}batch_exports:{exports}"}
    azure = {
        "SYSTEM_COLLECTIONURI": "https://azure.example/acme/",
        "SYSTEM_TEAMPROJECT": "Data team",
        "BUILD_BUILDID": "42",
    }
    job = "https://azure.example/acme/Data%20team/_build/results?buildId=42"
    environ = {**emulator.environ(), **azure}
    options = ("-C", write(tmp_path / "many", files), "--no-inventory", "--format", "markdown")
    plan = reconciler("plan", *options, environ=environ)
    assert f"[the job]({job}) has the file." in plan.out
    workspace = write(tmp_path / "one", FILES | {"all.yaml": "projects: {web: {name: Web}}\n"})
    log = tmp_path / "log"
    options = ("--auto-approve", "--no-inventory", "--log-file", log)
    assert reconciler("apply", "-C", workspace, *options, environ=environ).code == 0
    assert f'"job_url":"{job}"' in log.read_text(encoding="utf-8")
