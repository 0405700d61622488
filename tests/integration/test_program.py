"""The command line as a whole: processes, signals, imports, help, exit codes, output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from reconciler.commands.command import Command
from reconciler.commands.explain import explain
from reconciler.commands.process import run, stop_on_signals
from reconciler.commands.program import COMMANDS, command_of
from reconciler.errors import BadUsage, codes
from reconciler.exit_codes import ExitCode
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.schemas import known_schema
from reconciler.packaged import packaged
from reconciler.service.pace import Stop
from reconciler.version import __version__
from tests.conftest import ROOT, StartService
from tests.support.cli import reconciler, reconciler_process, write
from tests.support.declared import s3, workspace
from tests.support.devices import NEEDS_FULL_DISK
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.limits import TIMEOUT

# The command line as a process: entry points and encodings.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    web = {"web": {"name": "Store 日本"}}
    return write(tmp_path / "workspace", workspace(projects=web, lake={}))


@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-m", "reconciler"], [str(Path(sys.executable).parent / "reconciler")]],
    ids=["module", "script"],
)
def test_both_entry_points_start(command: list[str]) -> None:
    ended = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    assert ended.stdout == f"reconciler, version {__version__}\n"


def test_output_that_cannot_be_encoded_is_escaped(folder: Path) -> None:
    environ = {"PYTHONIOENCODING": "latin-1"}
    ran = reconciler_process("show", "web", "-C", folder, environ=environ)
    assert ran.code == 0, ran.err
    assert r"Store \u65e5\u672c" in ran.out


# Signals on an event loop without handlers for them, such as that of Windows.


@pytest.fixture
def handlers() -> Iterator[None]:
    former = {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield
    for number, handler in former.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_a_signal_requests_a_stop_without_handlers_of_the_event_loop() -> None:
    async def interrupted() -> None:
        with pytest.raises(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, print)
        stop = Stop()
        stop_on_signals(stop)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.requested.wait(), TIMEOUT)

    with asyncio.Runner(loop_factory=BaseSelectorEventLoop) as runner:
        runner.run(interrupted())


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("steps", range(3))
def test_a_signal_that_arrived_just_before_a_run_stops_it_in_order(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop may have queued the call when the run starts: it must not cancel the run."""
    # A cancelled run would end this process a little later.
    monkeypatch.setattr("reconciler.commands.process._CLEAN_UP_SECONDS", 3_600.0)
    stop = Stop()

    async def work() -> str:
        signal.raise_signal(signal.SIGTERM)
        for _ in range(steps):
            await asyncio.sleep(0)
        stop_on_signals(stop)
        await asyncio.wait_for(stop.requested.wait(), TIMEOUT)
        return "in order"

    assert run(work()) == "in order"


# Help, and the options that every command has.


@pytest.mark.parametrize("name", COMMANDS)
def test_experience_20_help_has_examples_that_parse_and_a_page(name: str) -> None:
    command = command_of(name)
    assert isinstance(command, Command)
    assert 2 <= len(command.examples) <= 3
    assert (ROOT / command.page).is_file()
    for line, meaning in command.examples:
        program, *arguments = shlex.split(line.partition(" > ")[0])
        assert program == name
        command.make_context(name, arguments)
        assert meaning[0].isupper()
        assert not meaning.endswith(".")


def test_experience_7_20_the_help_of_plan_is_short_and_its_options_are_grouped() -> None:
    lines = reconciler("plan", "--help", environ={"COLUMNS": "80"}).out.splitlines()
    assert len(lines) <= 64
    headings = [line for line in lines if line.endswith(":") and line[0] != " "]
    groups = ["Options:", "Workspace:", "Selection:", "Planning:", "Output:", "Examples:"]
    assert headings == groups


def test_experience_34_short_forms_of_help_and_version() -> None:
    assert reconciler("-V").out == reconciler("--version").out
    assert "Did you mean 'reconciler --version'?" in reconciler("version").err
    assert "Did you mean 'mv'?" in reconciler("rename").err
    unknown = reconciler("plna")
    assert unknown.code == 64
    assert "Did you mean 'plan'?" in unknown.err


