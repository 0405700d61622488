"""The known name that a misspelt one probably is, among few names and among many."""

from __future__ import annotations

import pytest

from reconciler.model.text import choice, near_miss, nearest

MANY = [f"export-{number}" for number in range(500)] + ["orders", "visits"]


@pytest.mark.parametrize("known", [MANY, MANY[-2:]], ids=["many", "few"])
@pytest.mark.parametrize("given", ["ordes", "oders", "ordersx", "ordres", "Orders", "ord"])
def test_a_slip_is_corrected_among_few_names_and_among_many(given: str, known: list[str]) -> None:
    assert nearest(given, known) == "orders"


def test_every_one_of_many_misspelt_names_has_a_suggestion() -> None:
    assert [nearest(f"exprot-{number}", MANY) for number in range(500)] == MANY[:500]


def test_another_name_is_answered_with_a_list_of_the_known_ones() -> None:
    assert choice("web", MANY).startswith("allowed: export-0, export-1, ")
    assert choice("web", MANY).endswith(" and 486 more")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        *(("dayly", "day"), ("hourly", "hour"), ("hoour", "hour"), ("Houris", "hour")),
        # Too short, too far, no letters only, and the value itself.
        *(("dya", None), ("month", None), ("S3000", None), ("hours\u202e", None), (5, None)),
        ("every 5 minuts", None),
        ("hour", None),
    ],
)
def test_plan_v9_a_near_miss_has_five_letters_and_at_most_two_wrong_ones(
    given: str | int, right: str | None
) -> None:
    assert near_miss(given, ("hour", "day", "week", "every 5 minutes")) == right
