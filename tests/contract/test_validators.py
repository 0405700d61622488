"""Two validators agree about our schemas: the fast one, and the one where that has no wheel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.files.validation import validator_of
from reconciler.model.schemas import schema, schema_names
from scripts.saved_schemas import FORMS

ODD = (
    None, True, 0, -1, 7, 65536, 1.0, 1.5, 2**53, "", " ", "x", "20%", "é" * 500, "git", "events",
    "2026-01-01T00:00:00Z", [], [1], ["x", None], {}, {"a": 1}, {"id": 1, "name": "x"},
    {"type": "S3"}, {"x": {"y": "z"}},
)  # fmt: skip
CHECKING = [name for name in schema_names() if not name.startswith("editor/") and name not in FORMS]


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
def test_both_validators_report_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = schema(name)
    assert known is not None
    one = validator_of(known)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "jsonschema_rs", None)
        other = validator_of(known)
    invalid = 0
    for value in values(known):
        expected = set(other(value))
        assert set(one(value)) == expected, value
        invalid += bool(expected)
    assert invalid
