"""Which facts have a case: docs/emulator-coverage.md lists them, and this says it is current."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT
from tests.emulator.facts import RULES, Rule

MODULES = tuple(
    path.stem
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if path.stem not in ("test_coverage", "test_documentation", "test_openapi")
)
NOT_IMITATED = {
    2: "The client's own rule: an empty secret is refused before any call (tests/integration).",
    12: "Stale keys of retired types can't be stored here; unknown keys are refused on write.",
    39: "There are no sessions, so no current project moves when one is created.",
}
OPEN = (
    (
        "Feature flags are settings of the seed and have no path of their own. The acceptance test "
        "of the official Terraform provider that creates one (UseProjectIDForResources) fails."
    ),
    "A deletion does not end runs in flight (1.11).",
    "Addresses of hosts are not resolved, so none is refused as internal (1.4, rule 5).",
    "Filters of test_account_filters and path_cleaning_filters are stored without a check (4.2).",
    "Plans and project limits (403 by plan) do not exist here; 402 is for the audit log only (10).",
    "A database that is briefly away (503) comes by a fault rule only; 405 needs a session (5).",
    "Form and multipart bodies are refused with 415: clients of this interface send JSON (5).",
    "`/api/users/@me/` and `/api/organizations/` show the fields that section 12 names.",
    (
        "A schedule is never missing behind an export, and none is left without a row (1.7). So a "
        "PATCH or a pause a week after `end_at` does not fail as it does there (7.3)."
    ),
    "The newest servers' fixed list of ten query fields is not known, so not checked (1.9).",
    "Queries of 2026 are not parsed: only what no parser of the service accepts is refused (1.9).",
    "Destination test steps connect to nothing; rules of the switchboard set results (11).",
    "Jitter is one delay for all runs, so that tests are exact (7.3).",
    "Daily backfills of 2025 keep their time zone (8.2).",
    "A backfill without an end does not unpause its export: the sources disagree (1.8, 8.1).",
    "logs_settings has no limit of one change a day (4.2).",
    "Names of modifiers are those known in 2026; a newer one would be refused (4.2).",
    "Destination secrets that a change of type leaves behind are shown by 2025, as inferred (1.6).",
)


def _place(item: tuple[str, Rule]) -> tuple[bool, list[int], str]:
    """Order by section as numbers, then by name."""
    name, rule = item
    parts = rule.section.split(".")
    named = not parts[0].isdigit()
    return named, [] if named else [int(part) for part in parts], name


def _document() -> str:
    for module in MODULES:
        importlib.import_module(f"tests.emulator.{module}")
    lines = [
        "# What the embedded service imitates",
        "",
        "Each row is a fact about the real servers with a test of that name in `tests/emulator/`,",
        "run in the dialects that it concerns. Sections and rules are those of",
        "[service.md](service.md): rule 24 is 15.24 there.",
        "This page is made from the tests, and a test says that it is current",
        "(`scripts/golden tests/emulator/test_coverage.py` rewrites it).",
        "",
        "| section | fact | dialects | rules | test |",
        "|---|---|---|---|---|",
    ]
    for name, rule in sorted(RULES.items(), key=_place):
        traps = ", ".join(str(trap) for trap in rule.traps)
        dialects = ", ".join(rule.dialects)
        lines.append(f"| {rule.section} | {rule.what} | {dialects} | {traps} | `{name}` |")
    lines += ["", "## Not imitated, and why", ""]
    lines += [f"- Rule 15.{trap}: {why}" for trap, why in sorted(NOT_IMITATED.items())]
    lines += [f"- {difference}" for difference in OPEN]
    return "\n".join(lines) + "\n"


def test_the_page_of_coverage_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "docs/emulator-coverage.md", _document())


def test_every_trap_has_a_case_or_a_reason() -> None:
    _document()
    covered = {trap for rule in RULES.values() for trap in rule.traps} | set(NOT_IMITATED)
    assert set(range(1, 47)) <= covered <= set(range(1, 69))
