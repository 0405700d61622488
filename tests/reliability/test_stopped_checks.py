"""A stop in the check for duplicates: what was withdrawn is reported, and what may exist twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.reliability.runs import Ran, applier
from tests.reliability.scenarios import many_exports
from tests.reliability.service import Line, running_service
from tests.reliability.virtual import run_virtually

DETAIL = "*/batch_exports/?*/"


async def deleted(line: Line) -> set[str]:
    """Return the id of the first export that is deleted, as soon as it is."""
    while True:
        await asyncio.sleep(0.05)
        if ids := {call.path.split("/")[-2] for call in line.calls if call.method == "DELETE"}:
            return ids


def test_an_export_that_was_withdrawn_before_a_stop_is_reported(tmp_path: Path) -> None:
    async def run() -> tuple[Ran, set[str]]:
        scenario = many_exports("2026", 2)
        async with running_service(scenario.seed, "2026") as service:
            user = await applier(service, scenario.written(tmp_path), base=scenario.base_ref)
            create = {"method": "POST", "path": "*/batch_exports/"}
            second = {"method": "GET", "path": DETAIL, "nth": 2}
            await service.fail(
                {"match": create, "fault": "twin", "when": "before"},
                {"match": second, "fault": "latency", "seconds": 8},
            )
            applying = asyncio.create_task(user.apply())
            ids = await deleted(user.line)
            await asyncio.sleep(0.5)
            user.stop.request()
            return await applying, ids

    ran, ids = run_virtually(run())
    assert ran.code == 130
    assert ran.report is not None
    assert {end.live_id for end in ran.report.withdrawn} == ids
    assert not ran.report.complete
    assert not ids & {end.live_id for end in ran.report.done}
    assert len(ran.report.twins) == 1
