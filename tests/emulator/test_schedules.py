"""When runs are due: ticks by dialect, bounds, pauses, jitter (service.md, 7.3)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.emulator.facts import OLD, Api, fact
from tests.emulator.operations import intervals, runs, set_clock, settings


@pytest.mark.parametrize(
    ("interval", "first"),
    [
        ("day", ("2026-10-07T00:00:00Z", "2026-10-08T00:00:00Z")),
        ("week", ("2026-10-01T00:00:00Z", "2026-10-08T00:00:00Z")),
    ],
)
@fact("7.3", "intervals are aligned to UTC; weekly ones never run in 2025", *OLD)
def test_utc_ticks(api: Api, interval: str, first: tuple[str, str]) -> None:
    export = api.create(interval=interval)
    api.emulator.advance(days=15)
    found = intervals(api, export, "?ordering=data_interval_start&start=-90d")
    assert found[:1] == ([] if (interval, api.dialect) == ("week", "2025") else [first])


@fact("7.3", "days and weeks follow the export's time zone, day, hour and daylight saving", "2026")
def test_local_ticks(api: Api) -> None:
    set_clock(api, "2026-10-23T12:00:00Z")
    daily = api.create(interval="day", timezone="Europe/Berlin", offset_hour=3)
    weekly = api.create(
        name="w", interval="week", timezone="Europe/Berlin", offset_day=1, offset_hour=5
    )
    api.emulator.advance(days=5)
    ticks = [f"2026-10-{day}:00:00Z" for day in ("23T01", "24T01", "25T02", "26T02", "27T02")]
    assert intervals(api, daily)[:-1] == list(pairwise(ticks))
    assert intervals(api, weekly) == [("2026-10-19T03:00:00Z", "2026-10-26T04:00:00Z")]


@fact("7.3", "the first run ends after the creation; start_at and end_at are inclusive")
def test_no_runs_before_the_creation(api: Api) -> None:
    early = api.create(start_at="2020-01-01T00:00:00Z")
    assert runs(api, early, "?after=-9y") == []
    bounded = api.create(start_at="2026-10-07T13:00:00Z", end_at="2026-10-07T15:00:00Z")
    api.emulator.advance(hours=12)
    assert intervals(api, early)[0] == ("2026-10-07T10:00:00Z", "2026-10-07T11:00:00Z")
    hours = [f"2026-10-07T{hour}:00:00Z" for hour in (12, 13, 14, 15)]
    assert intervals(api, bounded) == list(pairwise(hours))


@fact("7.3", "runs before a change of the interval keep their intervals", "2026")
def test_a_changed_interval(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=2)
    api.patch(export, interval="day", timezone="UTC", offset_hour=14).raise_for_status()
    api.emulator.advance(hours=2)
    assert intervals(api, export) == [
        ("2026-10-06T14:00:00Z", "2026-10-07T14:00:00Z"),
        ("2026-10-07T10:00:00Z", "2026-10-07T11:00:00Z"),
        ("2026-10-07T11:00:00Z", "2026-10-07T12:00:00Z"),
    ]


@fact("7.3", "jitter delays the start of a run, not its interval", "2026")
def test_jitter(api: Api) -> None:
    settings(api, jitter_seconds=900)
    export = api.create()
    set_clock(api, "2026-10-07T11:14:00Z")
    assert runs(api, export) == []
    set_clock(api, "2026-10-07T11:16:00Z")
    assert intervals(api, export) == [("2026-10-07T10:00:00Z", "2026-10-07T11:00:00Z")]
