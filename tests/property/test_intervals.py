"""Intervals of a schedule have no holes and no overlaps, in any zone, over any change of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.kind import Dialect
from reconciler.model.times import Schedule

ZONES = (
    *("UTC", "US/Eastern", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"),
    *("America/Santiago", "Pacific/Apia", "Africa/Casablanca"),
)
MOMENTS = st.datetimes(
    datetime(2011, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC), allow_imaginary=False
)
SCHEDULES = st.builds(
    lambda interval, zone, day, hour, dialect: Schedule.of(
        {"interval": interval, "timezone": zone, "offset_day": day, "offset_hour": hour}, dialect
    ),
    st.sampled_from(["hour", "day", "week", "every 5 minutes", "every 15 minutes"]),
    st.sampled_from(ZONES),
    st.integers(0, 6),
    st.integers(0, 23),
    # Servers of 2025 run no weeks.
    st.sampled_from([dialect for dialect in Dialect if dialect is not Dialect.V2025]),
)


@given(SCHEDULES, MOMENTS, st.integers(1, 30))
def test_intervals_follow_one_another(schedule: Schedule, first: datetime, steps: int) -> None:
    last = first + steps * schedule.step
    intervals = list(schedule.grid(first, last))
    assert all(interval.start < interval.end for interval in intervals)
    assert all(a.end == b.start for a, b in pairwise(intervals))
    assert all(first < interval.end <= last for interval in intervals)
    # A day that a zone skips, and a longer day at the end.
    assert steps - 2 <= len(intervals) <= steps + 1
    if intervals:
        assert intervals[0].start <= first
        assert last - intervals[-1].end <= schedule.step + timedelta(hours=25)


@given(SCHEDULES, MOMENTS)
def test_floor_and_ceiling_are_ticks_around_a_moment(schedule: Schedule, moment: datetime) -> None:
    floor, ceiling = schedule.floor(moment), schedule.ceiling(moment)
    assert floor <= moment <= ceiling
    assert schedule.floor(floor) == floor == schedule.ceiling(floor)
    assert schedule.ceiling(ceiling) == ceiling == schedule.floor(ceiling)
    if floor != ceiling:
        (only,) = schedule.grid(floor, ceiling)
        assert (only.start, only.end) == (floor, ceiling)


@given(SCHEDULES, MOMENTS)
def test_the_last_due_tick_moves_forward_only(schedule: Schedule, now: datetime) -> None:
    before, after = schedule.last_due(now), schedule.last_due(now + timedelta(minutes=7))
    if before is not None:
        assert schedule.due_after(before.end) <= now
        assert after is not None
        assert before <= after
    tick = schedule.next_tick(now)
    assert tick is None or tick > now
