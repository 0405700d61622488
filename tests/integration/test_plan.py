"""`plan`: what is read, what can't be believed, what is refused, and how many calls it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.values import CLEARED, SecretRef
from tests.conftest import ROOT, StartService
from tests.support import worlds
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import WEB, seed, workspace
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.simulated import no_op_export

Run = Callable[..., Ran]
"""A command in the folder of a test, with words, and the variables of the service."""
APPLY = ("apply", "--auto-approve")


@pytest.fixture
def run_in(tmp_path: Path) -> Callable[[RunningEmulator], Run]:
    """Return a function of a service that returns one which runs a command with some files."""

    def of(running: RunningEmulator, **environ: str) -> Run:
        def run(*words: str, files: dict[str, str] | None = None) -> Ran:
            folder = write(tmp_path / "w", files or {})
            return reconciler(*words, "-C", folder, environ={**running.environ(), **environ})

        return run

    return of


def fault(running: RunningEmulator, path: str, **rule: Any) -> None:
    """Let requests to a path fail."""
    running.admin("PUT", "faults", [{"match": {"path": path}, **rule}])


# Applying what is planned.

PRUNE = "policy: {prune: true}\n"


@pytest.fixture
def newest(service_of: StartService) -> RunningEmulator:
    return service_of(None, "--dialect", "2026")


def test_a_replacement_creates_first_and_keeps_unmanaged_fields(
    run_in: Any, newest: RunningEmulator
) -> None:
    run = run_in(newest, RECONCILER_SECRET_KEY="pass-word")
    assert run(*APPLY, files=workspace(PRUNE, a={})).code == 0
    old = newest.exports()["a"]
    settings = {"paused": True, "end_at": "2030-01-01T00:00:00Z"}
    newest.call("PATCH", newest.path_of("a"), settings).raise_for_status()
    token = "${secret:env:RECONCILER_SECRET_KEY}"
    config = {"url": "https://eu.i.posthog.com/batch/", "token": token}
    http = {"destination": {"type": "HTTP", "config": config}}
    refused = run(*APPLY, files=workspace(PRUNE, a=http))
    assert (refused.code, "--allow-replace" in refused.out) == (5, True)
    newest.clear_requests()
    done = run(*APPLY, "--allow-replace")
    assert done.code == 0, done.err
    assert [method for method, _ in newest.writes()] == ["POST", "DELETE"]
    new = newest.exports()["a"]
    assert new["id"] != old["id"]
    assert (new["paused"], new["end_at"]) == (True, "2030-01-01T00:00:00Z")


def test_a_failure_skips_its_dependents_only(run_in: Any, emulator: RunningEmulator) -> None:
    projects = {"bad": {"name": "x" * 200}, "good": {"name": "Good"}}
    files = workspace("", projects, **{key: {"project": key} for key in projects})
    emulator.fail(method="POST", path="*/projects/", nth=1)
    run = run_in(emulator)
    done = run(*APPLY, files=files)
    assert (done.code, "1 failed, 1 skipped" in done.out) == (3, True)
    assert emulator.exports().keys() == {"good"}
    assert run(*APPLY).code == 0
    assert emulator.exports().keys() == {"bad", "good"}


def test_experience_27_apply_prints_the_warnings_of_the_files_once(
    run_in: Any, emulator: RunningEmulator
) -> None:
    run = run_in(emulator)
    for words in (("plan",), APPLY):
        ran = run(*words, files=workspace("vars: {unused: x}\n"))
        assert (ran.code, ran.err.count("[unused-variable]")) == (0, 1), ran.err


@pytest.mark.parametrize("options", [(), ("--dialect", "2026", "--no-organization-list")], ids=str)
@pytest.mark.parametrize("state", ["present", "absent"])
def test_an_id_in_other_letters_than_those_of_the_service_is_an_error_at_its_place(
    run_in: Any, tmp_path: Path, service_of: StartService, options: tuple[str, ...], state: str
) -> None:
    web = {"id": 1, "name": "Web", "batch_exports": [no_op_export("lake")]}
    running = service_of(seed(web), *options)
    run = run_in(running)
    live_id = running.exports()["lake"]["id"]
    for written in (live_id.upper(), live_id.replace("-", "")):
        ran = run("plan", files=workspace(lake={"id": written, "state": state}))
        assert ran.code == 5
        shown = " ".join(ran.out.split())
        problem = f"no live batch_export has the id '{written}'"
        assert f"resources.yaml:16:10: error: batch_export.lake: {problem}" in shown
        assert f"hint: write it as the service does: `id: {live_id}`" in shown
    empty = write(tmp_path / "empty", {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("import", live_id.upper(), "-C", empty, environ=running.environ())
    assert 'hint: did you mean "lake"' in ran.err


# Lists and answers that can't be believed: nothing is created a second time.

COUNT = 130
DETAIL = "*/projects/1/"
EXPORTS = "*/batch_exports/"


def files_of(count: int = COUNT, **web: Any) -> dict[str, str]:
    projects = {"web": {"name": "Web", **web}}
    return workspace("", projects, **{f"Export-{number}": {} for number in range(count)})


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    """Return a service with a project and 130 exports."""
    exports = [no_op_export(f"Export-{number}") for number in range(COUNT)]
    return service_of(
        seed({"id": 1, "name": "Web", "batch_exports": exports, "surveys_opt_in": True})
    )


ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "f1: no body": (DETAIL, {"fault": "body", "text": "", "status": 200}),
    "f1: an empty object": (DETAIL, {"fault": "body", "value": {}, "status": 200}),
    "f1: another object": (DETAIL, {"fault": "other_id"}),
    "f1: not there": (DETAIL, {"fault": "error", "status": 404}),
    "f2: no count": (EXPORTS, {"fault": "page", "count": "omit"}),
    "f2: a count of 0": (EXPORTS, {"fault": "page", "count": 0}),
    "f2: a low count": (EXPORTS, {"fault": "page", "count": 100}),
    "f2: a high count": (EXPORTS, {"fault": "page", "count": 10_000_000}),
    "f2: one is missing": (EXPORTS, {"fault": "page", "drop": 1}),
    "f2: one is there twice": (EXPORTS, {"fault": "page", "repeat": 1}),
    "f2: it lags": (EXPORTS, {"fault": "stale", "change": "delete"}),
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_answer_or_an_incomplete_list_duplicates_nothing(
    case: str, run_in: Any, running: RunningEmulator
) -> None:
    path, rule = ODD[case]
    fault(running, path, **rule)
    run = run_in(running)
    for words in (("plan",), APPLY):
        ran = run(*words, files=files_of(surveys_opt_in=True))
        assert ran.code == 1
        where = path.removeprefix("*")
        assert f"error: GET /api/organizations/org{where}: " in ran.err
    assert running.writes() == []


@pytest.mark.parametrize("command", ["plan", "status"])
def test_x2_a_key_of_another_organization_is_named(
    service_of: StartService, run_in: Any, command: str
) -> None:
    given = seed(organizations=["other"])
    given["organizations"].append({"id": "other", "name": "other", "projects": []})
    ran = run_in(service_of(given))(command, files=workspace())
    assert ran.code == 1
    assert "API key does not have access to the requested organization" in ran.err
    assert "hint: use a key of this organization" in ran.err


# M6: what is ambiguous concerns one resource. The rest is planned, applied and operated.


def new_project(running: RunningEmulator, name: str, *exports: str) -> tuple[int, list[str]]:
    """Create a project with exports; return the ids."""
    path = f"/api/organizations/{running.organization}/projects/"
    project = running.call("POST", path, {"name": name}).json()["id"]
    path = f"/api/projects/{project}/batch_exports/"
    made = [running.call("POST", path, no_op_export(export)).json() for export in exports]
    return project, [str(export["id"]) for export in made]


@pytest.fixture
def twins(emulator: RunningEmulator) -> list[str]:
    """Return the ids of two live exports of one name."""
    return new_project(emulator, "Web", "Lake", "Lake")[1]


@pytest.fixture
def run(run_in: Any, emulator: RunningEmulator) -> Any:
    def run(*words: str, projects: Any = None, **exports: Any) -> Ran:
        both = {"lake": {"name": "Lake"}, "new": {"name": "New"}, **exports}
        return run_in(emulator)(*words, files=workspace("", projects, **both))

    return run


def created(plan: dict[str, Any]) -> list[str]:
    return [change["address"] for change in plan["changes"] if change["action"] == "create"]


def test_m6_the_rest_is_planned_and_applied_without_it(run: Any, twins: list[str]) -> None:
    plan = json.loads(run("plan", "--format", "json").out)
    assert created(plan) == ["batch_export.new"]
    (refusal,) = plan["refusals"]
    assert (refusal["rule"], refusal["addresses"]) == ("ambiguous", ["batch_export.lake"])
    assert [item["address"] for item in refusal["objects"]] == [
        f"batch_export.id:{item}" for item in twins
    ]
    assert all(f"id {item}, created 20" in refusal["message"] for item in twins)
    assert f"{{lake: {{id: {twins[0]}}}}}" in refusal["allow"]
    refused = run(*APPLY)
    assert (refused.code, "nothing was sent" in refused.err) == (5, True)
    assert run(*APPLY, "--exclude", "lake").code == 0
    pinned = run("plan", lake={"name": "Lake", "id": twins[1]})
    assert (pinned.code, "No changes." in pinned.out) == (0, True)


@pytest.mark.usefixtures("twins")
def test_m6_an_ambiguous_project_refuses_what_is_in_it_and_nothing_else(
    run: Any, emulator: RunningEmulator
) -> None:
    new_project(emulator, "Web")
    other = {"name": "Other", "project": "app"}
    resources = {"projects": {**WEB, "app": {"name": "App"}}, "other": other}
    plan = json.loads(run("plan", "--format", "json", **resources).out)
    assert created(plan) == ["project.app", "batch_export.other"]
    assert [refusal["addresses"] for refusal in plan["refusals"]] == [
        ["project.web"],
        ["batch_export.lake", "batch_export.new"],
    ]
    assert run(*APPLY, "--exclude=web,lake,new", **resources).code == 0
    assert emulator.exports().keys() == {"Lake", "Other"}


@pytest.mark.usefixtures("twins")
def test_m6_a_project_that_contains_a_candidate_is_not_deleted(
    run: Any, emulator: RunningEmulator
) -> None:
    """Deleting the former project would delete the export that may be the one to keep."""
    (web,) = {export["team_id"] for export in emulator.exports().values()}
    new, _ = new_project(emulator, "Next", "Lake")
    old = {"name": "Web", "id": web, "state": "absent"}
    projects = {"old": old, "web": {"name": "Next", "id": new}}
    lake = {"name": "Lake", "project": {"id": str(web)}}
    plan = run("plan", "--exclude", "lake", "--format", "json", projects=projects, lake=lake)
    rules = {refusal["rule"] for refusal in json.loads(plan.out)["refusals"]}
    assert (plan.code, "ambiguous" in rules) == (5, True)


def test_two_resources_with_one_former_name_are_refused(
    run: Any, emulator: RunningEmulator
) -> None:
    """Which of both was renamed would be a guess."""
    new_project(emulator, "Web", "Old")
    renamed = {"lifecycle": {"renamed_from": ["Old"]}}
    exports = {"lake": {"name": "Lake", **renamed}, "new": {"name": "New", **renamed}}
    plan = json.loads(run("plan", "--format", "json", **exports).out)
    assert not plan["changes"]
    (refusal,) = plan["refusals"]
    assert refusal["addresses"] == ["batch_export.lake", "batch_export.new"]
    assert (refusal["at"]["file"], "by `id`" in refusal["allow"]) == ("resources.yaml", True)


# I9: null in a secret field clears what the service has, where the service accepts that.

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----"


def snowflake(**config: Any) -> dict[str, str]:
    """Return the files of an export with secrets; `config` extends its destination."""
    names = ("database", "warehouse", "schema")
    plain = {"account": "acme", **dict.fromkeys(names, "x"), "authentication_type": "keypair"}
    secrets = {"user": "USER", "private_key": "KEY"}
    refs = {name: f"${{secret:env:RECONCILER_SECRET_{key}}}" for name, key in secrets.items()}
    destination = {"type": "Snowflake", "config": {**plain, **refs, **config}}
    return workspace(dwh={"destination": destination})


def test_i9_null_clears_a_passphrase(run_in: Any, service_of: StartService, tmp_path: Path) -> None:
    """I9: one that is removed is kept, and the plan says how to clear it."""
    service, git = service_of(None, "--dialect", "2025"), Git.init(tmp_path / "w")
    values = {"USER": "hunter2-user", "KEY": PEM, "PASS": "hunter2-pass"}
    run = run_in(service, **{f"RECONCILER_SECRET_{name}": value for name, value in values.items()})

    def step(*words: str, **config: Any) -> str:
        write(git.folder, snowflake(**config))
        git.commit()
        service.clear_requests()
        ran = run(*words)
        assert ran.code == 0, ran.out + ran.err
        return " ".join(ran.out.split())

    step(*APPLY, private_key_passphrase="${secret:env:RECONCILER_SECRET_PASS}")
    assert "it keeps its live value; write null to clear it" in step("plan")
    step(*APPLY, private_key_passphrase=None)
    (sent,) = [item["body"] for item in service.requests() if item["method"] == "PATCH"]
    config = sent["destination"]["config"]
    assert (config["private_key_passphrase"], bool(config["private_key"])) == (None, True)


@pytest.mark.parametrize("before", [{}, {"slack_incoming_webhook": SecretRef.of("env", "HOOK")}])
@pytest.mark.parametrize("shown", [None, "https://hooks.slack.com/x", ...])
def test_i9_null_is_sent_if_it_changes_something(before: dict[str, object], shown: object) -> None:
    """I9: what the live object shows decides; if it shows nothing, what was declared before."""
    body = {} if shown is ... else {"slack_incoming_webhook": shown}
    now, was = worlds.project(slack_incoming_webhook=CLEARED), worlds.project(**before)
    live = worlds.live_of(worlds.live_project(**body))
    plan = worlds.planned(worlds.desired_of(now), live, base=worlds.desired_of(was))
    changes = [change for change in plan.effective if change.body]
    expected = True if shown is ... else shown is not None
    assert [change.body for change in changes] == [{"slack_incoming_webhook": CLEARED}] * expected
    assert "hooks.slack.com" not in str(plan.effective)


@pytest.mark.parametrize(
    ("value", "field", "texts"),
    [
        ("", "private_key_passphrase", ("is a secret and must not be empty", "or null to clear")),
        (None, "password", ("must be text, not null", "the service keeps its value")),
        (None, "private_key_passphrase", ()),
    ],
)
def test_i9_validate_says_what_clears_a_secret(
    tmp_path: Path, value: str | None, field: str, texts: tuple[str, ...]
) -> None:
    write(tmp_path, snowflake(**{field: value}))
    ran = reconciler("validate", "-C", tmp_path)
    assert ran.code == bool(texts), ran.out
    for part in texts:
        assert part in " ".join(ran.out.split())


# Values that the program does not know: errors, warnings, and no word about what live has.

EVERY_5 = {"interval": "every 5 minutes"}


@pytest.mark.parametrize("command", ["plan", "status"])
def test_plan_v8_no_warning_about_what_live_has(
    command: str, service_of: StartService, run_in: Any
) -> None:
    web = {"id": 1, "name": "Web", "batch_exports": [no_op_export("fast", **EVERY_5)]}
    run = run_in(service_of(seed(web)))
    assert "[feature-flag]" not in run(command, files=workspace(fast=EVERY_5)).err
    warned = run(command, files=workspace(fast=EVERY_5, new=EVERY_5)).err
    assert (warned.count("has [feature-flag]"), "interval of batch_export.new" in warned) == (
        1,
        True,
    )
    assert "[feature-flag]" in run("validate").out


def test_plan_v9_a_near_miss_is_refused_unless_the_policy_attempts_it(
    emulator: RunningEmulator, run_in: Any
) -> None:
    run, commands = run_in(emulator), (("validate",), ("validate", "-e", "default"), ("plan",))
    for words in commands[:2]:
        checked = run(*words, files=workspace(lake={"interval": "dayly"}))
        assert checked.code == 1
        assert "error: unknown value 'dayly' for interval of batch_export.lake" in checked.out
        assert "hint: did you mean 'day'?" in checked.out
    plan = run("plan")
    assert (plan.code, "dayly" in plan.err) == (5, False)
    assert "resources.yaml:11:16: error: unknown value 'dayly' for interval" in plan.out
    attempting = workspace("policy: {attempt: [unknown-value]}\n", lake={"interval": "dayly"})
    for words in commands:
        ran = run(*words, files=attempting)
        assert (ran.code, "warning: unknown value 'dayly'" in ran.out + ran.err) == (0, True)


# Rules of users.

RULES = """\
version: 1
policy:
  rules:
    no-web:
      match: {action: create, name: W*}
      message: names begin with a team
      hint: call it team-web
