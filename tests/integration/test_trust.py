"""Who decides where the API key goes and what is allowed: real repositories and CI variables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.commands.session import Session, open_session
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import FilesChanged
from reconciler.model.settings import ClientOptions
from tests.conftest import StartService
from tests.security.witness import Listener, listener
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import declared, s3
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.simulated import no_op_export

CI = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main"}
KEY = "PIPELINE_KEY"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = "projects: {web: {name: Web}}\n"


def settings_of(extra: str = "", **environments: dict[str, str]) -> str:
    return f"version: 1\nenvironments: {json.dumps(environments)}\n{extra}"


@dataclass(frozen=True)
class Job:
    """A clone of a repository with the workspace `w` in a CI job, the service, and a listener."""

    git: Git
    origin: Git
    folder: Path
    running: RunningEmulator
    evil: Listener

    def settings(self, extra: str = "", **fields: str) -> str:
        return settings_of(extra, prod=self.entry(**fields))

    def entry(self, **fields: str) -> dict[str, str]:
        """Return an environment whose key comes from the variable of the pipeline."""
        running, key = self.running, f"${{env:{KEY}}}"
        own = {"base_url": running.base_url, "organization": running.organization, "api_key": key}
        return {**own, **fields}

    def merge(self, files: dict[str, str]) -> None:
        """Commit files on the trusted branch."""
        write(self.folder, files)
        self.git.commit("merged")
        self.git.run("push", "--quiet", "origin", "HEAD:main")

    def propose(self, files: dict[str, str]) -> None:
        """Commit files on the branch of a pull request."""
        self.git.run("checkout", "--quiet", "-B", "proposal")
        write(self.folder, files)
        self.git.commit("proposed")

    def environ(self, **more: str) -> dict[str, str]:
        return {**CI, KEY: self.running.api_key, **more}

    def run(self, *words: str | Path, **more: str) -> Ran:
        command, *rest = words
        return reconciler(command, "-C", self.folder, *rest, environ=self.environ(**more))

    def plan(self, *words: str, **more: str) -> Ran:
        return self.run("plan", *words, **more)

    def refused(self, *texts: str, **more: str) -> None:
        """Check that `plan` fails with some texts, and that the listener got nothing."""
        ran = self.plan(**more)
        assert (ran.code, [text for text in texts if text not in ran.err]) == (1, []), ran.err
        assert self.evil.requests == []

    def document(self, *words: str, **more: str) -> dict[str, Any]:
        """Return the plan as JSON. The policy must not refuse it."""
        ran = self.plan("--format", "json", *words, **more)
        assert ran.code == 0, ran.err
        return dict(json.loads(ran.out))

    def dangers(self, **more: str) -> dict[str, str]:
        """Return the messages of what takes effect after the merge, by rule."""
        refusals = self.document(**more)["refusals"]
        assert all(refusal["after_merge"] for refusal in refusals)
        return {refusal["rule"]: refusal["message"] for refusal in refusals}


@pytest.fixture
def job(tmp_path: Path, emulator: RunningEmulator) -> Iterator[Job]:
    git = Git.init(tmp_path / "repo")
    folder = git.folder / "w"
    folder.mkdir()
    with listener() as evil:
        made = Job(git, git, folder, emulator, evil)
        write(folder, {"reconciler.yaml": made.settings(), "web.yaml": WEB})
        git.commit("start")
        yield Job(git, git.bare(tmp_path / "origin.git"), folder, emulator, evil)


def moved(job: Job) -> dict[str, str]:
    return {"reconciler.yaml": job.settings(base_url=job.evil.url)}


@pytest.mark.parametrize(
    "words",
    [("backfill", "lake", "--gaps", "--auto-approve"), ("show", "web"), ("apply", "-y")],
)
def test_security_1_2_a_pull_request_moves_no_key_and_runs_no_command(
    job: Job, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Each of both alone, `plan` and `import`: tests/security/hostile.py."""
    key = f"${{secret:exec:sh -c 'touch {tmp_path}/ran; echo k'}}"
    text = job.settings("policy: {allow_exec_secrets: true}\n", base_url=job.evil.url, api_key=key)
    job.propose({"reconciler.yaml": text})
    ran = job.run(*words, RECONCILER_ALLOW_EXEC="1")
    assert (job.evil.requests, (tmp_path / "ran").exists()) == ([], False)
    if words[0] == "apply":
        assert (ran.code, job.running.writes()) == (5, [])


