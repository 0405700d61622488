"""The README agrees with the code."""

from __future__ import annotations

import re

from reconciler.cli import _COMMANDS
from reconciler.kinds import all_kinds
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_gate_runs_the_test_command_of_the_readme() -> None:
    (command,) = re.findall(r"^python3 .*pytest$", README, re.MULTILINE)
    assert command in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()


def test_the_table_of_commands_is_complete() -> None:
    table = README.split("## Commands")[1].split("`-C DIR`")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(_COMMANDS)


def test_every_consequence_is_documented() -> None:
    documented = set(
        re.findall(r"^\| `([\w-]+)`", (ROOT / "docs/consequences.md").read_text(), re.MULTILINE)
    )
    assert documented == {rule for kind in all_kinds() for rule in kind.consequences}
