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
NOOP = "destination: {type: NoOp, config: {arg: x}}"
TOKEN = "destination: {{type: HTTP, config: {{url: 'https://a.example', token: '{}'}}}}"
HEAD = "version: 1\n"


def exports(size: int, line: Callable[[int], str], **fields: str) -> str:
    """Return so many exports with a line of their own. `fields` replace the usual ones."""
    usual = {"name": "name: E{number}", "project": "project: p", "destination": NOOP} | fields
    lines = "".join(
        "\n".join([f"  e{number}:", *(f"    {text}" for text in usual.values())]).replace(
            "{number}", str(number)
        )
        + f"\n    {line(number)}\n"
        for number in range(size)
    )
    return f"projects:\n  p: {{name: P}}\nbatch_exports:\n{lines}"


def hourly(_: int) -> str:
    return "interval: hour"


def listed(size: int, text: str) -> str:
    return ", ".join(text.format(number) for number in range(size))


KINDS: dict[str, Callable[[int], tuple[str, str]]] = {
    "unknown-field": lambda size: (HEAD, exports(size, lambda n: f"intervall{n}: hour")),
    "duplicate-key": lambda size: (HEAD, exports(1, lambda _: "interval: hour\n    " * size)),
    "same-name": lambda size: (HEAD, exports(size, hourly, name="name: Same")),
    "unknown-parent": lambda size: (
        HEAD,
        exports(size, hourly, project="project: web-{number}x").replace(
            "  p: {name: P}\n", "".join(f"  web-{n}: {{name: W{n}}}\n" for n in range(size))
        ),
    ),
    "unknown-zone": lambda size: (
        HEAD,
        "projects:\n"
        + "".join(f"  p{n}: {{name: P{n}, timezone: Europe/Berln}}\n" for n in range(size)),
    ),
    "unknown-value": lambda size: (
        HEAD,
        exports(size, hourly, destination="destination: {type: S33, config: {}}"),
    ),
    "unknown-variable": lambda size: (
        f"{HEAD}vars: {{{listed(size, 'v_{}: x')}}}\n",
        exports(size, hourly, name="name: E{number} ${var:v_{number}x}"),
    ),
    "unlisted-variable": lambda size: (
        f"{HEAD}secrets: [{listed(size, 'SECRET_{}')}]\n",
        exports(size, hourly, destination=TOKEN.format("${secret:env:SECRET_{number}X}")),
    ),
}
"""By code: the workspace file, and a file with so many mistakes."""


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
        head, text = KINDS[code](size)
        files = {"reconciler.yaml": head, "all.yaml": text}
        folders.append(write(tmp_path / str(size), files))
        codes = [diagnostic.code for diagnostic in loaded(folders[-1])]
        assert codes.count(code) >= size - 1, codes[:3]
    assert is_linear([work(partial(loaded, folder)) for folder in folders])


@pytest.mark.parametrize("name", formats_of("diagnostics"))
def test_writing_is_linear(tmp_path: Path, name: str) -> None:
    head, text = KINDS["same-name"](SIZES[-1] + 1)
    diagnostics = loaded(write(tmp_path, {"reconciler.yaml": head, "all.yaml": text}))
    assert len(diagnostics) == SIZES[-1]
    writer = writer_of(name, "diagnostics")
    options = RenderOptions()
    writer(diagnostics, options)
    works = [work(partial(writer, diagnostics[:size], options)) for size in SIZES]
    assert is_linear(works)