def test_security_2_the_plan_names_the_new_address(job: Job) -> None:
    job.propose(moved(job))
    assert job.evil.url in job.dangers()["connection"]
    text = job.plan().out
    assert "danger, takes effect after the merge: `base_url` changes" in text
    assert "hint: merge it to refs/remotes/origin/main first" in text
    markdown = job.plan("--format", "markdown").out
    assert "> **Danger: takes effect after the merge.**" in markdown
    assert "refused by policy" not in (text + markdown).lower()


def test_security_1_the_plan_names_a_key_from_a_command(job: Job) -> None:
    job.merge({"reconciler.yaml": "version: 1\n"})
    text = job.settings("policy: {allow_exec_secrets: true}\n", api_key="${secret:exec:touch x}")
    job.propose({"reconciler.yaml": text})
    dangers = job.dangers(**job.running.environ())
    assert "secret:exec:touch x" in dangers["connection"]
    assert dangers["allow_exec_secrets"] == "secrets may run commands"


def test_security_1_a_trusted_command_does_not_run_a_script_of_the_pull_request(
    job: Job, tmp_path: Path
) -> None:
    key = {"api_key": "${secret:exec:sh key.sh}"}
    text = job.settings("policy: {allow_exec_secrets: true}\n", **key)
    job.merge({"reconciler.yaml": text})
    job.propose({"key.sh": f"touch {tmp_path}/ran\n"})
    assert job.plan(RECONCILER_ALLOW_EXEC="1").code == 1
    assert not (tmp_path / "ran").exists()
    job.run("plan", "--trust-workspace", RECONCILER_ALLOW_EXEC="1")
    assert (tmp_path / "ran").exists()


def test_security_2_the_organization_and_the_key_come_from_the_trusted_branch(job: Job) -> None:
    text = job.settings(organization="${env:GITHUB_SHA}", api_key="${env:OTHER}")
    job.propose({"reconciler.yaml": "env: [GITHUB_SHA]\n" + text})
    ran = job.plan(GITHUB_SHA="c4n4ry", OTHER="c4n4ry-key")
    assert "c4n4ry" not in ran.out
    read = f"refs/remotes/origin/main at {job.git.head('origin/main')[:7]} does not set this"
    assert f"`env: [GITHUB_SHA]` cannot be trusted here: {read}" in ran.err


def test_security_2_a_file_that_disagrees_with_the_variables_is_an_error(job: Job) -> None:
    job.merge({"reconciler.yaml": job.settings(), "web.yaml": WEB})
    job.propose(moved(job))
    job.refused(job.evil.url, "RECONCILER_BASE_URL", **job.running.environ())


def test_security_2_the_key_of_a_variable_needs_its_address_in_a_job(job: Job) -> None:
    job.refused(
        "RECONCILER_API_KEY is set, but RECONCILER_BASE_URL is not",
        RECONCILER_API_KEY=job.running.api_key,
    )
    assert job.plan(**job.running.environ()).code == 0


def test_an_organization_never_changes_the_path_of_a_request(job: Job) -> None:
    settings = job.settings(organization="../users/@me")
    job.merge({"reconciler.yaml": settings, "web.yaml": WEB})
    (line,) = (n for n, text in enumerate(settings.splitlines(), 1) if "@me" in text)
    no_id = "organization '../users/@me': that is no id [not-allowed]"
    job.refused(no_id, f"reconciler.yaml:{line}:")
    both = job.plan(**job.running.environ())
    assert f"`organization` of environment prod (reconciler.yaml:{line}:" in both.err
    assert job.running.requests() == []


def test_the_variable_of_the_key_has_precedence_over_the_file(job: Job) -> None:
    variables = {**job.running.environ(), KEY: "phx_wrong"}
    assert job.plan(**variables).code == 0


