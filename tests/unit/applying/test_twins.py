"""Who withdraws: every branch of the rule."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.applying.twins import Decision, Ours, Verdict, decide
from reconciler.model.live import LiveObject
from tests.support.worlds import BY_NAME, live_export, live_project, s3

EXPORT = BY_NAME["batch_export"]


def at(identity: str, second: int | str, **body: Any) -> LiveObject:
    moment = f"2026-06-01T12:00:{second:02}Z" if isinstance(second, int) else second
    return live_export(identity, created_at=moment, **{"latest_runs": [], **body})


OLDER, OURS, YOUNGER = at("a", 1), at("m", 2), at("z", 3)
CONFIRMED = Ours(OURS, OURS.body, confirmed=True, age=3.0)
DIFFERENT = at("a", 1, interval="day")


@pytest.mark.parametrize(
    ("ours", "twins", "decision"),
    [
        (CONFIRMED, [OLDER], Decision(Verdict.WITHDRAW, twin=OLDER)),
        (CONFIRMED, [at("b", 1), OLDER, YOUNGER], Decision(Verdict.WITHDRAW, twin=OLDER)),
        (CONFIRMED, [at("a", 2)], Decision(Verdict.WITHDRAW, twin=at("a", 2))),
        (
            CONFIRMED,
            [at("a", "2026-06-01T14:00:01+02:00")],
            Decision(Verdict.WITHDRAW, twin=at("a", "2026-06-01T14:00:01+02:00")),
        ),
        (CONFIRMED, [YOUNGER], Decision(Verdict.WAIT, "the younger one was not withdrawn")),
        (
            CONFIRMED,
            [at("z", 2), at("y", 9, interval="day")],
            Decision(Verdict.WAIT, "the younger one was not withdrawn"),
        ),
        (CONFIRMED, [DIFFERENT], Decision(Verdict.KEEP, "they differ")),
        (CONFIRMED, [DIFFERENT, YOUNGER], Decision(Verdict.KEEP, "they differ")),
        (CONFIRMED, [at("z", 3, interval="day")], Decision(Verdict.KEEP, "they differ")),
        (
            replace(CONFIRMED, allowed=False),
            [OLDER],
            Decision(Verdict.KEEP, "policy.withdraw is never"),
        ),
        (
            replace(CONFIRMED, allowed=False),
            [YOUNGER],
            Decision(Verdict.WAIT, "the younger one was not withdrawn"),
        ),
        (
            replace(CONFIRMED, confirmed=False),
            [OLDER],
            Decision(
                Verdict.KEEP, "the answer to its create was lost, so it may be of another client"
            ),
        ),
        (
            replace(CONFIRMED, stored=at("m", 2, interval="day").body),
            [OLDER],
            Decision(Verdict.KEEP, "it was modified after its creation"),
        ),
        (
            replace(CONFIRMED, stored=at("m", 2, paused=True).body),
            [OLDER],
            Decision(Verdict.KEEP, "it was modified after its creation"),
        ),
        (
            replace(CONFIRMED, stored=None),
            [OLDER],
            Decision(Verdict.KEEP, "it was modified after its creation"),
        ),
        (
            replace(CONFIRMED, live=at("m", 2, latest_runs=[{"created_at": "2026-06-01"}])),
            [OLDER],
            Decision(Verdict.KEEP, "it has runs"),
        ),
        (
            replace(CONFIRMED, live=at("m", 2, latest_runs=None)),
            [OLDER],
            Decision(Verdict.KEEP, "it is not known whether it has runs"),
        ),
        (
            replace(CONFIRMED, age=120.1),
            [OLDER],
            Decision(Verdict.KEEP, "it is more than two minutes old"),
        ),
        (
            replace(CONFIRMED, removable=False),
            [OLDER],
            Decision(Verdict.KEEP, "a batch_export is never deleted to resolve this"),
        ),
        (
            CONFIRMED,
            [at("a", "yesterday")],
            Decision(Verdict.KEEP, "`created_at` is not known for all of them"),
        ),
    ],
)
def test_our_object_is_withdrawn_only_for_an_older_equal_one(
    ours: Ours, twins: list[LiveObject], decision: Decision
) -> None:
    assert decide(EXPORT, ours, twins) == decision


def test_of_equal_objects_the_oldest_stays_whatever_is_seen() -> None:
    objects = [at("c", 1), at("a", 2), at("b", 2), at("d", 3)]
    for ours in objects:
        others = [item for item in objects if item is not ours]
        for seen in [seen for size in (1, 2, 3) for seen in combinations(others, size)]:
            decision = decide(EXPORT, Ours(ours, ours.body, confirmed=True, age=0.0), seen)
            older = [item for item in seen if objects.index(item) < objects.index(ours)]
            if older:
                assert decision == Decision(Verdict.WITHDRAW, twin=older[0])
            else:
                assert decision.verdict is Verdict.WAIT


def test_values_that_the_api_does_not_compare_make_no_difference() -> None:
    twin = at("a", 1, last_updated_at="2027-01-01T00:00:00Z", destination=s3(compression=None))
    assert decide(EXPORT, CONFIRMED, [twin]).verdict is Verdict.WITHDRAW


def test_projects_are_never_deleted() -> None:
    item = live_project(2, created_at="2026-06-01T12:00:00Z")
    ours = Ours(item, item.body, confirmed=True, age=0, removable=False)
    assert decide(BY_NAME["project"], ours, [live_project(1)]).verdict is Verdict.KEEP
