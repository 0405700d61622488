"""`apply`: plans that were reviewed, saved or named by an id; deletions; the audit log; calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.decoding import decode
from reconciler.model.kind import Action
from reconciler.model.plan import Change, FieldChange, encode
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import declared, s3, seed, workspace
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.git import Git
from tests.support.limits import LONG
from tests.support.repo import Repo
from tests.support.simulated import no_op_export

# Plans by their ids.


@pytest.mark.parametrize("length", [8, 64])
def test_a_plan_is_applied_by_its_id_without_a_question_and_no_other_one(
    length: int, emulator: RunningEmulator, tmp_path: Path
) -> None:
    environ = emulator.environ()

    def plan_id() -> str:
        ran = reconciler("plan", "-C", tmp_path, "--format", "json", environ=environ)
        return str(json.loads(ran.out)["plan_id"])

    def apply(reviewed: str) -> Ran:
        return reconciler("apply", "-C", tmp_path, "--plan-id", reviewed, environ=environ)

    write(tmp_path, workspace())
    reviewed = plan_id()
    write(tmp_path, workspace(lake={}))
    now = plan_id()
    ran = apply(reviewed[:length])
    assert (ran.code, "2 to create" in ran.out) == (4, True)
    assert f"the plan is {now}, not {reviewed[:length]}; nothing was sent" in ran.err
    assert emulator.writes() == []
    ran = apply(now[:length])
    assert (ran.code, "Applied: 2 created" in ran.out) == (0, True), ran.err
    assert apply(now[:length]).code == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (("--plan-id", written), "8 to 64 hexadecimal digits")
            for written in ("", "3c9a41f", "not-hex-digits", "a" * 65)
        ),
        (("plan.json", "--plan-id", "3c9a41f0"), "--plan-id and PLAN_FILE exclude each other"),
    ],
)
def test_an_id_has_8_to_64_hex_digits_and_excludes_a_saved_plan(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    ran = reconciler("apply", "-C", write(tmp_path, workspace()), *words)
    assert (ran.code, message in ran.err) == (64, True)


# Saved plans.


def test_r15_one_change_in_300_resources_is_a_small_plan(
    tmp_path: Path, service_of: StartService
) -> None:
    names = [f"e{number}" for number in range(299)]
    live = {"id": 1, "name": "Web", "batch_exports": [no_op_export(name) for name in names]}
    running = service_of(seed(live))
    wanted: dict[str, dict[str, Any]] = {name: {} for name in names}
    wanted["e7"] = {"interval": "day"}
    folder = write(tmp_path / "w", workspace(**wanted))
    saved, environ = tmp_path / "plan.json", running.environ()
    ran = reconciler("plan", "-C", folder, "--format", "json", "--out", saved, environ=environ)
    plan = json.loads(ran.out)
    assert [change["id"] for change in plan["changes"]] == ["batch_export.e7:update"], ran.err
    assert plan["unchanged"] == 299
    assert len(ran.out) < 40_000
    assert len(saved.read_bytes()) < 40_000
    assert "299 unchanged (300 resources)" in reconciler("show", saved, environ=environ).out


SECRETS = {"RECONCILER_SECRET_OLD": "an-old-value", "RECONCILER_SECRET_NEW": "a-new-value"}
"""Those of a plan of creates, updates, a pause, an unpause and a delete."""


def with_secret(variable: str, **fields: Any) -> dict[str, Any]:
    secret = f"${{secret:env:RECONCILER_SECRET_{variable}}}"
    return s3(secret, secret, **fields)


START = declared(a={}, b={"paused": False}, c={"paused": True}, old={}, s=with_secret("OLD"))
END = declared(
    a={"interval": "day"},
    b={"paused": True},
    c={"paused": False},
    old={"state": "absent"},
    s=with_secret("NEW", interval="day"),
    **{f"new{number}": {} for number in range(5)},
)


class Saved:
    """A workspace in git with a saved plan that leads from START to END."""

    def __init__(self, folder: Path, running: RunningEmulator) -> None:
        self.running, self.folder = running, folder / "w"
        self.file = folder / "plan.json"
        self.environ = {**running.environ(), **SECRETS}
        self.git = Git.init(self.folder)
        write(self.folder, {"reconciler.yaml": "version: 1\n", "resources.yaml": START})
        self.git.commit("start")
        self.git.trust()
        assert self.run("apply", "--auto-approve").code == 0
        write(self.folder, {"resources.yaml": END})
        planned = self.run("plan", "--out", self.file)
        assert planned.code == 0, planned.err
        assert "5 to create, 2 to update, 1 to pause, 1 to unpause, 1 to delete" in planned.out
        running.clear_requests()

    def run(self, *words: str | Path) -> Ran:
        return reconciler(*words, "-C", self.folder, environ=self.environ)

    def apply(self, *more: str | Path) -> Ran:
        return self.run("apply", self.file, *more)

    def finish(self) -> Ran:
        """Apply the file again, or a new plan: no live value shows if a changed secret was sent."""
        ran = self.apply()
        if ran.code == 4:
            assert "  batch_export.s: " in ran.err
            assert self.run("plan", "--out", self.file).code == 0
            ran = self.apply()
        return ran

    def check_end(self) -> None:
        """Check that live state is END, and that nothing was made twice."""
        (web,) = [it for it in self.running.state()["projects"] if it["name"] == "Web"]
        names = sorted(export["name"] for export in web["batch_exports"])
        assert names == sorted(["a", "b", "c", "s", *(f"new{number}" for number in range(5))])
        plan = self.run("plan", "--detailed-exitcode", "--no-inventory")
        assert plan.code == 0, plan.out
        assert self.running.exports()["s"]["interval"] == "day"


@pytest.fixture
def saved(tmp_path: Path, emulator: RunningEmulator) -> Saved:
    return Saved(tmp_path, emulator)


def fault(emulator: RunningEmulator, name: str, **rule: Any) -> None:
    match = {"method": "POST", "body": {"name": name}, "times": 1}
    emulator.admin("PUT", "faults", [{"match": match, **rule}])


def test_f7_a_saved_plan_is_applied_again_after_exit_3(
    saved: Saved, emulator: RunningEmulator
) -> None:
    fault(emulator, "new2", fault="error", status=400)
    assert saved.apply().code == 3
    again = saved.finish()
    assert again.code == 0, again.err
    assert "1 to create, 0 to update, 0 to delete" in again.out
    saved.check_end()


@pytest.mark.parametrize("interval", ["hour", "week"])
def test_i7_an_export_that_somebody_created_since_gets_nothing(
    interval: str, saved: Saved, emulator: RunningEmulator
) -> None:
    """I7: with the values of the file its create is done, with others the file is stale."""
    (web,) = [it for it in emulator.state()["projects"] if it["name"] == "Web"]
    body = no_op_export("new1", interval, paused=False)
    path = f"/api/projects/{web['id']}/batch_exports/"
    theirs = emulator.call("POST", path, body).json()["id"]
    emulator.clear_requests()
    ran = saved.apply()
    assert ran.code == (0 if interval == "hour" else 4), ran.err
    assert not any(theirs in written for _, written in emulator.writes())
    assert bool(emulator.writes()) is (interval == "hour")


_WEEK = END.replace(
    '"name": "new1",\n   "interval": "hour"', '"name": "new1",\n   "interval": "week"'
)
_STALE = """\
error: the saved plan is stale (1 difference); nothing was sent:
  batch_export.new1: interval is (not set) -> "week" now, the saved plan has (not set) -> "hour"
  hint: make a new plan and have it reviewed
