"""What a plan says about its base, the local record, restores, and sparse checkouts."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from tests.integration.test_git_base import Repo, before, declared, fail, repo, secret_in
from tests.support.cli import write
from tests.support.emulator import RunningEmulator

__all__ = ["repo"]
COUNT = "committed removals and rotations count as applied"
LOCAL = "refs/reconciler-local"


def lines(text: str) -> list[str]:
    """Return the lines of the base in a plan as text."""
    head = text.split("\n\n", maxsplit=1)[0].splitlines()
    first = next(number for number, line in enumerate(head) if line.startswith("Base"))
    return [line[12:] for line in head[first:] if line.startswith(("Base", " " * 12))]


def shown(repo: Repo, output: str, *more: str) -> str:
    """Return a plan in a format, without the escapes of markup."""
    text = repo.run("plan", "--format", output, *more, environ={"COLUMNS": "80"}).out
    return html.unescape(text).replace("\u200b", "")


def source(repo: Repo, **environ: str) -> dict[str, Any]:
    """Return what a plan was computed from."""
    return dict(json.loads(repo.run("plan", "--format", "json", environ=environ).out)["source"])


def record(repo: Repo) -> str | None:
    """Return the commit of the local record."""
    names = repo.git.run("for-each-ref", "--format=%(refname) %(objectname)", LOCAL).splitlines()
    assert all(re.fullmatch(rf"{LOCAL}/[0-9a-f]{{8}}/w/default \w+", name) for name in names)
    return names[0].split()[1] if names else None


def test_plan_o2_a_pending_deletion_and_rotation_of_a_branch_are_planned(repo: Repo) -> None:
    first = repo.commit(a=secret_in("ONE"), old={})
    assert repo.apply().code == 0
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.write(a={**secret_in("ONE"), "secret_version": 2})
    repo.git.commit("remove and rotate")
    for push in (False, True):
        if push:
            repo.git.run("push", "--quiet", "-u", "origin", "feature")
        ran = repo.run("plan", environ={"COLUMNS": "80"})
        assert "0 to create, 1 to update, 1 to delete" in ran.out
        (line,) = lines(ran.out)
        assert re.fullmatch(rf"origin/main@{first[:7]} \(1 commit, \d+ days\) · plan \w+", line)


@pytest.mark.parametrize("output", ["text", "markdown", "html", "json", "github"])
def test_plan_o2_the_base_of_an_empty_plan_is_shown(repo: Repo, output: str) -> None:
    commit = repo.commit(a={})[:7]
    assert repo.apply().code == 0
    text = shown(repo, output)
    assert COUNT in text
    if output == "text":
        assert lines(text) == [f"main@{commit} (HEAD)", COUNT]
        assert max(map(len, text.splitlines())) <= 80
    elif output == "github":
        assert f"::warning title=git base::base main@{commit} (HEAD)%0A{COUNT}\n" in text
    elif output != "json":
        assert f"main@{commit} (HEAD) → main@{commit} · {COUNT} · plan " in text


def test_an_applied_commit_at_head_needs_no_warning(repo: Repo) -> None:
    commit = repo.commit(a={})[:7]
    assert repo.apply("--mark").code == 0
    assert lines(shown(repo, "text")) == [f"reconciler/w/default@{commit} (HEAD)"]
    assert "warning" not in shown(repo, "github")
    # With the variables of a push, too.
    job = {**before(repo.git.head("HEAD~1")), "RECONCILER_TRUST_REF": "refs/heads/main"}
    assert source(repo, **job)["base"] == repo.git.head()


def test_plan_o6_uncommitted_files_are_not_called_head(repo: Repo) -> None:
    commit = repo.commit(a={})[:7]
    assert repo.apply().code == 0
    write(repo.folder.parent, {"elsewhere.yaml": "projects: {}\n"})
    assert "uncommitted" not in shown(repo, "text") + shown(repo, "json")
    write(repo.folder, {"new.yaml": "projects: {}\n"})
    named = f"main@{commit} (HEAD) → main@{commit} + uncommitted"
    assert lines(shown(repo, "text")) == [*named.replace(" →", "\n→").split("\n"), COUNT]
    for output in ("markdown", "html"):
        assert named in shown(repo, output)
    assert source(repo)["uncommitted"] is True
    saved = repo.folder.parent / "plan.json"
    repo.run("plan", "--out", saved)
    assert f"→ main@{commit} + uncommitted" in repo.run("show", saved).out


def test_the_base_line_says_how_far_head_is_behind(repo: Repo) -> None:
    repo.commit(a={})
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.git.run("switch", "--quiet", "main")
    repo.commit(a={}, b={})
    write(repo.folder.parent, {"elsewhere": "x"})
    repo.commit(a={}, b={})
    repo.git.run("switch", "--quiet", "feature")
    assert lines(shown(repo, "text"))[1:] == [COUNT, "HEAD is 1 commit behind origin/main"]
    for output in ("markdown", "html", "json"):
        assert "HEAD is 1 commit behind origin/main" in shown(repo, output)


def test_an_unknown_default_branch_has_a_hint_that_works(repo: Repo) -> None:
    repo.commit(a={})
    repo.git.run("branch", "--quiet", "-m", "trunk")
    repo.git.run("push", "--quiet", "-u", "origin", "trunk")
    repo.origin.run("symbolic-ref", "HEAD", "refs/heads/trunk")
    repo.origin.run("branch", "--quiet", "-D", "main")
    repo.git.run("remote", "set-head", "origin", "--delete")
    repo.git.run("fetch", "--quiet", "--prune", "origin")
    repo.git.run("switch", "--quiet", "-c", "feature")
    branches = "+refs/heads/*:refs/remotes/origin/*"
    hint = f"git fetch origin '{branches}' && git remote set-head origin -a"
    assert f"is not known in this clone: {hint}" in " ".join(lines(shown(repo, "text")))
    repo.git.run("fetch", "--quiet", "origin", branches)
    repo.git.run("remote", "set-head", "origin", "-a")
    assert lines(shown(repo, "text"))[1:] == [COUNT]


def without_a_remote(repo: Repo) -> None:
    repo.git.run("remote", "remove", "origin")
    (repo.git.folder / ".git/FETCH_HEAD").unlink()


def applied(repo: Repo, **exports: dict[str, Any]) -> str:
    """Commit and apply exports, and return the commit."""
    repo.write(**exports)
    commit = repo.git.commit()
    assert repo.apply().code == 0
    return commit


def test_without_a_remote_apply_records_what_was_applied(repo: Repo) -> None:
    without_a_remote(repo)
    first = applied(repo, a={}, b={})
    assert record(repo) == first
    repo.write(a={})
    second = repo.git.commit("remove b")
    fail(repo, "DELETE")
    assert repo.apply().code == 3
    assert record(repo) == first
    repo.running.admin("DELETE", "faults")
    repo.write(a={}, c={})
    third = repo.git.commit("unrelated")
    planned = repo.run("plan", environ={"COLUMNS": "80"})
    assert "1 to create, 0 to update, 1 to delete" in planned.out
    assert re.fullmatch(
        rf"reconciler-local/\w+/w/default@{first[:7]} \(2 commits, .*\) · plan \w+",
        " ".join(lines(planned.out)),
    )
    assert repo.apply().code == 0
    assert (repo.exports(), record(repo)) == ({"a", "c"}, third)
    # An older commit is not refused: what the newer one added is removed.
    repo.git.run("checkout", "--quiet", second)
    assert "applied-commit-not-in-head" in repo.notes()
    assert repo.apply().code == 0
    assert (repo.exports(), record(repo)) == ({"a"}, second)


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--auto-approve", "--target", "batch_export.b"),
        ("apply", "--auto-approve", "--no-base"),
        ("pause", "a", "--auto-approve"),
        ("plan",),
    ],
    ids=" ".join,
)
def test_what_is_not_a_whole_apply_is_not_recorded(repo: Repo, words: tuple[str, ...]) -> None:
    without_a_remote(repo)
    first = applied(repo, a={})
    repo.write(a={}, b={})
    repo.git.commit("more")
    command, *more = words
    assert repo.run(command, *more).code == 0
    assert record(repo) == first


def test_what_is_not_committed_or_has_a_remote_or_a_mark_is_not_recorded(repo: Repo) -> None:
    first = repo.commit(a={})
    assert repo.apply().code == 0
    assert record(repo) is None
    without_a_remote(repo)
    repo.write(a={}, b={})
    assert repo.apply().code == 0
    assert record(repo) is None
    assert repo.run("plan", "--out", repo.folder.parent / "p.json").code == 0
    repo.git.commit("now")
    assert repo.apply("--mark").code == 0
    assert record(repo) is None
    assert repo.apply().code == 0
    assert record(repo) == repo.git.head() != first
    # The mark comes first.
    assert source(repo)["base_ref"] == "reconciler/w/default"
    repo.git.run("remote", "add", "origin", "https://git.example/x.git")
    repo.git.run("update-ref", "-d", "refs/reconciler/w/default")
    assert source(repo)["base_ref"] == "HEAD"


def test_the_record_of_another_service_does_not_count(
    repo: Repo, shared_emulator: RunningEmulator
) -> None:
    without_a_remote(repo)
    applied(repo, a={})
    other = {"RECONCILER_BASE_URL": shared_emulator.base_url.replace("127.0.0.1", "localhost")}
    assert source(repo)["base_ref"].startswith("reconciler-local/")
    assert source(repo, **other)["base_ref"] == "HEAD"


def test_plan_o4_after_a_restore_the_base_of_then_shows_what_came_back(repo: Repo) -> None:
    then = repo.commit(a={}, old={})
    assert repo.apply("--mark").code == 0
    repo.running.admin("POST", "snapshots/backup")
    repo.commit(a={"interval": "day"})
    assert repo.apply("--mark").code == 0
    repo.running.admin("POST", "snapshots/backup/restore")
    # The interval shows as drift, the export is unmanaged.
    assert "0 to create, 1 to update, 0 to delete" in repo.run("plan").out
    again = repo.run("apply", "--auto-approve", "--base", then, "--mark")
    assert again.code == 0, again.err
    assert repo.exports() == {"a"}
    assert repo.marked() == repo.git.head()


def sparse(repo: Repo, policy: str) -> None:
    """Apply the exports a and b, and leave out the file of b."""
    write(repo.folder, {"reconciler.yaml": f"version: 1\npolicy: {{{policy}, max_deletes: 9}}\n"})
    more = json.loads(declared(b={}))
    write(repo.folder, {"more/b.yaml": json.dumps({"batch_exports": more["batch_exports"]})})
    repo.commit(a={})
    assert repo.apply("--no-base").code == 0
    repo.git.run("sparse-checkout", "set", "w/core")
    assert not (repo.folder / "more").exists()
    assert repo.git.run("status", "--porcelain") == ""


@pytest.mark.parametrize("is_moved", [False, True])
def test_plan_d3_what_a_sparse_checkout_leaves_out_is_kept(repo: Repo, *, is_moved: bool) -> None:
    start = repo.git.head()
    sparse(repo, "prune: git")
    if is_moved:
        repo.git.run("sparse-checkout", "disable")
        repo.git.run("mv", "w/more/b.yaml", "w/more/c.yaml")
        repo.commit(a={})
        repo.git.run("sparse-checkout", "set", "w/core")
    for base in ((), ("--base", start)):
        planned = repo.run("plan", *base)
        assert "uncommitted" not in planned.out
        assert "delete" not in planned.out.replace("not deleted", "").replace("0 to delete", "")
        kept = "this sparse checkout leaves out its file more/"
        assert kept in " ".join(planned.out.split())
    assert repo.apply().code == 0
    assert repo.exports() == {"a", "b"}
    refused = repo.apply("--mark")
    assert refused.code == 1
    assert "these files differ from it: more/" in refused.err
    without_a_remote(repo)
    assert repo.apply().code == 0
    assert record(repo) is None


@pytest.mark.parametrize("words", [(), ("--no-base",)])
def test_plan_d3_prune_true_in_a_sparse_checkout_is_a_violation(
    repo: Repo, words: tuple[str, ...]
) -> None:
    sparse(repo, "prune: {batch_export: true}")
    planned = repo.run("plan", *words)
    assert planned.code == 5
    text = " ".join(planned.out.split())
    assert "error: `prune: true`, but this sparse checkout" in text
    assert "leaves out 1 file of the workspace [sparse-checkout]" in text
    assert repo.apply(*words).code == 5
    assert repo.exports() == {"a", "b"}
    repo.git.run("sparse-checkout", "disable")
    assert repo.run("plan", *words).code == 0


@pytest.mark.parametrize("is_changed", [False, True])
def test_model_g1_a_former_name_of_an_unchanged_resource_can_be_taken(
    repo: Repo, *, is_changed: bool
) -> None:
    """It makes no difference whether the other files changed since the base."""
    exports: dict[str, Any] = {"a": {"lifecycle": {"renamed_from": ["old"]}}, "b": {}}
    repo.commit(**exports)
    assert repo.apply("--no-base").code == 0
    parent, own = repo.running.state()["projects"][-1]["id"], repo.running.exports()["b"]["id"]
    path = f"/api/projects/{parent}/batch_exports/{own}/"
    repo.running.call("PATCH", path, {"name": "old"}).raise_for_status()
    repo.write(**exports, **({"c": {}} if is_changed else {}))
    planned = repo.run("plan")
    assert f"Plan: {1 + is_changed} to create, 0 to update, 0 to delete" in planned.out, planned.err


def test_model_g2_a_base_with_two_resources_of_an_object(repo: Repo) -> None:
    """At the base, b has the object of a by its `id`, so all that differs from b is drift."""
    repo.commit(a={})
    assert repo.apply("--no-base").code == 0
    repo.commit(a={}, b={"id": repo.running.exports()["a"]["id"], "interval": "day"})
    changes = json.loads(repo.run("plan", "--format", "json").out)["changes"]
    (change,) = [change for change in changes if change["address"] == "batch_export.b"]
    origins = {".".join(field["path"]): field["origin"] for field in change["fields"]}
    assert origins == {"name": "live", "interval": "live"}
