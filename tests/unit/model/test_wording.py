"""Text of others inside messages: one line, no steering, no end of the quotes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.address import joined
from reconciler.model.text import is_breaking, plain_json, printable, quoted

_SPITEFUL = st.text(st.sampled_from("ab'\"`\\ \n\r\t\x1b\x7f\x85\x9b\u2028\u202e\u00e9\U000e0001"))


@given(_SPITEFUL)
def test_printable_text_is_one_line_and_stays_as_it_is_when_asked_again(text: str) -> None:
    shown = printable(text)
    assert not any(is_breaking(each) for each in shown)
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
    assert not any(is_breaking(each) for each in text if each != "\n")


def test_experience_29_hints_are_joined_as_sentences() -> None:
    hint = "for a live project write {id: …}"
    assert joined("did you mean 'app'?", hint) == f"did you mean 'app'? {hint}"
    assert joined("declared: a, b", None, hint) == f"declared: a, b; {hint}"
    assert joined(None, "") == ""