"""
_ENVIRONMENTS = "version: 1\nenvironments: {staging: {}, production: {}}\n"
_STRICT = "version: 1\npolicy: {max_deletes: 0}\n"
_ROTATE = "--rotate-secrets=batch_export."
NOT_APPLIED: dict[str, tuple[list[str], dict[str, str], list[str], int, str]] = {
    "stale, explained by field": ([], {"resources.yaml": _WEEK}, [], 4, _STALE),
    "the policy of today": ([], {"reconciler.yaml": _STRICT}, [], 5, ""),
    "no inventory": (["--no-inventory"], {}, [], 4, "hint: pass --no-inventory, as when the plan"),
    "a rotation": ([f"{_ROTATE}s"], {}, [], 4, "the plan was made with --rotate-secrets"),
    "another rotation": ([f"{_ROTATE}s"], {}, [f"{_ROTATE}a"], 64, "batch_export.a: no secret to"),
    "another environment": (
        *([], {"reconciler.yaml": _ENVIRONMENTS}, ["-e", "staging"]),
        *(4, "the plan was made for environment"),
    ),
    "a selection": ([], {}, ["--target", "batch_export.a"], 64, "plan has its own selection"),
}
"""Options of the saved plan, files that changed since, options of `apply`; code and message."""


@pytest.mark.parametrize("case", NOT_APPLIED)
def test_a_saved_plan_is_not_applied(case: str, saved: Saved) -> None:
    made, files, words, code, message = NOT_APPLIED[case]
    assert not made or saved.run("plan", *made, "--out", saved.file).code == 0
    saved.running.clear_requests()
    write(saved.folder, files)
    ran = saved.apply(*words)
    assert (ran.code, message in ran.err) == (code, True), ran.err
    assert saved.running.writes() == []
    if made and not words:
        again = saved.apply(*made)
        assert again.code == 0, again.err


def _renamed(change: Change) -> Change:
    return replace(change, name="Another")


def _of_another_value(change: Change) -> Change:
    entry = FieldChange(change.fields[0].path, "another", change.fields[0].after)
    return replace(change, fields=(entry, *change.fields[1:]))


def test_apply_a8_a_failed_delete_goes_on_although_the_run_made_its_project_unclear(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """The key of its project is given to a new project."""
    folder, file = tmp_path / "w", tmp_path / "plan.json"
    git = Git.init(folder)

    def declare(projects: dict[str, dict[str, Any]], **exports: str) -> None:
        own = {key: {"project": project} for key, project in exports.items()}
        write(folder, workspace("policy: {prune: true}\n", projects, **own))

    def run(*words: str | Path) -> Ran:
        return reconciler(*words, "-C", folder, environ=emulator.environ())

    declare({"main": {"name": "Shop"}}, lake="main", old="main")
    git.commit("start")
    git.trust()
    assert run("apply", "--auto-approve").code == 0
    (shop,) = (it for it in emulator.state()["projects"] if it["name"] == "Shop")
    declare({"shop": {"id": str(shop["id"]), "name": "Shop"}, "main": {"name": "P"}}, lake="shop")
    assert run("plan", "--out", file).code == 0
    emulator.fail(method="DELETE")
    assert run("apply", file).code == 3
    emulator.admin("PUT", "faults", [])
    again = run("apply", file)
    assert again.code == 0, again.err
    assert emulator.exports().keys() == {"lake"}


@pytest.mark.parametrize("edit_change", [_renamed, _of_another_value])
@pytest.mark.parametrize("action", [Action.UPDATE, Action.PAUSE, Action.DELETE])
def test_apply_a10_a_plan_that_shows_other_names_or_former_values_is_stale(
    action: Action,
    edit_change: Callable[[Change], Change],
    saved: Saved,
    emulator: RunningEmulator,
) -> None:
    """Its digests are those of the edited content, so the file is intact."""
    plan = decode(saved.file.read_bytes())
    (*_, edited) = (change for change in plan.effective if change.action is action)
    changes = (edit_change(change) if change is edited else change for change in plan.changes)
    saved.file.write_bytes(encode(replace(plan, changes=tuple(changes))))
    assert decode(saved.file.read_bytes()).plan_id != plan.plan_id
    ran = saved.apply()
    assert ran.code == 4
    assert f"{edited.address}: " in ran.err
    assert emulator.writes() == []


# The audit log.


def test_a_secret_from_a_command_is_masked_in_the_logged_plan(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """It is known only once it was run, which is before the plan is logged."""
    folder, log = tmp_path / "w", tmp_path / "audit.jsonl"
    lake = s3(*["${secret:exec:cat secret.txt}"] * 2)
    write(folder, workspace("policy: {allow_exec_secrets: true}\n", lake=lake))
    write(folder, {"secret.txt": 'from"a command'})
    environ = {**emulator.environ(), "RECONCILER_ALLOW_EXEC": "1"}
    words = ("apply", "-C", folder, "--auto-approve")
    assert reconciler(*words, environ=environ).code == 0
    leak = {"destination": {"type": "S3", "config": {"prefix": 'x from"a command y'}}}
    emulator.call("PATCH", emulator.path_of("lake"), leak).raise_for_status()
    ran = reconciler(*words, "--rotate-secrets", "--log-file", log, environ=environ)
    text = log.read_text(encoding="utf-8")
    assert (ran.code, "prefix" in text, "a command" in text) == (0, True, False), ran.err


# Deletions: what keeps a project, what its deletion deletes, and what is left to do.


class Old:
    """A clone in which a project with exports is applied, and removed from the files."""

    def __init__(
        self,
        folder: Path,
        service_of: StartService,
        *exports: str,
        dialect: str = "interface",
        policy: str = "prune: true",
        after: str = "",
        **fields: Any,
    ) -> None:
        live = [no_op_export(name) for name in exports]
        web = {"id": 1, "name": "Web", "batch_exports": [no_op_export("lake")]}
        running = service_of(
            seed(web, {"id": 2, "name": "Old", "batch_exports": live}), "--dialect", dialect
        )
        own = {name: {"project": "old", **fields} for name in exports}
        settings = f"version: 1\npolicy: {{allow_project_deletion: true, {policy}}}\n"
        files = {"reconciler.yaml": settings, "web.yaml": declared(lake={})}
        old = declared({"old": {"name": "Old"}}, **own)
        self.repo = repo = Repo.of(folder, running, **files, **{"old.yaml": old})
        repo.apply()
        write(repo.folder, {"old.yaml": after or "projects: {}\n"})
        repo.git.commit("without the old project")
        running.clear_requests()

    def names(self) -> dict[str, list[str]]:
        """Return the names of the exports of each project that is not pending deletion."""
        return {
            project["name"]: sorted(item["name"] for item in project["batch_exports"])
            for project in self.repo.running.state()["projects"]
            if not project.get("is_pending_deletion")
        }


ABSENT = {"state": "absent"}
OLD = {"old": {"name": "Old", **ABSENT}}


@pytest.mark.parametrize(
    ("policy", "after"), [("prune: true", ""), ("", declared(OLD))], ids=["prune", "absent"]
)
def test_plan_d1_a_protected_export_keeps_its_project(
    policy: str, after: str, service_of: StartService, tmp_path: Path
) -> None:
    protect = {"lifecycle": {"protect": True}}
    old = Old(tmp_path, service_of, "dup", policy=policy, after=after, **protect)
    words = " ".join(old.repo.apply(code=5).out.split())
    assert "error: batch_export.dup is protected and would be deleted [protect]" in words
    assert old.names() == {"Web": ["lake"], "Old": ["dup"]}


@pytest.mark.parametrize("dialect", ["2025", "2026"])
@pytest.mark.parametrize("absent", [False, True], ids=["prune", "absent"])
def test_fidelity_f2_a_project_is_deleted_with_its_exports(
    dialect: str, service_of: StartService, tmp_path: Path, *, absent: bool
) -> None:
    gone = declared(OLD, **{name: {"project": "old", **ABSENT} for name in "ab"})
    old = Old(tmp_path, service_of, *"ab", dialect=dialect, after=gone if absent else "")
    log = tmp_path / "log.jsonl"
    assert "Applied: 3 deleted" in old.repo.apply("--log-file", str(log)).out
    assert old.repo.running.writes() == [("DELETE", "2")]
    assert old.names() == {"Web": ["lake"]}
    assert old.repo.entries().keys() == {"project.web", "batch_export.lake"}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    done = [line["address"] for line in lines if line["event"] == "done"]
    assert done == ["project.old", "batch_export.a", "batch_export.b"]
    again = old.repo.run("plan")
    assert ("No changes." in again.out, "note:" in again.out) == (True, False)


def test_a_project_whose_exports_cannot_be_listed_is_not_planned(
    service_of: StartService, tmp_path: Path
) -> None:
    repo = Old(tmp_path, service_of, "a").repo
    repo.running.fail(403, path="*/batch_exports/")
    ran = repo.run("plan")
    assert (ran.code, "403" in ran.err, "project.old" in ran.out) == (1, True, False)


# The calls of one apply, its plan and its verification included. The benchmarks have others.

COUNT = 100 if LONG else 20
FIXED = 10 if LONG else 8  # Fewer without a second page.
PROJECTS = {f"p{n}": {"name": f"P{n}"} for n in range(COUNT)}
GONE = {key: {**project, **ABSENT} for key, project in PROJECTS.items()}


def exports(*, apart: bool = False, **fields: Any) -> dict[str, Any]:
    """Return exports in one project, or in one each."""
    return {f"e{n}": {"project": f"p{n if apart else 0}", **fields} for n in range(COUNT)}


CALLS = {
    "settings of projects": (
        declared({key: {**project, "anonymize_ips": True} for key, project in PROJECTS.items()}),
        declared({key: {**project, "anonymize_ips": False} for key, project in PROJECTS.items()}),
        3,
    ),
    "delete exports": (
        declared(PROJECTS, **exports()),
        declared(PROJECTS, **exports(**ABSENT)),
        2,
    ),
    "delete projects with an export each": (
        declared(PROJECTS, **exports(apart=True)),
        declared(GONE, **exports(apart=True, **ABSENT)),
        3,
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", CALLS)
def test_performance_calls_of_an_apply(
    case: str, dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    before, after, calls = CALLS[case]
    if case.startswith("delete projects") and dialect == "2026":
        calls += 1  # A deletion is pending there, and read again.
    service, folder = service_of(None, "--dialect", dialect), tmp_path / "w"
    settings = "version: 1\npolicy: {allow_project_deletion: true}\n"
    for resources in (before, after):
        write(folder, {"reconciler.yaml": settings, "a.yaml": resources})
        service.clear_requests()
        ran = reconciler("apply", "-C", folder, "--auto-approve", environ=service.environ())
        assert ran.code == 0, ran.err
    assert len(service.requests()) <= calls * COUNT + FIXED


# Failures of keys, networks and files: one message, the exit code, and nothing applied.

SETTINGS = "secrets: [KEY, KEY_ID]\n"
LAKE = s3("${secret:env:KEY_ID}", "${secret:env:KEY}")
NEEDED = "needed by batch_export.lake"
KEYS = {"KEY_ID": "key-id-1234", "KEY": 'hunter2"quote\\and more'}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return write(tmp_path, workspace(SETTINGS, lake=LAKE))


def apply_with(here: Path, environ: dict[str, str], *words: str | Path) -> Ran:
    given = {**KEYS, **environ}
    present = {name: value for name, value in given.items() if value}
    return reconciler("apply", "-C", here, "--auto-approve", *words, environ=present)


@pytest.mark.parametrize(
    ("environ", "messages"),
    [
        ({"RECONCILER_API_KEY": "phx_wrong"}, ("401", "check `api_key`")),
        ({"RECONCILER_BASE_URL": "http://127.0.0.1:1"}, ("can't connect to http://127.0.0.1:1",)),
        ({"RECONCILER_ORGANIZATION": "nope"}, ("check `organization`",)),
        *(
            ({"KEY": "", "KEY_ID": ""}, (f"secret ${{secret:env:{name}}} is not set", NEEDED))
            for name in ("KEY", "KEY_ID")
        ),
        ({"KEY": " "}, ("is empty",)),
        ({"RECONCILER_BASE_URL": ""}, ("RECONCILER_BASE_URL",)),
    ],
    ids=str,
)
def test_what_lets_a_run_fail_before_the_first_write(
    here: Path, emulator: RunningEmulator, environ: dict[str, str], messages: tuple[str, ...]
) -> None:
    ran = apply_with(here, {**emulator.environ(), **environ})
    assert ran.code == 1
    assert all(message in ran.err for message in messages)
    assert "phx_wrong" not in ran.err + ran.out
    assert emulator.writes() == []


READER = seed({"name": "Other"}, scopes=["batch_export:read", "project:read"])


def test_plan_v11_a_key_without_write_scope_fails_every_change_and_quiet_says_why(
    here: Path, service_of: StartService
) -> None:
    environ = service_of(READER).environ()
    ran, quiet = apply_with(here, environ), apply_with(here, environ, "-q")
    assert ran.code == 3
    assert "· organization org\n" in ran.out
    assert quiet.err.startswith('✗ create of project.web "Web" failed: ')
    assert "skipped" not in quiet.err
    assert "missing required scope 'project:write'" in ran.err
    assert "skipped: create of project.web failed" in ran.err
    assert "Run the command again" not in ran.out
    assert "Correct what the service refused, then apply again." in ran.out


def test_x6_equal_refusals_of_one_cause_are_one_message_with_a_count(
    here: Path, service_of: StartService
) -> None:
    exports = {f"x{number}": LAKE for number in range(6)}
    write(here, workspace(SETTINGS, {"web": {"name": "Other"}}, **exports))
    ran = apply_with(here, service_of(READER).environ())
    assert ran.code == 3
    assert ran.err.count("missing required scope 'batch_export:write'") == 1
    assert "✗ 5 more failed for the same reason: batch_export." in ran.err


def test_a_secret_in_live_state_is_masked_where_it_stops_an_apply(
    here: Path, emulator: RunningEmulator
) -> None:
    """A user pasted the key into the prefix; tests/security/test_canaries.py has the plans."""
    environ, saved, log = emulator.environ(), here / "plan.json", here / "log.jsonl"
    applied = apply_with(here, environ)
    assert applied.code == 0
    # plan_v11: what was applied where, and that it is complete.
    assert applied.out.startswith('Environment default "Demo" · http://')
    assert "Verified: the plan is empty.\n" in applied.err
    path = emulator.path_of("lake")

    def leak(prefix: str) -> dict[str, object]:
        config = {"prefix": f"{prefix}/{KEYS['KEY']}/"}
        return {"destination": {"type": "S3", "config": config}}

    emulator.call("PATCH", path, leak("x")).raise_for_status()
    words = ("plan", "-C", here, "--out", saved)
    assert "***" in reconciler(*words, environ={**environ, **KEYS}).out
    emulator.call("PATCH", path, leak("y")).raise_for_status()
    stale = reconciler("apply", saved, "-C", here, environ={**environ, **KEYS})
    assert stale.code == 4
    # The check just before the write reports the same.
    rule = {"match": {"method": "GET", "path": f"*{path[-10:]}"}, "fault": "edit"}
    emulator.admin("PUT", "faults", [{**rule, "set": leak("z")}])
    write(here, workspace(SETTINGS, lake={**LAKE, "state": "absent"}))
    raced = apply_with(here, environ, "--log-file", log)
    assert raced.code == 3
    assert "modified since the plan was made" in raced.err
    written = log.read_text() + saved.read_text()
    assert "hunter2" not in stale.out + stale.err + raced.out + raced.err + written
