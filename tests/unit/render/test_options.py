"""Test colours and widths of a terminal."""

from __future__ import annotations

import pytest

from reconciler.render.document import Cell, Document, as_text
from reconciler.render.options import (
    Colour,
    RenderOptions,
    Style,
    colour_wanted,
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
    assert colour_wanted(environ, terminal=terminal) is wanted


def test_the_first_line_of_a_report_fits_a_terminal() -> None:
    where = (Cell("Environment production", Colour.BOLD), Cell("· intervals of seven days"))
    report = Document((Cell("Gaps"),), where)
    narrow = Style(colour=True, width=40, terminal=True)
    text = "Environment production · intervals of\n    seven days\n"
    assert as_text(report, RenderOptions(narrow)) == text
    assert as_text(report, RenderOptions(Style(width=40))) == text.replace("\n    ", " ")
    wide = Style(colour=True, width=48, terminal=True)
    assert as_text(report, RenderOptions(wide)).startswith("\x1b[1mEnvironment production\x1b[0m ·")
