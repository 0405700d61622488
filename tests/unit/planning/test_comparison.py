"""The rules of comparison, with the fields of the kinds, and the fast path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from reconciler.authoring.environments import (
    EnvironmentSide,
    LiveSide,
    compare_live,
    field_differences,
)
from reconciler.model.comparison import compared, is_equal, is_identical
from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Field
from reconciler.model.live import Live
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, Lifecycle, State
from reconciler.model.values import MISSING, SecretRef
from reconciler.planning.base import Declared
from reconciler.planning.differ import difference
from reconciler.planning.matcher import match
from tests.support.worlds import (
    BY_NAME,
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    s3,
    with_secrets,
    worlds,
)

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


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ({"filters": [True]}, {"filters": [1]}, ("filters",)),
        ({"parent": "web"}, {"parent": "app"}, ("project",)),
        ({}, {"state": State.ABSENT}, ("state",)),
        ({}, {"lifecycle": Lifecycle(protect=True)}, ("lifecycle", "protect")),
        ({"secret_version": "1"}, {"secret_version": "2"}, ("secret_version",)),
    ],
)
def test_environments_differ_in_one_place(first: Any, second: Any, path: Any) -> None:
    sides = [EnvironmentSide(export(**parts), {}) for parts in (first, second)]
    assert [item.path for item in field_differences(EXPORT, *sides)] == [path]


def test_unmanaged_objects_are_compared_by_project_and_name() -> None:
    lives = [
        live_of(
            live_project(web),
            live_project(app, "App"),
            live_export(f"e{web}", parent=web),
            live_export(f"e{app}", parent=app, filters=[value]),
        )
        for web, app, value in ((1, 2, True), (8, 7, 1))
    ]
    sides = [
        LiveSide(name, match(desired_of(), live, policy=Policy(), kinds=KINDS))
        for name, live in zip(("staging", "production"), lives, strict=True)
    ]
    compared = compare_live(*sides, intents={})
    (lake,) = compared.resources
    assert (lake.address.key, [field.path for field in lake.fields]) == ("id:e2", [("filters",)])
    assert (compared.only_first, compared.only_second, compared.equal) == ((), (), 3)


@given(worlds())
def test_identical_resources_have_no_difference(world: tuple[Desired, Live]) -> None:
    desired, live = world
    for resource in desired.resources.values():
        kind = BY_NAME[resource.address.kind]
        for item in live.of(kind.name):
            if is_identical(kind, resource.spec, item.body):
                differs = difference(kind, resource, item, Declared())
                assert (differs.changes, differs.toggles, differs.unreset) == ((), (), ())


@pytest.mark.parametrize(
    ("declared", "live", "identical"),
    [
        (["b", "a"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        ([True], [1], False),
    ],
)
def test_the_fast_path_takes_lists_in_another_order(
    declared: list[Any], live: list[Any], *, identical: bool
) -> None:
    spec = export(destination=s3(exclude_events=declared)).spec
    body = live_export(destination=s3(exclude_events=live)).body
    assert is_identical(EXPORT, spec, body) is identical
