"""Git is isolated: nothing of the environment, the repository or a commit redirects or runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.errors import GitUnavailable
from reconciler.git.repository import GitSource, Objects, Repository
from tests.support.cli import write
from tests.support.git import Git


def repository_of(folder: Path) -> Repository:
    repository = Repository.containing(folder)
    assert repository is not None
    return repository


def head_of(folder: Path) -> str | None:
    return repository_of(folder).commit("HEAD")


def source_at(folder: Path, commit: str) -> GitSource:
    return GitSource(Objects(repository_of(folder)), commit)


def test_the_repository_is_the_first_one_upwards(tmp_path: Path) -> None:
    Git.init(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    assert repository_of(tmp_path).path == ""
    assert repository_of(tmp_path / "a/b").path == "a/b"
    Git.init(tmp_path / "a")
    assert repository_of(tmp_path / "a/b").path == "b"
    (tmp_path / "link").symlink_to(tmp_path / "a/b")
    assert repository_of(tmp_path / "link").path == "b"


@pytest.mark.parametrize(
    ("git_dir", "is_nested"),
    [
        ("/repo/.git/worktrees/two", False),
        ("/home/modules/repo/.git/worktrees/two", False),
        ("../.git/modules/two", True),
        ("/repo/.git/worktrees/one/modules/two", True),
    ],
)
def test_security_24_a_submodule_is_recognised_by_its_git_file(
    tmp_path: Path, git_dir: str, *, is_nested: bool
) -> None:
    (tmp_path / ".git").write_text(f"gitdir: {git_dir}\n")
    assert Repository(tmp_path, "").is_nested is is_nested


def test_security_24_a_repository_inside_another_one_is_recognised(tmp_path: Path) -> None:
    Git.init(tmp_path)
    inner = Git.init(tmp_path / "a/b")
    assert Repository(inner.folder, "").is_nested


def test_security_25_only_the_full_name_of_a_reference_counts(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    git.commit()
    repository = Repository(tmp_path, "")
    git.run("tag", "refs/remotes/origin/main")
    assert repository.tip("refs/remotes/origin/main") is None
    git.trust()
    assert repository.tip("refs/remotes/origin/main") == git.head()


def test_files_with_the_names_of_commits_change_nothing(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    assert head_of(tmp_path) is None
    first = git.commit()
    write(tmp_path, {"HEAD": "", first: ""})
    assert head_of(tmp_path) == first
    assert repository_of(tmp_path).times([first, "f" * 40]).keys() == {first}


def test_a_folder_that_looks_like_a_repository_is_not_used(tmp_path: Path) -> None:
    git = Git.init(tmp_path / "repo")
    folder = write(tmp_path / "repo/w", {"a.yaml": "1"})
    first = git.commit()
    bare = Git.init(tmp_path / "other")
    bare.commit("planted")
    for name in ("HEAD", "config", "objects", "refs"):
        (tmp_path / "other/.git" / name).rename(folder / name)
    assert head_of(folder) == first


def test_inherited_variables_do_not_redirect_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git.init(tmp_path / "repo")
    first = git.commit("one")
    Git.init(tmp_path / "other").commit("two")
    for name, path in (("DIR", ".git"), ("WORK_TREE", "."), ("OBJECT_DIRECTORY", ".git/objects")):
        monkeypatch.setenv(f"GIT_{name}", str(tmp_path / "other" / path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert head_of(tmp_path / "repo") == first


def test_replacements_of_objects_are_ignored(tmp_path: Path) -> None:
    git = Git.init(write(tmp_path, {"a.yaml": "old"}))
    first = git.commit()
    blob = git.head("HEAD:a.yaml")
    write(tmp_path, {"a.yaml": "forged"})
    git.commit()
    git.run("replace", blob, git.head("HEAD:a.yaml"))
    assert source_at(tmp_path, first).read("a.yaml") == b"old"


def test_no_hook_and_no_monitor_runs(tmp_path: Path) -> None:
    git = Git.init(write(tmp_path / "repo", {"a.yaml": "1"}))
    git.commit()
    origin = git.bare(tmp_path / "origin.git")
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-$(basename $0)\n", encoding="utf-8")
    script.chmod(0o755)
    git.run("config", "core.fsmonitor", str(script))
    for hook in ("pre-push", "reference-transaction", "post-index-change"):
        path = tmp_path / "repo/.git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(script)
    repository = repository_of(tmp_path / "repo")
    head = head_of(tmp_path / "repo")
    assert head is not None
    assert source_at(tmp_path / "repo", head).read("a.yaml") == b"1"
    repository.push("origin", "refs/reconciler/x", head, None)
    repository.update_ref("refs/reconciler/x", head, None)
    assert origin.head("refs/reconciler/x") == head
    assert not list(tmp_path.glob("ran-*"))


def test_a_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    origin = Git.init(write(tmp_path / "origin", {"a.yaml": "1"}))
    origin.commit()
    write(origin.folder, {"a.yaml": "2"})
    origin.commit()
    origin.run("config", "uploadpack.allowFilter", "true")
    clone = origin.clone(tmp_path / "clone", "--filter=blob:none")
    clone.run("config", "remote.origin.uploadpack", f"touch {tmp_path}/ran; git-upload-pack")
    with pytest.raises(GitUnavailable, match="partial clone") as raised:
        source_at(clone.folder, clone.head("HEAD~1")).read("a.yaml")
    assert raised.value.hint == "clone without --filter"
    assert not (tmp_path / "ran").exists()


def test_names_of_files_are_those_of_a_folder(tmp_path: Path) -> None:
    names = {"a.yaml": "1", ".github/b.yaml": "1", "node_modules/c.yaml": "1", "sub/ä b.yaml": "1"}
    git = Git.init(tmp_path / "repo")
    folder = write(tmp_path / "repo/w", names)
    (folder / "folder").symlink_to("sub")
    assert source_at(folder, git.commit()).names() == ["a.yaml", "sub/ä b.yaml"]


def test_links_are_followed_inside_the_workspace_only(tmp_path: Path) -> None:
    git = Git.init(tmp_path / "repo")
    folder = write(tmp_path / "repo/w", {"sub/a.yaml": "a"})
    write(tmp_path / "repo", {"out.yaml": "out"})
    links = {
        "in.yaml": "sub/a.yaml",
        "twice.yaml": "./in.yaml",
        "out.yaml": "../out.yaml",
        "absolute.yaml": str(tmp_path / "repo/out.yaml"),
        "loop.yaml": "loop.yaml",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    source = source_at(folder, git.commit())
    assert {name: source.read(name) for name in links} == {
        "in.yaml": b"a",
        "twice.yaml": b"a",
        "out.yaml": None,
        "absolute.yaml": None,
        "loop.yaml": None,
    }
    assert source.read("./sub/../sub/a.yaml") == b"a"


def test_a_workspace_that_is_a_submodule_is_not_in_the_outer_repository(tmp_path: Path) -> None:
    inner = Git.init(write(tmp_path / "inner", {"reconciler.yaml": "version: 1\n"}))
    inner.commit()
    outer = Git.init(tmp_path / "outer")
    allowed = ("-c", "protocol.file.allow=always")
    outer.run(*allowed, "submodule", "add", "--quiet", str(inner.folder), "w")
    commit = outer.commit()
    repository = Repository(outer.folder, "w")
    assert Objects(repository).tree(commit) is None
    assert repository_of(tmp_path / "outer/w").root == tmp_path / "outer/w"


def test_a_missing_git_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Git.init(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitUnavailable, match="not installed") as raised:
        repository_of(tmp_path).commit("HEAD")
    assert "--no-inventory" in (raised.value.hint or "")


def test_the_message_of_git_is_shown_without_control_characters(tmp_path: Path) -> None:
    Git.init(tmp_path).commit()
    with pytest.raises(GitUnavailable, match=r"git merge-base failed: fatal: .*\\u202e"):
        repository_of(tmp_path).merge_base("\u202e", "HEAD")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_security_n4_git_gets_neither_the_api_key_nor_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git.init(tmp_path / "w")
    git.commit()
    git.run("remote", "add", "origin", "ext::true")
    programs = write(tmp_path / "bin", {"git": '#!/bin/sh\nenv >> "$SEEN"\n'})
    (programs / "git").chmod(0o755)
    seen = tmp_path / "seen"
    secrets = ("RECONCILER_API_KEY", "RECONCILER_API_KEY_OLD", "RECONCILER_SECRET_AWS")
    for name in (*secrets, "RECONCILER_VAR_REGION", "GIT_ASKPASS"):
        monkeypatch.setenv(name, f"value-of-{name}")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("SEEN", str(seen))
    repository = Repository(tmp_path / "w", "")
    repository.branch()
    repository.push("origin", "refs/reconciler/default", "0" * 40, None)
    assert [name for name in secrets if name in seen.read_text()] == []
    assert seen.read_text().count("value-of-RECONCILER_VAR_REGION") == 2
    assert seen.read_text().count("value-of-GIT_ASKPASS") == 1
