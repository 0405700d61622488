"""I13: former names of time zones are the same zone, and nothing else is."""

from __future__ import annotations

from pkgutil import get_data

import pytest

from reconciler.model.schemas import Zone

NAMES = (get_data("tzdata", "zones") or b"").decode().split()


@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("US/Eastern", "America/New_York"),
        ("Zulu", "UTC"),
        ("Etc/UTC", "UTC"),
        ("UTC", "UTC"),
        # It has the rules of Berlin since 1970, and is another zone all the same.
        ("Europe/Oslo", "Europe/Oslo"),
        ("no/such", "no/such"),
    ],
)
def test_i13_current_names(name: str, current: str) -> None:
    assert Zone().canonical(name) == current


def test_i13_a_former_name_has_the_data_of_the_current_one() -> None:
    for name in NAMES:
        current = Zone().canonical(name)
        assert isinstance(current, str)
        assert Zone().canonical(current) == current
        assert data_of(name) == data_of(current), name


def data_of(name: str) -> bytes:
    return get_data("tzdata", f"zoneinfo/{name}") or b""
