"""Colour, width and paths of the output of the command line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.cli import reconciler, write
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
    ("environ", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
def test_colour_in_a_pipe(workspace: Path, environ: dict[str, str], coloured: bool) -> None:
    validated = reconciler("validate", "-C", workspace, environ=environ)
    assert ("\x1b[1;31merror\x1b[0m" in validated.out) is coloured
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


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
        ({"CLICOLOR": "0", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_on_a_terminal(workspace: Path, environ: dict[str, str], coloured: bool) -> None:
    environ = {"TERM": "xterm", **environ}
    ran = reconciler("validate", "-C", workspace, environ=environ, terminal=True)
    assert "unknown field '名前'" in ran.out
    assert ("\x1b[" in ran.out) is coloured


def test_a_process_on_a_terminal_has_colours(workspace: Path) -> None:
    assert "\x1b[1;31merror\x1b[0m" in on_a_terminal("validate", "-C", workspace, environ={})


def test_a_narrow_terminal_wraps_lines(workspace: Path) -> None:
    environ = {"COLUMNS": "40", "NO_COLOR": "1"}
    output = on_a_terminal("validate", "-C", workspace, environ=environ)
    shown = [line for line in output.splitlines() if line[:8].endswith(" | ")]
    assert shown[0] == "    2 |   web: {名前: 1, name: Web, ap…"
    assert "\n                ^^^^\n" in output


def test_annotations_have_paths_from_the_root_of_the_repository(
    workspace: Path, tmp_path: Path
) -> None:
    inside = "file=infra/pipelines/exports/a.yaml,line=2,"
    for environ in ({}, {"GITHUB_WORKSPACE": str(tmp_path)}, {"GITHUB_WORKSPACE": "/elsewhere"}):
        ran = reconciler("validate", "-C", workspace, "--format", "github", environ=environ)
        assert inside in ran.out
    environ = {"GITHUB_WORKSPACE": str(workspace.parent)}
    ran = reconciler("validate", "-C", workspace, "--format", "github", environ=environ)
    assert "file=pipelines/exports/a.yaml,line=2," in ran.out
    environ = {"GITHUB_WORKSPACE": str(workspace)}
    ran = reconciler("validate", "-C", workspace, "--format", "github", environ=environ)
    assert "file=exports/a.yaml,line=2," in ran.out
    log = orjson.loads(reconciler("validate", "-C", workspace, "--format", "sarif").out)
    places = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert places["artifactLocation"]["uri"] == "infra/pipelines/exports/a.yaml"
