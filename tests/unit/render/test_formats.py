"""Test the table of output formats."""

from __future__ import annotations

import pytest

from reconciler.errors import BadUsage
from reconciler.render import writer_of


def test_the_error_for_an_unsupported_format_lists_the_supported_ones() -> None:
    with pytest.raises(BadUsage) as refused:
        writer_of("markdown", "diagnostics")
    assert refused.value.message == "--format markdown is not supported here"
    assert refused.value.hint == "use one of: text, github, gitlab, json, sarif"
