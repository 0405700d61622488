"""Two validators agree about our schemas: the fast one that loading uses, and the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from reconciler.model.schema_files import schema, schema_names

ODD = (
    None, True, 0, -1, 7, 65536, 1.0, 1.5, 2**53, "", " ", "x", "20%", "é" * 500, "git", "events",
    "2026-01-01T00:00:00Z", [], [1], ["x", None], {}, {"a": 1}, {"id": 1, "name": "x"},
    {"type": "S3"}, {"x": {"y": "z"}},
)  # fmt: skip
CHECKING = [name for name in schema_names() if not name.startswith(("editor/", "plan", "event"))]


def values(node: dict[str, Any]) -> Iterator[Any]:
    """Odd values, and odd values in each place that a schema names, alone and together."""
    yield from ODD
    for name, below in node.get("properties", {}).items():
        for inner in values(below):
            yield {name: inner, "nobody knows": 1} if inner == "x" else {name: inner}
    for key in ("additionalProperties", "items"):
        below = node.get(key)
        if isinstance(below, dict):
            for inner in values(below):
                yield {"k": inner} if key == "additionalProperties" else ["x", inner]


@pytest.mark.parametrize("name", CHECKING)
def test_both_validators_find_the_same(name: str) -> None:
    found = schema(name)
    assert found is not None
    reference, fast = Draft202012Validator(found), jsonschema_rs.Draft202012Validator(found)
    count = 0
    for value in values(found):
        expected = {
            (tuple(each.absolute_schema_path), tuple(each.absolute_path))
            for each in reference.iter_errors(value)
        }
        # The reference names the `if` on the way into a `then`; the other does not.
        told = {
            (tuple(each.schema_path), tuple(each.instance_path)) for each in fast.iter_errors(value)
        }
        assert {_plain(each) for each in told} == {_plain(each) for each in expected}, value
        assert fast.is_valid(value) == (not expected)
        count += bool(expected)
    assert count


def _plain(finding: tuple[tuple[Any, ...], tuple[Any, ...]]) -> object:
    keywords, path = finding
    return tuple(each for each in keywords if each != "if"), path
