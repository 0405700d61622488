"""How many calls the service gets, and how they are paced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model.settings import Window
from tests.reliability.runs import Ran, applier
from tests.reliability.scenarios import Scenario, creates_of, projects_of
from tests.reliability.service import Call, running_service
from tests.support.limits import LONG
from tests.support.virtual_loop import run_virtually

ALLOWED, FASTER = (48, 6.0), Window(46, 6)
"""480 calls a minute, of which a run sends 460, ten times faster."""


def applied(
    scenario: Scenario,
    folder: Path,
    throttle: tuple[int, float] | None = None,
    **settings: Any,
) -> tuple[Ran, list[Call]]:
    """Apply once; return how it ended, and the calls."""

    async def run() -> tuple[Ran, list[Call]]:
        async with running_service(scenario.seed) as service:
            if throttle is not None:
                await service.throttle(*throttle)
            user = await applier(service, scenario.written(folder), settings=settings)
            ran = await user.apply()
            assert ran.code == 0, ran
            return ran, user.line.calls

    return run_virtually(run())


@pytest.mark.parametrize(
    ("scenario", "creates", "most"),
    [
        pytest.param(projects_of(500), 0, 10, id="500 unchanged projects"),
        pytest.param(creates_of(100), 100, 110, id="100 creates in a project"),
        pytest.param(
            projects_of(200, exports=50),
            0,
            35,
            id="10,000 unchanged exports",
            marks=pytest.mark.skipif(not LONG, reason="a minute"),
        ),
    ],
)
def test_a_run_costs_few_calls(tmp_path: Path, scenario: Scenario, creates: int, most: int) -> None:
    _, calls = applied(scenario, tmp_path)
    assert sum(call.method == "POST" for call in calls) == creates
    assert len(calls) <= most


@pytest.mark.parametrize(
    "scenario",
    [creates_of(190), projects_of(190, live=False)],
    ids=["exports", "projects, which may have to be completed"],
)
def test_performance_calls_never_exceed_the_rate_and_hardly_fall_short_of_it(
    tmp_path: Path, scenario: Scenario
) -> None:
    """What is left to complete creates is left once, and not for each that is being sent."""
    _, calls = applied(scenario, tmp_path, ALLOWED, rate=(FASTER,))
    assert not [call for call in calls if call.status == 429]
    assert len(calls) >= 192
    floor = (len(calls) - 1) // FASTER.calls * FASTER.seconds
    assert calls[-1].at - calls[0].at <= 1.1 * floor
