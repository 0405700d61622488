"""Test the table of output formats."""

from __future__ import annotations

import pytest

from reconciler.errors import BadUsage
from reconciler.render import RESULTS, formats_of, writer_of

FORMATS = {
    "plan": "text github gitlab html json markdown sarif",
    "plans": "text json markdown",
    "diagnostics": "text github gitlab json sarif",
    "backfills": "text json",
}


@pytest.mark.parametrize("result", RESULTS)
def test_every_writer_exists_and_the_default_is_the_first(result: str) -> None:
    assert " ".join(formats_of(result)) == FORMATS.get(result, "text html json markdown")
    for name in formats_of(result):
        assert callable(writer_of(name, result))


def test_the_error_for_an_unsupported_format_lists_the_supported_ones() -> None:
    with pytest.raises(BadUsage) as refused:
        writer_of("markdown", "diagnostics")
    assert refused.value.message == "--format markdown is not supported here"
    assert refused.value.hint == "use one of: text, github, gitlab, json, sarif"
