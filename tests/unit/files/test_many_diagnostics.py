"""Loading takes work in proportion to the number of diagnostics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reconciler.files.loading import load_all
from tests.support.cli import write

SIZES = (50, 100, 200)


def many(size: int, text: str, sep: str = "") -> str:
    """Return a text so many times, with the number of each for #."""
    return sep.join(text.replace("#", str(number)) for number in range(size))


KINDS = {
    "unknown-field": "interval#: hour, name: E#, project: p-#",
    "same-name": "name: Same, project: p-0",
    "unknown-parent": "name: E#, project: p-#x",
    "unknown-variable": 'name: "E# ${var:v_#x}", project: p-#',
}
"""By code: the fields of each of many exports with this mistake."""


def work(function: Callable[[], object]) -> int:
    """Return the number of calls that a function makes."""
    calls = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("code", KINDS)
def test_loading_is_linear(tmp_path: Path, code: str) -> None:
    folders = []
    for size in SIZES:
        head = f"version: 1\nvars: {{{many(size, 'v_#: x', ', ')}}}\n"
        fields = f"destination: {{type: NoOp, config: {{}}}}, {KINDS[code]}"
        projects = many(size, "  p-#: {name: P#}\n")
        exports = many(size, f"  e#: {{interval: hour, {fields}}}\n")
        text = f"projects:\n{projects}batch_exports:\n{exports}"
        files = {"reconciler.yaml": head, "all.yaml": text}
        folders.append(write(tmp_path / str(size), files))
        codes = [diagnostic.code for diagnostic in load_all(folders[-1], environ={})]
        assert codes.count(code) >= size - 1, codes[:3]
    first, second, third = (work(partial(load_all, folder, environ={})) for folder in folders)
    # Twice the size takes twice the work, apart from what any size takes.
    assert third - second <= 1.04 * 2 * (second - first)
