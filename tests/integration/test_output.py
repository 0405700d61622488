"""Colour, width and paths of the output of the command line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support import declared
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import time_limit

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
def workspace(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return write(tmp_path / "infra" / "pipelines", WRONG)


@pytest.mark.parametrize(
    ("environ", "terminal", "coloured"),
    [
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_is_decided_by_the_environment(
    workspace: Path, environ: dict[str, str], terminal: bool, coloured: bool
) -> None:
    """`tests/unit/render/test_options.py` has the other variables."""
    validated = reconciler("validate", "-C", workspace, environ=environ, terminal=terminal)
    assert "unknown field '名前'" in validated.out
    assert ("\x1b[1;31merror\x1b[0m" in validated.out) is coloured
    if not terminal:
        planned = reconciler("plan", "-C", workspace, environ=environ)
        assert ("\x1b[1;31merror\x1b[0m" in planned.err) is coloured


def on_a_terminal(*arguments: str | Path, environ: dict[str, str]) -> str:
    """Return the output of a process that runs on a terminal."""
    ours, theirs = pty.openpty()
    with (
        subprocess.Popen(
            [sys.executable, "-m", "reconciler", *map(str, arguments)],
            env={"PATH": os.environ["PATH"], "TERM": "xterm", **environ},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        ) as process,
        time_limit(process),
    ):
        os.close(theirs)
        output = b""
        try:
            while read := os.read(ours, 65_536):
                output += read
        except OSError:  # Linux reports the closed end as an error
            pass
    os.close(ours)
    return output.decode().replace("\r\n", "\n")


def test_a_process_on_a_narrow_terminal_has_colours_and_crops_lines(workspace: Path) -> None:
    output = on_a_terminal("validate", "-C", workspace, environ={"COLUMNS": "40"})
    assert "\x1b[1;31merror\x1b[0m" in output
    output = re.sub(r"\x1b\[[\d;]*m", "", output)
    shown = [line for line in output.splitlines() if line[:8].endswith(" | ")]
    assert shown[0] == "    2 |   web: {名前: 1, name: Web, ap…"
    assert "\n                ^^^^\n" in output


def test_annotations_have_paths_from_the_root_of_the_repository(
    workspace: Path, tmp_path: Path
) -> None:
    for root, folder in (
        (None, "infra/pipelines/"),
        (tmp_path, "infra/pipelines/"),
        ("/elsewhere", "infra/pipelines/"),
        (workspace.parent, "pipelines/"),
        (workspace, ""),
    ):
        environ = {"GITHUB_WORKSPACE": str(root)} if root else {}
        ran = reconciler("validate", "-C", workspace, "--format", "github", environ=environ)
        assert f"file={folder}exports/a.yaml,line=2," in ran.out
    log = orjson.loads(reconciler("validate", "-C", workspace, "--format", "sarif").out)
    places = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert places["artifactLocation"]["uri"] == "infra/pipelines/exports/a.yaml"


def files(count: int, projects: int = 1) -> dict[str, str]:
    """Return a workspace with exports, which are in projects by turns."""
    secrets = [f"${{secret:env:RECONCILER_SECRET_{name}}}" for name in ("ID", "KEY")]
    own = {f"web{number}": {"name": f"Web{number}"} for number in range(projects)}
    return declared.workspace(
        "",
        own,
        **{f"x{n}": declared.s3(*secrets, project=f"web{n % projects}") for n in range(count)},
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
