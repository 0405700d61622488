"""Numbers that the service may hold and JSON writers may not."""

from __future__ import annotations

import pytest

from reconciler.model.schemas import Integer, OpenObject, canonical_text


@pytest.mark.parametrize("value", [1e300, -1e300, 2.0**63, 1e19, "9" * 30, "-" + "9" * 30])
def test_a_number_beyond_64_bits_stays_as_it_was_answered(value: object) -> None:
    for shape in (Integer(), OpenObject()):
        assert shape.canonical(value) == value
        canonical_text(shape.canonical({"a": value}))


@pytest.mark.parametrize("value", [3.0, -(2.0**63), 1e15])
def test_a_whole_number_is_one_however_it_was_written(value: float) -> None:
    assert repr(OpenObject().canonical(value)) == repr(int(value))
    assert repr(Integer().canonical(value)) == repr(int(value))
