"""The documentation site links files of the repository that are no pages of it."""

from __future__ import annotations

import runpy

import pytest

from tests.conftest import ROOT


def test_a_link_out_of_the_site_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    read = runpy.run_path(str(ROOT / "docs/conf.py"))["_read"]
    page = ["[a](../SECURITY.md#x) [b](git.md) [c](https://example.com)"]
    read(None, "security", page)
    assert page == ["a (`SECURITY.md`) [b](git.md) [c](https://example.com)"]
    monkeypatch.setenv("DOCS_REPOSITORY", "https://forge.example/blob/main")
    page = ["[a](../SECURITY.md)"]
    read(None, "security", page)
    assert page == ["[a](https://forge.example/blob/main/SECURITY.md)"]
    with pytest.raises(FileNotFoundError, match="security"):
        read(None, "security", ["[a](../NONE.md)"])