def test_security_25_no_tag_takes_the_place_of_a_trusted_branch_that_is_missing(job: Job) -> None:
    job.propose(moved(job))
    job.git.run("tag", "refs/remotes/origin/main")
    job.git.run("update-ref", "-d", "refs/remotes/origin/main")
    job.plan()
    job.refused("does not exist", RECONCILER_TRUST_REF="refs/remotes/origin/main")


def test_what_only_the_files_of_this_folder_set_is_missing_on_the_trusted_branch(job: Job) -> None:
    whole = job.entry()
    keyless = {name: value for name, value in whole.items() if name != "api_key"}
    job.merge({"reconciler.yaml": settings_of(prod=keyless)})
    nowhere = job.plan()
    assert nowhere.code == 1
    assert "environment prod lacks `api_key`\n" in nowhere.err
    assert "hint: set RECONCILER_API_KEY, or add api_key to the environment" in nowhere.err
    job.propose({"reconciler.yaml": settings_of(prod=whole)})
    here = job.plan()
    assert here.code == 1
    assert "error: `api_key` of environment prod cannot be trusted here: refs/" in here.err
    assert "hint: merge it first, or set RECONCILER_API_KEY, or use --trust-workspace" in here.err


def invalid(job: Job) -> None:
    job.merge({"reconciler.yaml": "version: 1\npolicy: {prune: sometimes}\n"})
    job.propose(moved(job))


def linked(job: Job) -> None:
    (job.folder / "reconciler.yaml").unlink()
    (job.folder / "reconciler.yaml").symlink_to("web.yaml")
    job.merge({})
    (job.folder / "reconciler.yaml").unlink()
    job.propose(moved(job))


