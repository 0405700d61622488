"""Run the stages of a pipeline of Azure: conditions, groups of variables, outputs and artifacts.

Only what the recipes use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.recipes.hosts import Host, JobResult, bash

_MACRO = re.compile(r"\$\(([\w.]+)\)")
_OUTPUT = re.compile(r"^##vso\[task.setvariable variable=(\w+);isOutput=true\](.*)$", re.MULTILINE)
_PATH = re.compile(r"^##vso\[task.prependpath\](.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^##vso\[task.uploadsummary\](.*)$", re.MULTILINE)


@dataclass
class Azure(Host):
    """A project at Azure, and its groups of variables."""

    groups: Mapping[str, Mapping[str, str]]

    def run(self, file: str, reason: str, commit: str, branch: str) -> dict[str, JobResult]:
        """Run a pipeline for a commit; return how its stages ended, by name.

        Its `branch` is that of a push, or the target of a pull request.
        """
        pipeline = yaml.safe_load(self.origin.run("show", f"{commit}:{file}"))
        source = f"refs/heads/{branch}" if reason != "PullRequest" else "refs/pull/7/merge"
        variables = {
            "Build.Reason": reason,
            "Build.SourceBranch": source,
            "Pipeline.Workspace": str(self.folder / "artifacts"),
            "System.AccessToken": "t",
        }
        if reason == "PullRequest":
            variables["System.PullRequest.TargetBranch"] = f"refs/heads/{branch}"
        results: dict[str, JobResult] = {}
        for stage in pipeline["stages"]:
            if _holds(stage["condition"], variables, results):
                entries = [*pipeline["variables"], *stage["variables"]]
                results[stage["stage"]] = self._stage(stage, entries, variables, commit)
        return results

    def _stage(
        self, stage: Mapping[str, Any], entries: list[Any], system: Mapping[str, str], commit: str
    ) -> JobResult:
        checkout = self.checkout(commit)
        known = {**system, "Agent.TempDirectory": str(checkout.parent)}
        for entry in entries:
            known |= self.groups[entry["group"]] if "group" in entry else {}
        known |= {entry["name"]: entry["value"] for entry in entries if "name" in entry}
        (job,) = stage["jobs"]
        result, path = JobResult(), [str(self.folder / "bin")]
        for step in job.get("steps") or job["strategy"]["runOnce"]["deploy"]["steps"]:
            if result.code and step.get("condition") != "succeededOrFailed()":
                continue
            if "publish" in step:
                self.keep(step["artifact"], [Path(_expanded(step["publish"], known))])
            elif "bash" in step:
                self._script(step, known, path, result, checkout)
            else:
                assert "checkout" in step
        return result

    def _script(
        self,
        step: Mapping[str, Any],
        known: Mapping[str, str],
        path: list[str],
        result: JobResult,
        checkout: Path,
    ) -> None:
        # A secret reaches only the steps that map it.
        plain = {name: value for name, value in known.items() if not name.endswith("_KEY")}
        plain.pop("System.AccessToken")
        environ = {name.upper().replace(".", "_"): value for name, value in plain.items()}
        environ |= {name: str(value) for name, value in step.get("env", {}).items()}
        ended = bash(
            _expanded(step["bash"], known),
            _expanded(step.get("workingDirectory", str(checkout)), known),
            {"TF_BUILD": "True", **{key: _expanded(text, known) for key, text in environ.items()}},
            path,
            options=(),
        )
        result.code, result.log = ended.returncode, result.log + ended.stdout
        prefix = f"{step.get('name', '')}."
        result.outputs |= {
            f"{prefix}{name}": value for name, value in _OUTPUT.findall(ended.stdout)
        }
        path[:0] = _PATH.findall(ended.stdout)
        result.summary += "".join(Path(file).read_text() for file in _SUMMARY.findall(ended.stdout))


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Return a text with its macros filled in. `$(` of a command stays, as in the real one."""
    for _ in range(2):
        text = _MACRO.sub(lambda match: known.get(match[1], match[0]), text)
    return text


def _holds(condition: str, variables: Mapping[str, str], results: Mapping[str, JobResult]) -> bool:
    """Return whether the condition of a stage holds."""
    outputs = {
        f"{stage}.{name}": value
        for stage, result in results.items()
        for name, value in result.outputs.items()
    }
    functions = {
        "eq": lambda one, other: one == other,
        "ne": lambda one, other: one != other,
        "both": lambda one, other: one and other,
        "succeeded": lambda: not any(result.code for result in results.values()),
        "variables": variables,
        "output": outputs.get,
    }
    # The job of a stage has its name.
    python = re.sub(r"dependencies\.\w+\.outputs\['(.*?)'\]", r"output('\1')", condition)
    return bool(eval(python.replace("and(", "both("), functions))  # noqa: S307 - of a recipe
