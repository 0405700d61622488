"""Test differences inside nested values and long texts."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.kind import Action
from reconciler.model.plan import Change, FieldChange, Plan, PlanSource
from reconciler.model.redaction import masked_in
from reconciler.model.schemas import canonical_text
from reconciler.model.values import MISSING, Address, value_at
from reconciler.render import formats_of, writer_of
from reconciler.render.options import DEFAULTS
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
objects = st.dictionaries(keys, values, max_size=5)
WIDE = {"filler": "x" * 100}


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the value with the item at a path changed, added or removed."""
    head, *rest = path
    inner = put(value[head], tuple(rest), new) if rest else new
    if isinstance(value, list):
        return [inner if position == head else item for position, item in enumerate(value)]
    without = {name: item for name, item in value.items() if name != head}
    return without if inner is MISSING else {**without, head: inner}


def only_objects(value: Any) -> bool:
    if isinstance(value, dict):
        return all(only_objects(item) for item in value.values())
    return not isinstance(value, list)


@given(objects, objects)
def test_differences_are_at_their_paths(before: Any, after: Any) -> None:
    for path, old, new in differences(before, after):
        whole, side = (before, old) if old is not MISSING else (after, new)
        assert value_at(whole, path) == side


@given(objects.filter(only_objects), objects.filter(only_objects))
def test_differences_are_complete(before: Any, after: Any) -> None:
    result = before
    for path, _, new in differences(before, after):
        result = put(result, path, new)
    if before.keys() & after.keys():
        assert canonical_text(result) == canonical_text(after)


@given(st.lists(values, min_size=1, max_size=5), st.lists(values, min_size=1, max_size=5))
def test_lists_that_differ_have_differences(before: list[Any], after: list[Any]) -> None:
    parts = differences([WIDE, *before], [WIDE, *after])
    assert bool(parts) is (canonical_text(before) != canonical_text(after))


def test_an_inserted_item_is_one_difference() -> None:
    old = [{"key": f"filter-{number}", "value": "x" * 20} for number in range(5)]
    new = [{"key": "first"}, *old]
    assert differences(old, new) == [((0,), MISSING, {"key": "first"})]


def test_several_equal_items_show_both_lists() -> None:
    old, new = [WIDE, "x", "x"], [WIDE]
    assert differences(old, new) == [((), old, new)]
    assert differences(new, old) == [((), new, old)]


def test_a_changed_item_is_compared_inside_and_a_new_one_is_whole() -> None:
    old = [{"key": "email", "value": "x" * 60}, {"key": "host"}, {"key": "kept", "value": "z"}]
    changed = [{"key": "email", "value": "y"}, *old[1:]]
    assert differences(old, changed) == [((0, "value"), "x" * 60, "y")]
    other = [old[0], {"cohort": 7}, old[2]]
    assert differences(old, other) == [((1,), {"key": "host"}, {"cohort": 7})]


def test_two_differences_in_a_list_of_300_are_two_lines() -> None:
    old = [{"key": f"filter-{number}", "value": [number], "kind": "event"} for number in range(300)]
    new = put([{"key": "first"}, *old], (200, "value"), ["other"])
    assert differences(old, new) == [
        ((0,), MISSING, {"key": "first"}),
        ((199, "value", 0), 199, "other"),
    ]


def test_another_order_shows_both_lists() -> None:
    items = [{"key": "a", "value": ["x", "y"]}, {"key": "b", "value": "z" * 100}]
    assert differences(items, items[::-1]) == [((), items, items[::-1])]
    inner = put(items, (0, "value"), ["y", "x"])
    assert differences(items, inner) == [((), items, inner)]
    both = put(inner, (1, "key"), "c")
    assert differences(items, both) == [((), items, both)]
    assert differences(items, [*items, items[0]]) == [((2,), MISSING, items[0])]


def test_many_other_items_are_not_compared_with_each_other() -> None:
    old = [{"key": f"a{number}", "same": 1} for number in range(100)]
    new = [{"key": f"b{number}", "same": 1} for number in range(100)]
    assert differences(old, new) == [((), old, new)]


def test_another_order_is_shown_line_by_line() -> None:
    items = [f"filter-{number}" * 5 for number in range(9)]
    field = FieldChange(("filters",), items, [items[1], items[0], *items[2:]])
    change = Change(Address("batch_export", "lake"), Action.UPDATE, "Lake", fields=(field,))
    (line,) = plain_lines(change)
    assert line.hunk == (
        "  [",
        f'+   "{items[1]}",',
        f'    "{items[0]}",',
        f'-   "{items[1]}",',
        f'    "{items[2]}",',
    )


def test_true_is_not_one() -> None:
    assert differences({"a": True}, {"a": 1}) == [(("a",), True, 1)]


