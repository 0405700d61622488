"""The rules of comparison, with the fields of the kinds, and the fast path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from reconciler.model.kind import Field
from reconciler.model.live import Live
from reconciler.model.resource import Desired
from reconciler.model.schemas import MergedObject
from reconciler.model.values import MISSING, SecretRef
from reconciler.planning.compare import compared, difference, is_equal, is_identical
from reconciler.planning.inventory import Declared
from tests.support.worlds import BY_NAME, export, live_export, s3, with_secrets, worlds

EXPORT = BY_NAME["batch_export"]
MERGED = Field("settings", MergedObject(depth=2))


@pytest.mark.parametrize(
    ("wanted", "live", "equal"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": None}, {"b": 2}, True),
        ({"a": None}, {"a": 1}, False),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, True),
        ({"a": {"x": {"deep": 1}}}, {"a": {"x": {"deep": 1, "more": 2}}}, False),
        ({"a": {"x": None}}, {"a": {}}, True),
        ({"a": {"x": None}}, {}, True),
        ({"a": {"x": None}}, {"a": {"x": 1}}, False),
        ({"a": {"x": None}}, {"a": {"x": None}}, True),
        ({"a": SecretRef.of("env", "A")}, {}, True),
        ({}, MISSING, True),
        (None, MISSING, True),
        (None, {"a": 1}, False),
    ],
)
def test_only_wanted_keys_of_a_merged_object_count(wanted: Any, live: Any, equal: bool) -> None:
    assert is_equal(MERGED, wanted, live) is equal


def test_both_values_are_returned_in_the_compared_form() -> None:
    assert compared(MERGED, {"a": 1.0, "b": None}, {"a": 2, "c": 3}) == ({"a": 1}, {"a": 2})


@pytest.mark.parametrize(
    ("declared", "live", "identical"),
    [
        ({}, {}, True),
        ({"destination": with_secrets()}, {}, True),
        ({"destination": s3(prefix="q/")}, {}, False),
        ({"destination": {"type": "S3"}}, {}, True),
        ({"interval": "day"}, {}, False),
        ({"paused": False}, {}, True),
        ({"unknown": 1}, {}, False),
        ({"filters": [True]}, {"filters": [1]}, False),
        ({"destination": with_secrets(new=[True])}, {"destination": s3(new=[1])}, False),
        ({"start_at": None}, {}, False),
        ({"start_at": None}, {"start_at": None}, True),
    ],
)
def test_the_fast_path_compares_literally(declared: Any, live: Any, identical: bool) -> None:
    spec = export(**declared).spec
    assert is_identical(EXPORT, spec, live_export(**live).body) is identical


@given(worlds())
def test_identical_resources_have_no_difference(world: tuple[Desired, Live]) -> None:
    desired, live = world
    for resource in desired.resources.values():
        kind = BY_NAME[resource.address.kind]
        for item in live.of(kind.name):
            if is_identical(kind, resource.spec, item.body):
                differs = difference(kind, resource, item, Declared())
                assert (differs.changes, differs.toggles, differs.unreset) == ((), (), ())
