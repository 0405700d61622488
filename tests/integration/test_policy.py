"""Rules of users in `plan`, and in the tools of others."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.kinds import all_kinds
from scripts.editor_schemas import editor_schemas
from tests.conftest import ROOT
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

PAGE = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests/golden/plans"
PLANS = {
    "delete-an-export.json": GOLDEN / "state-absent/expected/plan.json",
    "create-an-export.json": GOLDEN / "dashboard-after-create/expected/plan.json",
}
RULES = """\
version: 1
policy:
  rules:
    no-web:
      match: {action: create, name: W*}
      message: names begin with a team
      hint: call it team-web
"""
WEB = "projects: {web: {name: Web}}\n"
NO_WEB = "reconciler.yaml:4:5"


def block(language: str, name: str) -> str:
    """Return the block of the page that begins with a file name."""
    pattern = rf"^```{language}\n# {re.escape(name)}\n(.*?)^```$"
    (text,) = re.findall(pattern, PAGE, re.DOTALL | re.MULTILINE)
    return str(text)


def test_a_rule_refuses_a_plan_and_its_apply(emulator: RunningEmulator, tmp_path: Path) -> None:
    folder = write(tmp_path, {"reconciler.yaml": RULES, "web.yaml": WEB})
    planned = reconciler("plan", "-C", folder, environ=emulator.environ())
    assert planned.code == 5
    assert f"{NO_WEB}: error: names begin with a team [rules.no-web]" in planned.out
    assert "hint: call it team-web" in planned.out
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=emulator.environ())
    assert applied.code == 5
    assert emulator.writes() == []


def test_the_workspace_on_the_page_is_valid(tmp_path: Path) -> None:
    text = block("yaml", "reconciler.yaml")
    write(tmp_path, {"reconciler.yaml": text, "web.yaml": WEB})
    ran = reconciler("validate", "-C", tmp_path, "--strict")
    assert ran.code == 0, ran.out


@pytest.mark.parametrize(
    ("inside", "is_valid"),
    [
        ({"action": ["delete", "!cre*"]}, True),
        ({"acton": "delete"}, False),
        ({"field": {"path": "interval"}}, False),
    ],
)
def test_editors_check_matches(inside: dict[str, Any], *, is_valid: bool) -> None:
    rules = {"a": {"match": inside, "message": "m"}}
    validator = Draft202012Validator(editor_schemas(all_kinds())["editor/workspace"])
    policy = {"policy": {"rules": rules}}
    for value in (policy, {"environments": {"prod": policy}}):
        assert validator.is_valid({"version": 1, **value}) is is_valid


@pytest.mark.skipif(shutil.which("opa") is None, reason="opa is not installed")
@pytest.mark.parametrize(("name", "count"), list(zip(PLANS, (1, 0), strict=True)))
def test_the_rego_on_the_page_judges_saved_plans(tmp_path: Path, name: str, count: int) -> None:
    plans = write(tmp_path, {name: PLANS[name].read_text(encoding="utf-8")})
    write(plans, {"exports.rego": block("rego", "policy/exports.rego")})
    _opa(plans, "check", "--strict", "exports.rego")
    judged = _opa(plans, "eval", "-f", "raw", "-d", "exports.rego", "-i", name, "data.main.deny")
    assert len(json.loads(judged)) == count


def _opa(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["opa", *words], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