def test_a_plan_without_a_service_names_the_variables(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("plan", "-C", tmp_path, environ={"RECONCILER_API_KEY": "phx_key"})
    hint = "set RECONCILER_BASE_URL, RECONCILER_ORGANIZATION, or add base_url, "
    assert f"  hint: {hint}" in ran.err


@pytest.mark.parametrize("before", [True, False])
def test_common_options_before_and_after_the_command(
    emulator: RunningEmulator, tmp_path: Path, *, before: bool
) -> None:
    folder = write(tmp_path, workspace())

    def plan(option: str) -> tuple[str, str]:
        words = [option, "plan"] if before else ["plan", option]
        planned = reconciler(*words, "-C", folder, environ=environ)
        assert planned.code == 0
        return planned.out, planned.err

    environ = {**emulator.environ(), "FORCE_COLOR": "1"}
    plain, remarks = plan("--no-color")
    assert "\x1b[" not in plain
    assert "API calls" in remarks
    coloured, quiet = plan("-q")
    assert "\x1b[" in coloured
    assert quiet == ""
    full, verbose = plan("-v")
    assert "GET /api/" in verbose
    everything, debug = plan("--debug")
    assert everything == full != plan("-q")[0]
    assert "GET /api/" in debug
    assert "debug: reconciler " in debug
    assert environ["RECONCILER_API_KEY"] not in debug


@pytest.mark.parametrize("command", ["demo", "emulator"])
def test_packages_that_are_not_installed_are_one_error(command: str, tmp_path: Path) -> None:
    write(tmp_path, {"uvicorn.py": "raise ModuleNotFoundError(name='uvicorn')"})
    assert reconciler(command, environ={"PYTHONPATH": str(tmp_path)}).err == (
        "error: the embedded service needs the package uvicorn\n"
        "  hint: install it with: pip install 'posthog-reconciler[emulator]'\n"
    )


def test_debug_shows_where_an_error_began(tmp_path: Path) -> None:
    failed = reconciler("plan", "-C", tmp_path / "missing", "--debug")
    assert "debug: ReconcilerError raised at" in failed.err
    assert "debug:   reconciler.files.sources:" in failed.err
    assert "raised at" not in reconciler("plan", "-C", tmp_path / "missing").err


# I10: a command that sent a change never exits with 1, and one that exits with 1 sent none.

LAKE = workspace("", {"web": {"id": 1, "name": "Default project"}}, lake={"paused": False})
CANCEL = ("backfill", "lake", "--cancel", "--auto-approve")
BACKFILL = ("backfill", "lake", "--auto-approve", "--from")
PAUSE = ("pause", "lake", "--auto-approve")
RESET = ("projects", "reset-token", "web", "--auto-approve")


def refused(method: str, path: str, **which: int) -> dict[str, Any]:
    return {"match": {"method": method, "path": path, **which}, "fault": "error", "status": 400}


def running_backfills(running: RunningEmulator, folder: Path) -> RunningEmulator:
    """Create the export and, on a server that lists them, two backfills that run."""
    environ = running.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    for month in ("01", "02"):
        words = (*BACKFILL, f"2026-{month}-01", "--to", f"2026-{month}-02", "-C", folder)
        assert reconciler(*words, environ=environ).code == 0
    running.clear_requests()
    return running


@pytest.mark.parametrize(
    ("words", "fault", "code"),
    [
        (CANCEL, refused("GET", "*/backfills/"), 1),
        (CANCEL, refused("POST", "*/cancel/"), 3),
        (CANCEL, refused("POST", "*/cancel/", **{"from": 2}), 3),
        ((*BACKFILL, "2026-03-01", "--to", "2026-03-02"), refused("POST", "*/backfills/"), 3),
        (PAUSE, refused("GET", "*/batch_exports/"), 1),
        (PAUSE, refused("POST", "*/pause/"), 3),
        (RESET, refused("GET", "*/projects/1/"), 1),
        (RESET, refused("PATCH", "*/reset_token/"), 3),
        (RESET, {"match": {"path": "*/reset_token/"}, "fault": "drop", "when": "before"}, 3),
    ],
)
def test_i10_exit_code_1_is_never_that_of_a_command_that_sent_a_change(
    words: tuple[str, ...],
    fault: Any,
    code: int,
    tmp_path: Path,
    service_of: StartService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(write(tmp_path, LAKE))
    dialect = "interface" if words[0] == "projects" else "2026"
    running = running_backfills(service_of(None, "--dialect", dialect), tmp_path)
    running.admin("PUT", "faults", [fault])
    ran = reconciler(*words, environ=running.environ())
    assert (ran.code, bool(running.writes())) == (code, code == 3), ran.err


def test_an_inventory_that_cannot_be_written_has_the_code_of_the_log(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """What the log says of the end of a run is what the process says."""
    git = Git.init(write(tmp_path / "w", LAKE))
    git.commit()
    (git.folder / ".git/refs/reconciler").write_text("in the way")
    log, auto = tmp_path / "log.jsonl", "--auto-approve"
    ran = reconciler("apply", auto, "-C", git.folder, "--log-file", log, environ=emulator.environ())
    ended = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    assert (ran.code, ended["exit_code"], ended["verified"]) == (3, 3, True), ran.err
    assert f"error: {ended['unrecorded']}" in ran.err
    assert reconciler("show", log).code == 3


@NEEDS_FULL_DISK
def test_i10_a_cancellation_that_cannot_be_shown(tmp_path: Path, service_of: StartService) -> None:
    folder = write(tmp_path, LAKE)
    running = running_backfills(service_of(None, "--dialect", "2026"), folder)
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "reconciler", *CANCEL, "-C", str(folder)],
            env={**os.environ, **running.environ()},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, len(running.writes())) == (1, 0), ended.stderr


def test_the_documentation_and_the_help_list_every_exit_code() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes\n")[2].partition("\n###")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == [*ExitCode]
    epilog = " ".join(reconciler("--help").out.partition("Exit codes:")[2].split("\n\n")[0].split())
    assert [int(code) for code in re.findall(r"(\d+) ", epilog)] == [*ExitCode]


# Commands and options that were removed say what to use instead.

REMOVED = tomllib.loads(packaged("removed.toml").read_text(encoding="utf-8"))
WORDS, EVERYWHERE = REMOVED["words"], REMOVED["options"]
_OPTIONS = [
    ("plan" if table == "options" else table, name, hint)
    for table, names in REMOVED.items()
    for name, hint in names.items()
    if table not in {"commands", "words"}
]


@pytest.mark.parametrize(
    ("words", "removed", "hint"),
    [
        *(([name, "--any", "word"], name, hint) for name, hint in REMOVED["commands"].items()),
        *(
            ([command, f"{name}=x" if name.startswith("--") else name], f"{command} {name}", hint)
            for command, name, hint in _OPTIONS
        ),
        *((["explain", "--", name], name, hint) for name, hint in WORDS.items()),
        (["explain", "--", "fmt"], "fmt", REMOVED["commands"]["fmt"]),
        (["explain", "--", "--max-wait"], "--max-wait", EVERYWHERE["--max-wait"]),
    ],
)
def test_x8_what_was_removed_says_what_to_use(words: list[str], removed: str, hint: str) -> None:
    ran = reconciler(*words)
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.split() == f"error: '{removed}' was removed hint: {hint}".split()


def test_nothing_that_was_removed_exists() -> None:
    assert not REMOVED["commands"].keys() & COMMANDS.keys()
    for command, name, _ in _OPTIONS:
        assert name not in {text for param in command_of(command).params for text in param.opts}


@pytest.mark.parametrize("name", ["-auto-approve", "--yes"])
@pytest.mark.parametrize("command", ["apply", "backfill", "pause", "unpause", "import", "doctor"])
def test_x7_auto_approve_is_suggested_where_it_exists(command: str, name: str) -> None:
    ran = reconciler(command, name)
    has_it = any("--auto-approve" in param.opts for param in command_of(command).params)
    assert ran.code == 64
    assert (f"No such option '{name}'. Did you mean '--auto-approve'?" in ran.err) is has_it


# `explain`: what the generated reference says about fields, codes and rules.


def test_a_field_and_other_spellings() -> None:
    ran = reconciler("explain", "batch_export.destination.S3.file_format")
    assert ran.code == 0
    assert explain("S3")[1].name == "batch_export.destination.S3.bucket_name"
    assert {entry.name for entry in explain("timezone")} == {
        "batch_export.timezone",
        "project.timezone",
    }
    assert ran.out.splitlines() == [
        "batch_export.destination.S3.file_format",
        "  Format of the files. Known: `JSONLines`, `Parquet`.",
        "  type     text",
        '  default  `"JSONLines"`',
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("intervall", "did you mean 'batch_export.interval'?"),
        ("histry-lost", "did you mean 'history-lost'?"),
        ("batch_exprt", "did you mean 'batch_export'?"),
        ("gaps", "did you mean `reconciler gaps --help`?"),
        ("policy.prun", "did you mean 'policy.prune' or 'policy.rules'?"),
        ("destination.s3", "did you mean 'batch_export.destination.S3'?"),
        ("zzz", "see docs/reference/"),
    ],
)
def test_an_unknown_name_has_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(BadUsage) as refused:
        explain(name)
    assert refused.value.hint == hint


