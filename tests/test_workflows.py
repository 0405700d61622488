"""The project's own workflows: rights, pins, systems, and scripts that exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

FOLDER = ROOT / ".github/workflows"
WORKFLOWS: dict[str, dict[Any, Any]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yml")
}
JOBS = {
    (name, job): value
    for name, workflow in WORKFLOWS.items()
    for job, value in workflow["jobs"].items()
}
STEPS = [(name, step) for name, job in JOBS.items() for step in job.get("steps", [])]
# YAML 1.1 reads the key `on` as true.
ON = True


def test_only_the_jobs_that_publish_may_write() -> None:
    assert {name: workflow["permissions"] for name, workflow in WORKFLOWS.items()} == {
        "ci": {"contents": "read"},
        "docs": {"contents": "read"},
        "newest": {"contents": "read"},
        "release": {},
    }
    rights = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    assert {name: right for name, right in rights.items() if "write" in right.values()} == {
        ("docs", "deploy"): {"pages": "write", "id-token": "write"},
        ("release", "publish"): {"id-token": "write", "attestations": "write"},
        ("release", "announce"): {"contents": "write"},
    }


def test_workflows_have_no_secrets() -> None:
    for path in FOLDER.glob("*.yml"):
        assert "secrets" not in path.read_text(encoding="utf-8")


def test_actions_are_pinned_and_leave_no_token_in_the_checkout() -> None:
    for (_, _), step in STEPS:
        action = step.get("uses")
        if action is not None:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)
        if action is not None and action.startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_workflows_and_recipes_pin_the_same_commit_for_an_action() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in [*FOLDER.glob("*.yml"), *(ROOT / "recipes/github").glob("*.yml")]
    )
    pins = re.findall(r"uses: ([\w/-]+)(@[0-9a-f]{40} # v[\d.]+)", text)
    assert len(set(pins)) == len({action for action, _ in pins})


def test_every_script_of_a_step_exists_and_no_expression_is_in_it() -> None:
    for _, step in STEPS:
        if "run" not in step:
            continue
        assert "${{" not in step["run"]
        program = shlex.split(step["run"])[0]
        if "/" in program:
            assert os.access(ROOT / program, os.X_OK), program
        else:
            assert program in {"python3", "gh"}


def test_every_job_ends() -> None:
    for name, job in JOBS.items():
        assert "uses" in job or job["timeout-minutes"] <= 60, name


def test_only_runs_of_pull_requests_are_cancelled() -> None:
    cancelled = "${{ github.event_name == 'pull_request' }}"
    assert {
        name: workflow["concurrency"]["cancel-in-progress"] for name, workflow in WORKFLOWS.items()
    } == {"ci": cancelled, "docs": cancelled, "newest": False, "release": False}


def test_ci_covers_the_versions_of_python_in_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: "
    versions = [
        line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)
    ]
    versions.remove("3 :: Only")
    assert project["requires-python"] == f">={versions[0]}"
    for job in ("gate", "windows"):
        assert WORKFLOWS["ci"]["jobs"][job]["strategy"]["matrix"]["python"] == versions
    systems = WORKFLOWS["ci"]["jobs"]["gate"]["strategy"]["matrix"]["os"]
    assert [name.split("-")[0] for name in systems] == ["ubuntu", "macos"]
    setup = JOBS["newest", "test"]["steps"][1]
    assert setup["with"]["python-version"] == versions[-1]


def test_a_release_needs_the_gate_and_is_published_from_its_environment() -> None:
    release = WORKFLOWS["release"]
    assert release[ON] == {"push": {"tags": ["v*"]}}
    jobs = release["jobs"]
    assert jobs["gate"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in WORKFLOWS["ci"][ON]
    assert jobs["publish"]["needs"] == ["gate", "build"]
    assert jobs["publish"]["environment"] == "release"
    assert jobs["announce"]["needs"] == "publish"


def test_the_archive_and_the_attestation_contain_what_the_release_has() -> None:
    """scripts/release writes these files, and the jobs of the workflow name them."""
    script = (ROOT / "scripts/release").read_text(encoding="utf-8")
    assert '--outdir "$2/dist"' in script
    assert '> "$2/notes.md"' in script
    assert re.search(r'> "\$2/[^"]*\.cdx\.json"', script)
    steps = JOBS["release", "publish"]["steps"]
    assert steps[1]["with"]["subject-path"].split() == ["release/dist/*", "release/*.cdx.json"]
    assert steps[2]["with"] == {"packages-dir": "release/dist", "attestations": True}
    assert "--notes-file release/notes.md" in JOBS["release", "announce"]["steps"][1]["run"]


def test_actionlint_has_no_remarks(tmp_path: Path) -> None:
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not installed")
    shutil.copytree(FOLDER, tmp_path / ".github/workflows")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=TIMEOUT)
    ended = subprocess.run(
        [program, "-no-color"], cwd=tmp_path, capture_output=True, check=False, timeout=TIMEOUT
    )
    assert ended.returncode == 0, ended.stdout.decode()
