"""Test the registry of output formats."""

from __future__ import annotations

import pytest

from reconciler.errors import BadUsage
from reconciler.render import RESULTS, formats_of, writer_of


@pytest.mark.parametrize("result", RESULTS)
def test_every_writer_exists(result: str) -> None:
    for name in formats_of(result):
        assert callable(writer_of(name, result))


def test_the_default_comes_first() -> None:
    assert formats_of("plan") == (
        "text",
        "github",
        "gitlab",
        "html",
        "json",
        "markdown",
        "sarif",
    )
    assert formats_of("diagnostics") == (
        "text",
        "github",
        "gitlab",
        "json",
        "sarif",
    )
    reports = {result for result in RESULTS if result not in ("plan", "plans", "diagnostics")}
    assert formats_of("backfills") == ("text", "json")
    for result in reports - {"backfills"}:
        assert formats_of(result) == ("text", "html", "json", "markdown")


def test_the_error_for_an_unsupported_format_lists_the_supported_ones() -> None:
    with pytest.raises(BadUsage) as refused:
        writer_of("markdown", "diagnostics")
    assert refused.value.message == "--format markdown is not supported here"
    assert refused.value.hint == "use one of: text, github, gitlab, json, sarif"
