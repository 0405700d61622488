"""The inventory end to end: what is recorded, what a plan takes from it, and odd histories."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from reconciler.git.inventory import read_entries, record
from reconciler.git.repository import Repository
from reconciler.model.values import Address
from tests.conftest import ROOT
from tests.support.cli import write
from tests.support.declared import declared
from tests.support.emulator import RunningEmulator
from tests.support.inventories import write_inventory
from tests.support.repo import JOB, SETTINGS, Repo, secret_in
from tests.support.simulated import no_op_export

KIND = '{"cohort.a": {"id": "1", "name": "a"}}'


@pytest.fixture(params=[{}, JOB], ids=["local", "job"])
def repo(tmp_path: Path, emulator: RunningEmulator, request: pytest.FixtureRequest) -> Repo:
    return Repo.of(tmp_path, emulator, dict(request.param))


only_jobs = pytest.mark.parametrize("repo", [JOB], indirect=True, ids=["job"])
only_local = pytest.mark.parametrize("repo", [{}], indirect=True, ids=["local"])


def test_an_apply_records_what_it_applied_and_what_is_removed_then_is_deleted(repo: Repo) -> None:
    commit = repo.commit(a={}, b=secret_in("ONE"))
    assert "no-inventory" in repo.notes()
    repo.apply()
    entries = repo.entries()
    assert entries.keys() == {"project.web", "batch_export.a", "batch_export.b"}
    assert {entry["commit"] for entry in entries.values()} == {commit}
    assert [key for key, entry in entries.items() if "secrets" in entry] == ["batch_export.b"]
    assert repo.changes() == []
    assert "no-inventory" not in repo.notes()
    repo.commit(a={})
    assert repo.changes() == ["delete batch_export.b"]
    repo.apply()
    assert repo.exports() == {"a"}
    assert repo.entries().keys() == {"project.web", "batch_export.a"}
    assert repo.changes() == []


def test_a_failed_rotation_is_done_by_the_next_apply(repo: Repo) -> None:
    first = repo.applied(a=secret_in("ONE"), b={})
    second = repo.commit(a=secret_in("TWO"), b={"interval": "day"})
    repo.running.fail(method="PATCH")
    repo.apply(code=3)
    assert repo.entries()["batch_export.a"]["commit"] == first
    repo.running.admin("DELETE", "faults")
    repo.commit("unrelated", a=secret_in("TWO"), b={}, c={})
    assert "update batch_export.a" in repo.changes()
    repo.apply()
    assert repo.changes() == []
    assert second != first


def test_a_failed_deletion_is_done_by_the_next_apply(repo: Repo) -> None:
    repo.applied(a={}, b={})
    repo.commit(a={})
    repo.running.fail(method="DELETE")
    repo.apply(code=3)
    repo.running.admin("DELETE", "faults")
    repo.commit(a={}, c={})
    assert repo.changes() == ["create batch_export.c", "delete batch_export.b"]


def test_a_key_that_is_renamed_keeps_its_object(repo: Repo) -> None:
    repo.applied(a={})
    (before,) = repo.running.exports().values()
    repo.commit(z={"name": "a"})
    assert repo.changes() == []
    repo.apply()
    assert repo.entries().keys() == {"project.web", "batch_export.z"}
    assert [*repo.running.exports().values()] == [before]


def test_keys_that_are_exchanged_rename_both(repo: Repo) -> None:
    repo.applied(a={}, b={})
    repo.commit(a={"name": "b"}, b={"name": "a"})
    assert repo.changes() == ["update batch_export.a", "update batch_export.b"]
    repo.apply()
    assert repo.changes() == []


def test_a_name_in_the_files_changes_the_object_that_was_applied(repo: Repo) -> None:
    repo.applied(a={})
    repo.commit(a={"name": "A2"})
    assert repo.changes() == ["update batch_export.a"]
    repo.apply()
    assert repo.exports() == {"A2"}


def test_an_older_commit_is_not_applied(repo: Repo) -> None:
    first = repo.applied(a={}, b={})
    second = repo.applied(a={})
    repo.git.run("checkout", "--quiet", first)
    assert repo.changes() == ["create batch_export.b"]
    assert repo.notes()["behind"].startswith("HEAD lacks 1 applied commit: merge it")
    error = repo.apply(code=4).err
    assert "HEAD lacks applied commits" in error
    assert "nothing was sent" in error
    repo.apply("--rollback")
    assert repo.exports() == {"a", "b"}
    assert repo.entries()["batch_export.b"]["commit"] == first != second


def test_a_branch_behind_main_deletes_nothing(repo: Repo) -> None:
    first = repo.applied(a={})
    repo.applied(a={}, b={})
    repo.git.run("checkout", "--quiet", "-b", "feature", first)
    repo.write(a={}, c={})
    repo.git.commit("feature")
    assert repo.changes() == ["create batch_export.c"]
    assert "HEAD lacks" in repo.left()["batch_export.b"]
    assert "batch_export.b" in repo.entries()


def test_a_branch_behind_main_deletes_what_it_removes(repo: Repo) -> None:
    """A review sees what the merge will delete: main did not change it since they parted."""
    first = repo.applied(a={}, b={})
    repo.applied(a={}, b={"interval": "day"})
    repo.git.run("checkout", "--quiet", "-b", "feature", first)
    repo.write(b={})
    repo.git.commit("remove a")
    assert sorted(repo.changes()) == ["delete batch_export.a", "update batch_export.b"]
    assert repo.run("apply", "--auto-approve").code == 4


def test_a_lost_inventory_deletes_nothing(repo: Repo) -> None:
    repo.applied(a={}, b={})
    repo.forget()
    repo.commit(a={})
    assert repo.changes() == []
    assert "no-inventory" in repo.notes()
    repo.apply()
    assert repo.exports() == {"a", "b"}
    assert repo.entries().keys() == {"project.web", "batch_export.a"}


def test_what_was_left_once_is_never_deleted_later(repo: Repo) -> None:
    write(repo.folder, {"reconciler.yaml": SETTINGS.replace("prune: true", "prune: false")})
    repo.applied(a={}, b={})
    repo.commit(a={})
    assert repo.changes() == []
    assert "prune: true" in repo.left()["batch_export.b"]
    repo.apply()
    assert repo.entries().keys() == {"project.web", "batch_export.a"}
    write(repo.folder, {"reconciler.yaml": SETTINGS})
    repo.commit(a={})
    assert repo.changes() == []
    assert repo.left() == {}
    assert repo.exports() == {"a", "b"}


def test_what_was_renamed_in_the_service_is_left_when_it_is_removed(repo: Repo) -> None:
    repo.applied(a={}, b={})
    export = repo.call("PATCH", "b", {"name": "b v2"})
    repo.commit(a={})
    assert repo.changes() == []
    assert repo.left() == {"batch_export.b": "the live name is not 'b'"}
    repo.call("PATCH", "b v2", {"name": "b"})
    repo.running.call("PATCH", f"/api/projects/{export['team_id']}/", {"name": "Web v2"})
    assert repo.changes() == ["update project.web"]
    assert repo.left() == {"batch_export.b": "the live name of the project is not 'Web'"}


def test_a_rotation_that_is_reverted_is_sent_again(repo: Repo) -> None:
    repo.applied(a=secret_in("ONE"))
    repo.applied(a=secret_in("TWO"))
    repo.commit(a=secret_in("ONE"))
    assert repo.changes() == ["update batch_export.a"]
    repo.apply()
    assert repo.changes() == []


def test_two_environments_of_an_organization_delete_their_own(repo: Repo) -> None:
    write(repo.folder, {"reconciler.yaml": SETTINGS + "environments: {one: {}, two: {}}\n"})
    repo.commit(
        a={"environments": ["one"]}, b={"environments": ["two"]}, c={"environments": ["two"]}
    )
    for name in ("one", "two"):
        repo.apply("-e", name)
    repo.commit(a={"environments": ["one"]}, b={"environments": ["two"]})
    assert repo.changes("-e", "one") == []
    assert repo.changes("-e", "two") == ["delete batch_export.c"]


def test_a_file_that_moves_to_another_workspace_is_left(repo: Repo) -> None:
    write(repo.git.folder / "v", {"reconciler.yaml": SETTINGS})
    repo.applied(a={}, b={})
    (repo.git.folder / "v" / "b.yaml").write_text(declared(b={}))
    repo.commit(a={})
    assert repo.changes() == []
    assert "perhaps declared in v/b.yaml" in repo.left()["batch_export.b"]


def test_what_was_deleted_in_the_service_is_said_at_its_create(repo: Repo) -> None:
    """M3: the plan was a plain create, and the missing intervals were not named."""
    repo.applied(a={}, b={})
    export = repo.call("DELETE", "a")
    assert repo.changes() == ["create batch_export.a"]
    note = repo.notes()["deleted-in-service"]
    assert export["id"] in note
    assert "reconciler backfill a --from 2026-01-01" in note


def test_what_was_renamed_in_the_service_is_set_back(repo: Repo) -> None:
    """I5: an object that was renamed, with its prefix, is the recorded one in all commands."""
    repo.applied(a=secret_in("ONE"), b={}, c={})
    config = repo.running.exports()["a"]["destination"]["config"]
    destination = {"type": "S3", "config": {**config, "prefix": "q"}}
    repo.call("PATCH", "a", {"name": "a v2", "destination": destination})
    repo.call("PATCH", "b", {"name": "z"})
    repo.call("PATCH", "c", {"name": "b"})
    repo.commit(a=secret_in("ONE"))
    assert json.loads(repo.run("status", "--format", "json").out)["missing"] == []
    words = ("--kind", "batch_export", "--into", "new.yaml", "--dry-run", "--format", "json")
    written = json.loads(repo.run("import", *words).out)["resources"]
    assert {item["address"] for item in written} == {"batch_export.web-b", "batch_export.z"}
    assert repo.changes() == ["update batch_export.a"]
    repo.apply()
    assert repo.exports() == {"a", "b", "z"}


def test_a_re_pointed_project_takes_no_other_one_over(repo: Repo) -> None:
    """R1: a key that another project gets renames its object, and never takes one over."""
    two = {"web": {"name": "Web"}, "hr": {"name": "HR"}}
    write(repo.folder, {"resources.yaml": declared(two)})
    repo.publish()
    repo.apply()
    write(repo.folder, {"resources.yaml": declared({"web": {"name": "HR"}})})
    repo.git.commit()
    ran = repo.run("plan")
    assert ran.code == 5
    assert "may be it by their names" in " ".join(ran.out.split())


@only_local
def test_a_name_that_reads_a_variable_says_how_to_rename(repo: Repo) -> None:
    """It read like a new project and a move, with a hint that loses the history."""

    def write_with(**lifecycle: Any) -> None:
        names = {key: f"{key} ${{env:RECONCILER_VAR_N}}" for key in ("web", "a")}
        web, a = ({"name": names[key], "lifecycle": lifecycle.get(key, {})} for key in names)
        write(repo.folder, {"resources.yaml": declared({"web": web}, a=a, b={})})
        repo.git.commit()

    write_with()
    repo.run("apply", "--auto-approve", environ={"RECONCILER_VAR_N": "one"})
    repo.env["RECONCILER_VAR_N"] = "two"
    plan = repo.plan(code=5)
    former = {key: f"set `lifecycle: {{renamed_from: ['{key} one']}}`" for key in ("web", "a")}
    why = "name reads a variable that has another value now"
    (note,) = (note["message"] for note in plan["notes"] if note["code"] == "not-counted")
    assert f"batch_export.a (its {why}; to rename it, {former['a']})" in note
    assert f"project.web (its {why}; to rename it, {former['web']})" in note
    hints = {item["allow"] for item in plan["refusals"]}
    assert hints == {f"{former['web']} on project.web, whose {why}"}
    write_with(**{key: {"renamed_from": [f"{key} one"]} for key in former})
    assert repo.changes() == ["update project.web", "update batch_export.a"]


def http(token: str) -> dict[str, Any]:
    """Return an export to an address where the token decides who receives the data."""
    config = {"url": "https://eu.i.posthog.com/batch/", "token": token}
    return {"destination": {"type": "HTTP", "config": config}}


@pytest.mark.parametrize("rotated", [{}, {"secret_version": 2}], ids=str)
def test_a_tracked_secret_file_with_another_content_is_sent_and_shown(
    repo: Repo, rotated: dict[str, Any]
) -> None:
    """T2: a file that is exchanged under the same reference decides who receives the data."""
    write(repo.folder, {"reconciler.yaml": SETTINGS + "secret_files: ['tokens/*']\n"})
    write(repo.folder, {"tokens/eu.txt": "token-of-us-1"})
    repo.applied(a=http("${secret:file:tokens/eu.txt}"))
    assert repo.changes() == []
    write(repo.folder, {"tokens/eu.txt": "token-of-them-2"})
    repo.commit(a=http("${secret:file:tokens/eu.txt}") | rotated)
    plan = repo.plan()
    (change,) = (item for item in plan["changes"] if item["action"] == "update")
    assert [item["sort"] for item in change["new"]] == ["reference"]
    repo.apply()
    assert repo.changes() == []


def cloned(repo: Repo, folder: Path, *options: str) -> Repo:
    """Return another clone of the origin."""
    other = folder / "other"
    return replace(repo, git=repo.origin.clone(other, *options), folder=other / "w")


@only_jobs
def test_two_clones_that_push_are_merged(repo: Repo, tmp_path: Path) -> None:
    repo.applied(a={}, b={})
    other = cloned(repo, tmp_path)
    repo.commit(a={"interval": "day"}, b={})
    other.git.run("pull", "--quiet", "origin", "main")
    other.apply("--target", "a")
    repo.apply("--target", "b")
    commits = {entry["commit"] for entry in repo.entries().values()}
    assert repo.git.head() in commits
    repo.apply()
    assert {entry["commit"] for entry in repo.entries().values()} == {repo.git.head()}


@only_local
def test_secrets_that_two_runs_sent_at_once_are_sent_again(repo: Repo) -> None:
    """One rotated them while another one, of the same commit as before, sent the old ones."""
    repo.applied(a=secret_in("ONE"))
    repository, ref, at = Repository(repo.git.folder, ""), repo.ref, Address("batch_export", "a")
    began = repository.tip(ref)
    before = read_entries(repository, began)[at]
    other = structs.replace(before, commit="2" * 40, secrets="other")
    for entry in (other, before):
        record(repository, ref, repo.git.head(), {at: entry}, began=began, push=False)
    after = read_entries(repository, repository.tip(ref))[at]
    assert after == structs.replace(other, secrets=None)


def test_an_inventory_that_does_not_change_is_not_written(repo: Repo) -> None:
    repo.applied(a={})
    lock = repo.git.folder / ".git" / f"{repo.ref}.lock"
    lock.touch()
    repo.apply()
    lock.unlink()


@only_jobs
def test_a_job_that_did_not_fetch_plans_from_the_remote(repo: Repo, tmp_path: Path) -> None:
    repo.applied(a={}, b={})
    fresh = cloned(repo, tmp_path)
    fresh.write(a={})
    fresh.git.commit()
    fresh.git.run("push", "--quiet", "origin", "HEAD:main")
    assert "no-inventory" in fresh.notes()
    fresh.apply()
    assert fresh.exports() == {"a"}


@only_jobs
def test_a_shallow_clone_that_lacks_applied_commits_is_an_error(repo: Repo, tmp_path: Path) -> None:
    first = repo.commit(a={}, b={})
    repo.apply("--target", "a")
    repo.commit(a={}, b={"interval": "day"})
    repo.apply("--target", "b")
    ran = cloned(repo, tmp_path, "--depth", "1").apply(code=1)
    assert first[:7] in ran.err
    assert "fetch-depth: 0" in ran.err


@only_jobs
def test_a_shallow_clone_that_lacks_the_newest_applied_commit_is_an_error(
    repo: Repo, tmp_path: Path
) -> None:
    repo.applied(a={})
    repo.commit(a={}, b={})
    other = cloned(repo, tmp_path, "--depth", "1")
    refs = "+refs/reconciler/*:refs/reconciler/*"
    other.git.run("fetch", "--quiet", "--depth", "1", "origin", refs)
    ran = other.run("plan")
    assert ran.code == 1, ran.out
    assert "this shallow clone lacks the newest applied commit" in ran.err
    assert "fetch-depth: 0" in ran.err


@pytest.mark.parametrize(
    "text", ["no json", '{"batch_export.a": 1}', '{"a": {}}', "{}", "no file", KIND]
)
def test_a_damaged_inventory_is_an_error_with_the_way_out(repo: Repo, text: str) -> None:
    repo.applied(a={})
    name = "other.json" if text == "no file" else "inventory.json"
    parent = "" if text == "{}" else repo.git.head()
    write_inventory(repo.kept.folder, repo.ref, parent, text, name=name)
    ran = repo.apply(code=1)
    assert "cannot be read" in ran.err
    assert "delete its reference" in ran.err


def test_a_cut_move_is_finished_only_if_it_is_allowed(repo: Repo) -> None:
    """I11: the old object of a move is deleted by its inventory, or the plan is refused."""
    two = {"web": {"name": "Web"}, "app": {"name": "App"}}

    def commit(**fields: Any) -> None:
        write(repo.folder, {"resources.yaml": declared(two, lake=fields)})
        repo.publish()

    commit()
    repo.apply()
    commit(project="app")
    repo.running.fail(method="DELETE")
    repo.apply("--allow-replace", code=3)
    repo.running.admin("DELETE", "faults")
    plan = repo.plan(code=5)
    assert [item["rule"] for item in plan["refusals"]] == ["left-by-move"]
    (deletion,) = repo.changes("--allow-replace")
    assert deletion.startswith("delete batch_export.id:")
    repo.apply("--allow-replace")
    assert len(repo.running.state()["projects"]) >= 2
    assert repo.changes() == []


def test_a_resource_that_the_policy_ignores_is_not_a_removed_one(repo: Repo) -> None:
    repo.applied(a={}, b={})
    ignoring = SETTINGS.replace("max_deletes: 9", "max_deletes: 9, ignore: [b]")
    write(repo.folder, {"reconciler.yaml": ignoring})
    repo.commit(a={}, b={})
    plan = repo.plan("--exclude", "b")
    assert (plan["leaving"], plan["refusals"]) == ([], [])
    assert repo.plan(code=5)["leaving"] == []


@only_local
def test_a_removed_resource_that_is_not_selected_is_not_unmanaged(repo: Repo) -> None:
    """The summary of a partial plan called it unmanaged, although it was applied here."""
    repo.applied(a={}, b={})
    repo.call("PATCH", "b", {"name": "B"})
    repo.commit()
    options = [(), ("--exclude", "batch_export.a"), ("--kind", "project")]
    plans = [repo.plan(*words)["unmanaged"] for words in options]
    names = [{item["name"] for item in plan} - {"Default project"} for plan in plans]
    assert names == [{"B"}, {"B"}, set()]


def test_an_entry_that_does_not_count_leaves_nothing_to_send(repo: Repo) -> None:
    """What is written is the hash of now, and the next plan is empty."""
    repo.applied(a=secret_in("ONE"))
    forge(repo, "batch_export.a", name="forged")
    repo.commit(a=secret_in("TWO"))
    assert repo.changes() == []
    repo.apply()
    assert repo.changes() == []


@only_local
def test_model_350_a_branch_behind_keeps_the_entry_of_what_is_gone(repo: Repo) -> None:
    """The line that applied it still says at the create that it was deleted in the service."""
    repo.commit(a={})
    repo.git.run("checkout", "--quiet", "-b", "old")
    repo.write(a={}, c={})
    repo.git.commit()
    repo.git.run("checkout", "--quiet", "main")
    repo.applied(a={}, b={})
    repo.call("DELETE", "b")
    repo.git.run("checkout", "--quiet", "old")
    assert set(repo.left()) == {"batch_export.b"}
    repo.apply()
    assert "batch_export.b" in repo.entries()


def test_model_1091_an_entry_that_does_not_count_leaves_with_its_object(repo: Repo) -> None:
    """Another address has the object now, or it was deleted: nothing may find it by the entry."""
    repo.applied(a={"name": "Same"}, b={})
    forge(repo, "batch_export.a", name="forged")
    forge(repo, "batch_export.b", name="forged")
    repo.applied(c={"name": "Same"}, d={"name": "b", "state": "absent"})
    assert repo.entries().keys() == {"project.web", "batch_export.c"}


def test_model_2005_an_entry_that_does_not_count_is_no_drift(repo: Repo) -> None:
    repo.applied(a={}, b={})
    forge(repo, "batch_export.a", name="forged")
    repo.call("DELETE", "a")
    assert repo.run("drift").code == 0
    assert repo.run("drift", "--write").code == 0


@pytest.mark.parametrize("name", ["a", "former"])
def test_an_absent_resource_is_ambiguous_beside_another_object_of_its_name(
    repo: Repo, name: str
) -> None:
    """Each apply deleted one more object of its names, also those that nobody had managed."""
    repo.applied(a={})
    own = repo.running.exports()["a"]
    path = f"/api/projects/{own['team_id']}/batch_exports/"
    twin = repo.running.call("POST", path, no_op_export(name)).json()["id"]
    assert repo.changes() == []
    absent = {"state": "absent", "lifecycle": {"renamed_from": ["former"]}}
    repo.commit(a=absent)
    (refusal,) = repo.plan(code=5)["refusals"]
    assert refusal["rule"] == "ambiguous"
    assert own["id"] in refusal["message"]
    assert twin in refusal["message"]
    repo.commit(a={**absent, "id": own["id"]})
    repo.apply()
    assert repo.running.exports()[name]["id"] == twin
    assert repo.changes() == []


def test_a_plan_says_why_it_has_no_inventory(repo: Repo, tmp_path: Path) -> None:
    """After every apply without git the head named references that were not fetched."""
    outside = write(tmp_path / "outside", {"reconciler.yaml": SETTINGS})
    write(outside, {"resources.yaml": declared(a=secret_in("ONE"))})
    repo.commit(a=secret_in("ONE"))
    heads = {
        "first apply, or refs/reconciler/* not fetched": repo.run("plan"),
        "--no-inventory": repo.run("plan", "--no-inventory"),
        "no git repository": replace(repo, folder=outside, env={}).run("plan"),
    }
    for reason, ran in heads.items():
        assert f"Applied     no inventory ({reason})" in ran.out


def test_an_empty_plan_has_no_note_on_secrets(repo: Repo) -> None:
    repo.applied(a=secret_in("ONE"))
    assert repo.notes("--no-inventory").keys() == {"no-inventory"}
    repo.write(a=secret_in("TWO"), b={})
    assert "secrets not sent: batch_export.a" in repo.run("plan", "--no-inventory").out


_LIFTED = {
    "removed": {},
    "absent": {"a": {"state": "absent"}},
    "new key": {"z": {"name": "a", "state": "absent"}},
    "new key and protect": {"z": {"name": "a", "state": "absent", "lifecycle": {"protect": False}}},
}


@pytest.mark.parametrize("exports", _LIFTED.values(), ids=_LIFTED)
@pytest.mark.parametrize("lifted", ["nowhere", "applied", "unrecorded", "uncommitted"])
def test_r4_protection_is_lifted_by_two_changes(
    repo: Repo, exports: dict[str, Any], lifted: str
) -> None:
    """R4: one pull request lifted it by `state: absent`, or a branch applied without the merge.

    Without a trusted branch, an apply of uncommitted files lifted it.
    """
    protected = {"lifecycle": {"protect": True}}
    repo.commit(a=protected, b={})
    repo.apply(*["--no-inventory"] * (lifted == "unrecorded"))
    if lifted == "applied" and not repo.env:
        repo.write(a={}, b={})
        repo.git.commit()
        repo.apply()
    if is_unknown := lifted == "uncommitted" and not repo.env:
        repo.git.run("symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
        repo.write(a={**protected, "interval": "day"}, b={})
        repo.apply()
    repo.write(b={}, **exports)
    repo.git.commit()
    if not exports and (is_unknown or lifted == "unrecorded"):
        assert repo.changes() == []
        assert [item["protected"] for item in repo.plan()["leaving"]] == [True] * is_unknown
        return
    plan = repo.plan(code=5)
    # Without a trusted branch, the strictest policy applies after the merge.
    rules = ["protect", *["max_deletes"] * is_unknown]
    assert [item["rule"] for item in plan["refusals"]] == rules
    loosened = [note["message"] for note in plan["notes"] if note["code"] == "loosened"]
    if is_unknown and "a" in exports:
        assert loosened == ["protection is removed: batch_export.a"]
    repo.applied(a={}, b={})
    repo.commit(b={}, **exports)
    assert [change.partition(" ")[0] for change in repo.changes()] == ["delete"]


def test_r3_beside_of_a_new_resource_is_loosened(repo: Repo) -> None:
    """R3: it was so only while uncommitted, and the note on the shared place was dropped."""
    repo.applied(a=secret_in("ONE"))
    beside = secret_in("ONE") | {"interval": "day", "lifecycle": {"beside": ["batch_export.a"]}}
    repo.write(a=secret_in("ONE"), b=beside)
    repo.git.commit()
    notes = repo.notes()
    assert "`lifecycle.beside: 'batch_export.a'` is new: batch_export.b" in notes["loosened"]
    assert "write to the same place" in notes["same-place"]
    repo.commit(a=secret_in("ONE"), b=beside)
    assert repo.notes().keys() & {"loosened", "same-place"} == set()
    repo.apply()
    assert repo.notes() == {}


def test_a_change_that_is_reverted_before_its_apply_is_nothing(repo: Repo) -> None:
    repo.applied(a={}, b={})
    repo.commit(a={"interval": "day"})
    repo.commit("revert", a={}, b={})
    assert repo.changes() == []


@only_local
def test_an_amended_or_squashed_commit_is_current_if_nothing_changed(repo: Repo) -> None:
    first = repo.applied(a={}, b={})
    repo.git.run("commit", "--quiet", "--amend", "-m", "other words")
    assert repo.changes() == []
    repo.write(a={})
    repo.git.run("commit", "--quiet", "--amend", "--all", "-m", "without b")
    assert repo.changes() == []
    assert f"HEAD lacks the applied commit {first[:7]}" in repo.left()["batch_export.b"]
    assert repo.changes("--no-inventory") == []
    repo.apply("--rollback")
    assert repo.exports() == {"a"}


def test_a_job_does_not_believe_a_commit_that_was_forced_away(repo: Repo) -> None:
    """A force-push: the applied commit is no first parent of the trusted branch any more."""
    start = repo.git.head()
    applied = repo.applied(a={}, b={})
    repo.git.run("reset", "--quiet", "--hard", start)
    repo.commit("other history", a={})
    assert repo.changes() == []
    if repo.env:
        assert (
            f"its commit {applied[:7]} is not in the first parents" in repo.notes()["not-counted"]
        )
    else:
        assert f"HEAD lacks the applied commit {applied[:7]}" in repo.left()["batch_export.b"]
    assert repo.exports() == {"a", "b"}


@pytest.mark.parametrize(
    "forged",
    [{"commit": "--all"}, {"commit": "main"}, {"commit": "f" * 40}, {"name": "x"}, {"parent": "9"}],
    ids=str,
)
def test_a_forged_entry_deletes_nothing(repo: Repo, forged: dict[str, str]) -> None:
    repo.applied(a={}, b={})
    forge(repo, "batch_export.b", **forged)
    repo.commit(a={})
    assert repo.changes() == []
    assert "batch_export.b" in repo.notes()["not-counted"]


def test_an_entry_of_an_unmerged_branch_deletes_nothing(repo: Repo) -> None:
    """A forged entry that names a commit which anybody could push."""
    repo.applied(a={}, b={})
    live = repo.running.exports()["b"]["id"]
    repo.git.run("switch", "--quiet", "-c", "side")
    repo.write(a={}, evil={"name": "b"})
    side = repo.git.commit("side")
    repo.git.run("switch", "--quiet", "main")
    entries = repo.entries()
    parent = entries.pop("batch_export.b")["parent"]
    entries["batch_export.evil"] = {"id": live, "name": "b", "parent": parent, "commit": side}
    put(repo, entries)
    repo.commit(a={})
    assert repo.changes() == []
    assert repo.exports() == {"a", "b"}


def forge(repo: Repo, address: str, **fields: str) -> None:
    """Change an entry as whoever may push can."""
    entries = repo.entries()
    entries[address] |= fields
    put(repo, entries)


def put(repo: Repo, entries: dict[str, dict[str, str]]) -> None:
    """Write the inventory."""
    newest = repo.kept.run("rev-parse", f"{repo.ref}^1")
    write_inventory(repo.kept.folder, repo.ref, newest, entries)
    if repo.env:
        repo.git.run("fetch", "--quiet", "origin", "+refs/reconciler/*:refs/reconciler/*")


def test_a_restored_service_is_drift_and_is_found_again(repo: Repo) -> None:
    """A backup has older values, and other ids for what was made since."""
    repo.applied(a={"interval": "day"}, b={})
    repo.call("PATCH", "a", {"interval": "hour"})
    repo.call("DELETE", "b")
    assert sorted(repo.changes()) == ["create batch_export.b", "update batch_export.a"]
    assert repo.run("drift").code == 2
    repo.apply()
    assert repo.changes() == []
    assert repo.entries()["batch_export.b"]["id"] == repo.running.exports()["b"]["id"]


def test_two_workspaces_delete_their_own(repo: Repo) -> None:
    """Each has a reference of its own, and so have `staging` here and the folder `staging`: I2."""
    other = replace(repo, folder=repo.git.folder / "w-2")
    write(other.folder, {"reconciler.yaml": SETTINGS})
    repo.write(a={}, b={})
    other.write(c={"project": {"name": "Web"}}, d={"project": {"name": "Web"}})
    repo.applied(a={}, b={})
    other.apply()
    assert len(repo.kept.inventories()) == 2
    other.write(c={"project": {"name": "Web"}})
    repo.commit(a={}, b={})
    assert repo.changes() == []
    assert other.changes() == ["delete batch_export.d"]


@pytest.mark.parametrize("folder", ["w", "v"])
def test_a_sparse_checkout_deletes_nothing(repo: Repo, folder: str) -> None:
    """What the own workspace or another one leaves out may declare it."""
    repo.applied(a={}, b={})
    more = declared(b={}).replace('"projects"', '"x-projects"')
    write(repo.git.folder / folder, {"more.yaml": more})
    repo.commit(a={})
    repo.git.run("update-index", "--skip-worktree", f"{folder}/more.yaml")
    (repo.git.folder / folder / "more.yaml").unlink()
    assert repo.changes() == []
    assert "sparse checkout" in repo.left()["batch_export.b"]


def test_a_rotation_with_an_unknown_outcome_is_sent_again(repo: Repo) -> None:
    repo.applied(a=secret_in("ONE"))
    repo.commit(a=secret_in("TWO"))
    lost = {"match": {"method": "PATCH", "times": 1}, "fault": "error", "status": 504}
    refused = {"match": {"method": "PATCH"}, "fault": "error", "status": 400}
    repo.running.admin("PUT", "faults", [lost | {"when": "after"}, refused])
    repo.apply(code=3)
    repo.running.admin("DELETE", "faults")
    assert "secrets" not in repo.entries()["batch_export.a"]
    repo.commit(a=secret_in("ONE"))
    assert repo.changes() == ["update batch_export.a"]
    repo.apply()
    assert repo.changes() == []


@only_local
def test_a_fetch_that_prunes_lets_the_plan_say_so(repo: Repo) -> None:
    """`fetch.prune` drops the local record if the remote has none; the plan deletes nothing."""
    repo.applied(a={}, b={})
    repo.git.run("fetch", "--quiet", "--prune", "origin", "+refs/reconciler/*:refs/reconciler/*")
    repo.commit(a={})
    assert repo.changes() == []
    assert "not fetched" in repo.notes()["no-inventory"]


def test_i6_the_first_apply_after_the_first_commit_is_no_drift(repo: Repo) -> None:
    """I6: it was called drift, and its new places were hidden."""
    repo.write(a=secret_in("ONE"))
    before = repo.plan()
    repo.commit(a=secret_in("ONE"))
    after = repo.plan()
    assert [item.get("new") for item in after["changes"]] == [
        item.get("new") for item in before["changes"]
    ]
    repo.apply()
    assert repo.run("drift").code == 0


def test_i6_the_first_apply_to_objects_that_exist_is_no_drift(repo: Repo) -> None:
    """I6: with a commit and without a record, what differs was called drift, and no place new."""
    repo.commit(a=secret_in("ONE"))
    repo.apply("--no-inventory")
    moved = secret_in("ONE")
    moved["destination"]["config"]["bucket_name"] = "other"
    repo.commit(a=moved)
    plan = repo.plan()
    (change,) = (item for item in plan["changes"] if item["action"] == "update")
    assert {field["origin"] for field in change["fields"]} == {"unknown"}
    assert [item["sort"] for item in change["new"]] == ["bucket"]
    shown = repo.apply()
    assert "Drift" not in shown.out
    assert "s3://other" in shown.out
    assert repo.entries()["batch_export.a"]["commit"] == repo.git.head()
    assert repo.changes() == []
    assert repo.run("drift").code == 0


def test_the_table_of_situations_names_tests_that_exist() -> None:
    table = (ROOT / "docs/inside/inventory.md").read_text(encoding="utf-8")
    names = re.findall(r"`(test_\w+)`", table)
    assert len(names) == len(set(names)) >= 30
    assert [name for name in names if not callable(globals().get(name))] == []
