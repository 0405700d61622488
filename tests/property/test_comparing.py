"""DeepDiff, which shares no code with the comparison, finds the same differences.

It compares canonical forms. `_EXCEPTIONS` are the differences that are none to the service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

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


class Different(NamedTuple):
    """A place where DeepDiff finds two values. A side that is absent is MISSING."""

    path: Path
    want: Any
    have: Any


def different(want: Any, have: Any) -> list[Different]:
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
    return [
        Different(tuple(level.path(output_format="list")), _side(level.t1), _side(level.t2))
        for levels in found.values()
        for level in levels
    ]


def _side(value: Any) -> Any:
    return MISSING if type(value).__name__ == "NotPresent" else value


def nothing_but_secrets(field: Field, place: Different, want: Any) -> bool:
    """The server removes secrets and keeps the objects around them (service.md, 1.3).

    An empty object in a list is an item.
    """
    is_item = bool(place.path) and isinstance(place.path[-1], int)
    return not is_item and is_hollow(place.want) and is_hollow(place.have)


def is_hollow(value: Any) -> bool:
    return value is MISSING or (isinstance(value, Mapping) and all(map(is_hollow, value.values())))


def not_wanted(field: Field, place: Different, want: Any) -> bool:
    """The server merges: what is not wanted stays as it is. Secrets alone are not wanted.

    It replaces lists.
    """
    path = _outside_lists(place.path)
    return any(
        is_hollow(value_at(want, path[:depth]))
        for depth in range(1, min(_merged(field), len(path)) + 1)
    )


def null_removes(field: Field, place: Different, want: Any) -> bool:
    """The server merges: null removes a key. An object without others is like one of secrets."""
    # An item of a list is no key.
    if not place.path or not all(isinstance(part, str) for part in place.path):
        return False
    levels = _merged(field) - len(place.path)
    return is_removed(place.want, levels) and is_removed(place.have, levels)


def is_removed(value: Any, levels: int) -> bool:
    if isinstance(value, Mapping):
        return all(is_removed(item, levels - 1) for item in value.values())
    return value is MISSING or (value is None and levels >= 0)


def _merged(field: Field) -> int:
    return field.type.depth if isinstance(field.type, MergedObject) else 0


_EXCEPTIONS: tuple[Callable[[Field, Different, Any], bool], ...] = (
    nothing_but_secrets,
    not_wanted,
    null_removes,
)


def is_different(field: Field, want: Any, have: Any) -> bool:
    """Return whether DeepDiff finds a difference, other than the exceptions."""
    want, have = with_default(field, want), with_default(field, have)
    if _merged(field) and isinstance(want, dict) and have is None:
        # Merged into null is merged into nothing.
        have = {}
    for place in different(want, have):
        excepted = [rule for rule in _EXCEPTIONS if rule(field, place, want)]
        if not excepted:
            return True
        event(excepted[0].__name__)
    return False


@pytest.mark.parametrize(
    "field_type", [OpenObject(), OpenObject(numbers_as_text=True)], ids=["open", "as-text"]
)
@given(with_edits(documents))
def test_any_json_differs_as_deepdiff_says(field_type: OpenObject, pair: tuple[Any, Any]) -> None:
    field = Field("x", field_type)
    assert is_equal(field, *pair) is not is_different(field, *pair)


@pytest.mark.parametrize("depth", [1, 2])
@given(with_edits(objects))
def test_merged_objects_differ_as_deepdiff_says(depth: int, pair: tuple[Any, Any]) -> None:
    field = Field("x", MergedObject(depth))
    want, have = pair
    if isinstance(have, dict):
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
    assert ours == {_outside_lists(place.path) for place in different(want, have)}


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
