"""Values that the program does not know: errors, warnings, and no word about what live has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.simulated import no_op_export

PROJECT = {"id": 1, "name": "Web", "batch_exports": [no_op_export("Fast", "every 5 minutes")]}
SEED = {
    "organizations": [{"id": "org", "name": "O", "projects": [PROJECT]}],
    "keys": [{"value": "phx_key"}],
}
EXPORT = "  %s: {project: web, name: %s, interval: %s, destination: {type: NoOp, config: {}}}\n"
FAST = EXPORT % ("fast", "Fast", "every 5 minutes")
FILES = {"reconciler.yaml": "version: 1\n", "web.yaml": "projects: {web: {name: Web}}\n"}


@pytest.mark.parametrize("command", ["plan", "status"])
def test_plan_v8_no_warning_about_what_live_has(
    command: str, service_of: StartService, tmp_path: Path
) -> None:
    environ = service_of(SEED).environ()

    def run(exports: str) -> str:
        write(tmp_path, {**FILES, "exports.yaml": f"batch_exports:\n{exports}"})
        ran = reconciler(command, "-C", tmp_path, environ=environ)
        assert ran.code in (0, 2), ran.err
        return ran.err

    assert "[feature-flag]" not in run(FAST)
    warned = run(FAST + EXPORT % ("new", "New", "every 5 minutes"))
    assert warned.count("[feature-flag]") == 1
    assert "interval of batch_export.new" in warned
    assert "[feature-flag]" in reconciler("validate", "-C", tmp_path, environ=environ).out


def test_plan_v9_a_near_miss_is_refused_unless_the_policy_attempts_it(
    service_of: StartService, tmp_path: Path
) -> None:
    environ = service_of(SEED).environ()
    exports = f"batch_exports:\n{EXPORT % ('lake', 'Lake', 'dayly')}"
    write(tmp_path, {**FILES, "exports.yaml": exports})
    commands = (("validate",), ("validate", "-e", "default"), ("plan",))
    for command, *options in commands[:2]:
        checked = reconciler(command, "-C", tmp_path, *options, environ=environ)
        assert checked.code == 1
        assert "error: unknown value 'dayly' for interval of batch_export.lake" in checked.out
        assert "hint: did you mean 'day'?" in checked.out
    plan = reconciler("plan", "-C", tmp_path, environ=environ)
    assert plan.code == 5
    assert "exports.yaml:2:46: error: unknown value 'dayly' for interval" in plan.out
    assert "dayly" not in plan.err
    write(tmp_path, {"reconciler.yaml": "version: 1\npolicy: {attempt: [unknown-value]}\n"})
    for command, *options in commands:
        ran = reconciler(command, "-C", tmp_path, *options, environ=environ)
        assert ran.code == 0
        assert "warning: unknown value 'dayly'" in ran.out + ran.err
