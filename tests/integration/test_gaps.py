"""`gaps` in simulated time: it says exactly which intervals were not exported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.gaps import GapReport, gaps
from reconciler.model.public import as_json
from reconciler.render.options import COMMENT_LIMIT
from tests.support.cli import write
from tests.support.emulator import DIALECTS
from tests.support.reports import written
from tests.support.simulated import BEGIN, Begin, Simulated, no_op_export


def judged(world: Simulated) -> GapReport:
    return world.run(gaps).report


def states(world: Simulated) -> list[tuple[str, str, str, int]]:
    """Return start, end, state and number of intervals of every gap."""
    return [
        (f"{gap.start:%d %H:%M}", f"{gap.end:%d %H:%M}", gap.state.value, gap.intervals)
        for item in judged(world).objects
        for gap in item.gaps
    ]


FAILS = {"match": {"name": "Lake", "times": 6}, "status": "Failed", "error": "Access denied."}
THIRD = {"match": {"nth": 3}, "status": "Failed"}
RUNNING = {"match": {"name": "Lake"}, "status": "Running"}
PAUSED, SKIPPED = ["1d", "pause", "72h"], [("21 10:00", "24 10:00", "paused", 72)]
EASTERN = {"interval": "day", "timezone": "US/Eastern"}
CASES: list[tuple[str, str, dict[str, str], list[Any], list[tuple[str, str, str, int]]]] = [
    *(
        case
        for dialect in DIALECTS
        for case in (
            (dialect, BEGIN, {}, ["8h", FAILS, "10h"], [("20 18:00", "21 00:00", "failed", 6)]),
            (dialect, BEGIN, {}, ["10m"], []),
            (dialect, BEGIN, {}, [RUNNING, "2h"], [("20 10:00", "20 12:00", "pending", 2)]),
            (dialect, BEGIN, {}, PAUSED, SKIPPED),
            (dialect, BEGIN, {}, [*PAUSED, "unpause", "5h"], SKIPPED),
        )
    ),
    pytest.param(
        *("2026", BEGIN, {}, ["4h", "pause", "3h", "unpause"] * 2 + ["4h"]),
        [("20 14:00", "20 17:00", "unknown", 3), ("20 21:00", "21 00:00", "paused", 3)],
        id="trap_15_55",
    ),
    pytest.param(
        *("2026", "2026-03-06T12:00:00Z", EASTERN, [THIRD, "6d"]),
        [("08 05:00", "09 04:00", "failed", 1)],
        id="trap_15_54_23_hours",
    ),
    pytest.param(
        *("2026", "2026-10-30T12:00:00Z", EASTERN, [THIRD, "6d"]),
        [("01 04:00", "02 05:00", "failed", 1)],
        id="trap_15_54_25_hours",
    ),
]


@pytest.mark.parametrize(("dialect", "at", "fields", "steps", "expected"), CASES)
def test_the_life_of_an_export(
    dialect: str, at: str, fields: dict[str, str], steps: list[Any], expected: Any, begin: Begin
) -> None:
    world = begin(dialect, at, auto_pause=False)
    world.live(world.create(**fields), *steps)
    assert states(world) == expected


def test_trap_15_53_days_of_2025_are_in_utc_and_weeks_never_run(begin: Begin) -> None:
    world = begin("2025")
    path = "/api/organizations/@current/projects/1/"
    world.service.call("PATCH", path, {"timezone": "Asia/Tokyo"})
    world.create("Daily", interval="day")
    world.create("Weekly", interval="week")
    world.outcomes({"match": {"name": "Daily", "nth": 2}, "status": "Failed"})
    world.advance(days=6)
    assert states(world) == [("21 00:00", "22 00:00", "failed", 1)]
    unknown = [item.unknown for item in judged(world).objects if item.unknown]
    assert unknown == ["the server never runs exports with interval 'week'"]


def test_the_report_is_text_markdown_and_json(begin: Begin) -> None:
    world = begin("2026")
    lake = world.create("Lake | `x` \x1b[31m")
    world.create("Fine")
    denied = {**THIRD, "error": "No <b>access</b>."}
    billing = {"match": {"nth": 1}, "status": "FailedBilling"}
    world.live(lake, denied, "2h", billing, "1h")
    report = judged(world)
    text, markdown = written("gaps", "text", report), written("gaps", "markdown", report)
    assert "No <b>access</b>." in text
    assert "settle billing" in text
    # `backfill` looks at seven days by itself, and the report may be of another range.
    assert re.search(r"  reconciler backfill \S+ --gaps --from \S+T\S+Z --to \S+T\S+Z\n", text)
    assert "\x1b" not in text + markdown
    assert "<b>" not in markdown
    long = written("gaps", "markdown", replace(report, objects=report.objects * 500))
    assert "more gaps\n" in long
    assert 60_000 < len(long) <= COMMENT_LIMIT
    content = json.loads(as_json(report))
    assert (content["gaps"], content["repairable"]) == (2, 1)
    listed = [gap["state"] for item in content["objects"] for gap in item["gaps"]]
    assert sorted(listed) == ["billing", "failed"]


NEW_YORK = {"interval": "week", "timezone": "America/New_York"}
BOUNDS = ("start", "end")
DAILY = {"interval": "day"}
BERLIN = {"interval": "day", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("fields", "dates", "gap"),
    [
        (NEW_YORK, "2026-10-25 2026-11-01", "2026-10-25T04 2026-11-01T04"),
        (NEW_YORK, "2026-10-25T00:00 2026-11-01T00:00", "2026-10-18T04 2026-10-25T04"),
        (BERLIN, "2026-10-30 2026-10-31", "2026-10-29T23 2026-10-30T23"),
        (DAILY, "2026-11-01 2030-01-01", "2026-11-01T00 2026-11-02T00"),
        (DAILY, "2026-11-02 2030-01-01", ""),
    ],
)
def test_gaps_and_backfill_read_dates_alike(
    fields: dict[str, str], dates: str, gap: str, begin: Begin
) -> None:
    """A date is a day of each export. That of the new one may begin later than now."""
    world = begin("2026", "2026-10-20T03:00:00Z", auto_pause=False)
    world.live(world.create(**fields), {"match": {}, "status": "Failed"}, "13d")
    world.create("New", **NEW_YORK)
    first, last = dates.split()
    words = ("--from", first, "--to", last, "--format", "json")
    planned = json.loads(world.ran("backfill", "Lake", "--gaps", "--dry-run", *words).out)
    bounds = [it[name] for it in planned["objects"][0]["backfills"] for name in BOUNDS]
    shown = json.loads(world.ran("gaps", *words, code=2 if gap else 0).out)
    found = [it[name] for item in shown["objects"] for it in item["gaps"] for name in BOUNDS]
    assert found == bounds[:1] + bounds[-1:] == [f"{it}:00:00Z" for it in gap.split()]


@pytest.mark.parametrize(("count", "names"), [(3, 3), (4, 0)])
def test_apply_p1_the_hint_repairs_every_export(count: int, names: int, begin: Begin) -> None:
    world = begin("2026", auto_pause=False)
    for number in range(count):
        world.create(f"Lake {number}")
    world.outcomes({"match": {}, "status": "Failed"})
    world.advance(hours=2)
    text = written("gaps", "text", judged(world))
    (hint,) = (line for line in text.splitlines() if line.startswith("  reconciler backfill "))
    assert ("'*'" in hint) == (not names)
    assert hint.count("batch_export.id:") == names


@pytest.mark.parametrize(
    "rule", [{"match": {}, "status": "Completed"}, {"match": {}, "status": "Failed"}]
)
def test_m5_a_declared_pause_is_no_gap(rule: dict[str, Any], begin: Begin, tmp_path: Path) -> None:
    """M5: `gaps` exits with 0, and `backfill --gaps` exports nothing of such an export.

    Neighbours that failed and that were paused are joined, and all of their intervals count.
    """
    world = begin("2026", auto_pause=False)
    world.live(world.create(), rule, "4h", "pause", "5h")
    before = [(state, count) for *_, state, count in states(world)]
    failed = ["failed"] if rule["status"] == "Failed" else []
    assert [state for state, _ in before] == [*failed, "paused"]
    lake = {"project": {"id": 1}, **no_op_export("Lake"), "paused": True}
    write(tmp_path, {"a.yaml": json.dumps({"batch_exports": {"lake": lake}})})
    total = sum(count for _, count in before)
    assert [(state, count) for *_, state, count in states(world)] == [("intended", total)]
    assert judged(world).gaps == judged(world).repairable == 0
    assert world.ran("gaps").code == 0
    window = ("--from", "2026-10-20T10:30:00Z", "--to", "2026-10-20T19:00:00Z")
    ran = world.ran("backfill", "*", "--dry-run", "--gaps", *window)
    assert f"{total} intervals left out (intended)" in ran.out + ran.err
    assert "Nothing to backfill" in ran.out + ran.err, ran.out
