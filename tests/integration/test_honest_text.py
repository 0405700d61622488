"""What commands say about values, names and results: as much as a reader needs, and no guesses."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

RESOURCES = """\
projects: {web: {name: Web}}
batch_exports:
  lake: {project: web, name: Lake, interval: dayly, destination: {type: NoOp, config: {}}}
"""
ATTEMPT = "policy: {attempt: [unknown-value]}\n"


def test_plan_v9_a_near_miss_fails_validate_and_plan(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "all.yaml": RESOURCES})
    for options in ((), ("-e", "default")):
        checked = reconciler("validate", "-C", tmp_path, *options, environ=emulator.environ())
        assert checked.code == 1
        assert "error: unknown value 'dayly' for interval of batch_export.lake" in checked.out
        assert "hint: did you mean 'day'?" in checked.out
    plan = reconciler("plan", "-C", tmp_path, environ=emulator.environ())
    assert plan.code == 5
    assert "all.yaml:3:46: error: unknown value 'dayly' for interval" in plan.out
    assert "dayly" not in plan.err


def test_plan_v9_the_policy_lets_a_near_miss_be_sent(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    write(tmp_path, {"reconciler.yaml": f"version: 1\n{ATTEMPT}", "all.yaml": RESOURCES})
    for command, *options in (("validate",), ("validate", "-e", "default"), ("plan",)):
        ran = reconciler(command, "-C", tmp_path, *options, environ=emulator.environ())
        assert ran.code == 0
        assert "warning: unknown value 'dayly'" in ran.out + ran.err
