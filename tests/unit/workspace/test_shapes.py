"""Checks by shape: what depends on the shape of a resource is worked out once per shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.kinds import all_kinds
from reconciler.model.kind import Kind
from reconciler.model.schemas import schema_names
from reconciler.model.values import JSON, SecretRef, leaves, value_at
from reconciler.workspace.layers import ManagedFields, managed_in
from reconciler.workspace.schema.annotations import (
    TextWithAt,
    is_text,
    items,
    leaf_shapes,
    members,
    outline,
    shape_of,
    tags_of,
)
from reconciler.workspace.schema.validation import CheckContext, check

KIND = next(kind for kind in all_kinds() if kind.name == "batch_export")
TAGS = tags_of(KIND.name)

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text("a@:/é", max_size=4),
    st.just(SecretRef.of("env", "A")),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.sampled_from("abc"), below, max_size=3)
    ),
    max_leaves=12,
)


def _diagnostics(value: JSON) -> list[str]:
    """Return the problems of an export by its schema, as `code: message`."""
    problems = DiagnosticCollector()

    def at(path: Any) -> Mark:
        return Mark("x.yaml", 1, 1)

    check(KIND.name, value, CheckContext("batch_export/x", at, at, problems))
    return [f"{item.code}: {item.message}" for item in problems.diagnostics]


def _export(**changes: JSON) -> dict[str, JSON]:
    config = {
        "bucket_name": "lake",
        "region": "eu-west-1",
        "prefix": "events/",
        "aws_access_key_id": SecretRef.of("env", "A"),
    }
    destination = {"type": "S3", "config": config}
    return {"project": "web", "name": "x", "interval": "hour", "destination": destination} | changes


@given(_VALUES)
def test_a_shape_has_the_leaves_of_its_value_at_their_paths(value: JSON) -> None:
    shape = shape_of(value)
    hash(shape)
    expected = {path: leaf.__class__ for path, leaf in leaves(value)}
    shapes = dict(leaf_shapes(shape))
    assert {path: str if is_text(leaf) else leaf for path, leaf in shapes.items()} == expected
    for path, leaf in shapes.items():
        assert (leaf is TextWithAt) == ("@" in str(value_at(value, path)) and is_text(leaf))


@given(_VALUES, _VALUES)
def test_values_of_one_shape_differ_in_plain_leaves_only(one: JSON, other: JSON) -> None:
    paths = [path for path, _ in leaf_shapes(shape_of(one))]
    if shape_of(one) == shape_of(other):
        assert [path for path, _ in leaves(other)] == [path for path, _ in leaves(one)]
        classes = [
            (value_at(one, path).__class__, value_at(other, path).__class__) for path in paths
        ]
        assert all(first is second for first, second in classes)


def test_a_tag_belongs_to_the_shape_and_other_texts_do_not() -> None:
    shapes = [shape_of({"type": tag, "name": tag}, frozenset({"type"})) for tag in ("S3", "HTTP")]
    assert shapes == [("type", "S3", "name", str), ("type", "HTTP", "name", str)]


def test_an_empty_container_has_no_parts() -> None:
    assert (members(shape_of([])), items(shape_of({}))) == ({}, ())


def test_values_of_one_shape_have_diagnostics_of_their_own() -> None:
    right, wrong = _export(), _export(interval="houl")
    assert shape_of(right, TAGS) == shape_of(wrong, TAGS)
    for _ in range(2):  # In any order, and again from what is remembered.
        assert _diagnostics(right) == []
        assert len(_diagnostics(wrong)) == 1
        assert "houl" in _diagnostics(wrong)[0]


def test_a_value_without_its_secret_has_another_outline() -> None:
    secret = SecretRef.of("env", "A")
    assert _diagnostics(_export(name="x")) == []
    assert [text.split(":")[0] for text in _diagnostics(_export(name=secret))] == [
        "secret-in-plain-field"
    ]


def test_bodies_are_checked_by_the_tag_of_each_value() -> None:
    config = {"bucket_name": "lake", "region": "eu-west-1"}
    missing = {
        tag: _diagnostics(_export(destination={"type": tag, "config": config}))
        for tag in ("S3", "Snowflake", "NoOp")
    }
    assert len({str(told) for told in missing.values()}) == len(missing)


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_the_tags_of_a_kind_are_those_of_its_variants_and_their_bodies(kind: Kind) -> None:
    """A tag inside a body that the kind's shape leaves out would choose no schema."""
    known = tags_of(kind.name)
    assert {variant.tag for _, variant in kind.variants} <= known
    if kind.variants:
        bodies = [name for name in schema_names() if name.startswith("destinations/")]
        assert bodies
        assert all(tags_of(name) <= known for name in bodies)


def _managed(value: dict[str, JSON]) -> ManagedFields:
    return managed_in(shape_of(value, TAGS), KIND)


def test_managed_fields_have_the_names_of_the_kind() -> None:
    managed = _managed(_export(hogql_query="SELECT 1", lifecycle={"protect": True}, id="1"))
    assert managed.names == (
        ("name", "name"),
        ("interval", "interval"),
        ("destination", "destination"),
        ("sql_query", "hogql_query"),
    )
    assert managed.written == {"sql_query": "hogql_query"}
    assert managed.repeated == ()


def test_a_field_under_two_names_is_told() -> None:
    managed = _managed(_export(sql_query="SELECT 1", hogql_query="SELECT 2"))
    assert managed.repeated == (("hogql_query", "sql_query"),)


def test_managed_fields_have_the_paths_of_secrets_and_of_texts_that_may_be_urls() -> None:
    config: JSON = {"url": "https://a:b@x.example/", "password": "p", "method": "POST"}
    managed = _managed(_export(destination={"type": "HTTP", "config": config}))
    assert managed.with_at == (("destination", "config", "url"),)
    postgres = _managed(_export(destination={"type": "Postgres", "config": config}))
    assert ("destination", "config", "password") in postgres.secret


def test_an_outline_leaves_the_values_of_its_shape_alone() -> None:
    value = _export()
    before = repr(value)
    parts = outline(KIND.name, shape_of(value, TAGS))
    assert [body.schema for body in parts.bodies] == ["destinations/S3"]
    _diagnostics(value)
    assert repr(value) == before
