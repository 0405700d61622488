"""Text of others inside messages: one line, no steering, no end of the quotes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.text import joined, misleading, plain_json, printable, quoted, safe_output

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\ufe0fb\ufe0e\u200b\u202e\u00ad", r"a\ufe0fb\ufe0e\u200b\u202e\xad"),
        ("us\u0435r", r"us\u0435r"),
        ("\u0435vent_\u0430", r"\u0435vent_\u0430"),
        ("\u03bd1e", r"\u03bd1e"),
        # A combining or hidden character does not separate the letters of a word.
        ("\u0435\u0301d", "\\u0435\u0301d"),
        ("\u0435\u200bd", r"\u0435\u200bd"),
        ("x\n\u0435d", r"x\n\u0435d"),
        # Words of one script are normal, also beside others, and Latin beside Han, Kana or Hangul.
        *(
            (text, text)
            for text in ("\u043c\u0438\u0440 Lake", "Lake-\u043c\u0438\u0440", "\u03a9\u2026Lake")
        ),
        *(
            (text, text)
            for text in (
                "T\u30b7\u30e3\u30c4",
                "\u4e2d\u6587abc",
                "K\ud31d",
                "\u00b5s",
                "caf\u00e9",
            )
        ),
        ("\u043c\u0438\u0440\n\u043c\u0438\u0440", "\u043c\u0438\u0440\\n\u043c\u0438\u0440"),
    ],
)
def test_r2_what_misleads_a_reader_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert safe_output(f"\x1b[1m{text}\x1b[0m").replace("\n", "\\n") == f"\x1b[1m{shown}\x1b[0m"


def test_experience_29_hints_are_joined_as_sentences() -> None:
    hint = "for a live project write {id: …}"
    assert joined("did you mean 'app'?", hint) == f"did you mean 'app'? {hint}"
    assert joined("declared: a, b", None, hint) == f"declared: a, b; {hint}"
    assert joined(None, "") == ""


@pytest.mark.parametrize(
    "text",
    [
        "per\u00a0sons",
        "a\u2009b",
        "a\u3000b",
        "\u13a0cme",
        "\u0585rders",
        "\ua4d0cme",
        "\U0001d41acme",
    ],
)
def test_spaces_and_letters_that_look_like_others_are_escaped(text: str) -> None:
    assert printable(text).isascii()


@pytest.mark.parametrize(
    "text", ["\u13a0\u13a1 web", "\u0531\u0532", "web\u30c7\u30fc\u30bf", "caf\u00e9 20 \u2103"]
)
def test_words_of_one_script_are_not_escaped(text: str) -> None:
    assert printable(text) == text
