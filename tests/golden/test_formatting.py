"""A file before and after `fmt`, for review."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.authoring.formatting import format_file
from reconciler.diagnostics import DiagnosticCollector

FOLDER = Path(__file__).parent / "fmt"


@pytest.mark.parametrize("name", ["exports", "reconciler"])
def test_a_file_in_any_order_is_formatted_as_expected(
    name: str, golden: Callable[[Path, str], None]
) -> None:
    raw = (FOLDER / f"{name}.before.yaml").read_bytes()
    _, after = format_file(raw, f"{name}.yaml", DiagnosticCollector())
    assert after is not None
    golden(FOLDER / f"{name}.after.yaml", after.text)
