"""Test differences inside nested values and long texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.kind import Action
from reconciler.model.plan import Change, FieldChange
from reconciler.model.schemas import canonical_text
from reconciler.model.values import MISSING, Address
from reconciler.render.plan_fields import (
    capped,
    differences,
    plain_lines,
    text_lines,
    value_lines,
)

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab_.", max_size=3)
keys = st.sampled_from(["a", "b", "__a", "a.b", "[0]", ""])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
WIDE = {"filler": "x" * 100}


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the value with the item at a path changed, added or removed."""
    head, *rest = path
    inner = put(value[head], tuple(rest), new) if rest else new
    if isinstance(value, list):
        return [inner if position == head else item for position, item in enumerate(value)]
    without = {name: item for name, item in value.items() if name != head}
    return without if inner is MISSING else {**without, head: inner}


@given(st.lists(values, min_size=1, max_size=5), st.lists(values, min_size=1, max_size=5))
def test_lists_that_differ_have_differences(before: list[Any], after: list[Any]) -> None:
    parts = differences([WIDE, *before], [WIDE, *after])
    assert bool(parts) is (canonical_text(before) != canonical_text(after))


FILTERS = [{"key": f"filter-{number}", "value": "x" * 20} for number in range(5)]
LONG = [{"key": f"filter-{number}", "value": [number], "kind": "event"} for number in range(300)]
MANY = [{"key": f"a{number}", "same": 1} for number in range(100)]
OTHERS = [{"key": f"b{number}", "same": 1} for number in range(100)]
OLD = [{"key": "email", "value": "x" * 60}, {"key": "host"}, {"key": "kept", "value": "z"}]
PAIR = [{"key": "a", "value": ["x", "y"]}, {"key": "b", "value": "z" * 100}]
TURNED = put(PAIR, (0, "value"), ["y", "x"])
BOTH = put(TURNED, (1, "key"), "c")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(FILTERS, [WIDE, *FILTERS], [((0,), MISSING, WIDE)], id="inserted"),
        (OLD, put(OLD, (0, "value"), "y"), [((0, "value"), "x" * 60, "y")]),
        (OLD, [OLD[0], {"c": 7}, OLD[2]], [((1,), {"key": "host"}, {"c": 7})]),
        pytest.param(
            LONG,
            put([WIDE, *LONG], (200, "value"), ["other"]),
            [((0,), MISSING, WIDE), ((199, "value", 0), 199, "other")],
            id="two-of-300",
        ),
        pytest.param(PAIR, PAIR[::-1], [((), PAIR, PAIR[::-1])], id="another-order"),
        (PAIR, BOTH, [((), PAIR, BOTH)]),
        pytest.param(MANY, OTHERS, [((), MANY, OTHERS)], id="too-many"),
        ({"a": True}, {"a": 1}, [(("a",), True, 1)]),
        (["a"], ["a", "b"], []),
        ({"a": 1}, {"b": 1}, []),
    ],
)
def test_differences_of_values(old: Any, new: Any, expected: list[Any]) -> None:
    """Short or unrelated values are whole; another order or equal items show both lists."""
    assert differences(old, new) == expected


def test_another_order_is_shown_line_by_line() -> None:
    a, b, *others = [f"filter-{number}" * 5 for number in range(9)]
    field = FieldChange(("filters",), [a, b, *others], [b, a, *others])
    change = Change(Address("batch_export", "lake"), Action.UPDATE, "Lake", fields=(field,))
    (line,) = plain_lines(change)
    assert line.hunk[:4] == ("  [", f'+   "{b}",', f'    "{a}",', f'-   "{b}",')


def test_a_query_on_one_line_gets_the_lines_of_the_configured_one() -> None:
    shown = "SELECT a, b, 'a  b' AS text FROM events WHERE a AND b"
    written = "SELECT\n  a,\n  'a b' AS text\nFROM events\nWHERE a AND c AND b\n"
    assert text_lines(shown, written)[-7:] == (
        "    a,",
        "-   b,",
        "-   'a  b' AS text",
        "+   'a b' AS text",
        "  FROM events",
        "- WHERE a AND b",
        "+ WHERE a AND c AND b",
    )


words = st.sampled_from(["a", "b,", " c", "d  e"])
letters = st.lists(st.sampled_from("abc"), min_size=2, max_size=12)


@given(st.lists(words, min_size=1, max_size=12), st.lists(words, min_size=2, max_size=12))
def test_new_lines_lose_no_word(old: list[str], new: list[str]) -> None:
    shown, written = " ".join(old), "\n".join(new)
    merged = text_lines(shown, written)
    gone, added = (
        [word for line in merged if line[0] == sign for word in line[2:].split()] for sign in "-+"
    )
    assert Counter(shown.split()) - Counter(gone) == Counter(written.split()) - Counter(added)


@given(letters, letters)
def test_lines_contain_both_sides(old: list[str], new: list[str]) -> None:
    lines = text_lines("\n".join(old), "\n".join(new))
    assert bool(lines) is (old != new)
    gone, added = ([line[2:] for line in lines if line[0] == sign] for sign in "-+")
    assert Counter(old) - Counter(gone) == Counter(new) - Counter(added)


def test_long_texts_are_cut_and_the_rest_is_counted() -> None:
    before = "\n".join(f"a{number}" for number in range(3_000))
    lines = text_lines(before, before.replace("a", "b"))
    assert (lines[0], lines[20], lines[-1]) == ("- a0", "  … 5960 more lines", "+ b2999")
    assert capped(iter(["+ a\x1b[2K\u202e\rPlan"])) == ("+ a\\x1b[2K\\u202e\\rPlan",)


def test_long_new_values_take_several_lines() -> None:
    assert value_lines("one\ntwo") == value_lines("one\ntwo\n") == ["one", "two"]
    assert value_lines("one\n") == value_lines(["a"]) == []
    assert value_lines([WIDE])[:3] == ["[", "  {", f'    "filler": "{"x" * 100}"']
