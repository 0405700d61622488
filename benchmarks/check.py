"""Compare what is the same on every machine with expected.json: calls, and imported modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.measuring import Settings
from benchmarks.results import Result, compare
from benchmarks.scenarios import measure

EXPECTED = Path(__file__).with_name("expected.json")
EXACT = ("calls", "modules", "import", "imported")
TIMED = ("start-up", "noop-1000")
"""Scenarios whose ratios are printed, and never fail the check."""


def main(*, update: bool) -> int:
    """Print the ratios and what differs. Return 1 if anything that is counted differs."""
    results = {name: measure(name, Settings(rounds=1, quick=True)) for name in EXACT}
    if update:
        EXPECTED.write_text(json.dumps(_counted(results), indent=1) + "\n", encoding="utf-8")
        return 0
    for name in TIMED:
        print("\n".join(measure(name, Settings(rounds=2, quick=True)).text()), flush=True)
    lines, differs = compare(json.loads(EXPECTED.read_bytes()), results, exact_only=True)
    print("\n".join(lines) or "Calls and imported modules are as expected.")
    if differs:
        print("If that is right, run: python -m benchmarks --update, and review the difference.")
    return int(differs)


def _counted(results: dict[str, Result]) -> dict[str, Any]:
    return {
        name: {"calls": result.calls, "modules": result.modules} for name, result in results.items()
    }
