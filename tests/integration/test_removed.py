"""Commands and options that were removed say what to use instead."""

from __future__ import annotations

import tomllib

import pytest

from reconciler.commands.program import COMMANDS, command_of
from reconciler.packaged import packaged
from tests.support.cli import reconciler

REMOVED = tomllib.loads(packaged("removed.toml").read_text(encoding="utf-8"))
WORDS, EVERYWHERE = REMOVED["words"], REMOVED["options"]
_OPTIONS = [
    ("plan" if table == "options" else table, name, hint)
    for table, names in REMOVED.items()
    for name, hint in names.items()
    if table not in {"commands", "words"}
]


@pytest.mark.parametrize(("name", "hint"), REMOVED["commands"].items())
def test_a_removed_command_says_what_to_use(name: str, hint: str) -> None:
    ran = reconciler(name, "--any", "word")
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.split() == f"error: '{name}' was removed hint: {hint}".split()
    assert name not in COMMANDS


@pytest.mark.parametrize(("command", "name", "hint"), _OPTIONS)
def test_a_removed_option_says_what_to_use(command: str, name: str, hint: str) -> None:
    ran = reconciler(command, f"{name}=x" if name.startswith("--") else name)
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.split() == f"error: '{command} {name}' was removed hint: {hint}".split()
    assert name not in {text for param in command_of(command).params for text in param.opts}


@pytest.mark.parametrize(
    ("name", "hint"),
    [*WORDS.items(), ("fmt", REMOVED["commands"]["fmt"]), ("--max-wait", EVERYWHERE["--max-wait"])],
)
def test_x8_explain_knows_removed_words(name: str, hint: str) -> None:
    ran = reconciler("explain", "--", name)
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.split() == f"error: '{name}' was removed hint: {hint}".split()


@pytest.mark.parametrize("name", ["-auto-approve", "--yes"])
@pytest.mark.parametrize("command", ["apply", "backfill", "pause", "unpause", "import", "doctor"])
def test_x7_auto_approve_is_suggested_where_it_exists(command: str, name: str) -> None:
    ran = reconciler(command, name)
    has_it = any("--auto-approve" in param.opts for param in command_of(command).params)
    assert ran.code == 64
    assert (f"No such option '{name}'. Did you mean '--auto-approve'?" in ran.err) is has_it
