"""DeepDiff, which shares no code with the comparison, finds the same differences.

It compares canonical forms. `exception` has the differences that are none to the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import pytest
from deepdiff import DeepDiff
from hypothesis import event, given
from hypothesis import strategies as st

from reconciler.model.kind import Field
from reconciler.model.live import LiveObject
from reconciler.model.resource import Resource
from reconciler.model.schemas import MergedObject, OpenObject, SetOf, Text
from reconciler.model.values import MISSING, Address, Path, value_at
from reconciler.planning.compare import (
    difference,
    field_leaves,
    is_equal,
    is_identical,
    with_default,
)
from reconciler.planning.inventory import Declared
from reconciler.render.plan_fields import differences
from tests.property.test_importing import KINDS, bodies

names = st.sampled_from(["a", "b", "c", "__a", "a.b", "[0]", "", "1"])
scalars = st.sampled_from(
    [None, True, False, 0, 1, -2, 0.5, 1.0, -0.0, 2**53, 2**53 + 1, "", "1", "True", " a", "b"]
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=16,
)
objects = st.dictionaries(names, documents, max_size=4)
rarely = st.integers(0, 9).map(lambda number: number == 0)


@st.composite
def edited(draw: st.DrawFn, value: Any) -> Any:
    """Return a document in which values are changed, added, removed and moved."""
    if draw(rarely):
        return draw(documents)
    if isinstance(value, dict):
        kept = {name: draw(edited(item)) for name, item in value.items() if not draw(rarely)}
        return {**kept, draw(names): draw(documents)} if draw(rarely) else kept
    if isinstance(value, list):
        kept = [draw(edited(item)) for item in value if not draw(rarely)]
        return draw(st.permutations(kept)) if draw(rarely) else kept
    if isinstance(value, (bool, int, float)) and draw(rarely):
        # JSON has whole numbers of 64 bits.
        whole = int(value) if abs(value) < 2**63 else 0
        return draw(st.sampled_from([float(value), whole, bool(value), str(value)]))
    return value


def with_edits(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.flatmap(lambda value: st.tuples(st.just(value), edited(value)))


def different(want: Any, have: Any) -> list[tuple[Path, Any, Any]]:
    """Return the places where DeepDiff finds two values. A side that is absent is MISSING."""
    found = DeepDiff(
        want,
        have,
        view="tree",
        # Compare inside of objects that have little in common, too.
        threshold_to_diff_deeper=0,
        ignore_private_variables=False,
        # Without it, items of lists are paired by `==`: 1 is True.
        zip_ordered_iterables=True,
    )

    def side(value: Any) -> Any:
        return MISSING if type(value).__name__ == "NotPresent" else value

    return [
        (tuple(level.path(output_format="list")), side(level.t1), side(level.t2))
        for levels in found.values()
        for level in levels
    ]


def exception(depth: int, path: Path, sides: tuple[Any, Any], want: Any) -> str:
    """Return why a difference is none to the service, "" if it is one.

    `depth` is that of a merged object.
    """
    # An empty object in a list is an item.
    is_item = bool(path) and isinstance(path[-1], int)
    if not is_item and all(map(is_hollow, sides)):
        return "the server removes secrets and keeps the objects around them (service.md, 1.3)"
    outside = _outside_lists(path)
    levels = range(1, min(depth, len(outside)) + 1)
    if any(is_hollow(value_at(want, outside[:level])) for level in levels):
        return "the server merges: what is not wanted stays as it is. It replaces lists"
    if path and outside == path and all(is_removed(side, depth - len(path)) for side in sides):
        return "the server merges: null removes a key"
    return ""


def is_hollow(value: Any) -> bool:
    return value is MISSING or (isinstance(value, Mapping) and all(map(is_hollow, value.values())))


def is_removed(value: Any, levels: int) -> bool:
    if isinstance(value, Mapping):
        return all(is_removed(item, levels - 1) for item in value.values())
    return value is MISSING or (value is None and levels >= 0)


def is_different(field: Field, want: Any, have: Any) -> bool:
    """Return whether DeepDiff finds a difference, other than the exceptions."""
    want, have = with_default(field, want), with_default(field, have)
    depth = field.type.depth if isinstance(field.type, MergedObject) else 0
    if depth and isinstance(want, dict) and have is None:
        # Merged into null is merged into nothing.
        have = {}
    for path, *sides in different(want, have):
        reason = exception(depth, path, (sides[0], sides[1]), want)
        if not reason:
            return True
        event(reason)
    return False


@pytest.mark.parametrize(
    ("field_type", "values"),
    [
        (OpenObject(), documents),
        (OpenObject(numbers_as_text=True), documents),
        (MergedObject(1), objects),
        (MergedObject(2), objects),
    ],
    ids=["open", "as-text", "merged", "merged twice"],
)
@given(data=st.data())
def test_any_json_differs_as_deepdiff_says(
    field_type: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    field, (want, have) = Field("x", field_type), data.draw(with_edits(values))
    if values is documents or isinstance(have, dict):
        assert is_equal(field, want, have) is not is_different(field, want, have)


@given(with_edits(st.lists(st.sampled_from(["a", "b", "c", "", " a"]), max_size=5)))
def test_sets_differ_as_deepdiff_says(pair: tuple[Any, Any]) -> None:
    want, have = pair
    if isinstance(have, list):
        found = DeepDiff(want, have, ignore_order=True)
        assert is_equal(Field("x", SetOf(Text())), want, have) is not bool(found)


@given(with_edits(documents))
def test_the_places_of_differences_are_those_of_deepdiff(pair: tuple[Any, Any]) -> None:
    """Inside of lists, DeepDiff compares by position, and a plan pairs the items that are alike."""
    want, have = (OpenObject().canonical({"x": value}) for value in pair)
    ours = {_outside_lists(path) for path, _, _ in differences(want, have)}
    assert ours == {_outside_lists(path) for path, _, _ in different(want, have)}


def _outside_lists(path: Path) -> Path:
    return tuple(takewhile(lambda part: isinstance(part, str), path))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@given(st.data())
def test_an_update_changes_what_differs_for_deepdiff(kind: Any, data: st.DataObject) -> None:
    """Secrets can't be compared, and a toggle that is null is not set."""
    spec, body = data.draw(with_edits(bodies(kind)))
    if not isinstance(body, dict):
        return
    resource = Resource(Address(kind.name, "x"), spec)
    live = LiveObject(kind.name, "1", "x", body)
    found = difference(kind, resource, live, Declared())
    changed = {change.path for change in (*found.changes, *found.toggles)}
    assert changed == {
        leaf.path
        for leaf in field_leaves(kind.fields, spec, live=False)
        if not leaf.field.secret
        and not (leaf.field.toggle and leaf.value is None)
        and is_different(leaf.field, leaf.value, value_at(body, leaf.path))
    }
    assert not (changed and is_identical(kind, spec, body))
