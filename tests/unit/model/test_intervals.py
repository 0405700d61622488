"""Schedules: ticks, intervals, and when a run is due (service.md, 7.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.kind import Dialect
from reconciler.model.times import Interval, Schedule, UnknownSchedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def schedule(dialect: Dialect = Dialect.V2026, **body: object) -> Schedule:
    return Schedule.of({"interval": "hour", **body}, dialect)


def expected(plan: Schedule, first: str, last: str) -> list[tuple[str, str]]:
    return [
        (interval.start.isoformat(), interval.end.isoformat())
        for interval in plan.expected(at(first), at(last))
    ]


def test_trap_15_54_a_day_has_23_or_25_hours_at_a_change_of_daylight_saving() -> None:
    daily = schedule(interval="day", timezone="US/Eastern")
    for start, end in (
        ("2024-03-10T05:00Z", "2024-03-11T04:00Z"),
        ("2024-11-03T04:00Z", "2024-11-04T05:00Z"),
    ):
        assert next(daily.expected(at(start), at(end))) == Interval(at(start), at(end))


def test_trap_15_53_a_server_of_2025_runs_days_in_utc_and_no_weeks() -> None:
    body = {"timezone": "US/Eastern", "offset_hour": 4}
    daily = schedule(Dialect.V2025, interval="day", **body)
    assert expected(daily, "2025-06-01T00:00Z", "2025-06-02T12:00Z") == [
        ("2025-06-01T00:00:00+00:00", "2025-06-02T00:00:00+00:00")
    ]
    with pytest.raises(UnknownSchedule, match="never runs"):
        schedule(Dialect.V2025, interval="week")


def test_weeks_of_2026_begin_on_their_day_and_hour() -> None:
    weekly = schedule(interval="week", timezone="Europe/Berlin", offset_day=1, offset_hour=3)
    assert expected(weekly, "2026-10-19T01:00Z", "2026-11-02T02:00Z") == [
        ("2026-10-19T01:00:00+00:00", "2026-10-26T02:00:00+00:00"),
        ("2026-10-26T02:00:00+00:00", "2026-11-02T02:00:00+00:00"),
    ]


def test_trap_15_56_nothing_runs_before_the_create_or_outside_of_the_bounds() -> None:
    hourly = schedule(created_at="2026-01-01T10:30:00Z")
    assert expected(hourly, "2026-01-01T00:00Z", "2026-01-01T11:59Z") == [
        ("2026-01-01T10:00:00+00:00", "2026-01-01T11:00:00+00:00")
    ]
    bounded = schedule(start_at="2026-01-01T03:00:00Z", end_at="2026-01-01T04:30:00Z")
    assert [end for _, end in expected(bounded, "2026-01-01T00:00Z", "2026-01-02T00:00Z")] == [
        "2026-01-01T03:00:00+00:00",
        "2026-01-01T04:00:00+00:00",
    ]
    assert bounded.next_tick(at("2025-12-01T00:00Z")) == at("2026-01-01T03:00Z")
    assert bounded.next_tick(at("2026-01-01T04:00Z")) is None
    last = bounded.last_due(at("2026-02-01T00:00Z"))
    assert last is not None
    assert last.end == at("2026-01-01T04:00Z")


def test_trap_15_52_a_tick_is_due_after_its_delay_and_some_minutes() -> None:
    tick = at("2026-01-02T00:00Z")
    hourly, daily = schedule(), schedule(Dialect.V2025, interval="day")
    assert hourly.due_after(tick) == tick + timedelta(minutes=20)
    assert daily.due_after(tick) == tick + timedelta(hours=4, minutes=5)
    minutes = schedule(interval="every 5 minutes")
    assert minutes.due_after(tick) == tick + timedelta(minutes=6)
    for now, end in (("00:19", "23:00"), ("00:20", "00:00")):
        last = hourly.last_due(at(f"2026-01-02T{now}Z"))
        assert last is not None
        assert last.end.strftime("%H:%M") == end


def test_ranges_are_aligned_outward_and_a_paused_schedule_has_no_next_tick() -> None:
    hourly = schedule(paused=True, last_paused_at="2026-01-01T10:00:00Z")
    outward = hourly.outward(at("2026-01-01T10:20Z"), at("2026-01-01T12:20Z"))
    assert outward == Interval(at("2026-01-01T10:00Z"), at("2026-01-01T13:00Z"))
    assert hourly.next_tick(at("2026-01-01T12:00Z")) is None


@pytest.mark.parametrize(
    "body",
    [
        {"interval": "fortnight"},
        {"interval": "every 0 minutes"},
        {"interval": "day", "timezone": "../../etc/passwd"},
        {"created_at": "yesterday"},
    ],
)
def test_a_schedule_that_cannot_be_computed_is_an_error(body: dict[str, object]) -> None:
    with pytest.raises(UnknownSchedule):
        schedule(**body)
