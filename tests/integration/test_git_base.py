"""The git base end to end: the range since the applied commit, marks, rollbacks, odd histories."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.security.test_output_injection import commands_in
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

REF = "refs/reconciler/w/default"
SETTINGS = "version: 1\nsecrets: [ONE, TWO, ID]\npolicy: {prune: git, max_deletes: 9}\n"
SECRETS = {
    "RECONCILER_SECRET_ONE": "first-value-1",
    "RECONCILER_SECRET_TWO": "second-value-2",
    "RECONCILER_SECRET_ID": "an-access-key",
}


@dataclass(frozen=True)
class Repo:
    """A clone with the workspace `w`, its bare origin, and the service."""

    git: Git
    origin: Git
    running: RunningEmulator
    folder: Path

    def commit(self, message: str = "change", **exports: dict[str, Any]) -> str:
        """Write the exports to the workspace, commit and push."""
        self.write(**exports)
        commit = self.git.commit(message)
        self.git.run("push", "--quiet", "origin", "HEAD")
        return commit

    def write(self, **exports: dict[str, Any]) -> None:
        """Write the exports to the workspace."""
        write(self.folder, {"resources.yaml": declared(**exports)})

    def run(self, *words: str | Path, environ: dict[str, str] | None = None) -> Ran:
        """Run a command on the workspace."""
        command, *more = words
        given = {**self.running.environ(), **SECRETS, **(environ or {})}
        return reconciler(command, "-C", self.folder, *more, environ=given)

    def apply(self, *more: str, environ: dict[str, str] | None = None) -> Ran:
        """Run apply."""
        return self.run("apply", "--auto-approve", *more, environ=environ)

    def notes(self, *more: str, environ: dict[str, str] | None = None) -> dict[str, str]:
        """Return the notes of a plan by code."""
        ran = self.run("plan", "--format", "json", *more, environ=environ)
        assert ran.code == 0, ran.err
        return {note["code"]: note["message"] for note in json.loads(ran.out)["notes"]}

    def exports(self) -> set[str]:
        """Return the names of the live exports."""
        return set(self.running.exports())

    def marked(self) -> str | None:
        """Return the applied commit in the origin."""
        names = self.origin.run("for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split() for line in names.splitlines()).get(REF)


def declared(**exports: dict[str, Any]) -> str:
    noop = {"type": "NoOp", "config": {}}
    own = {
        key: {"project": "web", "name": key, "interval": "hour", "destination": noop, **fields}
        for key, fields in exports.items()
    }
    return json.dumps({"projects": {"web": {"name": "Web"}}, "batch_exports": own}, indent=1)


def secret_in(variable: str) -> dict[str, Any]:
    """Return an export that takes its secret from a variable."""
    config = {
        "bucket_name": "b",
        "region": "r",
        "prefix": "p",
        "aws_access_key_id": "${secret:env:RECONCILER_SECRET_ID}",
        "aws_secret_access_key": f"${{secret:env:RECONCILER_SECRET_{variable}}}",
    }
    return {"destination": {"type": "S3", "config": config}}


def before(commit: str) -> dict[str, str]:
    """Return the variables of a CI job after a push."""
    return {"CI": "true", "CI_COMMIT_BEFORE_SHA": commit}


@pytest.fixture
def repo(tmp_path: Path, emulator: RunningEmulator) -> Iterator[Repo]:
    git = Git.init(tmp_path / "repo")
    folder = write(git.folder / "w", {"reconciler.yaml": SETTINGS})
    git.commit("start")
    yield Repo(git, git.bare(tmp_path / "origin.git"), emulator, folder)
    emulator.admin("DELETE", "faults")


def fail(repo: Repo, method: str) -> None:
    """Let every request of a method fail."""
    rule = {"match": {"method": method}, "fault": "error", "status": 400}
    repo.running.admin("PUT", "faults", [rule])


def test_f7_a_failed_rotation_is_done_by_the_next_push_with_mark(repo: Repo) -> None:
    first = repo.commit(a=secret_in("ONE"))
    assert repo.apply("--mark").code == 0
    assert repo.marked() == first
    second = repo.commit(a=secret_in("TWO"))
    fail(repo, "PATCH")
    assert repo.apply("--mark", environ=before(first)).code == 3
    assert repo.marked() == first
    repo.running.admin("DELETE", "faults")
    third = repo.commit("unrelated", a=secret_in("TWO"), b={})
    repo.running.clear_requests()
    done = repo.apply("--mark", environ=before(second))
    assert done.code == 0, done.err
    assert "PATCH" in [method for method, _ in repo.running.writes()]
    assert repo.marked() == third
    again = repo.run("plan", "--detailed-exitcode", environ=before(second))
    assert again.code == 0, again.out


def test_f7_a_failed_prune_is_done_by_the_next_push_with_mark(repo: Repo) -> None:
    repo.commit(a={}, b={})
    assert repo.apply("--mark").code == 0
    second = repo.commit(a={})
    fail(repo, "DELETE")
    assert repo.apply("--mark").code == 3
    assert repo.exports() == {"a", "b"}
    repo.running.admin("DELETE", "faults")
    repo.commit("unrelated", a={}, c={})
    done = repo.apply("--mark", environ=before(second))
    assert done.code == 0, done.err
    assert repo.exports() == {"a", "c"}


def test_f7_without_mark_the_base_of_the_last_deployment_has_the_same_range(repo: Repo) -> None:
    first = repo.commit(a={}, b={})
    assert repo.apply().code == 0
    second = repo.commit(a={})
    third = repo.commit("unrelated", a={}, c={})
    assert repo.apply(environ=before(second)).code == 0
    assert repo.exports() == {"a", "b", "c"}
    repo.commit("more", a={}, c={}, d={})
    assert repo.apply("--base", first, environ=before(third)).code == 0
    assert repo.exports() == {"a", "c", "d"}


def test_what_was_declared_anywhere_in_the_range_and_is_gone_is_removed(repo: Repo) -> None:
    first = repo.commit(a={})
    assert repo.apply("--mark").code == 0
    repo.commit(a={}, b={})
    assert repo.apply().code == 0  # Without --mark.
    repo.commit(a={"name": "renamed once"})
    repo.commit(a={"name": "renamed twice"})
    plan = repo.run("plan")
    assert "0 to create, 1 to update, 1 to delete" in plan.out
    saved = repo.folder.parent / "plan.json"
    assert repo.run("plan", "--out", saved).code == 0
    source = json.loads(saved.read_text())["source"]
    assert (source["base"], source["base_commits"], source["head"]) == (first, 3, repo.git.head())
    assert source["base_time"] == "2026-01-01T12:00:00Z"


def test_the_branch_is_shown_and_is_not_in_the_plan_id(repo: Repo) -> None:
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "-c", "team/feature")
    shown = f"→ team/feature&#64;&#8203;{repo.git.head()[:7]} · committed removals"
    assert shown in repo.run("plan", "--format", "markdown").out
    by_git = json.loads(repo.run("plan", "--format", "json").out)
    assert by_git["source"]["head_ref"] == "team/feature"
    repo.git.run("switch", "--quiet", "--detach")
    detached = json.loads(repo.run("plan", "--format", "json").out)
    assert "head_ref" not in detached["source"]
    assert detached["plan_id"] == by_git["plan_id"]


def test_security_8_a_hostile_branch_of_a_pull_request_is_escaped_and_cut(repo: Repo) -> None:
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "--detach")
    branch = "\u202e::error::x ##[error]y\x1b[2J -->" + "b" * 999
    job = {"CI": "true", "GITHUB_HEAD_REF": branch}
    planned = repo.run("plan", "--format", "json", environ=job)
    assert planned.code == 0
    head_ref = json.loads(planned.out)["source"]["head_ref"]
    assert head_ref.startswith("\\u202e::error::x ##[error]y\\x1b[2J -->bbb")
    assert len(head_ref) == 80
    ran = repo.run("plan", "--format", "markdown", environ=job)
    assert commands_in(planned.out + ran.out) == []
    assert "→ \\u202e" in html.unescape(ran.out)


def test_a_plan_in_a_repository_compares_with_head(repo: Repo) -> None:
    repo.commit(a={}, b={})
    assert repo.apply().code == 0
    assert repo.notes() == {}
    repo.write(a={"interval": "day"})
    plan = repo.run("plan")
    assert "0 to create, 1 to update, 1 to delete" in plan.out
    assert "no-git-base" in repo.notes("--no-base")


def test_a_new_environment_or_workspace_has_an_empty_base(repo: Repo) -> None:
    start = repo.git.head()
    repo.write(a={})
    assert "Plan: 2 to create, 0 to update, 0 to delete" in repo.run("plan", "--base", start).out
    settings = "version: 1\nenvironments: {default: {}, new: {}}\n"
    repo.commit(a={})
    write(repo.folder, {"reconciler.yaml": settings})
    plan = repo.run("plan", "-e", "new")
    assert (plan.code, "2 to create" in plan.out) == (0, True)


def test_errors_in_the_files_of_the_base_are_an_error(repo: Repo) -> None:
    write(repo.folder, {"resources.yaml": "batch_exports:\n  a: {interval: nonsense}\n"})
    broken = repo.git.commit("broken")
    fixed = repo.commit(a={})
    plan = repo.run("plan", "--base", broken)
    assert plan.code == 1
    assert f"errors in the files at the base {broken[:7]}: resources.yaml:2:" in plan.err
    assert "hint: use --base with a commit whose files have no errors" in plan.err
    # A later commit with errors cannot have been applied.
    notes = repo.notes("--base", f"{broken}~1")
    assert notes == {
        "invalid-commits": f"left out of the base, since their files have errors: {broken[:7]}"
    }
    assert repo.git.head() == fixed


def test_mark_needs_a_whole_environment_and_committed_files(repo: Repo) -> None:
    repo.commit(a={}, b={})
    partial = repo.apply("--mark", "--target", "batch_export.a")
    assert partial.code == 64
    assert "--mark records a whole environment" in partial.err
    assert repo.apply("--mark", "--no-base").code == 64
    repo.write(a={})
    dirty = repo.apply("--mark")
    assert dirty.code == 1
    assert "these files differ from it: resources.yaml; nothing was sent" in dirty.err
    write(repo.folder, {"more.yaml": "projects: {}\n"})
    repo.write(a={}, b={})
    assert "these files differ from it: more.yaml" in repo.apply("--mark").err
    (repo.folder / "more.yaml").unlink()
    (repo.folder / "resources.yaml").unlink()
    assert "these files differ from it: resources.yaml" in repo.apply("--mark").err
    assert repo.running.writes() == []
    assert repo.marked() is None


def test_mark_refuses_a_commit_that_the_trusted_branch_lacks(repo: Repo) -> None:
    repo.write(a={})
    repo.git.commit("not pushed")
    refused = repo.apply("--mark")
    assert refused.code == 1
    assert "refs/remotes/origin/main does not contain it" in refused.err
    assert repo.running.writes() == []


def test_a_mark_is_not_made_after_a_failure(repo: Repo) -> None:
    repo.commit(a={}, b={})
    fail(repo, "POST")
    assert repo.apply("--mark").code == 3
    assert repo.marked() is None
    repo.running.admin("DELETE", "faults")
    assert repo.apply("--mark").code == 0
    assert repo.marked() == repo.git.head() == repo.git.head(REF)


def test_an_apply_without_changes_moves_the_mark(repo: Repo) -> None:
    repo.commit(a={})
    assert repo.apply("--mark").code == 0
    moved = repo.commit("unrelated", a={})
    assert repo.apply("--mark").code == 0
    assert repo.marked() == moved


def test_a_mark_that_moved_meanwhile_is_not_overwritten(repo: Repo, tmp_path: Path) -> None:
    repo.commit(a={})
    assert repo.apply("--mark").code == 0
    other = repo.commit(a={}, b={})
    assert repo.apply("--mark").code == 0
    last = repo.commit(a={}, b={}, c={})
    clone = repo.origin.clone(tmp_path / "clone")  # Without the references of marks.
    late = Repo(clone, repo.origin, repo.running, clone.folder / "w")
    lost = late.apply("--mark")
    assert lost.code == 3
    assert f"the applied commit {last[:7]} was not recorded" in lost.err
    assert f"git fetch origin '+{REF}:{REF}'" in lost.err
    assert repo.marked() == other
    clone.run("fetch", "--quiet", "origin", f"+{REF}:{REF}")
    assert clone.head(REF) == other
    assert late.apply("--mark").code == 0
    assert repo.marked() == clone.head(REF) == last


def test_a_mark_without_a_remote_is_local(repo: Repo) -> None:
    repo.commit(a={})
    repo.git.run("remote", "remove", "origin")
    assert repo.apply("--mark").code == 0
    assert repo.git.head(REF) == repo.git.head()


@pytest.mark.parametrize("prefix", ["refs/deployed/pipelines", "refs/headstart", "refs/a/heads"])
def test_the_reference_of_the_mark_is_configurable(repo: Repo, prefix: str) -> None:
    write(repo.folder, {"reconciler.yaml": f"version: 1\nmark: {{ref: {prefix}}}\n"})
    repo.commit(a={})
    assert repo.apply("--mark").code == 0
    assert repo.origin.head(f"{prefix}/default") == repo.git.head()


@pytest.mark.parametrize(
    "ref",
    [
        *("refs/heads", "refs/heads/x", "refs/HEADS/x", "refs/tags", "refs/tags/v", "refs/remotes"),
        *("refs/remotes/origin", "refs/reconciler-local", "main", "refs/a/../b", "-x", "refs"),
    ],
)
def test_security_n5_a_reference_that_a_mark_must_not_move_is_refused(repo: Repo, ref: str) -> None:
    write(repo.folder, {"reconciler.yaml": f"version: 1\nmark: {{ref: '{ref}'}}\n"})
    refused = repo.run("validate")
    assert refused.code == 1
    assert "[bad-ref]" in refused.err + refused.out


def test_apply_refuses_a_commit_that_lacks_the_applied_one(repo: Repo) -> None:
    old = repo.commit(a={"name": "old name"})
    assert repo.apply("--mark").code == 0
    new = repo.commit(a={"name": "new name"}, b={})
    assert repo.apply("--mark").code == 0
    repo.git.run("checkout", "--quiet", old)
    repo.running.clear_requests()
    refused = repo.apply()
    assert refused.code == 4
    assert f"the applied commit {new[:7]} ({REF}) is not an ancestor of HEAD" in refused.err
    assert "--rollback" in refused.err
    assert repo.running.writes() == []
    assert list(repo.notes()) == ["applied-commit-not-in-head"]
    plan = repo.run("plan")
    assert "0 to create, 1 to update, 1 to delete" in plan.out
    done = repo.apply("--rollback", "--mark")
    assert done.code == 0, done.err
    assert repo.exports() == {"old name"}
    assert repo.marked() == old
    repo.git.run("checkout", "--quiet", "main")
    assert repo.apply("--mark").code == 0
    assert repo.exports() == {"new name", "b"}


def test_an_applied_commit_outside_the_trusted_branch_is_ignored(repo: Repo) -> None:
    repo.commit(a={})
    assert repo.apply("--mark").code == 0
    repo.git.run("switch", "--quiet", "-c", "feature")
    planted = repo.commit(a={}, planted={})
    repo.git.run("update-ref", REF, planted)
    repo.git.run("switch", "--quiet", "main")
    notes = repo.notes()
    assert notes == {
        "applied-commit-ignored": f"the applied commit {planted[:7]} ({REF}) is not in "
        "refs/remotes/origin/main and is ignored"
    }
    assert repo.apply().code == 0


def test_a_pull_request_compares_with_the_applied_commit(repo: Repo) -> None:
    applied = repo.commit(a={}, b={})
    assert repo.apply("--mark").code == 0
    repo.commit(a={})  # Merged, but not applied yet.
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.commit(a={"interval": "day"})
    environ = {"CI": "true", "GITHUB_BASE_REF": "main"}
    plan = repo.run("plan", "--format", "json", environ=environ)
    assert json.loads(plan.out)["source"]["base"] == applied
    assert "0 to create, 1 to update, 1 to delete" in repo.run("plan", environ=environ).out


@pytest.mark.parametrize("above", ["", "refs/remotes/"])
def test_security_25_a_tag_with_the_full_name_of_the_target_hides_no_removal(
    repo: Repo, above: str
) -> None:
    repo.commit(a={}, b={})
    assert repo.apply().code == 0
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.commit(a={})
    repo.git.run("tag", f"{above}refs/remotes/origin/main")
    repo.git.run("tag", "refs/remotes/main")
    pull_request = {"CI": "true", "CHANGE_TARGET": "main"}
    for words, environ in (((), pull_request), (("--base", "main"), {})):
        ran = repo.run("plan", *words, environ=environ)
        assert "0 to create, 0 to update, 1 to delete" in ran.out
    repo.git.run("update-ref", "-d", "refs/remotes/origin/main")
    ran = repo.run("plan", environ={**pull_request, "CI_DEFAULT_BRANCH": "main"})
    assert ran.code == 1
    assert "unknown git commit 'refs/remotes/origin/main'" in ran.err


def test_a_tag_with_the_full_name_of_the_mark_is_no_applied_commit(repo: Repo) -> None:
    repo.git.run("tag", REF, repo.commit(a={}))
    head = repo.commit(a={}, b={})
    assert repo.apply("--mark").code == 0
    assert repo.marked() == head


def test_a_pull_request_behind_the_applied_commit_removes_nothing(repo: Repo) -> None:
    first = repo.commit(a={})
    repo.commit(a={}, b={})
    assert repo.apply("--mark").code == 0
    repo.git.run("switch", "--quiet", "-c", "feature", first)
    repo.commit(a={"interval": "day"})
    environ = {"CI": "true", "GITHUB_BASE_REF": "main"}
    assert list(repo.notes(environ=environ)) == ["applied-commit-not-in-head"]
    plan = repo.run("plan", environ=environ)
    assert "Plan: 0 to create, 1 to update, 0 to delete" in plan.out


def test_prune_git_keeps_what_is_not_loaded_and_what_an_environment_leaves_out(
    repo: Repo,
) -> None:
    more = {"batch_exports": json.loads(declared(c={}))["batch_exports"]}
    write(repo.folder, {"more.yaml": json.dumps(more)})
    repo.commit(a={}, b={})
    assert repo.apply().code == 0
    settings = (
        "version: 1\nresources: [resources.yaml]\npolicy: {prune: git}\n"
        "environments: {default: {}, other: {}}\n"
    )
    write(repo.folder, {"reconciler.yaml": settings})
    repo.write(a={}, b={"environments": ["other"]})
    plan = repo.run("plan", "-e", "default")
    assert "0 to delete" in plan.out or "No changes" in plan.out
    assert "its file more.yaml exists but is not loaded" in plan.out
    assert "its `environments` leave out default" in plan.out


def test_a_pull_request_names_what_a_rebase_would_delete(repo: Repo) -> None:
    repo.commit(a={}, hand_made={})
    assert repo.apply().code == 0
    start = repo.commit(a={})  # No longer managed.
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.commit(a={}, hand_made={})
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "--detach", start)
    repo.git.run("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    environ = {"CI": "true", "GITHUB_BASE_REF": "main"}
    assert "batch_export.hand_made" in repo.notes(environ=environ)["declared-on-the-way"]
    repo.git.run("switch", "--quiet", "main")
    repo.git.run("merge", "--quiet", "--ff-only", "feature")
    assert "1 to delete" in repo.run("plan", environ=before(start)).out


def test_a_pull_request_behind_its_target_names_what_a_rebase_would_delete(repo: Repo) -> None:
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.commit(a={}, on_the_way={})
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "main")
    write(repo.folder.parent, {"elsewhere": "x"})
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "--detach")
    repo.git.run("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    environ = {"CI": "true", "GITHUB_BASE_REF": "main"}
    assert "batch_export.on_the_way" in repo.notes(environ=environ)["declared-on-the-way"]


def test_a_shallow_clone_is_an_error_and_not_an_empty_base(repo: Repo, tmp_path: Path) -> None:
    first = repo.commit(a={}, b={})
    repo.commit(a={})
    clone = repo.origin.clone(tmp_path / "shallow", "--depth", "1")
    shallow = Repo(clone, repo.origin, repo.running, clone.folder / "w")
    plan = shallow.run("plan", environ=before(first))
    assert plan.code == 1
    assert "git fetch --unshallow" in plan.err


def test_no_git_is_no_error_unless_it_is_asked_for(repo: Repo, tmp_path: Path) -> None:
    outside = Repo(repo.git, repo.origin, repo.running, tmp_path / "w")
    outside.folder.mkdir()
    write(outside.folder, {"reconciler.yaml": "version: 1\n"})
    outside.write(a={})
    assert "no-git-base" in outside.notes(environ={"CI": "true", "GITHUB_BASE_REF": "main"})
    for more in (["--base", "main"], ["--mark"]):
        refused = outside.apply(*more)
        assert refused.code == 1
        assert "is not in a git repository" in refused.err
    empty = Git.init(tmp_path / "empty")
    inside = Repo(empty, repo.origin, repo.running, empty.folder)
    write(inside.folder, {"reconciler.yaml": "version: 1\n"})
    assert "no-git-base" in inside.notes()


def _with_projects(projects: dict[str, str], **exports: dict[str, Any]) -> str:
    text = json.loads(declared(**exports))
    text["projects"] = {key: {"name": name} for key, name in projects.items()}
    return json.dumps(text, indent=1)


def test_experience_2_the_key_of_a_project_changes_with_what_is_in_it(repo: Repo) -> None:
    """One export is renamed, one moved, one removed: no duplicate, and the removal is done."""
    store: dict[str, Any] = {"project": "store"}
    before = _with_projects({"store": "Shop", "app": "App"}, a=store, b=store, c=store)
    write(repo.folder, {"resources.yaml": before})
    repo.git.commit()
    assert repo.apply().code == 0
    after = _with_projects(
        {"shop2": "Shop", "app": "App"}, a={"project": "shop2", "name": "new"}, b={"project": "app"}
    )
    write(repo.folder, {"resources.yaml": after})
    plan = json.loads(repo.run("plan", "--format", "json").out)
    assert {change["address"]: change["action"] for change in plan["changes"]} == {
        "batch_export.a": "update",
        "batch_export.b": "replace",
        "batch_export.c": "delete",
        "project.app": "no-op",
        "project.shop2": "no-op",
    }
    (moved,) = (change for change in plan["changes"] if change["action"] == "replace")
    assert (moved["old_parent_name"], moved["parent_name"]) == ("Shop", "App")
    done = repo.apply("--allow-replace")
    assert done.code == 0, done.err
    assert repo.exports() == {"new", "b"}


def test_experience_9_a_move_is_detected_by_default_and_pointed_out_without_a_base(
    repo: Repo,
) -> None:
    projects = {"app": "App", "lab": "Lab"}
    text = _with_projects(projects, a={"project": "app", **secret_in("ONE")})
    write(repo.folder, {"resources.yaml": text})
    repo.git.commit()
    assert repo.apply().code == 0
    text = _with_projects(projects, a={"project": "lab", **secret_in("ONE")})
    write(repo.folder, {"resources.yaml": text})
    plan = repo.run("plan")
    assert "must be replaced" in plan.out
    assert "no git base" not in plan.out
    assert "(id " in repo.notes("--no-base")["look-alike"]


def test_terraform_3_a_removal_without_a_git_base_is_counted_and_noted(
    repo: Repo, tmp_path: Path
) -> None:
    outside = Repo(repo.git, repo.origin, repo.running, tmp_path / "outside")
    outside.folder.mkdir()
    write(outside.folder, {"reconciler.yaml": SETTINGS})
    outside.write(a={}, b={})
    assert outside.apply().code == 0
    outside.write(a={})
    plan = outside.run("plan")
    assert "2 unmanaged" in plan.out  # The default project is the other one.
    assert "removed resources" in outside.notes()["no-git-base"]


@pytest.mark.parametrize("glob", ["./exports/*.yaml", "export/*.yaml"])
@pytest.mark.parametrize("name", ["a.yaml", "a.YAML"])
def test_configuration_1_a_pattern_or_a_name_that_changes_deletes_nothing(
    repo: Repo, glob: str, name: str
) -> None:
    more = {"batch_exports": json.loads(declared(c={}))["batch_exports"]}
    write(repo.folder, {"exports/a.yaml": json.dumps(more)})
    repo.commit(a={})
    assert repo.apply().code == 0
    text = f"{SETTINGS}resources: [resources.yaml, '{glob}']\n"
    write(repo.folder, {"reconciler.yaml": text})
    (repo.folder / "exports/a.yaml").rename(repo.folder / "exports" / name)
    applied = repo.apply("--base", "HEAD")
    assert applied.code == (0 if glob.startswith("./") else 1), applied.err
    assert repo.exports() == {"a", "c"}


def test_a_removal_that_a_failed_run_made_unclear_is_not_recorded_as_done(repo: Repo) -> None:
    """The key of a project is given to a new project, and a delete in the former one fails."""

    def commit(projects: dict[str, dict[str, str]], **exports: str) -> str:
        body = {
            "projects": projects,
            "batch_exports": {
                key: {
                    "project": project,
                    "name": key,
                    "interval": "hour",
                    "destination": {"type": "NoOp", "config": {}},
                }
                for key, project in exports.items()
            },
        }
        write(repo.folder, {"resources.yaml": json.dumps(body)})
        made = repo.git.commit("change")
        repo.git.run("push", "--quiet", "origin", "HEAD")
        return made

    first = commit({"main": {"name": "Shop"}}, lake="main", old="main")
    assert repo.apply("--mark").code == 0
    projects = repo.running.state()["projects"]
    shop = next(project for project in projects if project["name"] == "Shop")
    pinned = {"id": str(shop["id"]), "name": "Shop"}
    commit({"shop": pinned, "main": {"name": "Portal"}}, lake="shop")
    fail(repo, "DELETE")
    assert repo.apply("--mark").code == 3
    repo.running.admin("DELETE", "faults")
    again = repo.apply("--mark")
    assert again.code == 3
    assert "the commit is not recorded: it is not certain" in again.err
    assert repo.marked() == first
    assert repo.exports() == {"lake", "old"}


@pytest.mark.parametrize(
    ("prune", "code"),
    [("{batch_export: git}", 3), ("{project: git}", 0), ("{project: git, batch_export: false}", 0)],
)
def test_only_what_prune_would_delete_holds_up_a_mark(repo: Repo, prune: str, code: int) -> None:
    """Two exports of one name: which of them a removed resource had is unclear."""
    settings = f"version: 1\nsecrets: [ONE, TWO, ID]\npolicy: {{prune: {prune}}}\n"
    write(repo.folder, {"reconciler.yaml": settings})
    repo.commit(lake={}, sea={})
    assert repo.apply("--mark").code == 0
    (web,) = (item for item in repo.running.state()["projects"] if item["batch_exports"])
    made = repo.running.call(
        "POST",
        f"/api/projects/{web['id']}/batch_exports/",
        {"name": "lake", "interval": "hour", "destination": {"type": "NoOp", "config": {}}},
    )
    assert made.status_code == 201
    last = repo.commit(sea={})
    applied = repo.apply("--mark")
    assert applied.code == code, applied.err
    assert (repo.marked() == last) is (code == 0)
