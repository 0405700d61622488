"""Rules of users: in `plan`, in `policy test`, and of the trusted branch."""

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
from tests.integration.test_trust import Job, job
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

__all__ = ["job"]
PAGE = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests/golden/plans"
PLANS = {
    "delete-an-export.json": GOLDEN / "removed-from-the-files-and-pruned/expected/plan.json",
    "create-an-export.json": GOLDEN / "create-a-project-and-what-is-in-it/expected/plan.json",
}
RULES = """\
version: 1
policy:
  rules:
    no-web:
      match: {action: create, name: W*}
      message: names begin with a team
      hint: call it team-web
    small:
      match: {action: create}
      more_than: 1
      message: one project at a time
      severity: warn
"""
NO_WEB = "reconciler.yaml:4:5"


def block(language: str, name: str) -> str:
    """Return the block of the page that begins with a file name."""
    pattern = rf"^```{language}\n# {re.escape(name)}\n(.*?)^```$"
    (text,) = re.findall(pattern, PAGE, re.DOTALL | re.MULTILINE)
    return str(text)


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    """Return a folder with the saved plans that the page names."""
    for name, source in PLANS.items():
        write(tmp_path, {name: source.read_text(encoding="utf-8")})
    return tmp_path


def workspace(folder: Path, web: str) -> Path:
    return write(folder, {"reconciler.yaml": RULES, "web.yaml": web})


def test_a_rule_refuses_a_plan_and_its_apply(emulator: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "projects: {web: {name: Web}}\n")
    planned = reconciler("plan", "-C", folder, environ=emulator.environ())
    assert planned.code == 5
    assert f"{NO_WEB}: error: names begin with a team [rules.no-web]" in planned.out
    assert "hint: call it team-web" in planned.out
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=emulator.environ())
    assert applied.code == 5
    assert emulator.writes() == []


def test_a_rule_that_warns_refuses_nothing(emulator: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "projects: {a: {name: A}, b: {name: B}}\n")
    words = ("plan", "-C", folder, "--format", "json")
    planned = reconciler(*words, environ=emulator.environ())
    assert planned.code == 0
    notes = {note["code"]: note["message"] for note in json.loads(planned.out)["notes"]}
    assert notes["rules.small"] == "one project at a time: 2 changes, the limit is 1"


def test_rules_of_an_environment_are_added_and_replace(plans: Path) -> None:
    name = next(iter(PLANS))
    environment = json.loads((plans / name).read_text())["source"]["environment"]
    own = {"policy": {"rules": {"two": _any("other"), "three": _any("three")}}}
    written = {
        "version": 1,
        "policy": {"rules": {"one": _any("one"), "two": _any("two")}},
        "environments": {environment: own, "staging": {}},
    }
    write(plans, {"reconciler.yaml": json.dumps(written)})
    ran = reconciler("policy", "test", plans / name, "-C", plans, "--format", "json")
    assert ran.code == 5
    messages = {item["code"]: item["message"] for item in json.loads(ran.out)["diagnostics"]}
    assert {code: message.rpartition(" ")[2] for code, message in messages.items()} == {
        "rules.one": "one",
        "rules.two": "other",
        "rules.three": "three",
    }


def _any(message: str) -> dict[str, Any]:
    return {"match": {"action": "*"}, "message": message}


def judged(plans: Path, rules: str, *words: str) -> Ran:
    """Test all plans with the rules of a file."""
    write(plans, {"rules.yaml": rules})
    files = [plans / name for name in PLANS]
    return reconciler("policy", "test", *files, "--rules", plans / "rules.yaml", *words)


DENY = "rules: {kept: {match: {action: delete}, message: kept}}\n"
WARN = DENY.replace("message: kept", "message: kept, severity: warn")


@pytest.mark.parametrize(
    ("rules", "words", "code"),
    [
        (DENY, (), 5),
        (WARN, (), 0),
        (WARN, ("--strict",), 5),
        (DENY.replace("delete", "pause"), (), 0),
    ],
)
def test_the_exit_code_of_a_policy_test(
    plans: Path, rules: str, words: tuple[str, ...], code: int
) -> None:
    ran = judged(plans, rules, *words)
    assert ran.code == code
    assert ("batch_export.lake (delete): kept" in ran.out) is ("pause" not in rules)
    assert ("not broken: kept" in ran.err) is ("pause" in rules)
    assert "2 plans, 1 rule" in ran.err


def test_a_policy_test_without_findings_is_not_called_validation(plans: Path) -> None:
    rules = DENY.replace("delete", "pause")
    assert judged(plans, rules).out == "No plan breaks a rule.\n"