def test_short_or_unrelated_values_are_whole() -> None:
    assert differences(["a"], ["a", "b"]) == []
    assert differences({"a": 1}, {"b": 1}) == []
    assert differences({"a": 1}, None) == []
    assert differences("a", "b") == []


def test_a_long_query_is_compared_by_columns() -> None:
    columns = [f"properties.column_{number}" for number in range(20)]
    before = ", ".join(columns)
    after = before.replace("column_7,", "column_seven,")
    assert text_lines(before, after) == (
        "  @@ -7,3 +7,3 @@",
        "  properties.column_6,",
        "- properties.column_7,",
        "+ properties.column_seven,",
        "  properties.column_8,",
    )


def test_a_query_on_one_line_gets_the_lines_of_the_configured_one() -> None:
    columns = [f"properties.column_{number}" for number in range(8)]
    shown = ", ".join([f"SELECT {columns[0]}", *columns[1:], "'a  b' AS text FROM events"])
    shown += " WHERE a AND b"
    written = "SELECT\n" + "".join(f"  {column},\n" for column in columns if column[-1] != "5")
    written += "  'a b' AS text\nFROM events\nWHERE a AND c AND b\n"
    lines = text_lines(shown, written)
    assert lines == (
        "  @@ -6,7 +6,6 @@",
        "    properties.column_4,",
        "-   properties.column_5,",
        "    properties.column_6,",
        "    properties.column_7,",
        "-   'a  b' AS text",
        "+   'a b' AS text",
        "  FROM events",
        "- WHERE a AND b",
        "+ WHERE a AND c AND b",
    )
    other_way = [
        line.translate(str.maketrans("+-", "-+")) if line[0] in "+-" else line for line in lines
    ]
    assert sorted(text_lines(written, shown)[1:]) == sorted(other_way[1:])


@given(
    st.lists(st.sampled_from(["a", "b,", " c", "d  e"]), min_size=1, max_size=12),
    st.lists(st.sampled_from(["a", "b,", " c", "d  e"]), min_size=2, max_size=12),
)
def test_new_lines_lose_no_word(words: list[str], lines: list[str]) -> None:
    shown, written = " ".join(words), "\n".join(lines)
    merged = text_lines(shown, written)
    gone, added = (
        [word for line in merged if line[0] == sign for word in line[2:].split()] for sign in "-+"
    )
    assert Counter(shown.split()) - Counter(gone) == Counter(written.split()) - Counter(added)


@given(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=12),
    st.lists(st.sampled_from("abc"), min_size=2, max_size=12),
)
def test_lines_contain_both_sides(old: list[str], new: list[str]) -> None:
    lines = text_lines("\n".join(old), "\n".join(new))
    assert bool(lines) is (old != new)
    gone, added = ([line[2:] for line in lines if line[0] == sign] for sign in "-+")
    assert Counter(old) - Counter(gone) == Counter(new) - Counter(added)


def test_long_texts_are_cut_and_the_rest_is_counted() -> None:
    before = "\n".join(f"a{number}" for number in range(3_000))
    lines = text_lines(before, before.replace("a", "b"))
    assert lines[0] == "- a0"
    assert lines[20] == "  … 5960 more lines"
    assert lines[-1] == "+ b2999"


def test_a_line_cannot_forge_another() -> None:
    assert capped(iter(["+ a\x1b[2K\u202e\rPlan"])) == ("+ a\\x1b[2K\\u202e\\rPlan",)


def test_long_new_values_take_several_lines() -> None:
    assert value_lines("short") == []
    assert value_lines("one\ntwo") == value_lines("one\ntwo\n") == ["one", "two"]
    assert value_lines("one\n") == []
    assert value_lines(["a"]) == []
    assert value_lines([WIDE])[:3] == ["[", "  {", f'    "filler": "{"x" * 100}"']


def test_a_secret_is_masked_in_every_format() -> None:
    secret = "hunter2, and=more\nlines"
    columns = ", ".join(f"properties.column_{number}" for number in range(9))
    fields = (
        FieldChange(("query",), f"{columns}, {secret}", f"{columns}, {secret}, x"),
        FieldChange(("open",), {"a": {"b": secret, "c": 1}}, {"a": {"b": f"{secret}!", "c": 2}}),
        FieldChange(("new",), MISSING, [secret, WIDE]),
    )
    change = Change(Address("batch_export", "lake"), Action.UPDATE, "Lake", fields=fields)
    plan = Plan(PlanSource("a", "o", "https://x.example", "1"), (change,))

    def mask(text: str) -> str:
        return text.replace(secret, "***")

    for name in formats_of("plan"):
        text = writer_of(name, "plan")(masked_in(plan, mask), DEFAULTS)
        assert not re.search("hunter2|and=more|lines$", text, re.MULTILINE)
        assert "***" in text or name in ("gitlab", "sarif")
