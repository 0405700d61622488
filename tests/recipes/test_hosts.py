"""The scripts of the other recipes against the embedded service: the action, GitLab, Kubernetes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.recipes.github import outputs_in
from tests.recipes.gitlab import GitLab
from tests.recipes.hosts import JobResult, bash, forked_program, write_program
from tests.recipes.scripts import FOLDER, cron_job, documents
from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
WORKSPACE = {
    "reconciler.yaml": "version: 1\nenvironments: {production: {}}\n",
    "web.yaml": "projects: {web: {name: Web}}\n",
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    write_program(folder / "reconciler", forked_program())
    return folder


def projects(service: RunningEmulator) -> set[str]:
    return {project["name"] for project in service.state()["projects"]}


@dataclass
class Action:
    """The action in a job."""

    folder: Path
    service: RunningEmulator
    programs: Path

    def run(self, command: str, **inputs: str) -> tuple[int, dict[str, str], str]:
        """Run a command; return its exit code, the outputs and the summary of the job."""
        (action,) = documents(ROOT / "action.yml")
        outputs, summary = self.folder / "outputs", self.folder / "summary"
        for file in (outputs, summary):
            file.write_text("")
        environ = {
            **self.service.environ(),
            "CI": "true",
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(summary),
            "COMMAND": command,
            "WORKSPACE": "my pipelines",
            "ENVIRONMENT": "production",
            "PLAN": "",
            "ARGS": "",
            **inputs,
        }
        code = bash(
            action["runs"]["steps"][1]["run"], self.folder, environ, [self.programs]
        ).returncode
        known = outputs_in(outputs)
        assert known.keys() <= action["outputs"].keys()
        return code, known, summary.read_text()


@pytest.fixture
def action(tmp_path: Path, emulator: RunningEmulator, programs: Path) -> Action:
    write(tmp_path / "my pipelines", WORKSPACE)
    return Action(tmp_path, emulator, programs)


def test_the_action_applies_what_it_planned(action: Action) -> None:
    hostile = "--no-inventory\n\n--project\n$(touch hacked)*"
    assert action.run("plan", ARGS=hostile)[0] == 64
    code, known, summary = action.run("plan", ARGS="--no-inventory")
    assert (code, known["changes"], known["to_add"], known["exit_code"]) == (0, "true", "1", "2")
    assert "1 to create" in Path(known["markdown_path"]).read_text()
    assert "1 to create" in summary
    saved = Path(known["json_plan_path"]).rename(action.folder / "approved.json")
    code, known, summary = action.run("apply", PLAN=str(saved))
    assert (code, known["exit_code"], known["applied"], known["failed"]) == (0, "0", "1", "0")
    assert "Web" in summary
    assert Path(known["audit_path"]).exists()
    assert "Web" in projects(action.service)
    assert action.run("destroy")[0] == 64
    assert not (action.folder / "hacked").exists()


def test_ecosystem_3_the_action_reports_a_partial_failure(action: Action) -> None:
    more = "projects: {web: {name: Web}, shop: {name: Shop}}\n"
    write(action.folder / "my pipelines", {"web.yaml": more})
    action.service.fail(method="POST", nth=2)
    code, known, summary = action.run("apply")
    assert (code, known["exit_code"], known["applied"], known["failed"]) == (3, "3", "1", "1")
    assert "Shop" in summary
    assert Path(known["markdown_path"]).read_text() == summary


def test_ecosystem_3_the_action_summarises_errors_in_files(action: Action) -> None:
    write(action.folder / "my pipelines", {"web.yaml": "projects: {web: {nam: '```'}}\n"})
    code, known, summary = action.run("validate")
    assert (code, known["exit_code"]) == (1, "1")
    assert all(line.startswith("    ") for line in summary.splitlines())
    assert "unknown field 'nam'" in summary
    write(action.folder / "my pipelines", WORKSPACE)
    assert "The configuration is valid." in action.run("validate")[2]


def gitlab(
    folder: Path,
    service: RunningEmulator,
    prepare: Callable[[Path], object] = lambda _: None,
    **inputs: object,
) -> Callable[[str], dict[str, JobResult]]:
    """Return a function that runs the pipeline of an event for a commit that adds a workspace.

    The pipeline includes the component. `prepare` may add files to the commit.
    """
    git = Git.init(folder / "repo")
    before = git.commit()
    inputs |= {"image": "image@sha256:0", "base_url": service.base_url}
    pipeline = {"include": [{"local": "/component.yml", "inputs": inputs}]}
    write(git.folder, {**WORKSPACE, ".gitlab-ci.yml": yaml.safe_dump(pipeline)})
    shutil.copy(FOLDER / "gitlab/reconciler.yml", git.folder / "component.yml")
    prepare(git.folder)
    commit = git.commit()
    keys = dict.fromkeys(("POSTHOG_READ_KEY", "POSTHOG_WRITE_KEY"), service.api_key)
    variables = {"POSTHOG_ORGANIZATION": service.organization, **keys}
    host = GitLab(folder / "gitlab", git.bare(folder / "origin.git"), "main", {**variables})
    return lambda source: host.run(source, commit, before)


def test_ecosystem_3_gitlab_starts_nothing_for_other_files(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    run = gitlab(tmp_path, emulator, paths=["elsewhere/*"])
    assert (run("merge_request_event"), run("push")) == ({}, {})


@pytest.mark.parametrize("fetches", [True, False])
def test_security_n3_gitlab_shows_no_results_that_a_merge_request_contains(
    tmp_path: Path, emulator: RunningEmulator, *, fetches: bool
) -> None:
    other = tmp_path / "other"
    other.write_text("unchanged")

    def hostile(folder: Path) -> None:
        counts = '{"create": 0, "update": 0, "delete": 0}'
        # A folder in the way of the first result ended `after_script`, and the job still passed.
        write(folder, {"changes.json/x": "", "plan.json": counts})
        for name in ("plan.md", "validate.json"):
            (folder / name).symlink_to(other)

    run = gitlab(tmp_path, emulator, hostile)
    if not fetches:
        failing = '#!/bin/sh\ncase $* in *fetch*) exit 1 ;; esac\nexec {} "$@"\n'
        write_program(tmp_path / "gitlab/bin/git", failing.format(shutil.which("git")))
    (check,) = run("merge_request_event").values()
    assert (check.code == 0) is fetches
    assert ("1 to create" in check.summary) is fetches
    assert other.read_text() == "unchanged"


def test_a_pod_applies_the_files_of_its_config_map(
    tmp_path: Path, emulator: RunningEmulator, programs: Path
) -> None:
    # As a kubelet mounts files: links into a hidden folder.
    write(tmp_path / "config/..2026_11_22", WORKSPACE)
    (tmp_path / "config/..data").symlink_to("..2026_11_22")
    for name in WORKSPACE:
        (tmp_path / "config" / name).symlink_to(f"..data/{name}")
    (tmp_path / "workspace").mkdir()
    for overlay, code in (("base", 2), ("apply", 0)):
        pod = cron_job(overlay)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        script = (
            container["command"][2].replace("/config", "config").replace("/workspace", "workspace")
        )
        words = " ".join(container["args"]).replace("/workspace", "workspace")
        ended = bash(f"set -- {words}\n{script}", tmp_path, emulator.environ(), [programs])
        assert ended.returncode == code, ended.stdout
    assert "Web" in projects(emulator)
