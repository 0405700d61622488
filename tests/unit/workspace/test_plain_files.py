"""Files with nothing to report are read from events, with the same result as from nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import DiagnosticCollector
from reconciler.workspace.yaml.document import Document, TooLarge, compose
from reconciler.workspace.yaml.loader import read_nodes, read_plain

ROOT = Path(__file__).parents[3]
TEXT = """\
projects:
  web: {name: Web, timezone: UTC}
batch_exports:
  # Every night.
  lake:
    project: web
    name: "Lake"
    paused: false
    start_at: 2026-01-01T00:00:00Z
    destination:
      type: S3
      config: {bucket_name: b, port: 5432, rate: 0.5, note: ~, exclude: [a, 'b', 3]}
    query: |
      select 1
"""


def from_nodes(text: str) -> Document | None:
    """Return the document of a file without problems, None for one with any."""
    problems = DiagnosticCollector()
    try:
        document = read_nodes("a.yaml", text, compose(text), problems)
    except (yaml.YAMLError, TooLarge):
        return None
    return None if problems.diagnostics else document


def typed(value: Any) -> Any:
    """Return a value with the types of its leaves: 1, 1.0 and true are equal in Python."""
    if isinstance(value, dict):
        return [(key, typed(item)) for key, item in value.items()]
    return [typed(item) for item in value] if isinstance(value, list) else (type(value), value)


def assert_same(text: str) -> None:
    plain = read_plain("a.yaml", text)
    if plain is not None:
        expected = from_nodes(text)
        assert plain == expected
        assert expected is not None
        assert typed(plain.value) == typed(expected.value)
        assert list(plain.keys) == list(expected.keys)


@pytest.mark.parametrize("folder", ["acme", "minimal"])
def test_ordinary_files_are_read_from_events(folder: str) -> None:
    files = sorted((ROOT / "examples" / folder).rglob("*.yaml"))
    texts = [file.read_text(encoding="utf-8") for file in files] or [TEXT]
    for text in texts:
        assert read_plain("a.yaml", text) is not None
        assert_same(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "a: &x 1\n",
        "&x a: 1\n",
        "a: 1\n&x b: {a: 2}\n",
        "a: {b: 1}\n!t b: 1\n",
        "a: !!str 1\n",
        "a: *x\n",
        "a: {<<: {b: 1}}\n",
        "a: 1\na: 2\n",
        "a: {b: 1}\nc: {b: 1, &x b: 2}\n",
        "a: yes\n",
        "a: 0x1f\n",
        "1: a\n",
        "2026-01-01: a\n",
        "${x}: a\n",
        "? [a]\n: b\n",
        "a: #b\n",
        "a: “b”\n",
        "a: \xa0b\n",
        "a: 'b'#c\n",
        "a: [b,\nc]\n",
        "a: 1\n---\nb: 2\n",
        "a: {b: 1\n",
        f"a: {'[' * 70}{']' * 70}\n",
    ],
)
def test_files_with_something_unusual_are_read_from_nodes(text: str) -> None:
    assert read_plain("a.yaml", text) is None


SIGNS = tuple("~y#${}[],'\"’é\xa0\t\n")
PIECES = st.sampled_from(
    (*SIGNS, "null", "yes", "1e3", "1.5", "2026-01-01", "*a", "&a ", "!!str ", "! ", "<<: ", " # c")
)
LINES = st.sampled_from(
    ("  ", "- ", ": ", "|\n", ">\n", "true: ", '"123": 1\n', "---\n", "...\n", "&a name: x\n")
)
EDITS = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, 3), PIECES | LINES), max_size=4
)


@given(EDITS)
def test_events_and_nodes_give_the_same_document(edits: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    assert_same(text)
