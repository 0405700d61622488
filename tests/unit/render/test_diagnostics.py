"""Test diagnostics as text and JSON."""

from __future__ import annotations

import unicodedata

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.files.source_lines import with_lines
from reconciler.files.yaml_document import Document
from reconciler.render.diagnostics import crop, diagnostics_as_json, diagnostics_as_text
from reconciler.render.options import Style, width_of

HOSTILE = "a\x1b[2J\x1b]0;t\x07\r\x9b31m\u202e\u2028\x7f\nerror: forged"
PRINTED = "a\\x1b[2J\\x1b]0;t\\x07\\r\\x9b31m\\u202e\\u2028\\x7f\\nerror: forged"


def wrong(
    message: str = "unknown field 'x'",
    at: Mark | None = None,
    *,
    level: Level = Level.ERROR,
    hint: str | None = None,
    line: str | None = None,
    related: tuple[tuple[Mark, str], ...] = (),
) -> Diagnostic:
    return Diagnostic("unknown-field", level, message, at=at, hint=hint, line=line, related=related)


def hostile() -> Diagnostic:
    place = Mark(f"{HOSTILE}.yaml", 3, 2, 4)
    return wrong(HOSTILE, place, hint=HOSTILE, line=HOSTILE, related=((place, HOSTILE),))


def breaking(text: str) -> set[str]:
    kinds = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"}
    return {mark for mark in text if unicodedata.category(mark) in kinds and mark != "\n"}


def test_control_characters_are_escaped_in_text() -> None:
    text = diagnostics_as_text([hostile()])
    assert not breaking(text)
    assert text.count(PRINTED) == 6
    assert not any(line.startswith("error: forged") for line in text.splitlines())


def test_control_characters_are_escaped_in_json() -> None:
    text = diagnostics_as_json([hostile(), wrong("half a pair: \ud800", Mark("é.yaml"))])
    assert not breaking(text)
    assert "é.yaml" in text
    first, second = orjson.loads(text)["diagnostics"]
    assert first["message"] == first["hint"] == first["related"][0]["message"] == HOSTILE
    assert second["message"] == "half a pair: \\ud800"


@pytest.mark.parametrize(
    ("line", "column", "length", "under"),
    [
        ("名前: x", 5, 1, "      ^"),
        ("e\u0301te\u0301: x", 8, 1, "     ^"),
        ("\u1112\u1161\u11ab: x", 6, 1, "    ^"),
        ("\tkey: x", 2, 3, "    ^^^"),
        ("\x1bb: x", 2, 1, "    ^"),
        ("key", 40, 5, "   ^"),
        ("key", 2, 40, " ^^"),
    ],
)
def test_carets_are_below_the_marked_characters(
    line: str, column: int, length: int, under: str
) -> None:
    for number, gutter in ((1, 8), (1_234_567, 10)):
        at = Mark("a.yaml", number, column, length)
        text = diagnostics_as_text([wrong(at=at, line=line)])
        assert text.splitlines()[2] == f"{' ' * gutter}{under}"


@pytest.mark.parametrize("column", [1, 20, 2_500, 5_001])
def test_a_long_line_is_cropped_around_the_place(column: int) -> None:
    line = "".join(f"{number:04}," for number in range(1_000))
    diagnostic = wrong(at=Mark("a.yaml", 7, column, 4), line=line)
    _, shown, under, _ = diagnostics_as_text([diagnostic], Style(width=40)).splitlines()
    assert max(len(shown), len(under)) <= 40
    marked = "".join(letter for letter, sign in zip(shown, under, strict=False) if sign == "^")
    assert marked == line[column - 1 : column + 3]
    assert (shown.startswith("    7 | …"), shown.endswith("…")) == (column > 1, column < 4_900)


@given(
    st.text("ab é名🎉\u0301\u1161\t\x1b…", max_size=300),
    st.integers(0, 320),
    st.integers(1, 320),
    st.integers(32, 90),
)
def test_a_cropped_line_fits_the_width(line: str, start: int, length: int, width: int) -> None:
    cropped = crop(line, start, length, width=width)
    assert width_of(cropped.text) <= width
    assert cropped.length >= 1
    assert cropped.start + cropped.length <= width + 1
    assert not breaking(cropped.text)


def test_experience_26_every_line_fits_a_terminal() -> None:
    """Elsewhere the first line is one line for other programs."""
    at = Mark("exports/events.yaml", 14, 9, 7)
    first = wrong(" ".join(["message"] * 20), at, hint=" ".join(["hint"] * 30), line="x" * 300)
    related = ((at, " ".join(["label"] * 20)),)
    long = [replace(first, related=related, environments=("staging",))]
    for width in (60, 80, 160):
        text = diagnostics_as_text(long, Style(width=width, terminal=True))
        assert max(map(len, text.splitlines())) <= width
        assert text.startswith("exports/events.yaml:14:9: error: message message ")
        assert "(in staging)" in " ".join(text.split())
    narrow = diagnostics_as_text(long, Style(width=40))
    assert narrow.splitlines()[0].endswith("message (in staging) [unknown-field]")


@pytest.mark.parametrize(
    "line",
    [
        "{password: a, wrong: 1}",
        "wrong: 1 # token: abcdefgh",
        "wrong: 'https://user:abcdefgh@db.example'",
    ],
)
def test_a_line_with_a_secret_is_not_printed(line: str) -> None:
    document = Document("a.yaml", text=line)
    diagnostic = wrong(at=Mark("a.yaml", 1, line.index("wrong") + 1, 5))
    text = diagnostics_as_text(with_lines([diagnostic], {"a.yaml": document}))
    assert text == diagnostics_as_text([replace(diagnostic, line=None)])


def test_x6_many_alike_are_one_and_errors_come_last() -> None:
    def warned(key: str, line: int) -> Diagnostic:
        message = f"model of batch_export.{key} requires a feature"
        return Diagnostic("feature-flag", Level.WARNING, message, Mark("a.yaml", line))

    error = wrong(at=Mark("a.yaml", 2))
    many = [warned(f"lake-{number}", number) for number in range(1, 7)]
    assert diagnostics_as_text([many[0], error, *many[1:]]).splitlines()[:3] == [
        "a.yaml:1:1: warning: model of batch_export.lake-1 requires a feature [feature-flag]",
        "  5 more like this: a.yaml:2:1, a.yaml:3:1, a.yaml:4:1 and 2 more",
        diagnostics_as_text([error]).splitlines()[0],
    ]
    assert diagnostics_as_text([error, *many]).endswith("\n1 error, 6 warnings\n")
    few = diagnostics_as_text([*many[:3], replace(many[3], hint="another")])
    assert few.count("warning:") == 4
