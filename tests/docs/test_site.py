"""What docs/conf.py adds to the pages of the site: addresses and index terms."""

from __future__ import annotations

import re
import runpy

import pytest

from reconciler.errors import codes
from reconciler.kinds import all_kinds, behaviour_of
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


@pytest.mark.parametrize("name", ["consequences", "reference/diagnostics"])
def test_issue_35_every_code_is_an_index_term_of_its_entry(name: str) -> None:
    """A search finds index terms first."""
    known = {"reference/diagnostics": set(codes())}
    known["consequences"] = {
        rule.id
        for kind in all_kinds()
        for rule in (*behaviour_of(kind).rules, *behaviour_of(kind).refusals)
    }
    page = [(ROOT / f"docs/{name}.md").read_text(encoding="utf-8")]
    runpy.run_path(str(ROOT / "docs/conf.py"))["_read"](None, name, page)
    assert set(re.findall(r"^```\{index\} ! ([\w-]+)$", page[0], re.MULTILINE)) == known[name]
