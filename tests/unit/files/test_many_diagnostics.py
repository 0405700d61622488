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


def exports(size: int, projects: str = "  p: {name: P}\n", **fields: str) -> str:
    """Return so many exports. `fields` replace the usual ones, and are more."""
    usual = {"name": "E#", "project": "p", "destination": "{type: NoOp, config: {arg: x}}"}
    lines = "".join(f"    {name}: {text}\n" for name, text in (usual | fields).items())
    interval = "" if "interval#" in fields else "    interval: hour\n"
    return f"projects:\n{projects}batch_exports:\n" + many(size, f"  e#:\n{lines}{interval}")


KINDS: dict[str, Callable[[int], str]] = {
    "unknown-field": lambda size: exports(size, **{"interval#": "hour"}),
    "same-name": lambda size: exports(size, name="Same"),
    "unknown-parent": lambda size: exports(size, many(size, "  w-#: {name: W#}\n"), project="w-#x"),
    "unknown-variable": lambda size: exports(size, name="E# ${var:v_#x}"),
}
"""By code: a file with so many mistakes."""


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
        files = {"reconciler.yaml": head, "all.yaml": KINDS[code](size)}
        folders.append(write(tmp_path / str(size), files))
        codes = [diagnostic.code for diagnostic in load_all(folders[-1], environ={})]
        assert codes.count(code) >= size - 1, codes[:3]
    first, second, third = (work(partial(load_all, folder, environ={})) for folder in folders)
    # Twice the size takes twice the work, apart from what any size takes.
    assert third - second <= 1.04 * 2 * (second - first)