"""
WEB_FILE = "projects: {web: {name: Web}}\n"
NO_WEB = "reconciler.yaml:4:5"


def test_a_rule_refuses_a_plan_and_its_apply(emulator: RunningEmulator, tmp_path: Path) -> None:
    folder = write(tmp_path, {"reconciler.yaml": RULES, "web.yaml": WEB_FILE})
    planned = reconciler("plan", "-C", folder, environ=emulator.environ())
    assert planned.code == 5
    assert f"{NO_WEB}: error: names begin with a team [rules.no-web]" in planned.out
    assert "hint: call it team-web" in planned.out
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=emulator.environ())
    assert applied.code == 5
    assert emulator.writes() == []


def test_rules_of_an_environment_are_added_and_replace(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    def policy(**rules: str) -> dict[str, Any]:
        made = {name: {"match": {"action": "*"}, "message": rules[name]} for name in rules}
        return {"policy": {"rules": made}}

    own = {"environments": {"prod": policy(two="other", three="three")}}
    settings = {"version": 1, **policy(one="one", two="two"), **own}
    write(tmp_path, {"reconciler.yaml": json.dumps(settings), "web.yaml": WEB_FILE})
    words = ("plan", "-C", tmp_path, "--format", "json")
    refusals = json.loads(reconciler(*words, environ=emulator.environ()).out)["refusals"]
    assert sorted(item["message"] for item in refusals) == ["one", "other", "three"]


def test_the_workspace_on_the_page_is_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n# reconciler.yaml\n")[2].partition("```")[0]
    write(tmp_path, {"reconciler.yaml": text, "web.yaml": WEB_FILE})
    ran = reconciler("validate", "-C", tmp_path, "--strict")
    assert ran.code == 0, ran.out
