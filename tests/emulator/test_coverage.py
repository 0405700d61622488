"""Each rule of service.md has a test, or a line in differences.md."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.emulator.facts import FACTS

FOLDER = Path(__file__).parent


def test_every_rule_has_a_test_or_a_reason() -> None:
    for path in FOLDER.glob("test_*.py"):
        importlib.import_module(f"tests.emulator.{path.stem}")
    reasons = (FOLDER / "differences.md").read_text(encoding="utf-8")
    covered = {rule for fact in FACTS.values() for rule in fact.rules}
    covered |= set(map(int, re.findall(r"^- Rule 15\.(\d+): ", reasons, re.MULTILINE)))
    assert set(range(1, 47)) <= covered <= set(range(1, 69))
