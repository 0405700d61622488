"""Run the jobs of a pipeline of GitLab: includes, inputs, rules, variables and artifacts.

Only what the recipes use.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.recipes.hosts import Host, JobResult, bash
from tests.support.git import Git

_INPUT = re.compile(r"\$\[\[ inputs\.(\w+) \]\]")
_VARIABLE = re.compile(r"\$(\w+)")
_TERM = re.compile(r'\$(\w+) (==|!=) (?:"(\w+)"|\$(\w+))')
_STAGES = ("build", "test", "deploy")


def filled(header: Mapping[str, Any], jobs: Any, inputs: Mapping[str, Any]) -> Any:
    """Return the jobs of a component with its inputs, whose types are checked."""
    known = header["spec"]["inputs"]
    assert inputs.keys() <= known.keys()
    values = {name: inputs.get(name, about.get("default")) for name, about in known.items()}
    types = {"string": str, "array": list, "boolean": bool}
    assert all(isinstance(values[name], types[known[name]["type"]]) for name in known)
    return _with_inputs(jobs, values)


def _with_inputs(value: Any, inputs: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {
            _with_inputs(key, inputs): _with_inputs(item, inputs) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_with_inputs(item, inputs) for item in value]
    if not isinstance(value, str):
        return value
    if whole := _INPUT.fullmatch(value):
        return inputs[whole[1]]
    return _INPUT.sub(lambda match: _text(inputs[match[1]]), value)


@dataclass
class GitLab(Host):
    """A project at GitLab, and its variables: by name, or by name and scope."""

    branch: str
    variables: Mapping[str | tuple[str, str], str]

    def run(self, source: str, commit: str, before: str) -> dict[str, JobResult]:
        """Run a pipeline for a commit, manual jobs included; return how its jobs ended, by name.

        A job whose needs failed does not run.
        """
        checkout = Git(self.checkout(commit))
        changed = checkout.run("diff", "--name-only", before, commit).split("\n")
        variables = {"CI": "true", "CI_PIPELINE_SOURCE": source, "CI_DEFAULT_BRANCH": self.branch}
        if source == "merge_request_event":
            variables["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = before
        else:
            variables |= {"CI_COMMIT_BRANCH": self.branch, "CI_COMMIT_BEFORE_SHA": before}
        jobs = dict(_included(checkout.folder, {"local": "/.gitlab-ci.yml"}))
        results: dict[str, JobResult] = {}
        for name in sorted(jobs, key=lambda name: _STAGES.index(jobs[name].get("stage", "build"))):
            job = _extended(jobs, name)
            is_ready = not any(
                results[need].code for need in job.get("needs", []) if need in results
            )
            if is_ready and any(
                _applies(rule, variables, changed) for rule in job.get("rules", [])
            ):
                results[name] = self._job(name, job, self.checkout(commit), variables)
        return results

    def _job(
        self, name: str, job: Mapping[str, Any], folder: Path, variables: Mapping[str, str]
    ) -> JobResult:
        """Run the scripts of a job in a checkout of its own."""
        for need in job.get("needs", []):
            shutil.copytree(self.folder / "artifacts" / need, folder, dirs_exist_ok=True)
        known = {
            variable if isinstance(variable, str) else variable[0]: value
            for variable, value in self.variables.items()
            if isinstance(variable, str) or variable[1] == job.get("environment")
        }
        known |= variables | {"CI_PROJECT_DIR": str(folder)}
        known |= {variable: _text(value) for variable, value in job["variables"].items()}
        environ = {variable: _expanded(value, known) for variable, value in known.items()}
        # In one shell that ends with the first error.
        scripts = [[*job["before_script"], *job["script"]], job.get("after_script", [])]
        # The image has the program.
        programs = [self.folder / "bin", self.folder]
        ended, after = (bash("\n".join(lines), folder, environ, programs) for lines in scripts)
        shutil.rmtree(self.folder / "artifacts" / name, ignore_errors=True)
        self.keep(name, [folder / file for file in job.get("artifacts", {}).get("paths", [])])
        plan = folder / "plan.md"
        summary = plan.read_text() if plan.exists() else ""
        return JobResult(ended.returncode, {}, summary, ended.stdout + after.stdout)


def _included(root: Path, entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the jobs of a file and of those that it includes."""
    *header, body = yaml.safe_load_all((root / entry["local"].lstrip("/")).read_text())
    for other in body.pop("include", []):
        yield from _included(root, other)
    yield from (filled(header[0], body, entry.get("inputs", {})) if header else body).items()


def _extended(jobs: Mapping[str, Any], name: str) -> dict[str, Any]:
    template = jobs.get(jobs[name].get("extends"), {})
    variables = {**template.get("variables", {}), **jobs[name].get("variables", {})}
    return {**template, **jobs[name], "variables": variables}


def _applies(rule: Mapping[str, Any], variables: Mapping[str, str], changed: list[str]) -> bool:
    for term in rule["if"].split(" && "):
        match = _TERM.fullmatch(term)
        assert match, term
        name, operator, literal, other = match.groups()
        value = literal if literal is not None else variables.get(other)
        if (variables.get(name) == value) != (operator == "=="):
            return False
    patterns = [pattern.replace("**/*", "*") for pattern in rule.get("changes", ["*"])]
    return any(fnmatchcase(file, pattern) for file in changed for pattern in patterns)


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Return a value with the variables that it names. A name that is unknown is empty."""
    value = _VARIABLE.sub(lambda match: known.get(match[1], ""), text)
    return _VARIABLE.sub(lambda match: known.get(match[1], ""), value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