def head_of(kind: str, job: Job) -> None:
    """As in a clone whose branches were fetched: git stores the branch HEAD as origin/HEAD."""
    job.propose(moved(job))
    job.git.run("symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    job.git.run("update-ref", f"refs/{kind}/HEAD", "HEAD")


NO_BRANCH = "the default branch is not in this clone"


UNREADABLE: dict[str, tuple[Callable[[Job], None], str]] = {
    "an invalid file": (
        invalid,
        "errors in the files of refs/remotes/origin/main: reconciler.yaml",
    ),
    "a link": (linked, "is not a regular file"),
    "a branch named HEAD": (partial(head_of, "remotes/origin"), NO_BRANCH),
    "a tag named HEAD": (partial(head_of, "tags/refs/remotes/origin"), NO_BRANCH),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_security_25_a_trusted_branch_that_cannot_be_read_is_an_error(job: Job, case: str) -> None:
    prepare, reason = UNREADABLE[case]
    prepare(job)
    job.refused(reason)


def test_security_25_a_link_to_another_workspace_does_not_bring_its_policy(job: Job) -> None:
    absent = "projects: {web: {name: Web, state: absent}}\n"
    strict, loose = (f"policy: {{allow_project_deletion: {on}}}\n" for on in ("false", "true"))
    sandbox = {"reconciler.yaml": job.settings(loose), "web.yaml": WEB}
    job.merge({"reconciler.yaml": job.settings(strict)})
    job.merge({f"../sandbox/{name}": text for name, text in sandbox.items()})
    assert job.run("apply", "--auto-approve").code == 0
    job.git.run("rm", "-r", "--quiet", "w")
    job.folder.symlink_to("sandbox")
    job.propose({"web.yaml": absent})
    variables = {**job.running.environ(), "CI": "true"}
    ran = reconciler("plan", "-C", job.folder, environ=variables)
    assert "1 project would be deleted with all data" in ran.out
    assert "takes effect after the merge" in ran.out
    assert "use -C with the folder that it refers to" in ran.out
    job.git.run("push", "--quiet", "origin", "HEAD:main")
    assert "after the merge" not in reconciler("plan", "-C", job.folder, environ=variables).out


def test_security_25_a_loosened_policy_is_a_danger_and_apply_refuses_it(job: Job) -> None:
    strict = job.settings("policy: {max_deletes: 0}\n")
    web = {"web": {"name": "Default project"}}
    job.merge({"reconciler.yaml": strict, "web.yaml": declared(web, lake={})})
    job.git.run("fetch", "--quiet", "origin")
    applied = job.run("apply", "--auto-approve", "--push")
    assert applied.code == 0, applied.err
    job.running.clear_requests()
    loose = "policy: {prune: true, max_deletes: 9, allow_project_deletion: true}\n"
    job.propose({"reconciler.yaml": job.settings(loose), "web.yaml": declared(web)})
    planned = job.document()
    assert "delete" in [change["action"] for change in planned["changes"]]
    rules = {refusal["rule"] for refusal in planned["refusals"] if refusal["after_merge"]}
    assert rules == {"prune", "max_deletes"}
    assert job.plan("--detailed-exitcode").code == 2
    assert job.run("apply", "--auto-approve").code == 5
    assert job.running.writes() == []


TRUSTED = "policy: {rules: {web: {match: {name: Web}, message: m}}}\n"
WARNS = "policy: {rules: {web: {match: {name: Web}, message: m, severity: warn}}}\n"
ELSEWHERE = "policy: {rules: {web: {match: {name: other}, message: m}}}\n"


def lake(access: str, secret: str) -> dict[str, str]:
    exports = json.dumps({"batch_exports": {"lake": no_op_export("Lake", **s3(access, secret))}})
    return {"lake.yaml": exports.replace('"name"', '"project": "web", "name"')}


LIMITED, TWO_SECRETS = "policy: {max_changes: 0}\n", lake("${secret:env:ONE}", "${secret:env:TWO}")
LITERAL = "policy: {allow_literal_secrets: true}\n"
LOOSENED: dict[str, tuple[str, str, dict[str, str], dict[str, str]]] = {
    "a limit that is raised": (
        *(LIMITED, "policy: {max_changes: 9}\n", {}),
        {"max_changes": "1 change planned, the limit is 0"},
    ),
    "plan V1: a denial that is removed": (
        *("policy: {deny: [new-api-token]}\n", "policy: {}\n", {}),
        {"deny": "denied consequence 'new-api-token' of 1 change"},
    ),
    "security 1: the switch of literal secrets": (
        *("", LITERAL, lake("one", "two")),
        {"allow_literal_secrets": "2 literal secrets in the configuration"},
    ),
    "a new secret name": (
        *("secrets: [ONE]\n", "secrets: [ONE, TWO]\n", TWO_SECRETS),
        {"secrets": "new in `secrets:`: TWO"},
    ),
    "a trusted rule is removed": (TRUSTED, "policy: {}\n", {}, {"rules.web": "m"}),
    "a trusted rule is weakened": (TRUSTED, WARNS, {}, {"rules.web": "m"}),
    "a trusted rule is narrowed": (TRUSTED, ELSEWHERE, {}, {"rules.web": "m"}),
}
"""What is merged, what is proposed, with files, and the dangers."""


@pytest.mark.parametrize("case", LOOSENED)
def test_what_a_pull_request_loosens_takes_effect_after_the_merge(job: Job, case: str) -> None:
    merged, proposed, files, dangers = LOOSENED[case]
    job.merge({"reconciler.yaml": job.settings(merged)})
    job.propose({"reconciler.yaml": job.settings(proposed), **files})
    assert job.dangers() == dangers
    assert job.run("apply", "--auto-approve", ONE="value-1", TWO="value-2").code == 5
    assert job.running.writes() == []
    job.git.run("push", "--quiet", "origin", "HEAD:main")
    assert job.document()["refusals"] == []
    assert job.run("apply", "--auto-approve", ONE="value-1", TWO="value-2").code == 0


@pytest.mark.parametrize(
    ("merged", "proposed"),
    [(LIMITED, LIMITED), ("", LIMITED), ("", TRUSTED)],
    ids=["both", "a stricter one", "a new rule"],
)
def test_what_the_policy_of_a_pull_request_refuses_is_refused_at_once(
    job: Job, merged: str, proposed: str
) -> None:
    job.merge({"reconciler.yaml": job.settings(merged)})
    job.propose({"reconciler.yaml": job.settings(proposed) + "# changed\n"})
    assert job.plan().code == 5


def test_t1_a_renamed_key_lifts_no_trusted_rule(job: Job) -> None:
    assert job.run("apply", "--auto-approve", "--trust-workspace", "--push").code == 0
    rule = "{match: {address: project.web, action: update}, message: m}"
    job.merge({"reconciler.yaml": job.settings(f"policy: {{rules: {{web: {rule}}}}}\n")})
    site = "projects: {site: {name: Web, timezone: Asia/Tokyo}}\n"
    job.propose({"reconciler.yaml": job.settings(), "web.yaml": site})
    assert job.dangers() == {"rules.web": "m"}


def test_a_trusted_warning_stays(job: Job) -> None:
    job.merge({"reconciler.yaml": job.settings(WARNS)})
    job.propose({"reconciler.yaml": job.settings()})
    notes = {note["code"]: note["about"] for note in job.document()["notes"]}
    assert notes["rules.web"] == "project.web"


def test_settings_of_the_client_come_from_the_trusted_branch(job: Job) -> None:
    job.merge({"reconciler.yaml": job.settings("client: {parallelism: 2}\n")})
    job.propose({"reconciler.yaml": job.settings("client: {parallelism: 64, rate: false}\n")})
    session = open_session(
        Workspace(job.folder, runtime=Runtime(environ=job.environ(), now=lambda: NOW))
    )
    assert session.loaded.client == ClientOptions(parallelism=2)


def test_x3_ignored_warnings_are_those_that_the_trusted_branch_ignores_too(job: Job) -> None:
    fields = "project: web, name: Lake, interval: every 5 minutes, destination: {type: NoOp}"
    files = {"lake.yaml": f"batch_exports: {{lake: {{{fields}}}}}\n"}
    unused = "vars: {unused: 1}\nignore_warnings: "
    job.merge({**files, "reconciler.yaml": job.settings(f"{unused}[unused-variable]\n")})
    job.propose({"reconciler.yaml": job.settings(f"{unused}[unused-variable, feature-flag]\n")})
    for words in (("--strict",), ("--strict", "-e", "prod")):
        ran = job.run("validate", *words)
        assert ran.code == 1
        assert "[feature-flag]" in ran.out
        assert "[unused-variable]" not in ran.out
        assert "note: `ignore_warnings` has no effect before the merge: feature-flag" in ran.out
        assert job.run("validate", *words, "--trust-workspace").code == 0
    job.propose({"reconciler.yaml": job.settings(f"{unused}[]\n")})
    assert "[unused-variable]" in job.run("validate").out


def test_a_clone_without_the_trusted_branch_has_the_strictest_policy(job: Job) -> None:
    job.git.run("remote", "remove", "origin")
    job.refused("the default branch is not in this clone", "git remote set-head origin --auto")
    assert job.plan("--no-inventory", **job.running.environ()).code == 0


@pytest.mark.parametrize("host", ["CI", "TF_BUILD", "JENKINS_URL"])
def test_a_job_without_a_repository_uses_only_variables(
    tmp_path: Path, job: Job, host: str
) -> None:
    folder = write(tmp_path / "plain", {"reconciler.yaml": job.settings(), "web.yaml": WEB})
    environ = {KEY: job.running.api_key}
    assert reconciler("plan", "-C", folder, environ=environ).code == 0
    ran = reconciler("plan", "-C", folder, environ={**environ, host: "true"})
    assert ran.code == 1
    assert "this folder is not in a git repository" in ran.err
    variables = {**environ, **job.running.environ(), host: "true"}
    assert reconciler("plan", "-C", folder, environ=variables).code == 0


def test_without_a_terminal_the_trusted_branch_decides_outside_of_ci(job: Job) -> None:
    job.propose(moved(job))
    reconciler("plan", "-C", job.folder, environ={KEY: job.running.api_key})
    assert job.evil.requests == []


def test_a_plan_in_a_job_warns_about_a_key_that_may_write(
    tmp_path: Path, service_of: StartService
) -> None:
    running = service_of(None, "--dialect", "2026")
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n", "web.yaml": WEB})
    command = ("plan", "-C", folder, "--format", "json")
    outside = reconciler(*command, environ=running.environ())
    assert "key-may-write" not in outside.out
    in_job = reconciler(*command, environ={**running.environ(), "CI": "true"})
    assert {note["code"] for note in json.loads(in_job.out)["notes"]} >= {"key-may-write"}


def test_the_environment_is_decided_by_its_own_policy_on_the_trusted_branch(job: Job) -> None:
    job.propose({"reconciler.yaml": settings_of(prod=job.entry(), other=job.entry())})
    ran = job.plan("-e", "other")
    assert ran.code == 1
    assert "of environment other cannot be trusted here" in ran.err
    assert job.plan("-e", "prod").code == 0


LOCAL = "RECONCILER_BASE_URL", "RECONCILER_ORGANIZATION", "RECONCILER_API_KEY"


OUTSIDE: dict[str, Callable[[Job], Any]] = {
    "": lambda _: None,
    "with a remote": lambda job: job.git.run("remote", "add", "origin", "https://git.example/x"),
    "with a branch": lambda job: job.git.run("update-ref", "refs/remotes/other/feature", "HEAD"),
    "after a fetch": lambda job: job.git.run("fetch", "--quiet", str(job.origin.folder), "main"),
    "shallow": lambda job: write(job.git.folder, {".git/shallow": f"{job.git.head()}\n"}),
    "nested": lambda job: Git.init(job.git.folder.parent),
}
"""What somebody else can have to do with a repository without a remote."""


@pytest.mark.parametrize(
    ("change", "names", "more", "reason"),
    [
        ("", (), {}, ""),
        ("", LOCAL, {}, ""),
        ("", LOCAL[:2], {}, ""),
        ("", LOCAL[2:], {}, "RECONCILER_API_KEY is set without RECONCILER_BASE_URL and"),
        ("", LOCAL[1:], {}, "RECONCILER_API_KEY is set without RECONCILER_BASE_URL and"),
        ("", (), {"CI": "true"}, NO_BRANCH),
        ("", (), {"RECONCILER_TRUST_REF": "refs/heads/main"}, "refs/heads/main at "),
        ("with a remote", (), {}, NO_BRANCH),
        ("with a branch", (), {}, NO_BRANCH),
        ("after a fetch", (), {}, NO_BRANCH),
        ("shallow", (), {}, NO_BRANCH),
        ("nested", (), {}, "this repository is inside another one"),
    ],
)
def test_experience_2_the_files_decide_in_a_repository_that_nobody_else_can_change(
    job: Job, change: str, names: tuple[str, ...], more: dict[str, str], reason: str
) -> None:
    """Otherwise `plan`, `doctor` and `validate` say the same: which field, why, which branch."""
    write(job.folder, {"reconciler.yaml": "version: 1\nenvironments: {prod: {}}\n"})
    job.git.commit("before")
    text = job.settings()
    if "CI" in more or "RECONCILER_TRUST_REF" not in more:
        write(job.folder, {"reconciler.yaml": text})
        job.git.commit("own")
    job.git.run("remote", "remove", "origin")
    (job.git.folder / ".git/FETCH_HEAD").unlink(missing_ok=True)
    OUTSIDE[change](job)
    write(job.folder, {"reconciler.yaml": text})
    given = {name: value for name, value in job.running.environ().items() if name in names}
    environ = {KEY: job.running.api_key, **given, **more}
    words = ("-C", job.folder, "-e", "prod")
    planned = reconciler("plan", *words, "--no-inventory", environ=environ)
    assert planned.code == (1 if reason else 0), planned.err
    if not reason:
        return
    first = planned.err.splitlines()[0].removeprefix("error: ")
    assert first.startswith("`")
    assert f"of environment prod cannot be trusted here: {reason}" in first
    assert "--trust-workspace" in planned.err
    checked = reconciler("doctor", *words, "--format", "json", environ=environ)
    results = {check["name"]: check["result"] for check in json.loads(checked.out)["checks"]}
    assert results["connection"] == first
    validated = reconciler("validate", *words, environ=environ)
    assert validated.code == 0
    assert f"note: {first} [untrusted-setting]" in " ".join(validated.out.split())


# Files and HEAD that change while a workspace is loaded: it is loaded again, or not at all.

VARIABLE = "RECONCILER_VAR_NAME"
ONLY_HERE = "version: 1\nresources: ['*.yaml']\n"
ONE = f"projects: {{one: {{name: '${{env:{VARIABLE}}}'}}}}\n"
TWO = {"two.yaml": "projects: {two: {name: Two}}\n"}
BROKEN = {"one.yaml": f"{ONE}batch_exports: {{x: {{interval: nonsense}}}}\n"}


class Changing(dict[str, str]):
    """Variables of a machine on which something changes when one of them is read."""

    def __init__(self, change: Callable[[], object], times: int) -> None:
        super().__init__({VARIABLE: "One", "CI": "true"})
        self.change, self.times, self.read = change, times, 0

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        if name == VARIABLE:
            self.read += 1
            if self.read <= self.times:
                self.change()
        return super().get(name, default)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    git = Git.init(tmp_path)
    write(tmp_path, {"reconciler.yaml": ONLY_HERE, "one.yaml": ONE, "notes.txt": "x"})
    git.commit("main")
    git.run("switch", "--quiet", "-c", "other")
    write(tmp_path, TWO)
    git.commit("other")
    git.run("switch", "--quiet", "main")
    return git


def opened(git: Git, environ: Changing) -> Session:
    runtime = Runtime(environ=environ, now=lambda: NOW)
    return open_session(Workspace(git.folder, trust_workspace=True, runtime=runtime))


def edit(git: Git) -> None:
    """Write a file of the same size."""
    write(git.folder, {"one.yaml": ONE.replace("one:", "two:")})


def replaced(git: Git) -> None:
    """Replace a file by another one, as editors do, with the same time."""
    edit(git)
    (git.folder / "one.yaml").rename(git.folder / "two.yaml")


@pytest.mark.parametrize(
    ("change", "keys", "loads"),
    [
        (lambda git: git.run("switch", "--quiet", "other"), {"one", "two"}, 2),
        (lambda git: git.commit("nothing but a commit"), {"one"}, 2),
        (edit, {"two"}, 2),
        (lambda git: write(git.folder, TWO), {"one", "two"}, 2),
        (replaced, {"two"}, 2),
        (lambda git: write(git.folder, {"notes.txt": "longer", "notes.json": "{}"}), {"one"}, 1),
        (lambda git: write(git.folder, {".hidden/x.yaml": "projects: {}\n"}), {"one"}, 1),
    ],
)
def test_plan_d4_what_changes_meanwhile_is_loaded_again(
    git: Git, change: Callable[[Git], object], keys: set[str], loads: int
) -> None:
    environ = Changing(lambda: change(git), 1)
    session = opened(git, environ)
    assert {address.key for address in session.loaded.desired.resources} == keys
    assert environ.read == loads
    assert session.history is not None
    assert session.history.head == git.head()


def test_plan_d4_errors_in_a_mixture_of_two_branches_are_not_reported(git: Git) -> None:
    write(git.folder, BROKEN)
    environ = Changing(lambda: write(git.folder, {"one.yaml": ONE}), 1)
    assert len(opened(git, environ).loaded.desired.resources) == 1
    write(git.folder, BROKEN)
    with pytest.raises(InvalidConfiguration):
        opened(git, Changing(lambda: None, 0))


def test_plan_d4_files_that_never_rest_are_an_error(git: Git) -> None:
    branches = ["main", "other"] * 2
    environ = Changing(lambda: git.run("switch", "--quiet", branches.pop()), 9)
    with pytest.raises(FilesChanged, match="the files or HEAD changed"):
        opened(git, environ)
    assert environ.read == 3
