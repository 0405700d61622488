"""The README agrees with the code, and its tour works as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, StartService
from tests.support.tours import Tour

README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = README.split("### Plan and apply")[1].split("### In a pipeline")[0]


def test_the_gate_and_the_run_with_the_newest_versions_use_the_test_command_of_the_readme() -> None:
    (command,) = re.findall(r"^python3 .*pytest$", README, re.MULTILINE)
    assert command in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    newest = (ROOT / ".github/workflows/newest.yml").read_text(encoding="utf-8")
    assert f"      - run: {command}\n" in newest
    assert "constraint" not in newest.lower()


def test_the_plan_at_the_top_is_that_of_the_tour() -> None:
    """tests/integration/test_examples.py runs that page."""
    (plan,) = re.findall(r"^```text\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert plan in (ROOT / "docs/read-a-plan.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", ["interface", "2025", "2026"])
def test_the_tour_works_as_printed(
    dialect: str, service_of: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service = service_of(None, "--dialect", dialect)
    tour = Tour(tmp_path, service.environ(), "http://127.0.0.1:8010")
    tour.follow(TOUR.replace("```diff\n", "```diff\n+++ exports.yaml\n"))
