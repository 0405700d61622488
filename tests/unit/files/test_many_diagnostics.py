"""Loading and reporting take work in proportion to the number of diagnostics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reconciler.diagnostics import Diagnostic
from reconciler.files.loading import load_all
from reconciler.render import formats_of, writer_of
from reconciler.render.options import RenderOptions
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


def written(folder: Path, code: str, size: int) -> Path:
    head = f"version: 1\nvars: {{{many(size, 'v_#: x', ', ')}}}\n"
    return write(folder, {"reconciler.yaml": head, "all.yaml": KINDS[code](size)})


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


def is_linear(works: list[int]) -> bool:
    """Return whether twice the size takes twice the work, apart from what any size takes."""
    first, second, third = works
    return third - second <= 1.04 * 2 * (second - first)


def loaded(folder: Path) -> tuple[Diagnostic, ...]:
    return load_all(folder, environ={})


@pytest.mark.parametrize("code", KINDS)
def test_loading_is_linear(tmp_path: Path, code: str) -> None:
    folders = []
    for size in SIZES:
        folders.append(written(tmp_path / str(size), code, size))
        codes = [diagnostic.code for diagnostic in loaded(folders[-1])]
        assert codes.count(code) >= size - 1, codes[:3]
    assert is_linear([work(partial(loaded, folder)) for folder in folders])


@pytest.mark.parametrize("name", formats_of("diagnostics"))
def test_writing_is_linear(tmp_path: Path, name: str) -> None:
    diagnostics = loaded(written(tmp_path, "same-name", SIZES[-1] + 1))
    assert len(diagnostics) == SIZES[-1]
    writer = writer_of(name, "diagnostics")
    options = RenderOptions()
    writer(diagnostics, options)
    works = [work(partial(writer, diagnostics[:size], options)) for size in SIZES]
    assert is_linear(works)
