"""The recipes parse, their commands exist, and the writing key and tokens are apart."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.recipes.gitlab import filled
from tests.recipes.scripts import FILES, FOLDER, commands, documents, parses, recipe, scripts
from tests.support.cli import write
from tests.support.limits import TIMEOUT

WORKFLOWS = sorted((FOLDER / "github").glob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_and_their_commands_parse(path: Path) -> None:
    for script in scripts(documents(path)):
        checked = subprocess.run(
            ["bash", "-n"], input=script, text=True, check=False, timeout=TIMEOUT
        )
        assert checked.returncode == 0, script
        assert all(parses(words) for words in commands(script))


def test_every_command_of_a_script_is_read() -> None:
    (action,) = documents(ROOT / "action.yml")
    names = [words[0] for script in scripts(action) for words in commands(script)]
    once = ("plan", "drift")
    assert names == [*("validate",) * 2, *once, *("apply",) * 2, *("show",) * 4]


def test_hooks_of_pre_commit_run_commands_that_exist() -> None:
    (hooks,) = documents(ROOT / ".pre-commit-hooks.yaml")
    assert {hook["id"] for hook in hooks} == {"reconciler-validate"}
    for hook in hooks:
        assert parses(hook["entry"].split()[1:])
        assert (hook["language"], hook["pass_filenames"]) == ("python", False)
        assert re.search(hook["files"], "pipelines/reconciler.yaml")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_on_github_have_a_key_or_a_token_that_writes(path: Path) -> None:
    (workflow,) = documents(path)
    # YAML 1.1 reads the key `on` as true.
    assert "pull_request_target" not in workflow[True]
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        writes = "write" in job.get("permissions", {}).values()
        expected = set[str]()
        if path.stem == "reconciler-apply" and name == "apply":
            expected = {"POSTHOG_WRITE_KEY"}
            assert job["environment"] == "production"
        elif path.stem == "reconciler-apply" or (not writes and name != "validate"):
            # The plan of what was merged records that there is nothing to apply.
            expected = {"POSTHOG_READ_KEY"}
        assert keys(job) == expected
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert re.search(r"@[0-9a-f]{40}$", step.get("uses", f"@{'0' * 40}"))


def test_jobs_of_pull_requests_have_no_token_and_an_apply_is_never_cancelled() -> None:
    (workflow,) = documents(FOLDER / "github/reconciler-plan.yml")
    assert list(workflow[True]) == ["pull_request", "merge_group"]
    assert "head.repo.full_name == github.repository" in workflow["jobs"]["plan"]["if"]
    for job in workflow["jobs"].values():
        assert job["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    (apply,) = documents(FOLDER / "github/reconciler-apply.yml")
    assert apply["concurrency"]["cancel-in-progress"] is False
    assert apply[True]["push"]["branches"] == ["main"]
    # The job that comments runs nothing of the pull request.
    (comment,) = documents(FOLDER / "github/reconciler-comment.yml")
    (step,) = comment["jobs"]["comment"]["steps"]
    assert "uses" not in step
    assert "secrets." not in yaml.safe_dump(comment)


def test_only_the_keys_of_the_workflow_with_a_secret_store_differ() -> None:
    (plain,) = documents(FOLDER / "github/reconciler-apply.yml")
    (store,) = documents(FOLDER / "github/reconciler-apply-oidc.yml")
    for name, job in store["jobs"].items():
        expected = plain["jobs"][name]
        assert job["permissions"].pop("id-token") == "write"
        assert job.pop("permissions") == expected.pop("permissions", plain["permissions"])
        job["steps"] = [step for step in job["steps"] if step.get("id") != "aws"]
        for step, other in zip(job["steps"], expected["steps"], strict=True):
            if "RECONCILER_API_KEY" in other.get("env", {}):
                del other["env"]
                assert step.pop("env").keys() >= {"AWS_SESSION_TOKEN"}
                keys_of_store, step["run"] = step["run"].split('<<< "$secret")\n')
                assert f'/{"write" if name == "apply" else "read"}"' in keys_of_store
    assert store == plain


def test_jobs_on_gitlab_and_azure_are_separated() -> None:
    _, gitlab = documents(FOLDER / "gitlab/reconciler.yml")
    jobs = {name.split()[1]: job for name, job in gitlab.items() if name[0] != "."}
    assert {name: keys(job) for name, job in jobs.items()} == {
        "check": {"POSTHOG_READ_KEY"},
        "plan": {"POSTHOG_READ_KEY"},
        "apply": {"POSTHOG_WRITE_KEY"},
        "drift": {"POSTHOG_READ_KEY"},
    }
    assert jobs["apply"]["environment"] == jobs["apply"]["resource_group"]
    assert "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in jobs["apply"]["rules"][0]["if"]
    (azure,) = documents(FOLDER / "azure/reconciler.yml")
    stages = {stage["stage"]: stage for stage in azure["stages"]}
    assert keys(stages.pop("apply")) == {"POSTHOG_WRITE_KEY"}
    assert all(keys(stage) == {"POSTHOG_READ_KEY"} for stage in stages.values())
    assert "'refs/heads/main'" in stages["plan"]["condition"]


def test_the_action_reads_inputs_as_variables() -> None:
    (action,) = documents(ROOT / "action.yml")
    install, run = action["runs"]["steps"]
    assert install["working-directory"] == "${{ runner.temp }}"
    for step in (install, run):
        assert "${{" not in step["run"]
    used = set(re.findall(r"inputs\.(\w+)", yaml.safe_dump(action["runs"])))
    assert used == set(action["inputs"])
    # And the image does not run as root.
    lines = (FOLDER / "container/Containerfile").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("USER")] == ["65532:65532"]
    assert any("--require-hashes -r requirements.txt" in line for line in lines)


@pytest.mark.parametrize("program", ["actionlint", "zizmor"])
def test_ecosystem_3_a_linter_of_workflows_has_no_findings(tmp_path: Path, program: str) -> None:
    folder = tmp_path / ".github/workflows"
    write(folder, {path.name: recipe(path) for path in WORKFLOWS})
    run("git", "init", "--quiet", str(tmp_path))
    others = [ROOT / "action.yml", *(ROOT / ".github").rglob("*.yml")]
    if program == "actionlint":
        run(program, "-no-color", folder=tmp_path)
    else:
        run(program, "--offline", "--no-progress", *map(str, [*folder.iterdir(), *others]))


def test_ecosystem_3_every_job_ends_and_other_files_start_none() -> None:
    for path in WORKFLOWS:
        (workflow,) = documents(path)
        assert all(job["timeout-minutes"] <= 60 for job in workflow["jobs"].values()), path
        for event in ("push", "pull_request"):
            assert "paths" in (workflow[True].get(event) or {"paths": []})
    _, gitlab = documents(FOLDER / "gitlab/reconciler.yml")
    jobs = [job for name, job in gitlab.items() if name[0] != "."]
    assert next(iter(gitlab.values()))["timeout"] == "15 minutes"
    assert sum("changes" in rule for job in jobs for rule in job["rules"]) == 3
    (azure,) = documents(FOLDER / "azure/reconciler.yml")
    assert all(stage["jobs"][0]["timeoutInMinutes"] <= 60 for stage in azure["stages"])


def test_security_s7_a_job_with_a_key_installs_no_name_that_nobody_owns() -> None:
    """The program comes from a commit that git checks, and the rest has hashes."""
    installs = [
        (path, script)
        for path in FILES
        for script in scripts(documents(path))
        if re.search(r"\bpipx?\b|\buvx?\b", script)
    ]
    assert len(installs) == 13
    for path, script in installs:
        assert "posthog-reconciler" not in script, path
        (dependencies, program) = re.findall(r'pip"? (install .*)', script)
        assert re.search(r"--require-hashes -r \S*requirements.txt", dependencies)
        assert {"--no-deps", "--no-build-isolation"} <= set(program.split())
        if path.name != "action.yml":
            assert 'test "$(git -C source rev-parse HEAD)" = "$COMMIT"' in script


def texts(value: Any) -> Any:
    """Return a document with numbers and booleans as texts, as Azure's schema has them."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    return json.dumps(value) if isinstance(value, (bool, int)) else value


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("gitlab-ci", FOLDER / "gitlab/reconciler.yml"),
        ("gitlab-ci", FOLDER / "gitlab/environment.yml"),
        ("gitlab-ci", FOLDER / "gitlab/gitlab-ci.yml"),
        ("azure-pipelines", FOLDER / "azure/reconciler.yml"),
        ("github-actions", ROOT / "action.yml"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_a_recipe_complies_with_the_schema_of_its_host(
    tmp_path: Path, schema: str, path: Path
) -> None:
    files = []
    parts = documents(path)
    if "spec" in parts[0]:
        # The schema knows no inputs in the place of a list.
        parts = [parts[0], filled(*parts, {"image": "image@sha256:0"})]
    for number, document in enumerate(parts):
        files.append(tmp_path / f"{number}.json")
        value = texts(document) if schema == "azure-pipelines" else document
        files[-1].write_text(json.dumps(value), encoding="utf-8")
    # Azure's schema has a pattern that is invalid in the Unicode mode of ECMAScript.
    words = ["--builtin-schema", f"vendor.{schema}", "--regex-variant", "nonunicode"]
    run("check-jsonschema", *words, *map(str, files))


def run(*words: str, folder: Path | None = None) -> None:
    """Run a program that has to succeed. Skip the test if it is not installed."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def keys(part: Any) -> set[str]:
    """Return the names of the keys that a part of a recipe uses."""
    return set(re.findall(r"POSTHOG_\w+_KEY", repr(part)))