def test_sarif_has_the_line_of_the_resource_or_of_the_rule(plans: Path) -> None:
    ran = judged(plans, DENY.replace("delete", "'*'"), "--format", "sarif")
    (run,) = json.loads(ran.out)["runs"]
    assert {result["ruleId"] for result in run["results"]} == {"rules.kept"}
    places = set()
    for result in run["results"]:
        (at,), related = result["locations"], result.get("relatedLocations", [])
        file = at["physicalLocation"]["artifactLocation"]["uri"].rpartition("/")[2]
        places.add((file, len(related)))
    assert places == {("rules.yaml", 0), ("resources.yaml", 1)}


def test_the_file_of_rules_on_the_page_is_met(plans: Path) -> None:
    rules = block("yaml", "rules.yaml")
    assert judged(plans, rules).code == 0
    ran = judged(plans, rules.replace("[keep-history]", "[]"))
    assert ran.code == 5
    assert "delete-an-export.json breaks rule 'keep-history', which is not expected" in ran.out
    ran = judged(plans, rules.replace(": []", ": [keep-history]"))
    assert ran.code == 5
    assert "create-an-export.json does not break rule 'keep-history'" in ran.out


def test_the_workspace_on_the_page_is_valid(tmp_path: Path) -> None:
    text = block("yaml", "reconciler.yaml")
    write(tmp_path, {"reconciler.yaml": text, "web.yaml": "projects: {web: {name: Web}}\n"})
    ran = reconciler("validate", "-C", tmp_path, "--strict")
    assert ran.code == 0, ran.out


@pytest.mark.parametrize(
    ("inside", "is_valid"),
    [
        ({"all": [{"not": {"action": ["delete", "cre*"]}}]}, True),
        ({"any": [{"not": {"acton": "delete"}}]}, False),
        ({"field": {"after": {"equals": 1}}}, False),
    ],
)
def test_editors_check_nested_matches(inside: dict[str, Any], *, is_valid: bool) -> None:
    rules = {"a": {"match": {"not": inside}, "message": "m"}}
    validator = Draft202012Validator(editor_schemas(all_kinds())["editor/workspace"])
    for value in ({"policy": {"rules": rules}}, _of_environment({"policy": {"rules": rules}})):
        assert validator.is_valid({"version": 1, **value}) is is_valid


def _of_environment(fields: dict[str, Any]) -> dict[str, Any]:
    return {"environments": {"prod": fields}}


def test_errors_in_a_file_of_rules_have_their_place(plans: Path) -> None:
    rules = "rules:\n  kept:\n    match: {any: [{acton: delete}]}\n    message: kept\n"
    ran = judged(plans, rules)
    assert ran.code == 1
    assert "rules.yaml:3:20: error: unknown field 'acton'" in ran.err
    assert "did you mean 'action'?" in ran.err


def test_rules_come_from_a_file_or_a_workspace(plans: Path) -> None:
    assert judged(plans, DENY, "-C", str(plans)).code == 64
    assert reconciler("policy", "test").code == 64


LOOSER = {
    "removed": "policy: {}\n",
    "weakened": "policy: {rules: {web: {match: {name: Web}, message: m, severity: warn}}}\n",
    "narrowed": "policy: {rules: {web: {match: {name: other}, message: m}}}\n",
}
TRUSTED = "policy: {rules: {web: {match: {name: Web}, message: m}}}\n"


@pytest.mark.parametrize("own", LOOSER.values(), ids=LOOSER)
def test_a_pull_request_does_not_lift_a_trusted_rule(job: Job, own: str, tmp_path: Path) -> None:
    job.merge({"reconciler.yaml": job.settings(TRUSTED)})
    job.propose({"reconciler.yaml": job.settings(own)})
    saved = tmp_path / "plan.json"
    assert job.dangers() == {"rules.web": "m"}
    assert job.plan("--out", str(saved)).code == 0
    assert job.run("apply", "--auto-approve").code == 5
    assert job.running.writes() == []
    words = ("policy", "test", saved, "-C", job.folder)
    assert reconciler(*words, environ=job.environ()).code == 5
    assert reconciler(*words, "--trust-workspace", environ=job.environ()).code == 0


def test_a_pull_request_may_add_a_rule(job: Job) -> None:
    job.propose({"reconciler.yaml": job.settings(TRUSTED)})
    assert job.plan().code == 5


def test_a_trusted_warning_stays(job: Job) -> None:
    job.merge({"reconciler.yaml": job.settings(LOOSER["weakened"])})
    job.propose({"reconciler.yaml": job.settings()})
    notes = {note["code"]: note["about"] for note in job.document()["notes"]}
    assert notes["rules.web"] == "project.web"


@pytest.mark.skipif(shutil.which("opa") is None, reason="opa is not installed")
@pytest.mark.parametrize(("name", "count"), list(zip(PLANS, (1, 0), strict=True)))
def test_the_rego_on_the_page_judges_saved_plans(plans: Path, name: str, count: int) -> None:
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
