"""Which commit is the base, which commits are in its range, and what the applied commit is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from reconciler.commands.history import WorkspaceHistory
from reconciler.errors import BadUsage, GitUnavailable
from reconciler.model.address import Address
from reconciler.workspace.git.base import (
    BaseCommit,
    Range,
    TrustedBranch,
    applied_commit,
    applied_ref,
    base_branches,
    base_of_ref,
    default_base,
    trusted_branch,
)
from reconciler.workspace.git.ci import before_push_of, head_branch_of, job_url_of, target_of
from reconciler.workspace.git.repository import Repository
from reconciler.workspace.loading import load
from tests.security.witness import witnessed
from tests.support.cli import write
from tests.support.git import Git

REF = "refs/reconciler/w/default"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git.init(tmp_path / "repo")


def repository_of(git: Git, folder: str = "") -> Repository:
    repository = Repository.containing(git.folder / folder)
    assert repository is not None
    return repository


def between(repository: Repository, base: str, ends: Sequence[str]) -> Range:
    return Range.between(repository, repository.described(base), ends)


def default_of(repository: Repository, environ: Mapping[str, str]) -> BaseCommit:
    head = repository.head()
    assert head is not None
    branches = base_branches(repository, environ, None)
    return default_base(repository, head.id, environ, branches)


def chosen(git: Git, environ: dict[str, str] | None = None) -> str:
    return default_of(repository_of(git), environ or {}).id


def test_the_base_has_the_name_of_the_reference_that_leads_to_it(git: Git, tmp_path: Path) -> None:
    commit = git.commit()
    git.run("tag", "v1")
    repository = repository_of(git)
    names = {"main": "main", "v1": "v1", "refs/tags/v1": "v1", "HEAD": "HEAD"}
    names |= {commit: None, commit[:8]: None, "main^0": None}
    assert {ref: base_of_ref(repository, commit, ref).ref for ref in names} == names
    assert default_of(repository, {}).ref == "HEAD"
    clone = git.clone(tmp_path / "clone")
    assert default_of(repository_of(clone), {}).ref == "HEAD"
    clone.commit("later")
    assert default_of(repository_of(clone), {}).ref == "origin/main"
    pull_request = {"CI": "1", "GITHUB_BASE_REF": "main"}
    assert default_of(repository_of(clone), pull_request).ref == "origin/main"


def test_the_default_base_is_head_without_an_upstream_branch(git: Git) -> None:
    git.commit("one")
    second = git.commit("two")
    assert chosen(git) == second


def test_the_default_base_is_the_merge_base_with_the_upstream_branch(
    git: Git, tmp_path: Path
) -> None:
    first = git.commit("one")
    clone = git.clone(tmp_path / "clone")
    git.commit("two")
    clone.run("fetch", "--quiet")
    clone.commit("three")
    assert chosen(clone) == first


def test_ci_names_the_base_of_a_push(git: Git, tmp_path: Path) -> None:
    first = git.commit("one")
    git.commit("two")
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"before": first}), encoding="utf-8")
    push = {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(event)}
    assert chosen(git, {"CI": "true", **push}) == first
    assert chosen(git, {"CI": "true", "CI_COMMIT_BEFORE_SHA": first}) == first
    assert chosen(git, {"CI_COMMIT_BEFORE_SHA": first}) == git.head()


def test_a_new_branch_has_no_commit_before_the_push(git: Git) -> None:
    assert before_push_of({"CI": "1", "CI_COMMIT_BEFORE_SHA": "0" * 40}) is None
    assert before_push_of({"CI": "1", "GITHUB_EVENT_NAME": "push"}) is None


@pytest.mark.parametrize(
    "variable",
    [
        "GITHUB_BASE_REF",
        "BITBUCKET_PR_DESTINATION_BRANCH",
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        "SYSTEM_PULLREQUEST_TARGETBRANCH",
        "CHANGE_TARGET",
    ],
)
def test_ci_names_the_target_of_a_pull_request(git: Git, tmp_path: Path, variable: str) -> None:
    first = git.commit("one")
    git.bare(tmp_path / "origin.git")
    git.run("tag", "origin/main")
    git.run("switch", "--quiet", "-c", "feature")
    git.commit("two")
    # A tag of this name must not be used instead of the branch.
    git.run("tag", "--force", "origin/main")
    branch = "refs/heads/main" if variable.startswith("SYSTEM") else "main"
    environ = {"TF_BUILD": "True", variable: branch, "CI_COMMIT_BEFORE_SHA": git.head()}
    assert chosen(git, environ) == first
    assert target_of({variable: branch}) is None
    assert base_of_ref(repository_of(git), git.head(), "origin/main") == BaseCommit(
        first, "origin/main"
    )


@pytest.mark.parametrize(
    ("environ", "branch"),
    [
        ({"GITHUB_HEAD_REF": "feature", "GITHUB_REF_NAME": "7/merge"}, "feature"),
        ({"GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "main"}, "main"),
        (
            {"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "feature", "CI_COMMIT_REF_NAME": "x"},
            "feature",
        ),
        ({"CI_COMMIT_REF_NAME": "main"}, "main"),
        (
            {
                "SYSTEM_PULLREQUEST_SOURCEBRANCH": "refs/heads/feature",
                "BUILD_SOURCEBRANCH": "refs/pull/7/merge",
            },
            "feature",
        ),
        ({"BUILD_SOURCEBRANCH": "refs/heads/a/b"}, "a/b"),
        ({}, None),
    ],
)
def test_ci_names_the_branch_of_a_job(environ: dict[str, str], branch: str | None) -> None:
    assert head_branch_of({"CI": "true", **environ}) == branch
    assert head_branch_of(environ) is None


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://ci.example/job) [more](https://other.example",
        "https://ci.example/a b",
        "https://user:password@ci.example/job",
        "https://ci.example/job\n",
    ],
)
def test_the_address_of_a_job_is_one_word_without_credentials(url: str) -> None:
    assert job_url_of({"CI_JOB_URL": url}) is None
    assert job_url_of({"CI_JOB_URL": "https://ci.example/job/7"}) == "https://ci.example/job/7"


def test_only_a_branch_that_is_checked_out_has_a_name(git: Git) -> None:
    repository = repository_of(git)
    assert repository.branch() is None
    commit = git.commit()
    git.run("switch", "--quiet", "-c", "team/feature")
    assert repository.branch() == "team/feature"
    git.run("switch", "--quiet", "--detach", commit)
    assert repository.branch() is None


def test_a_base_that_ci_names_and_that_is_missing_is_an_error(git: Git) -> None:
    git.commit()
    environ = {"CI": "1", "GITHUB_BASE_REF": "main"}
    with pytest.raises(GitUnavailable, match="unknown git commit 'refs/remotes/origin/main'"):
        chosen(git, environ)


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("HEAD~3", "use a commit, tag or branch of this clone, or fetch it"),
        ("nope", "use a commit, tag or branch of this clone, or fetch it"),
        ("other/main", "use a commit, tag or branch of this clone, or fetch it"),
        ("origin/main~3", "use a commit, tag or branch of this clone, or fetch it"),
        ("origin/nope", "fetch it: git fetch origin nope"),
        ("origin/a/b", "fetch it: git fetch origin a/b"),
    ],
)
def test_experience_28_an_unknown_base_has_a_hint_that_works(
    git: Git, tmp_path: Path, ref: str, hint: str
) -> None:
    git.commit()
    git.bare(tmp_path / "origin.git")
    with pytest.raises(GitUnavailable, match="unknown git commit") as raised:
        base_of_ref(repository_of(git), git.head(), ref)
    assert raised.value.hint == hint


@pytest.mark.parametrize("ref", ["-x", "--output=x", "--all"])
def test_a_base_that_looks_like_an_option_is_refused(git: Git, ref: str) -> None:
    git.commit()
    with pytest.raises(GitUnavailable, match="invalid git reference"):
        base_of_ref(repository_of(git), git.head(), ref)


def test_a_branch_that_looks_like_an_option_is_an_unknown_commit(git: Git) -> None:
    git.commit()
    with pytest.raises(GitUnavailable, match="unknown git commit 'refs/remotes/origin/--all'"):
        chosen(git, {"CI": "1", "GITHUB_BASE_REF": "--all"})


def test_unrelated_histories_have_no_base(git: Git) -> None:
    first = git.commit("one")
    git.run("switch", "--quiet", "--orphan", "other")
    git.commit("two")
    with pytest.raises(GitUnavailable, match="no common ancestor"):
        base_of_ref(repository_of(git), git.head(), first)


def test_a_repository_without_a_commit_has_no_base(git: Git) -> None:
    with pytest.raises(GitUnavailable, match="no commit"):
        base_of_ref(repository_of(git), None, "main")


def test_a_shallow_clone_gets_the_command_that_fetches_its_history(
    git: Git, tmp_path: Path
) -> None:
    first = git.commit("one")
    git.commit("two")
    clone = git.clone(tmp_path / "shallow", "--depth", "1")
    for ref in ("HEAD~1", first):
        with pytest.raises(GitUnavailable) as raised:
            base_of_ref(repository_of(clone), clone.head(), ref)
        assert "git fetch --unshallow" in (raised.value.hint or "")
    clone.run("fetch", "--quiet", "--depth", "1", "origin", f"{first}:{REF}")
    with pytest.raises(GitUnavailable, match="lacks the history from the applied commit") as raised:
        applied_commit(repository_of(clone), REF, clone.head(), {})
    assert "git fetch --unshallow" in (raised.value.hint or "")


def test_a_shallow_clone_that_lacks_commits_of_the_range_is_an_error(
    git: Git, tmp_path: Path
) -> None:
    base = git.commit("base", day=1)
    git.run("switch", "--quiet", "-c", "feature")
    git.commit("feature", day=9)
    git.run("switch", "--quiet", "main")
    for day in range(2, 6):
        git.commit(f"main {day}", day=day)
    git.run("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    clone = git.clone(tmp_path / "shallow", "--depth", "3")
    assert clone.run("rev-list", "--first-parent", "--count", "HEAD") == "3"
    assert base_of_ref(repository_of(clone), clone.head(), base) == BaseCommit(base)
    with pytest.raises(GitUnavailable, match="lacks commits between the base") as raised:
        between(repository_of(clone), base, [clone.head()])
    assert "git fetch --unshallow" in (raised.value.hint or "")


def range_of(git: Git, folder: str, base: str, *ends: str) -> list[str]:
    later = between(repository_of(git, folder), base, ends or (git.head(),)).later
    return [git.run("show", "--no-patch", "--format=%s", commit.id) for commit in later]


def test_the_range_has_first_parent_commits_that_touch_the_workspace(git: Git) -> None:
    base = write(git.folder, {"w/a.yaml": "0", "b": "0"}) and Git(git.folder).commit("base", day=1)
    write(git.folder, {"w/a.yaml": "1"})
    git.commit("one", day=2)
    git.run("switch", "--quiet", "-c", "feature")
    write(git.folder, {"w/a.yaml": "feature"})
    git.commit("in the branch", day=3)
    git.run("switch", "--quiet", "main")
    write(git.folder, {"b": "1"})
    git.commit("outside", day=4)
    git.run("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    write(git.folder, {"w/a.yaml": "2"})
    git.commit("two", day=5)
    assert range_of(git, "w", base) == ["one", "merge", "two"]
    assert range_of(git, "", base) == ["one", "outside", "merge", "two"]
    commits = between(repository_of(git, "w"), base, [git.head()])
    assert (commits.base.id, commits.base.time.isoformat()) == (base, "2026-01-01T12:00:00+00:00")


def test_the_range_of_a_branch_that_merged_main_begins_with_the_merge(git: Git) -> None:
    write(git.folder, {"w/a.yaml": "0"})
    git.commit("base")
    git.run("switch", "--quiet", "-c", "feature")
    write(git.folder, {"w/b.yaml": "feature"})
    git.commit("before the merge")
    git.run("switch", "--quiet", "main")
    write(git.folder, {"elsewhere": "1"})
    tip = git.commit("main")
    git.run("switch", "--quiet", "feature")
    git.run("merge", "--quiet", "--no-ff", "-m", "merge", "main")
    write(git.folder, {"elsewhere": "2"})
    git.commit("outside")
    # The merge changes the workspace of the base, but not that of its first parent.
    assert range_of(git, "w", tip) == ["merge"]


def test_the_range_of_a_rollback_starts_with_what_was_applied(git: Git) -> None:
    base = git.commit("base", day=1)
    write(git.folder, {"a": "1"})
    git.commit("one", day=2)
    write(git.folder, {"a": "2"})
    applied = git.commit("applied", day=3)
    git.run("reset", "--quiet", "--hard", base)
    write(git.folder, {"b": "1"})
    git.commit("other", day=4)
    assert range_of(git, "", base, applied, git.head()) == ["one", "applied", "other"]


def test_a_state_that_is_restored_counts_again(git: Git) -> None:
    base = write(git.folder, {"w/a.yaml": "0"}) and git.commit("base")
    for text in ("1", "0", "2"):
        write(git.folder, {"w/a.yaml": text})
        git.commit(text)
    commits = between(repository_of(git, "w"), base, [git.head()])
    assert [source.read("a.yaml") for _, source in commits.sources()] == [b"0", b"1", b"0", b"2"]
    assert len(commits.later) == 3


def test_unchanged_resources_of_a_long_range_are_resolved_once(git: Git) -> None:
    folder = git.folder / "w"
    names = [f"p{number}" for number in range(20)]
    write(folder, {f"{name}.yaml": f"projects: {{{name}: {{name: {name}}}}}\n" for name in names})
    write(folder, {"reconciler.yaml": "version: 1\n", "name.txt": "x"})
    base = git.commit("base")
    for number in range(20):
        write(folder, {"p0.yaml": f"projects: {{p0: {{name: name {number}}}}}\n"})
        git.commit(f"change {number}")
    write(folder, {"p0.yaml": "projects: {p0: {name: today}}\n"})
    loaded = load(folder, environment=None, environ={})
    history = WorkspaceHistory.of(folder, loaded, {})
    assert history is not None
    range_ = history.base(base)
    configurations = (range_.desired, *range_.later)
    assert (range_.commits, len(configurations)) == (20, 21)
    addresses = [Address("project", name) for name in names]
    assert [
        len({id(desired.resources[address]) for desired in configurations}) for address in addresses
    ] == [21, *[1] * 19]


def history_of(folder: Path) -> WorkspaceHistory:
    loaded = load(folder, environment=None, environ={})
    history = WorkspaceHistory.of(folder, loaded, {})
    assert history is not None
    return history


def test_files_that_are_as_at_the_base_are_not_read_from_git(git: Git) -> None:
    write(git.folder, {"reconciler.yaml": "version: 1\n", "p.yaml": "projects: {p: {name: p}}\n"})
    git.commit()
    with witnessed() as seen:
        history = history_of(git.folder)
        base = history.base("HEAD")
    assert base is not None
    assert base.desired is history.loaded.desired
    assert not [words for words in seen.commands if "--batch" in words]
    assert len(seen.commands) == len({tuple(words) for words in seen.commands}) == 5


@pytest.mark.parametrize(
    ("content", "differs"),
    [
        (b"projects: {p: {name: p}}\n", False),
        (b"projects: {p: {name: p}}\r\n", False),
        (b"projects: {p: {name: q}}\n", True),
        (b"\xef\xbb\xbfprojects: {p: {name: p}}\n", True),
    ],
)
def test_files_differ_from_a_commit_by_their_content_without_line_ends(
    git: Git, content: bytes, *, differs: bool
) -> None:
    write(git.folder, {"reconciler.yaml": "version: 1\n", "p.yaml": "projects: {p: {name: p}}\n"})
    git.commit()
    (git.folder / "p.yaml").write_bytes(content)
    assert history_of(git.folder).uncommitted() == (["p.yaml"] if differs else [])


def test_files_behind_links_and_missing_ones_differ_from_a_commit(git: Git) -> None:
    text = "projects: {p: {name: p}}\n"
    write(git.folder, {"reconciler.yaml": "version: 1\n", "p.txt": text, "removed.yaml": "{}\n"})
    (git.folder / "p.yaml").symlink_to("p.txt")
    git.commit()
    assert history_of(git.folder).uncommitted() == []
    write(git.folder, {"p.txt": text.replace("name: p", "name: q"), "new.yaml": "{}\n"})
    (git.folder / "removed.yaml").unlink()
    assert history_of(git.folder).uncommitted() == ["new.yaml", "p.yaml", "removed.yaml"]


def test_a_resource_that_reads_a_file_is_resolved_at_every_commit(git: Git) -> None:
    for text in ("a", "b", "c"):
        files = {
            "reconciler.yaml": 'version: 1\nvars: {hidden: "\\x24\\x7bfile:name.txt}"}\n',
            "p.yaml": "projects: {p: {name: '${var:hidden}'}, q: {name: 'q ${file:name.txt}'}}\n",
            "name.txt": text,
        }
        write(git.folder, files)
        git.commit(text)
    write(git.folder, {"name.txt": "d"})
    loaded = load(git.folder, environment=None, environ={})
    history = WorkspaceHistory.of(git.folder, loaded, {})
    assert history is not None
    range_ = history.base(git.head("HEAD~2"))
    names = [
        [resource.name for resource in desired.in_order()]
        for desired in (range_.desired, *range_.later)
    ]
    assert names == [["a", "q a"], ["b", "q b"], ["c", "q c"]]


@pytest.mark.parametrize(
    ("folder", "environment", "prefix", "ref"),
    [
        ("", "production", None, "refs/reconciler/production"),
        ("pipelines/eu", "production", None, "refs/reconciler/pipelines/eu/production"),
        ("w", "eu", "refs/deployed/x", "refs/deployed/x/eu"),
        ("a b/..c/x.lock/.d", "e:1~^?*[\\", None, None),
        ("ä/@{1}/d.", "..", None, None),
    ],
)
def test_the_reference_of_an_environment(
    git: Git, folder: str, environment: str, prefix: str | None, ref: str | None
) -> None:
    (git.folder / folder).mkdir(parents=True, exist_ok=True)
    named = applied_ref(repository_of(git, folder), environment, prefix=prefix)
    assert ref in (None, named)
    git.run("check-ref-format", named)


def test_the_applied_commit_counts_if_the_trusted_branch_contains_it(
    git: Git, tmp_path: Path
) -> None:
    first = git.commit("one")
    git.bare(tmp_path / "origin.git")
    repository = repository_of(git)
    assert applied_commit(repository, REF, first, {}) is None
    second = git.commit("two")
    git.run("update-ref", REF, second)
    applied = applied_commit(repository, REF, second, {})
    assert applied is not None
    assert (applied.commit, applied.is_ancestor) == (second, True)
    assert applied.outside == "refs/remotes/origin/main"
    git.run("update-ref", "refs/remotes/origin/release", second)
    named = {"RECONCILER_TRUST_REF": "refs/remotes/origin/release"}
    applied = applied_commit(repository, REF, first, named)
    assert applied is not None
    assert (applied.is_ancestor, applied.outside) == (False, None)


def test_the_trusted_branch_is_the_default_branch_unless_a_variable_names_it(
    git: Git, tmp_path: Path
) -> None:
    git.commit()
    repository = repository_of(git)
    assert trusted_branch(repository, {"CI_DEFAULT_BRANCH": "main"}) is None
    git.bare(tmp_path / "origin.git")
    assert trusted_branch(repository, {}) == TrustedBranch("refs/remotes/origin/main", git.head())
    for name in ("trunk", "stable"):
        git.run("update-ref", f"refs/remotes/origin/{name}", git.head())

    def chosen_ref(environ: dict[str, str]) -> str | None:
        branch = trusted_branch(repository, environ)
        return branch.ref if branch is not None else None

    assert chosen_ref({"CI_DEFAULT_BRANCH": "trunk"}) == "refs/remotes/origin/trunk"
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"repository": {"default_branch": "stable"}}), encoding="utf-8")
    github = {"GITHUB_EVENT_PATH": str(event)}
    assert chosen_ref(github) == "refs/remotes/origin/stable"
    with pytest.raises(GitUnavailable, match="does not exist"):
        trusted_branch(repository, {"RECONCILER_TRUST_REF": "refs/remotes/origin/nope"})
    with pytest.raises(BadUsage, match="not a full name"):
        trusted_branch(repository, {"RECONCILER_TRUST_REF": "main"})