def test_every_field_code_and_rule_has_an_entry() -> None:
    names = [*codes(), *known_schema("workspace")["properties"]]
    for kind in all_kinds():
        names += [f"{kind.name}.{field}" for field in known_schema(kind.name)["properties"]]
        behaviour = behaviour_of(kind)
        names += [rule.id for rule in (*behaviour.rules, *behaviour.refusals)]
    assert [name for name in names if not explain(name)[0].text] == []


# Colour, width and paths of the output.

WRONG = {
    "reconciler.yaml": (
        "version: 1\n"
        "environments:\n"
        "  a: {base_url: https://x.example, organization: b, api_key: '${env:K}'}\n"
    ),
    "exports/a.yaml": "projects:\n"
    f"  web: {{名前: 1, name: Web, app_urls: [{', '.join(['https://x.example'] * 20)}]}}\n",
}


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return write(tmp_path / "infra" / "pipelines", WRONG)


@pytest.mark.parametrize(
    ("environ", "terminal", "coloured"),
    [
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_is_decided_by_the_environment(
    wrong: Path, environ: dict[str, str], terminal: bool, coloured: bool
) -> None:
    """`tests/unit/render/test_options.py` has the other variables."""
    validated = reconciler("validate", "-C", wrong, environ=environ, terminal=terminal)
    assert "unknown field '名前'" in validated.out
    assert ("\x1b[1;31merror\x1b[0m" in validated.out) is coloured
    if not terminal:
        planned = reconciler("plan", "-C", wrong, environ=environ)
        assert ("\x1b[1;31merror\x1b[0m" in planned.err) is coloured


def test_a_narrow_terminal_crops_lines(wrong: Path) -> None:
    environ = {"TERM": "xterm", "COLUMNS": "40"}
    output = reconciler("validate", "-C", wrong, environ=environ, terminal=True).out
    output = re.sub(r"\x1b\[[\d;]*m", "", output)
    shown = [line for line in output.splitlines() if line[:8].endswith(" | ")]
    assert shown[0] == "    2 |   web: {名前: 1, name: Web, ap…"
    assert "\n                ^^^^\n" in output


def test_annotations_have_paths_from_the_root_of_the_repository(
    wrong: Path, tmp_path: Path
) -> None:
    for root, folder in (
        (None, "infra/pipelines/"),
        (tmp_path, "infra/pipelines/"),
        ("/elsewhere", "infra/pipelines/"),
        (wrong.parent, "pipelines/"),
        (wrong, ""),
    ):
        environ = {"GITHUB_WORKSPACE": str(root)} if root else {}
        ran = reconciler("validate", "-C", wrong, "--format", "github", environ=environ)
        assert f"file={folder}exports/a.yaml,line=2," in ran.out
    log = orjson.loads(reconciler("validate", "-C", wrong, "--format", "sarif").out)
    places = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert places["artifactLocation"]["uri"] == "infra/pipelines/exports/a.yaml"


def files(count: int, projects: int = 1) -> dict[str, str]:
    """Return a workspace with exports, which are in projects by turns."""
    secrets = [f"${{secret:env:RECONCILER_SECRET_{name}}}" for name in ("ID", "KEY")]
    own = {f"web{number}": {"name": f"Web{number}"} for number in range(projects)}
    return workspace(
        "",
        own,
        **{f"x{n}": s3(*secrets, project=f"web{n % projects}") for n in range(count)},
    )


def test_experience_8_verbose_and_summary_are_options_of_plan_and_show(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    here, saved = write(tmp_path / "w", files(24)), tmp_path / "plan.json"
    environ = {**emulator.environ(), "COLUMNS": "120"}
    plan = reconciler("plan", "-C", here, "--out", saved, environ=environ)
    assert "+ 24 batch exports in Web0" in plan.out
    assert " calls, about " in plan.out.splitlines()[-1]
    assert max(map(len, plan.out.splitlines())) <= 120
    shown = reconciler("show", saved, "--verbose", environ=environ)
    assert shown.out.count("destination.config.bucket_name") == 24
    assert emulator.organization in shown.out
    for command in (("plan", "-C", here), ("show", saved)):
        summary = reconciler(*command, "--summary", environ=environ).out
        assert "batch exports in" not in summary
        assert "Plan: 25 to create" in summary


def test_a_cut_comment_names_the_workspace_and_like_the_audit_log_the_job(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    azure = {
        "SYSTEM_COLLECTIONURI": "https://azure.example/acme/",
        "SYSTEM_TEAMPROJECT": "Data team",
        "BUILD_BUILDID": "42",
    }
    job = "https://azure.example/acme/Data%20team/_build/results?buildId=42"
    environ, log = {**emulator.environ(), **azure}, tmp_path / "log"
    here = ("-C", write(tmp_path / "deploy", files(150, 150)), "--no-inventory")
    plan = reconciler("plan", *here, "--format", "markdown", environ=environ)
    assert plan.out.startswith("<!-- reconciler: default deploy -->\n### default: 300 to create\n")
    assert f"[the job]({job}) has the file." in plan.out
    write(tmp_path / "deploy", files(0))
    options = ("--auto-approve", "--log-file", log)
    assert reconciler("apply", *here, *options, environ=environ).code == 0
    assert f'"job_url":"{job}"' in log.read_text(encoding="utf-8")
