"""Test colours and widths of a terminal."""

from __future__ import annotations

import pytest

from reconciler.render.document import Cell, Document, as_text
from reconciler.render.options import (
    PLAIN,
    Colour,
    RenderOptions,
    Style,
    colour_wanted,
    width_of,
)


@pytest.mark.parametrize(
    ("environ", "terminal", "wanted"),
    [
        ({"NO_COLOR": "", "FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR": "0"}, True, False),
    ],
)
def test_when_colours_are_wanted(environ: dict[str, str], terminal: bool, wanted: bool) -> None:
    """`tests/integration/test_output.py` has the other variables."""
    assert colour_wanted(environ, terminal=terminal) is wanted


def test_text_is_painted_only_if_colours_are_enabled() -> None:
    assert Style(colour=True).paint(Colour.BOLD_RED, "error") == "\x1b[1;31merror\x1b[0m"
    assert Style(colour=True).paint(None, "error") == "error"
    assert Style(colour=True).paint(Colour.RED, "") == ""
    assert PLAIN.paint(Colour.RED, "error") == "error"


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("name", 4),
        ("cafe\u0301", 4),
        ("名前", 4),
        ("\u1112\u1161\u11ab", 2),
        ("🎉", 2),
        ("…→", 2),
    ],
)
def test_width_counts_terminal_cells(text: str, cells: int) -> None:
    assert width_of(text) == cells


def test_the_first_line_of_a_report_fits_a_terminal() -> None:
    where = (Cell("Environment production", Colour.BOLD), Cell("· intervals of seven days"))
    report = Document((Cell("Gaps"),), where)
    narrow = Style(colour=True, width=40, terminal=True)
    text = "Environment production · intervals of\n    seven days\n"
    assert as_text(report, RenderOptions(narrow)) == text
    assert as_text(report, RenderOptions(Style(width=40))) == text.replace("\n    ", " ")
    wide = Style(colour=True, width=48, terminal=True)
    assert as_text(report, RenderOptions(wide)).startswith("\x1b[1mEnvironment production\x1b[0m ·")
