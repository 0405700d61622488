"""Canonical values of zones and numbers, and names that say whether a value is secret."""

from __future__ import annotations

from pkgutil import get_data

import pytest

from reconciler.model.schemas import (
    Integer,
    OpenObject,
    Zone,
    canonical_text,
    looks_secret,
    plain_names,
    secret_names,
)

ZONES = (get_data("tzdata", "zones") or b"").decode().split()


@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("US/Eastern", "America/New_York"),
        ("Etc/UTC", "UTC"),
        ("UTC", "UTC"),
        # It has the rules of Berlin since 1970, and is another zone all the same.
        ("Europe/Oslo", "Europe/Oslo"),
        ("no/such", "no/such"),
    ],
)
def test_i13_current_names(name: str, current: str) -> None:
    """I13: former names of time zones are the same zone, and nothing else is."""
    assert Zone().canonical(name) == current


def test_i13_a_former_name_has_the_data_of_the_current_one() -> None:
    for name in ZONES:
        current = Zone().canonical(name)
        assert isinstance(current, str)
        assert Zone().canonical(current) == current
        one, other = (get_data("tzdata", f"zoneinfo/{zone}") or b"" for zone in (name, current))
        assert one == other, name


@pytest.mark.parametrize("value", [-1e300, 2.0**63, "-" + "9" * 30])
def test_a_number_beyond_64_bits_stays_as_it_was_answered(value: object) -> None:
    for shape in (Integer(), OpenObject()):
        assert shape.canonical(value) == value
        canonical_text(shape.canonical({"a": value}))


@pytest.mark.parametrize("value", [3.0, -(2.0**63), 1e15])
def test_a_whole_number_is_one_however_it_was_written(value: float) -> None:
    assert repr(OpenObject().canonical(value)) == repr(int(value))
    assert repr(Integer().canonical(value)) == repr(int(value))


def test_names_in_capitals_are_judged_like_others() -> None:
    assert looks_secret("TOKEN_URL") is looks_secret("token_url")
    # `looks_secret` does not read the schemas for such a name.
    assert [name for name in secret_names() | plain_names() if name.isupper()] == []
