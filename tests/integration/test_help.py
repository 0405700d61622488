"""Help, and the options that every command has."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from reconciler.commands.command import Command
from reconciler.commands.program import COMMANDS, command_of
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "reconciler.yaml": "version: 1\n",
    "web.yaml": "projects:\n  web: {name: Web}\n",
}


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


@pytest.mark.parametrize("name", COMMANDS)
def test_experience_20_help_fits_the_terminal(name: str) -> None:
    def longest(columns: int) -> int:
        shown = reconciler(name, "-h", environ={"COLUMNS": str(columns)})
        text = shown.out.partition("Examples:")[0]
        return max(map(len, text.splitlines()))

    assert longest(60) <= 60
    assert longest(160) <= 120


def test_experience_20_options_are_grouped() -> None:
    lines = reconciler("plan", "--help").out.splitlines()
    headings = [line for line in lines if line.endswith(":") and line[0] != " "]
    groups = ["Options:", "Workspace:", "Selection:", "Planning:", "Output:", "Examples:"]
    assert headings == groups


def test_experience_7_the_help_of_plan_is_short() -> None:
    assert len(reconciler("plan", "--help", environ={"COLUMNS": "80"}).out.splitlines()) <= 64


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
    workspace = write(tmp_path, FILES)

    def plan(option: str) -> tuple[str, str]:
        words = [option, "plan"] if before else ["plan", option]
        planned = reconciler(*words, "-C", workspace, environ=environ)
        assert planned.code == 0
        return planned.out, planned.err

    environ = {**emulator.environ(), "FORCE_COLOR": "1"}
    plain, remarks = plan("--no-color")
    assert "\x1b[" not in plain
    assert "API calls" in remarks
    coloured, quiet = plan("-q")
    assert "\x1b[" in coloured
    assert quiet == ""
    _, verbose = plan("-v")
    assert "GET /api/" in verbose
    _, debug = plan("--debug")
    assert "GET /api/" in debug
    assert "debug: reconciler " in debug


def test_debug_shows_where_an_error_began(tmp_path: Path) -> None:
    failed = reconciler("plan", "-C", tmp_path / "missing", "--debug")
    assert "debug: ReconcilerError raised at" in failed.err
    assert "debug:   reconciler.files.sources:" in failed.err
    assert "raised at" not in reconciler("plan", "-C", tmp_path / "missing").err


def test_debug_shows_no_secret(emulator: RunningEmulator, tmp_path: Path) -> None:
    environ = emulator.environ()
    shown = reconciler("plan", "-C", write(tmp_path, FILES), "--debug", environ=environ)
    assert environ["RECONCILER_API_KEY"] not in shown.err + shown.out


def test_an_option_has_one_form_in_all_commands() -> None:
    """One name, one short form and one value."""
    forms: dict[str, set[tuple[Any, ...]]] = {}
    for name in COMMANDS:
        if name == "emulator":
            continue
        command = command_of(name)
        for param in command.get_params(click.Context(command)):
            if isinstance(param, click.Option):
                short = [name for name in param.opts if not name.startswith("--")]
                forms.setdefault(param.opts[-1], set()).add((*short, param.metavar))
    # `promote` has environments where others have times; a command of two formats lists them.
    differing = {name for name, form in forms.items() if len(form) > 1}
    assert differing == {"--from", "--to", "--format"}
    assert forms["--auto-approve"] == {("-y", None)}
    assert not {"--yes", "--approve", "--until"} & forms.keys()
