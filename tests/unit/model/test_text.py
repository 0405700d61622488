"""Text of others inside messages: one line, no steering, no end of the quotes; and suggestions."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.text import (
    choice,
    joined,
    misleading,
    near_miss,
    nearest,
    plain_json,
    printable,
    quoted,
    safe_output,
)

_SPITEFUL = st.text(
    st.sampled_from(
        "ab1_-'\"`\\ \n\r\t\x1b\x7f\x85\x9b\u2028\u202e\u00e9\U000e0001\ufe0f\u0430\u03b1\u2026"
    )
)


@given(_SPITEFUL)
def test_printable_text_is_one_line_and_stays_as_it_is_when_asked_again(text: str) -> None:
    shown = printable(text)
    assert not misleading(shown)
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Lake", "'Lake'"),
        ("Bob's lake", '"Bob\'s lake"'),
        ("a 'b' \"c\"", "`a 'b' \"c\"`"),
        ("'\"`", "'\\'\"`'"),
        ("a\n\x1b[2K\u2028", "'a\\n\\x1b[2K\\u2028'"),
        ("Über 🙂", "'Über 🙂'"),
        ("", "''"),
    ],
)
def test_a_name_stands_in_quotes_that_are_not_in_it(text: str, shown: str) -> None:
    assert quoted(text) == shown


@given(_SPITEFUL)
def test_nothing_inside_ends_the_quotes(text: str) -> None:
    shown = quoted(text)
    mark, inside = shown[0], shown[1:-1]
    assert shown[-1] == mark
    assert mark not in inside.replace("\\'", "")


@given(st.recursive(_SPITEFUL, lambda inner: st.lists(inner) | st.dictionaries(_SPITEFUL, inner)))
def test_plain_json_says_the_same(value: object) -> None:
    text = plain_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert {text[place] for place in misleading(text)} <= {"\n"}


def test_plain_json_of_many_lines_takes_little_memory() -> None:
    """Saved plans of 10,000 exports have a million lines, and took 750 MB."""
    text = json.dumps(["a" * 40] * 20_000 + ["·"], ensure_ascii=False, indent=1)
    tracemalloc.start()
    try:
        assert plain_json(text) == text
        assert tracemalloc.get_traced_memory()[1] < 6 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\ufe0fb\ufe0e\u200b\u202e\u00ad", r"a\ufe0fb\ufe0e\u200b\u202e\xad"),
        ("a\u3164b\u2800c\U000e0100", r"a\u3164b\u2800c\U000e0100"),
        ("us\u0435r", r"us\u0435r"),
        ("\u03bd1e", r"\u03bd1e"),
        # A combining or hidden character does not separate the letters of a word.
        ("\u0435\u0301d", "\\u0435\u0301d"),
        ("\u0435\u200bd", r"\u0435\u200bd"),
        ("x\n\u0435d", r"x\n\u0435d"),
        ("\u043c\u0438\u0440\n\u043c\u0438\u0440", "\u043c\u0438\u0440\\n\u043c\u0438\u0440"),
        # Spaces, and letters that look like others.
        ("per\u00a0sons", r"per\xa0sons"),
        ("a\u2009b\u3000c", r"a\u2009b\u3000c"),
        ("\u0585rders", r"\u0585rders"),
        ("\U0001d41acme", r"\U0001d41acme"),
    ],
)
def test_r2_what_misleads_a_reader_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert safe_output(f"\x1b[1m{text}\x1b[0m").replace("\n", "\\n") == f"\x1b[1m{shown}\x1b[0m"


@pytest.mark.parametrize(
    "text",
    [
        *("\u043c\u0438\u0440 Lake", "Lake-\u043c\u0438\u0440", "\u03a9\u2026Lake"),
        *("T\u30b7\u30e3\u30c4", "\u4e2d\u6587abc", "K\ud31d", "\u00b5s", "caf\u00e9 20 \u2103"),
        *("\u13a0\u13a1 web", "\u0531\u0532", "web\u30c7\u30fc\u30bf"),
    ],
)
def test_words_of_one_script_are_not_escaped(text: str) -> None:
    """Also beside others, and Latin beside Han, Kana or Hangul."""
    assert printable(text) == safe_output(text) == text


def test_experience_29_hints_are_joined_as_sentences() -> None:
    hint = "for a live project write {id: …}"
    assert joined("did you mean 'app'?", hint) == f"did you mean 'app'? {hint}"
    assert joined("declared: a, b", None, hint) == f"declared: a, b; {hint}"
    assert joined(None, "") == ""


MANY = [f"export-{number}" for number in range(500)] + ["orders", "visits"]


@pytest.mark.parametrize("known", [MANY, MANY[-2:]], ids=["many", "few"])
@pytest.mark.parametrize("given", ["ordes", "oders", "ordersx", "ordres", "Orders", "ord"])
def test_a_slip_is_corrected_among_few_names_and_among_many(given: str, known: list[str]) -> None:
    assert nearest(given, known) == "orders"


def test_every_one_of_many_misspelt_names_has_a_suggestion_or_a_list_of_the_known_ones() -> None:
    assert [nearest(f"exprot-{number}", MANY) for number in range(500)] == MANY[:500]
    assert choice("web", MANY).startswith("allowed: export-0, export-1, ")
    assert choice("web", MANY).endswith(" and 486 more")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        *(("dayly", "day"), ("hourly", "hour"), ("hoour", "hour"), ("Houris", "hour")),
        # Too short, too far, no letters only, and the value itself.
        *(("dya", None), ("month", None), ("S3000", None), ("hours\u202e", None), (5, None)),
        *(("every 5 minuts", None), ("hour", None)),
    ],
)
def test_plan_v9_a_near_miss_has_five_letters_and_at_most_two_wrong_ones(
    given: str | int, right: str | None
) -> None:
    assert near_miss(given, ("hour", "day", "week", "every 5 minutes")) == right
