"""Commands and options that were removed say what to use instead."""

from __future__ import annotations

import pytest

from reconciler.cli.program import COMMANDS, command_of
from reconciler.cli.removed import COMMANDS as REMOVED
from reconciler.cli.removed import EVERYWHERE, OPTIONS
from tests.support.cli import reconciler

_OPTIONS = [
    (command, name, hint)
    for command, names in (*OPTIONS.items(), ("plan", EVERYWHERE))
    for name, hint in names.items()
]


@pytest.mark.parametrize(("name", "hint"), REMOVED.items())
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
