"""Which facts have a case: docs/emulator-coverage.md lists them, and this says it is current."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT
from tests.emulator.facts import RULES

MODULES = ("test_exports", "test_projects", "test_runs", "test_transport")
NOT_IMITATED = {
    2: "The client's own rule: an empty secret is refused before any call (tests/integration).",
    12: "Stale keys of retired types can't be stored here; unknown keys are refused on write.",
    39: "There are no sessions, so no current project moves when one is created.",
}
OPEN = (
    "Only the database's part of 1.11 is imitated: a deletion does not end runs in flight.",
    "Addresses of hosts are not resolved, so none is refused as internal (1.4, rule 5).",
    "Filters of test_account_filters and path_cleaning_filters are stored without being checked.",
    "Plans, paid features and project limits (402, and 403 by plan) do not exist here.",
    "A database that is briefly away (503) comes by a fault rule only; 405 needs a session.",
    "Form and multipart bodies are refused with 415: clients of this interface send JSON.",
    "`/api/users/@me/` and `/api/organizations/` show the few fields that clients ask for.",
    "A schedule is never missing behind an export (1.7), and no schedule is left without a row.",
    "The newest servers' fixed list of ten query fields (1.9) is not known, so not checked.",
)


def _document() -> str:
    for module in MODULES:
        importlib.import_module(f"tests.emulator.{module}")
    lines = [
        "# What the embedded service imitates",
        "",
        "Each row is a fact about the real servers with a test of that name in `tests/emulator/`,",
        "run in the dialects that it concerns. Sections are those of the notes on the service.",
        "This page is made from the tests, and a test says that it is current",
        "(`scripts/golden tests/emulator/test_coverage.py` rewrites it).",
        "",
        "| section | fact | dialects | traps | test |",
        "|---|---|---|---|---|",
    ]
    for name, rule in sorted(RULES.items(), key=lambda each: (each[1].section, each[0])):
        traps = ", ".join(str(trap) for trap in rule.traps)
        dialects = ", ".join(rule.dialects)
        lines.append(f"| {rule.section} | {rule.what} | {dialects} | {traps} | `{name}` |")
    lines += ["", "## Not imitated, and why", ""]
    lines += [f"- Trap {trap}: {why}" for trap, why in sorted(NOT_IMITATED.items())]
    lines += [f"- {each}" for each in OPEN]
    return "\n".join(lines) + "\n"


def test_the_page_of_coverage_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "docs/emulator-coverage.md", _document())


def test_every_trap_has_a_case_or_a_reason() -> None:
    _document()
    covered = {trap for rule in RULES.values() for trap in rule.traps} | set(NOT_IMITATED)
    assert covered == set(range(1, 47))
