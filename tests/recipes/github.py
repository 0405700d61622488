"""Run the jobs of a GitHub workflow with bash: expressions, artifacts, outputs and checkouts.

Only what the recipes use. An expression that is not understood is an error.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.recipes.hosts import Host, JobResult, bash, source_repository, write_program
from tests.recipes.scripts import documents
from tests.support.git import Git

_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
_OUTPUT = re.compile(
    r"^(?:(?P<name>\w+)=(?P<value>[^\n]*)|(?P<long>\w+)<<(?P<end>\S+)\n(?P<text>.*?)\n(?P=end))$",
    re.MULTILINE | re.DOTALL,
)
_SCRIPT = f"""#!/bin/sh
exec {sys.executable} -IS {{}} "$@"
"""
REPOSITORY = "acme/pipelines"


def context(branch: str, commit: str, name: str, **event: Any) -> dict[str, Any]:
    """Return the context of a run of GitHub for a commit of the default branch."""
    return {
        "sha": commit,
        "ref": f"refs/heads/{branch}",
        "ref_name": branch,
        "repository": REPOSITORY,
        "event_name": name,
        "event": {"repository": {"default_branch": branch}, **event},
    }


def proposal(branch: str, commit: str, repository: str = REPOSITORY) -> dict[str, Any]:
    """Return the context of a run for a pull request."""
    head = {"number": 7, "head": {"repo": {"full_name": repository}}}
    run = context(branch, commit, "pull_request", pull_request=head)
    return {**run, "ref": "refs/pull/7/merge", "base_ref": branch}


def after_plan(branch: str, commit: str) -> dict[str, Any]:
    """Return the context of a run after that of a pull request."""
    run = {
        "event": "pull_request",
        "id": 1,
        "head_repository": {"full_name": REPOSITORY},
        "pull_requests": [{"number": 7}],
    }
    return context(branch, commit, "workflow_run", workflow_run=run)


def outputs_in(file: Path) -> dict[str, str]:
    """Return the outputs of a step: lines `name=value`, or `name<<end`, the value and `end`."""
    return {
        match["name"] or match["long"]: match["text"] if match["long"] else match["value"]
        for match in _OUTPUT.finditer(file.read_text())
    }


@dataclass
class Forge(Host):
    """A repository at a host with workflows, and what its jobs leave there."""

    secrets: Mapping[str, str]
    variables: Mapping[str, str]
    workflows: Path = ROOT / "recipes/github"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.save(
            {"artifacts": str(self.folder / "artifacts"), "comments": [], "issue": [], "pr": []}
        )
        write_program(self.folder / "bin/gh", _SCRIPT.format(ROOT / "tests/recipes/gh.py"))

    def save(self, state: dict[str, Any]) -> None:
        (self.folder / "forge.json").write_text(json.dumps(state))

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.folder / "forge.json").read_text())
        return state

    def run(
        self,
        workflow: str,
        job: str,
        *,
        github: Mapping[str, Any],
        needs: Mapping[str, JobResult] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> JobResult:
        """Run a job of a recipe at the commit `github["sha"]`."""
        (recipe,) = documents(self.workflows / workflow)
        source = source_repository(self.folder / "source")
        pin = {"SOURCE": str(source.folder), "COMMIT": source.head()}
        recipe["env"] = recipe.get("env", {}) | pin
        return _Run(self, recipe, recipe["jobs"][job], github, needs or {}, environ or {}).run()


@dataclass
class _Run:
    forge: Forge
    recipe: Mapping[str, Any]
    job: Mapping[str, Any]
    github: Mapping[str, Any]
    needs: Mapping[str, JobResult]
    environ: Mapping[str, str]
    steps: dict[str, Any] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    result: JobResult = field(default_factory=JobResult)

    def run(self) -> JobResult:
        self.forge.runs += 1
        self.temp = self.forge.folder / f"run-{self.forge.runs}"
        self.checkout = self.temp / "checkout"
        self.checkout.mkdir(parents=True)
        if not self._holds(self.job.get("if", "true == true")):
            return JobResult(skipped=True)
        for step in self.job["steps"]:
            default = "false == true" if self.result.code else "true == true"
            if self._holds(step.get("if", default)):
                self._step(step)
        outputs = self.job.get("outputs", {})
        self.result.outputs = {name: self._text(text) for name, text in outputs.items()}
        return self.result

    def _step(self, step: Mapping[str, Any]) -> None:
        action = step.get("uses", "").partition("@")[0]
        if "run" in step:
            self._script(step)
        elif action == "actions/checkout":
            self.forge.origin.clone(self.checkout)
            Git(self.checkout).run("checkout", "--quiet", "--detach", self.github["sha"])
        elif action == "actions/upload-artifact":
            files = self._text(step["with"]["path"]).split()
            self.forge.keep(step["with"]["name"], map(Path, files))
        elif action == "actions/download-artifact":
            folder = self.forge.folder / "artifacts" / step["with"]["name"]
            shutil.copytree(folder, self._text(step["with"]["path"]), dirs_exist_ok=True)
        elif action == "aws-actions/configure-aws-credentials":
            assert self.job["permissions"]["id-token"] == "write"
            role = self._text(step["with"]["role-to-assume"])
            parts = ("access-key-id", "secret-access-key", "session-token")
            self.steps[step["id"]] = {"outputs": {f"aws-{part}": role for part in parts}}
        else:
            raise NotImplementedError(action)

    def _script(self, step: Mapping[str, Any]) -> None:
        assert "${{" not in step["run"], "an expression would become a part of the script"
        names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")
        files = {name: self.temp / name for name in names}
        for path in files.values():
            path.write_text("")
        (self.temp / "event.json").write_text(json.dumps(self.github["event"]))
        given = {**self.recipe.get("env", {}), **self.job.get("env", {}), **step.get("env", {})}
        names = ("sha", "ref", "ref_name", "repository", "event_name", "base_ref")
        environ = {
            **{f"GITHUB_{name.upper()}": str(self.github.get(name, "")) for name in names},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(self.temp / "event.json"),
            "GITHUB_WORKSPACE": str(self.checkout),
            "RUNNER_TEMP": str(self.temp),
            "HOME": str(self.temp),
            "FORGE": str(self.forge.folder / "forge.json"),
            **{name: str(path) for name, path in files.items()},
            **{name: self._text(str(text)) for name, text in given.items()},
            **self.environ,
        }
        folder = self._text(step.get("working-directory", str(self.checkout)))
        ended = bash(step["run"], folder, environ, [*self.path, self.forge.folder / "bin"])
        self.result.log += ended.stdout
        self.result.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        self.result.code = self.result.code or ended.returncode
        self.path[:0] = files["GITHUB_PATH"].read_text().split()
        self.steps[step.get("id", "")] = {"outputs": outputs_in(files["GITHUB_OUTPUT"])}

    def _text(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _holds(self, condition: str) -> bool:
        """Return whether a condition holds: comparisons with ==, joined by && or ||."""
        plain = _EXPRESSION.sub(r"\1", condition)
        if "||" in plain:
            return any(self._holds(part) for part in plain.split("||"))
        terms = [term.split("==") for term in plain.split("&&") if term.strip() != "!cancelled()"]
        return all(self._value(left.strip()) == self._value(right.strip()) for left, right in terms)

    def _value(self, operand: str) -> str:
        """Return a literal, or the value of a path such as `github.event.before`."""
        if operand.startswith("'") or operand in ("true", "false"):
            return operand.strip("'")
        root, *path = re.findall(r"[\w-]+", operand)
        value: Any = {
            "github": {**self.github, "token": "t", "workflow": self.recipe["name"]},
            "secrets": self.forge.secrets,
            "vars": self.forge.variables,
            "env": self.recipe.get("env", {}),
            "runner": {"temp": str(self.temp)},
            "steps": self.steps,
            "needs": {name: {"outputs": job.outputs} for name, job in self.needs.items()},
        }[root]
        for name in path:
            value = value[int(name)] if isinstance(value, list) else (value or {}).get(name, "")
        return str(value)
