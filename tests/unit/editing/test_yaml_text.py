"""Values to YAML text: quoted where a reader could take it for more, and read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.diagnostics import DiagnosticCollector
from reconciler.editing.yaml_text import escaped, reads_back, yaml_text
from reconciler.files.yaml_loader import parse
from reconciler.model.values import SecretRef

PLAIN = (
    *("178aa77c-2912-4cdb-bfad-a7a6f6b2418b", "2026-01-01T00:00:00Z", "http://127.0.0.1:8010"),
    *("日本 🚀", "a, b"),
)
QUOTED = (
    *("no", "y", "1e3", "0o7", "1_000", "12:30", "2026-01-01", ".5", "~", "<<", "=", ": #", " a"),
)
OTHERS = {
    "": "''",
    "a\nb\n": "|\n  a\n  b",
    "a\nb": "|-\n  a\n  b",
    "a\n\n": r'"a\n\n"',
    "a \nb": r'"a \nb"',
    "a\x85b": r'"a\Nb"',
    "a\tb": r'"a\tb"',
    # Signs that nobody sees.
    "a\u202eb": r'"a\u202eb"',
    "a\u00a0b": r'"a\u00a0b"',
    "\U000e0001": r'"\U000E0001"',
}


@pytest.mark.parametrize(
    ("text", "written"),
    [*zip(PLAIN, PLAIN, strict=True), *((text, f"'{text}'") for text in QUOTED), *OTHERS.items()],
)
def test_text_has_quotes_or_is_a_block_only_where_it_must(text: str, written: str) -> None:
    assert yaml_text({"a": text}) == f"a: {written}\n"
    assert reads_back({"a": text})


@pytest.mark.parametrize("text", QUOTED)
def test_keys_that_some_reader_takes_for_more_are_quoted(text: str) -> None:
    assert yaml_text({text: "a"}) == f"'{text}': a\n"
    assert reads_back({text: text})


def test_short_lists_of_scalars_stand_on_one_line_and_the_rest_below() -> None:
    assert yaml_text({"a": ["x", 1], "b": [{"c": None}], "d": {}, "e": []}) == (
        "a: [x, 1]\nb:\n  - c: null\nd: {}\ne: []\n"
    )


def test_a_secret_is_written_as_its_reference_and_dollar_braces_are_no_reference() -> None:
    assert yaml_text({"a": SecretRef.of("env", "X")}) == "a: ${secret:env:X}\n"
    assert reads_back({"a": SecretRef.of("env", "X"), "b": "${var:x}"})


@pytest.mark.parametrize("value", [{"${x}": 1}, {"a": 10**30}, {"a": [2**64]}])
def test_what_no_file_can_say_does_not_read_back(value: object) -> None:
    assert not reads_back(value)


@pytest.mark.parametrize("key", ["a", "no", "y", "null", "a_1"])
@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
@example(text="yes")
@example(text="1e3")
@example(text=" - ${var:x} #")
def test_what_is_told_at_a_glance_reads_back_indeed(key: str, text: str) -> None:
    """Short printable ASCII is not written and read to be sure: so it has to be."""
    assert reads_back({key: text})
    problems = DiagnosticCollector()
    document = parse(yaml_text(escaped({key: [text]})).encode(), "", problems)
    assert document.value == {key: [text.replace("${", "$${")]}
    assert not problems.diagnostics
