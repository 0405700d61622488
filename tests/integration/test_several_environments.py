"""`-e A -e B` and `-e '*'`: one document, and one that fails does not stop the others."""

from __future__ import annotations

import asyncio
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.commands import plan as plans
from reconciler.commands.workspace import Runtime, Workspace, in_each
from reconciler.exit_codes import ExitCode, worst_of
from reconciler.model.event import Event, Noted
from reconciler.model.settings import Window
from reconciler.service.pace import ClientSettings
from tests.conftest import ROOT
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.simulated import no_op_export
from tests.support.transport import VirtualClock
from tests.support.workspaces import lake

FILES = {
    "reconciler.yaml": """\
version: 1
environments:
  dev: {}
  staging: {}
  production: {policy: {deny: [new-api-token]}}
""",
    "exports.yaml": lake(overrides="{dev: {interval: '${var:every}'}}"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def plan(folder: Path, running: RunningEmulator, *words: str | Path) -> Ran:
    return reconciler("plan", "-C", folder, *words, environ=running.environ())


def test_every_environment_has_a_section_and_a_line(
    folder: Path, emulator: RunningEmulator
) -> None:
    ran = plan(folder, emulator, "-e", "*", "--debug")
    assert ran.code == 1
    assert "debug: staging: workspace" in ran.err
    assert ran.out.startswith(
        "Environment dev\nerror: exports.yaml:9:33: unknown variable 'every'\n\n"
    )
    assert ran.out.count("  + batch_export.lake") == 2
    assert ran.out.endswith(
        "3 environments:\n"
        "  dev         error\n"
        "  staging     2 to create\n"
        "  production  2 to create; refused by policy\n"
    )
    assert "error: unknown variable 'every'" in ran.err
    assert "  in dev\n" in ran.err
    assert "8 API calls\n" in ran.err


def test_the_page_has_the_order_of_exit_codes() -> None:
    text = (ROOT / "docs/environments.md").read_text(encoding="utf-8")
    numbers = text.partition("is the worst: ")[2].partition(".")[0]
    order = [ExitCode(int(number)) for number in numbers.split(", ")]
    assert set(order) == set(ExitCode)
    assert [worst_of(order[n:]) for n in range(len(order))] == order
    assert worst_of([]) is ExitCode.FINE


def test_json_has_each_environment_and_markdown_one_comment(
    folder: Path, emulator: RunningEmulator
) -> None:
    result = json.loads(plan(folder, emulator, "-e", "*", "--format", "json").out)
    dev, staging, production = result["environments"]
    assert (dev["result"], dev["exit_code"]) == (None, 1)
    assert dev["error"]["diagnostics"][0]["code"] == "unknown-variable"
    assert (staging["environment"], staging["exit_code"]) == ("staging", 0)
    assert staging["result"]["summary"]["create"] == 2
    assert (production["exit_code"], production["error"]) == (5, None)
    comment = plan(folder, emulator, "-e", "*", "--format", "markdown").out
    assert comment.startswith("<!-- reconciler: dev staging production -->\n### dev: error\n")
    assert comment.count("<!-- reconciler:") == 1
    assert "### staging: 2 to create\n" in comment


def test_each_plan_is_saved_to_a_file_that_can_be_applied(
    folder: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    out = tmp_path / "plans"
    stale = write(out, {"dev.json": "{}"}) / "dev.json"
    ran = plan(folder, emulator, "-e", "*", "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["production.json", "staging.json"]
    assert not stale.exists()
    assert f"apply one with: reconciler apply -e staging {out}/staging.json " in ran.err
    applied = as_printed(ran, emulator)
    assert applied.code == 0, applied.err
    # Plans without changes need no apply.
    assert f"saved to {out}\n" in plan(folder, emulator, "-e", "*", "--out", out).err


@pytest.mark.parametrize("name", ["production", "prod*"])
def test_op11_a_refused_plan_is_saved_and_not_suggested(
    folder: Path, emulator: RunningEmulator, tmp_path: Path, name: str
) -> None:
    ran = plan(folder, emulator, "-e", name, "--out", tmp_path / "plan")
    assert ran.code == 5
    assert f"saved to {tmp_path / 'plan'}\n" in ran.err
    assert (tmp_path / "plan").exists()
    assert " calls, about " not in ran.out


def as_printed(ran: Ran, running: RunningEmulator) -> Ran:
    """Run the command that the output names, as a shell splits it."""
    (line,) = (text for text in ran.err.splitlines() if "apply one with: " in text)
    program, *words = shlex.split(line.partition("apply one with: ")[2])
    assert program == "reconciler"
    return reconciler(*words, environ=running.environ())


@pytest.mark.parametrize("name", ["a b", "*", "[x]", "x; rm -rf ~", "$(id)", "../x"])
def test_the_printed_command_quotes_an_environment_for_the_shell(
    tmp_path: Path, emulator: RunningEmulator, name: str
) -> None:
    files = {
        "reconciler.yaml": json.dumps({"version": 1, "environments": {name: {}, "other": {}}}),
        "exports.yaml": "projects:\n  web: {name: Web}\n",
    }
    folder = write(tmp_path / "a folder", files)
    ran = plan(folder, emulator, "-e", name, "-e", "other", "--out", tmp_path / "plans")
    assert f" -e {shlex.quote(name)} " in ran.err
    applied = as_printed(ran, emulator)
    assert (applied.code, "Applied: 1 created" in applied.out) == (0, True), applied.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("plan -e staging -e production", 5, ""),
        ("plan -e stag*", 0, ""),
        ("plan -e stag* --detailed-exitcode", 2, ""),
        ("plan -e *", 1, ""),
        ("plan -e prod* -e nope", 64, "unknown environment 'nope'"),
        ("plan -e * --out -", 64, "--out - takes one environment"),
        ("plan -e staging --out .", 64, "--out . is a folder"),
        ("apply -e staging -e dev", 64, "several environments: staging, dev"),
    ],
)
def test_the_exit_code_is_the_worst_and_wrong_combinations_are_usage_errors(
    folder: Path, emulator: RunningEmulator, words: str, code: int, message: str
) -> None:
    ran = reconciler(*words.split(), "-C", folder, environ=emulator.environ())
    assert (ran.code, message in ran.err) == (code, True)
    assert emulator.writes() == []


def test_environments_share_the_limit_of_their_key(folder: Path, emulator: RunningEmulator) -> None:
    """Eight calls, two in ten seconds: one environment alone would need ten seconds."""
    clock = VirtualClock()
    settings = ClientSettings(rate=(Window(2, 10.0),), clock=clock, sleep=clock.sleep)
    runtime = Runtime(emulator.environ(), lambda: datetime(2026, 1, 1, tzinfo=UTC), client=settings)
    workspace = Workspace(folder, runtime=runtime)

    planned = asyncio.run(in_each(plans.plan, workspace, ["staging", "prod*"]))
    assert [item.error for item in planned] == [None, None]
    assert clock.now >= 30


def test_notes_that_matter_are_shown_with_their_environment(folder: Path) -> None:
    """They are shown without --debug, as in a run of one environment."""
    noted: list[Event] = []

    async def work(workspace: Workspace) -> None:
        workspace.runtime.listen(Noted("ambiguous", important=True))

    workspace = Workspace(folder, runtime=Runtime({}, listen=noted.append))
    asyncio.run(in_each(work, workspace, ["staging"]))
    assert noted == [Noted("staging: ambiguous", important=True)]


NIGHT = """\
version: 1
environments:
  dev: {organization: 00000000-0000-4000-8000-000000000000}
  staging: {organization: ORGANIZATION}
  production: {organization: ORGANIZATION}
"""


@pytest.fixture
def night(tmp_path: Path, emulator: RunningEmulator) -> Path:
    """Return a workspace of three environments, the first of which fails; an export has a gap."""
    rules = [{"match": {"nth": 3}, "status": "Failed"}, {"match": {}}]
    emulator.admin("PUT", "outcomes", rules)
    body = no_op_export("Lake")
    emulator.call("POST", "/api/projects/1/batch_exports/", body).raise_for_status()
    emulator.advance(hours=5)
    text = NIGHT.replace("ORGANIZATION", emulator.organization)
    return write(tmp_path / "night", {"reconciler.yaml": text})


def at_night(command: str, folder: Path, running: RunningEmulator, *words: str | Path) -> Ran:
    # The files choose the organization, which only a trusted workspace may.
    environ = running.environ()
    del environ["RECONCILER_ORGANIZATION"]
    return reconciler(command, "-C", folder, "--trust-workspace", *words, environ=environ)


def test_issue_30_status_of_every_environment_is_one_report(
    night: Path, emulator: RunningEmulator
) -> None:
    ran = at_night("status", night, emulator, "-e", "*")
    assert ran.code == 1
    assert ran.out.startswith("Environment dev\nerror: ")
    assert "\nEnvironment staging · " in ran.out
    assert "\nEnvironment production · " in ran.out
    last = ran.out[ran.out.index("3 environments") :].splitlines()[:4]
    assert last[0] == "3 environments, 1 with an error"
    assert [" ".join(line.split()) for line in last[1:]] == [
        "dev error",
        *(f"{name} 1 export: 1 ok; 1 unmanaged (in quotes)." for name in ("staging", "production")),
    ]
    assert "  in dev\n" in ran.err
    well = ("-e", "staging", "-e", "production")
    assert at_night("status", night, emulator, *well).code == 0
    assert at_night("status", night, emulator, *well, "--fail-on", "ok").code == 2


def test_issue_30_gaps_of_every_environment_are_one_report(
    night: Path, emulator: RunningEmulator
) -> None:
    ran = at_night("gaps", night, emulator, "-e", "*")
    assert ran.code == 1
    assert ran.out.startswith("Environment dev\nerror: ")
    assert ran.out.count("  1 interval\n") == 2
    assert "\n  dev         error\n" in ran.out
    assert "\n  production  Intervals: 1 failed" in ran.out
    assert at_night("gaps", night, emulator, "-e", "prod*", "-e", "staging").code == 2
    hints = [line for line in ran.out.splitlines() if line.startswith("  reconciler ")]
    for name, hint in zip(("staging", "production"), hints, strict=True):
        assert hint.startswith(f"  reconciler backfill -e {name} batch_export.id:")
    _, *words = shlex.split(hint)
    assert f"--workspace={night}" in words
    repaired = at_night(words[0], night, emulator, *words[1:], "--auto-approve")
    for line, name in zip(repaired.out.splitlines()[-2:], ("runs", "gaps"), strict=True):
        assert line.startswith(f"  reconciler {name} -e production {words[3]} --workspace=")


@pytest.mark.parametrize("command", ["status", "gaps"])
def test_issue_30_formats_of_several_reports(
    command: str, night: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    def shown(name: str) -> str:
        return at_night(command, night, emulator, "-e", "*", "--format", name).out

    dev, staging, production = json.loads(shown("json"))["environments"]
    assert (dev["environment"], dev["result"], dev["exit_code"]) == ("dev", None, 1)
    assert dev["error"]["message"]
    assert (staging["error"], production["result"]["environment"]) == (None, "production")
    comment, page = shown("markdown"), shown("html")
    title = {"status": "Exports", "gaps": "Gaps"}[command]
    assert comment.startswith(f"### {title} of 3 environments\n")
    assert [line[:20] for line in comment.splitlines() if line.startswith("#### ")] == [
        *("#### Environment dev", "#### Environment sta", "#### Environment pro"),
        "#### 3 environments,",
    ]
    assert page.count("<h2>") == 4
    if command == "status":
        file = tmp_path / "status.html"
        at_night(command, night, emulator, "-e", "*", "--html", file)
        assert file.read_text(encoding="utf-8").count("<h2>") == 4
