"""Warnings about values: only where live state does not have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.simulated import no_op_export

SEED = {
    "organizations": [
        {
            "id": "org",
            "name": "O",
            "projects": [
                {
                    "id": 1,
                    "name": "Web",
                    "batch_exports": [no_op_export("Fast", "every 5 minutes")],
                }
            ],
        }
    ],
    "keys": [{"value": "phx_key"}],
}
FAST = """\
  fast:
    project: web
    name: Fast
    interval: every 5 minutes
    destination: {type: NoOp}
"""
NEW = FAST.replace("fast", "new").replace("Fast", "New")


@pytest.mark.parametrize("command", ["plan", "status"])
def test_plan_v8_no_warning_about_what_live_has(
    command: str, service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(SEED)
    files = {"reconciler.yaml": "version: 1\n", "web.yaml": "projects: {web: {name: Web}}\n"}

    def run(exports: str) -> str:
        write(tmp_path, {**files, "exports.yaml": f"batch_exports:\n{exports}"})
        ran = reconciler(command, "-C", tmp_path, environ=running.environ())
        assert ran.code in (0, 2), ran.err
        return ran.err

    assert "[feature-flag]" not in run(FAST)
    warned = run(FAST + NEW)
    assert warned.count("[feature-flag]") == 1
    assert "interval of batch_export.new" in warned
    assert "[feature-flag]" in reconciler("validate", "-C", tmp_path, environ=running.environ()).out
