"""Two validators agree about our schemas: the fast one that loading uses, and the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from reconciler.config.schema_files import schema, schema_names

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
            yield {name: inner, "unknown": 1} if inner == "x" else {name: inner}
    for key in ("additionalProperties", "items"):
        below = node.get(key)
        if isinstance(below, dict):
            for inner in values(below):
                yield {"k": inner} if key == "additionalProperties" else ["x", inner]


@pytest.mark.parametrize("name", CHECKING)
def test_both_validators_find_the_same(name: str) -> None:
    document = schema(name)
    assert document is not None
    reference = Draft202012Validator(document)
    fast = jsonschema_rs.Draft202012Validator(document)
    count = 0
    for value in values(document):
        expected = {
            (tuple(error.absolute_schema_path), tuple(error.absolute_path))
            for error in reference.iter_errors(value)
        }
        # The reference names the `if` on the way into a `then`; the other does not.
        reported = {
            (tuple(error.schema_path), tuple(error.instance_path))
            for error in fast.iter_errors(value)
        }
        assert {_plain(error) for error in reported} == {_plain(error) for error in expected}, value
        assert fast.is_valid(value) == (not expected)
        count += bool(expected)
    assert count


def _plain(finding: tuple[tuple[Any, ...], tuple[Any, ...]]) -> object:
    keywords, path = finding
    return tuple(keyword for keyword in keywords if keyword != "if"), path
