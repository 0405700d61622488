"""The facts that have a test: coverage.md lists them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from tests.emulator.facts import FACTS, Fact

MODULES = tuple(
    path.stem
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if path.stem not in ("test_coverage", "test_documentation")
)
NOT_COVERED = {
    2: "A rule of the client: it refuses an empty secret before any call (tests/integration).",
    39: "There are no sessions, so a new project does not change the current project.",
}
DIFFERENCES = (
    (
        "Feature flags are settings of the seed and have no path of their own. The acceptance test "
        "of the official Terraform provider that creates one (UseProjectIDForResources) fails."
    ),
    "A deletion does not end runs in flight (1.11).",
    "Addresses of hosts are not resolved, so internal ones are not refused (1.4).",
    "Wildcards in app_urls are not judged, and only the form of test_account_filters is (4.2).",
    "There are no plans and no project limits; only the audit log answers 402 (10).",
    "Only a fault rule answers 503, and only a PATCH of a list 405: others need a session (5).",
    "Multipart bodies are refused with 415: clients of this interface send JSON (5).",
    (
        "Cursors have a form of their own: a broken one is 404, also where the real servers crash "
        "or ignore it (2)."
    ),
    "A POST to the backfills of an id that is no UUID is 404, not 500 (8.1).",
    (
        "A backfill without a start is refused in 2026 as without its flag, so what the flag's "
        "teams get for a query with `{data_interval_start}` (400) is not imitated (8.1)."
    ),
    "primary_key and version_key are not compared with the columns of the query (1.1).",
    "Members of 2025 may change as little as those of 2026 (4.2).",
    "A move of the clock makes at most 2,000 runs of an export; a backfill ends then (7.3).",
    "Bodies nested deeper than 200 levels are a 500; real servers fail at about a thousand.",
    "`/api/users/@me/` and `/api/organizations/` show the fields that section 12 names.",
    (
        "An export always has its schedule (1.7), so a PATCH or a pause a week after `end_at` does "
        "not fail (7.3)."
    ),
    "The fixed list of ten query fields of the newest servers is unknown and not checked (1.9).",
    "Queries of 2026 are not parsed; only text that is never a query is refused (1.9).",
    "Destination test steps contact no destination; the switchboard sets results (11).",
    "Jitter is one delay for all runs, so that tests are exact (7.3).",
    "Daily backfills of 2025 keep their time zone (8.2).",
    "A backfill without an end does not unpause its export: the sources disagree (1.8, 8.1).",
    "Runs cannot be retried (7.2): a backfill of the interval does the same.",
    "What is inside ai_config, conversations_settings and conditions is not checked (4.2).",
    "Names of modifiers are those known in 2026; a newer one would be refused (4.2).",
    "Destination secrets that a change of type leaves behind are shown by 2025, as inferred (1.6).",
)


def _order(item: tuple[str, Fact]) -> tuple[bool, list[int], str]:
    """Return a key that orders by section as numbers, then by name."""
    name, fact = item
    parts = fact.section.split(".")
    named = not parts[0].isdigit()
    return named, [] if named else [int(part) for part in parts], name


def _document() -> str:
    for module in MODULES:
        importlib.import_module(f"tests.emulator.{module}")
    lines = [
        "# What the embedded service covers",
        "",
        "Each row is a fact about the real servers. The test with that name in `tests/emulator/`",
        "checks it in the listed dialects. Sections and rules are those of",
        "[service.md](../../docs/inside/service.md): rule 24 is section 15.24.",
        "This list is generated: run `scripts/golden tests/emulator/test_coverage.py`.",
        "",
        "| section | fact | dialects | rules | test |",
        "|---|---|---|---|---|",
    ]
    for name, fact in sorted(FACTS.items(), key=_order):
        rules = ", ".join(str(rule) for rule in fact.rules)
        dialects = ", ".join(fact.dialects)
        lines.append(f"| {fact.section} | {fact.text} | {dialects} | {rules} | `{name}` |")
    lines += ["", "## Differences from the real servers", ""]
    lines += [f"- Rule 15.{rule}: {reason}" for rule, reason in sorted(NOT_COVERED.items())]
    lines += [f"- {difference}" for difference in DIFFERENCES]
    return "\n".join(lines) + "\n"


def test_the_list_of_coverage_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(Path(__file__).with_name("coverage.md"), _document())


def test_every_rule_has_a_test_or_a_reason() -> None:
    _document()
    covered = {rule for fact in FACTS.values() for rule in fact.rules} | set(NOT_COVERED)
    assert set(range(1, 47)) <= covered <= set(range(1, 69))
