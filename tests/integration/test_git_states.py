"""Which commit is the base in real states of git and hosts, and whether a pending deletion is seen.

In every state, one commit removes the export `old`, and `prune: git` has not deleted it yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reconciler.commands.history import WorkspaceHistory
from reconciler.errors import GitUnavailable
from reconciler.kinds import all_kinds
from reconciler.planning.base import Base, History
from reconciler.workspace.loading import load
from tests.support.cli import write
from tests.support.git import Git

ZEROS = "0" * 40


def files(*keys: str, settings: str = "version: 1\n") -> dict[str, str]:
    """Return a workspace with exports."""
    texts = (
        f"  {key}: {{project: {{id: 1}}, name: {key}, interval: hour, "
        "destination: {type: NoOp, config: {}}}\n"
        for key in keys
    )
    return {"reconciler.yaml": settings, "exports.yaml": f"batch_exports:\n{''.join(texts)}"}


@dataclass
class State:
    """A repository and the variables of a job. `start` is the last commit with the export."""

    tmp: Path
    origin: Git
    start: str
    git: Git
    environ: dict[str, str] = field(default_factory=dict)
    environment: str | None = None

    def clone(self, *options: str) -> None:
        """Clone the origin, and work there."""
        self.git = self.origin.clone(self.tmp / "clone", *options)

    def checkout(self, *refs: str, branch: str = "") -> None:
        """Fetch as actions/checkout does: into a new repository, without origin/HEAD."""
        self.git = Git.init(self.tmp / "checkout")
        self.git.run("remote", "add", "origin", f"file://{self.origin.folder}")
        self.git.run("fetch", "--quiet", "--no-tags", "origin", *refs)
        tip = refs[-1].rpartition(":")[2].replace("*", "main")
        self.git.run("checkout", "--quiet", *(["-B", branch] if branch else ["--detach"]), tip)

    def branch(self, name: str = "feature") -> None:
        """Begin a branch."""
        self.git.run("switch", "--quiet", "-c", name)

    def remove(self, *left: str) -> str:
        """Commit the removal of the export."""
        write(self.git.folder, files("lake", *left))
        return self.git.commit("remove", day=3)

    def other(self, name: str = "other.txt", *, day: int = 4) -> str:
        """Commit a change of something else."""
        write(self.git.folder, {name: str(day)})
        return self.git.commit(name, day=day)

    def push(self, branch: str = "HEAD") -> None:
        """Push, and follow the branch."""
        self.git.run("push", "--quiet", "-u", "origin", branch)

    def event(self, name: str, content: Mapping[str, object]) -> None:
        """Be a job of GitHub."""
        path = write(self.tmp, {"event.json": json.dumps(content)}) / "event.json"
        self.environ |= {"CI": "true", "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path)}

    def base(self) -> Base:
        """Return the base."""
        return history_of(self).base(None) or pytest.fail("no base")


def history_of(state: State) -> WorkspaceHistory:
    """Return the history of the workspace."""
    folder = state.git.folder
    loaded = load(folder, environment=state.environment, environ=state.environ)
    return WorkspaceHistory.of(folder, loaded, state.environ) or pytest.fail("no repository")


def base_and_removed(state: State) -> tuple[str, set[str]]:
    """Return the commit of the base, and the keys of the resources that count as removed."""
    workspace = history_of(state)
    base = workspace.base(None)
    assert base is not None
    removed = History.of(base, all_kinds()).removed(workspace.loaded.desired)
    return base.commit, {item.address.key for item, _ in removed}


@pytest.fixture
def state(tmp_path: Path) -> State:
    origin = Git.init(tmp_path / "origin")
    origin.run("config", "receive.denyCurrentBranch", "ignore")
    write(origin.folder, files("lake", "old"))
    return State(tmp_path, origin, origin.commit("start", day=2), origin)


def cloned(state: State) -> str:
    state.clone()
    write(state.git.folder, files("lake"))
    return state.start


def main_before_a_push(state: State) -> str:
    state.clone()
    state.remove()
    return state.start


def main_after_a_push(state: State) -> str:
    state.clone()
    head = state.remove()
    state.push()
    return head


def main_with_a_mark(state: State) -> str:
    main_after_a_push(state)
    state.git.run("update-ref", "refs/reconciler/default", state.start)
    return state.start


def branch_before_a_push(state: State) -> str:
    state.clone()
    state.branch()
    state.remove()
    return state.start


def branch_after_a_push(state: State) -> str:
    branch_before_a_push(state)
    state.push()
    return state.start


def branch_without_origin_head(state: State) -> str:
    branch_after_a_push(state)
    state.git.run("remote", "set-head", "origin", "--delete")
    return state.start


def master_without_origin_head(state: State) -> str:
    state.origin.run("branch", "--quiet", "-m", "master")
    return branch_without_origin_head(state)


def dangling_origin_head(state: State) -> str:
    """The default branch was renamed since the clone."""
    branch_after_a_push(state)
    state.origin.run("branch", "--quiet", "-m", "main", "master")
    state.git.run("fetch", "--quiet", "--prune", "origin")
    return state.start


def trunk_with_origin_head(state: State) -> str:
    state.origin.run("branch", "--quiet", "-m", "trunk")
    return branch_after_a_push(state)


def trunk_without_origin_head(state: State) -> str:
    trunk_with_origin_head(state)
    state.git.run("remote", "set-head", "origin", "--delete")
    return state.git.head()


def cloned_branch(state: State) -> str:
    branch_after_a_push(state)
    state.git = state.origin.clone(state.tmp / "second", "--branch", "feature")
    return state.start


def single_branch(state: State) -> str:
    branch_after_a_push(state)
    options = ("--branch", "feature", "--single-branch")
    state.git = state.origin.clone(state.tmp / "second", *options)
    return state.git.head()


def remote_without_a_fetch(state: State) -> str:
    state.git.run("remote", "add", "origin", "https://git.example/x.git")
    state.branch()
    state.remove()
    return state.start


def depth_1(state: State) -> str:
    state.origin.commit("later")
    state.clone("--depth", "1")
    state.remove()
    return state.origin.head()


def worktree(state: State) -> str:
    state.clone()
    state.git.run("worktree", "add", "--quiet", "-b", "feature", str(state.tmp / "tree"))
    state.git = Git(state.tmp / "tree")
    state.remove()
    return state.start


def detached(state: State) -> str:
    branch_after_a_push(state)
    state.git.run("switch", "--quiet", "--detach")
    return state.start


def amended(state: State) -> str:
    branch_after_a_push(state)
    state.git.run("commit", "--quiet", "--amend", "-m", "again")
    return state.start


def merged_main(state: State) -> str:
    """The branch merges main, which removed another export meanwhile."""
    write(state.origin.folder, {"more.yaml": files("of_main")["exports.yaml"]})
    state.origin.commit("more")
    state.clone()
    state.branch()
    state.remove()
    state.git.run("switch", "--quiet", "main")
    state.git.run("rm", "--quiet", "more.yaml")
    tip = state.other()
    state.push("main")
    state.git.run("switch", "--quiet", "feature")
    state.git.run("merge", "--quiet", "--no-ff", "-m", "merge", "main")
    return tip


def fork(state: State) -> str:
    """The fork of origin/main is behind the upstream repository."""
    upstream = state.origin.clone(state.tmp / "upstream")
    tip = State(state.tmp, upstream, "", upstream).other()
    state.clone()
    state.git.run("remote", "add", "upstream", f"file://{upstream.folder}")
    state.git.run("fetch", "--quiet", "upstream")
    state.git.run("switch", "--quiet", "-c", "feature", "upstream/main")
    state.remove()
    state.push()
    return tip


def two_remotes(state: State) -> str:
    branch_after_a_push(state)
    state.git.run("remote", "add", "backup", f"file://{state.origin.folder}")
    state.git.run("fetch", "--quiet", "backup")
    return state.start


def no_remote_on_main(state: State) -> str:
    return state.remove()


def no_remote_on_a_branch(state: State) -> str:
    state.branch()
    state.remove()
    return state.start


def no_remote_detached(state: State) -> str:
    no_remote_on_a_branch(state)
    state.git.run("switch", "--quiet", "--detach")
    return state.start


def recorded(state: State) -> None:
    """Record what was applied, as `apply` does without a remote."""
    state.git.run("update-ref", history_of(state).local_ref or pytest.fail("a remote"), "HEAD")


def local_record(state: State) -> str:
    recorded(state)
    state.remove()
    return state.start


def local_record_of_an_amended_commit(state: State) -> str:
    first = state.start
    state.start = state.other()
    recorded(state)
    write(state.git.folder, files("lake"))
    state.git.run("commit", "--quiet", "--all", "--amend", "-m", "again")
    return first


def local_record_of_an_amended_root(state: State) -> str:
    recorded(state)
    write(state.git.folder, files("lake"))
    state.git.run("commit", "--quiet", "--all", "--amend", "-m", "again")
    return state.start


def local_record_and_a_mark(state: State) -> str:
    state.git.run("update-ref", "refs/reconciler/default", "HEAD")
    state.remove()
    recorded(state)
    return state.start


def local_record_and_a_remote(state: State) -> str:
    local_record(state)
    state.git.run("remote", "add", "origin", "https://git.example/x.git")
    return state.git.head()


def long_lived_branch(state: State) -> str:
    """Production is deployed from a branch of its own, which main is far ahead of."""
    settings = "version: 1\nenvironments: {production: {branch: release/prod}}\n"
    write(state.origin.folder, files("lake", settings=settings))
    state.origin.commit("start again", day=1)
    state.origin.run("switch", "--quiet", "-c", "release/prod")
    write(state.origin.folder, files("lake", "old", settings=settings))
    tip = state.origin.commit("only in production")
    state.origin.run("switch", "--quiet", "main")
    state.environment = "production"
    state.clone()
    state.git.run("switch", "--quiet", "-c", "fix", "origin/release/prod")
    write(state.git.folder, files("lake", settings=settings))
    state.git.commit("remove")
    state.push()
    return tip


def long_lived_branch_that_is_not_fetched(state: State) -> str:
    long_lived_branch(state)
    state.git.run("update-ref", "-d", "refs/remotes/origin/release/prod")
    return state.git.head()


HEADS = "+refs/heads/*:refs/remotes/origin/*"
DEFAULT = {"repository": {"default_branch": "main"}}


def github_push(state: State) -> str:
    main_after_a_push(state)
    state.checkout(HEADS, branch="main")
    state.event("push", {"before": state.start, **DEFAULT})
    return state.start


def github_push_with_a_mark(state: State) -> str:
    """The run for an earlier push failed."""
    github_push(state)
    state.git.run("update-ref", "refs/reconciler/default", state.start)
    write(state.git.folder, {"other.txt": "x"})
    before = state.git.head()
    state.git.commit("later")
    state.git.run("update-ref", "refs/remotes/origin/main", "HEAD")
    state.event("push", {"before": before, **DEFAULT})
    return state.start


def github_push_with_depth_1(state: State) -> None:
    head = main_after_a_push(state)
    state.checkout("--depth=1", f"+{head}:refs/remotes/origin/main", branch="main")
    state.event("push", {"before": state.start, **DEFAULT})


def _merged(state: State, ref: str) -> str:
    """Let the host merge the branch, and check out the merge with the whole history."""
    branch_after_a_push(state)
    state.git.run("switch", "--quiet", "main")
    tip = state.other(day=5)
    state.push("main")
    state.git.run("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    merge = state.git.head()
    state.git.run("push", "--quiet", "origin", f"HEAD:{ref}")
    state.checkout(HEADS, f"+{merge}:refs/remotes/pull/1/merge")
    return tip


def github_pull_request(state: State) -> str:
    tip = _merged(state, "refs/pull/1/merge")
    state.environ["GITHUB_BASE_REF"] = "main"
    state.event("pull_request", DEFAULT)
    return tip


def github_pull_request_with_depth_1(state: State) -> None:
    branch_after_a_push(state)
    state.checkout("--depth=1", "+refs/heads/feature:refs/remotes/pull/1/merge")
    state.environ["GITHUB_BASE_REF"] = "main"
    state.event("pull_request", DEFAULT)


def github_merge_queue(state: State) -> str:
    queue = "gh-readonly-queue/main/pr-1"
    tip = _merged(state, f"refs/heads/{queue}")
    state.git.run("fetch", "--quiet", "origin")
    state.git.run("switch", "--quiet", "-c", queue, "--track", f"origin/{queue}")
    state.event("merge_group", {"merge_group": {"base_sha": tip}, **DEFAULT})
    return tip


def github_first_push(state: State) -> str:
    branch_after_a_push(state)
    state.checkout(HEADS, "+refs/heads/feature:refs/remotes/origin/feature", branch="feature")
    state.event("push", {"before": ZEROS, **DEFAULT})
    return state.start


def github_second_push(state: State) -> str:
    """The branch is not merged, so what was pushed before is pending, too."""
    branch_after_a_push(state)
    before = state.git.head()
    state.other()
    state.push()
    state.checkout(HEADS, "+refs/heads/feature:refs/remotes/origin/feature", branch="feature")
    state.event("push", {"before": before, **DEFAULT})
    return state.start


def github_push_to_a_branch_of_deployments(state: State) -> str:
    """Main is merged into it, which removed the export."""
    state.clone()
    state.git.run("switch", "--quiet", "-c", "production")
    before = state.other("production.txt")
    state.git.run("switch", "--quiet", "main")
    state.remove()
    state.push("main")
    state.git.run("switch", "--quiet", "production")
    state.git.run("merge", "--quiet", "--no-ff", "-m", "deploy", "main")
    state.push()
    state.checkout(HEADS, "+refs/heads/production:refs/remotes/origin/production", branch="p")
    state.event("push", {"before": before, **DEFAULT})
    return before


def github_schedule(state: State) -> str:
    main_after_a_push(state)
    state.checkout("+refs/heads/main:refs/remotes/origin/main", branch="main")
    state.event("schedule", DEFAULT)
    return state.git.head()


def _gitlab(state: State, ref: str, **variables: str) -> None:
    state.checkout(
        "+refs/heads/main:refs/remotes/origin/main", f"+{ref}:refs/remotes/origin/feature"
    )
    state.environ |= {"CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BEFORE_SHA": ZEROS}
    state.environ |= variables


def gitlab_merge_request(state: State) -> str:
    branch_after_a_push(state)
    _gitlab(state, "refs/heads/feature", CI_MERGE_REQUEST_DIFF_BASE_SHA=state.start)
    return state.start


def gitlab_merge_train(state: State) -> str:
    """A merge request before it in the train removed another export."""
    write(state.origin.folder, files("lake", "old", "earlier"))
    state.start = state.origin.commit()
    branch_after_a_push(state)
    write(state.origin.folder, files("lake", "old"))
    earlier = state.origin.commit("earlier in the train", day=4)
    state.git.run("fetch", "--quiet", "origin")
    state.git.run("switch", "--quiet", "--detach", earlier)
    state.git.run("merge", "--quiet", "--no-ff", "-X", "ours", "-m", "train", "feature")
    write(state.git.folder, files("lake"))
    state.git.run("commit", "--quiet", "--all", "--amend", "--no-edit")
    state.git.run("push", "--quiet", "origin", "HEAD:refs/merge-requests/1/train")
    _gitlab(
        state,
        "refs/merge-requests/1/train",
        CI_MERGE_REQUEST_EVENT_TYPE="merge_train",
        CI_MERGE_REQUEST_DIFF_BASE_SHA=state.start,
        CI_MERGE_REQUEST_TARGET_BRANCH_SHA=earlier,
    )
    return earlier


def gitlab_first_push(state: State) -> str:
    branch_after_a_push(state)
    _gitlab(state, "refs/heads/feature")
    return state.start


def azure_push_of_a_branch(state: State) -> str:
    """No variable names the default branch or the commit before."""
    branch_after_a_push(state)
    state.checkout(HEADS, "+refs/heads/feature:refs/remotes/origin/feature")
    state.environ |= {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/heads/feature"}
    return state.start


SEEN: tuple[Callable[[State], str], ...] = (
    cloned,
    main_before_a_push,
    main_with_a_mark,
    branch_before_a_push,
    branch_after_a_push,
    branch_without_origin_head,
    master_without_origin_head,
    dangling_origin_head,
    trunk_with_origin_head,
    cloned_branch,
    remote_without_a_fetch,
    depth_1,
    worktree,
    detached,
    amended,
    merged_main,
    fork,
    two_remotes,
    no_remote_on_a_branch,
    no_remote_detached,
    local_record,
    local_record_of_an_amended_commit,
    local_record_of_an_amended_root,
    local_record_and_a_mark,
    long_lived_branch,
    github_push,
    github_push_with_a_mark,
    github_pull_request,
    github_merge_queue,
    github_first_push,
    github_second_push,
    github_push_to_a_branch_of_deployments,
    gitlab_merge_request,
    gitlab_merge_train,
    gitlab_first_push,
    azure_push_of_a_branch,
)
UNKNOWN: tuple[Callable[[State], str], ...] = (
    main_after_a_push,
    trunk_without_origin_head,
    single_branch,
    no_remote_on_main,
    local_record_and_a_remote,
    long_lived_branch_that_is_not_fetched,
    github_schedule,
)
"""States in which nothing says what was applied: the base is HEAD, and the plan says so."""
ERRORS: tuple[Callable[[State], None], ...] = (
    github_push_with_depth_1,
    github_pull_request_with_depth_1,
)


def name_of(case: Callable[[State], object]) -> str:
    return case.__name__


@pytest.mark.parametrize("make", SEEN, ids=name_of)
def test_plan_o2_a_pending_deletion_is_seen(state: State, make: Callable[[State], str]) -> None:
    expected = make(state)
    assert base_and_removed(state) == (expected, {"old"})


@pytest.mark.parametrize("make", UNKNOWN, ids=name_of)
def test_plan_o2_without_a_record_head_is_the_base(
    state: State, make: Callable[[State], str]
) -> None:
    expected = make(state)
    assert base_and_removed(state) == (expected, set())


@pytest.mark.parametrize("make", ERRORS, ids=name_of)
def test_a_base_that_the_clone_lacks_is_an_error(
    state: State, make: Callable[[State], None]
) -> None:
    make(state)
    with pytest.raises(GitUnavailable) as raised:
        state.base()
    assert "fetch-depth: 0" in (raised.value.hint or "")


def test_a_branch_that_is_not_fetched_is_named_with_the_command(state: State) -> None:
    long_lived_branch_that_is_not_fetched(state)
    fetch = "git fetch origin '+refs/heads/release/prod:refs/remotes/origin/release/prod'"
    assert state.base().remarks == (
        "committed removals and rotations count as applied",
        f"release/prod is not known in this clone: {fetch}",
    )
