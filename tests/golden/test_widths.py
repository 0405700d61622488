"""Compare the plans of typical situations with expected texts at the narrowest width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.plan import Plan
from reconciler.render.options import RenderOptions, Style
from reconciler.render.plan_text import plan_as_text
from tests.golden.test_plans import CASES, plan_of
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

EXPECTED = Path(__file__).parent / "widths"
WIDTHS = (60, 80, 160)
COST = "606 calls, about 1 min 20 s at 480 a minute"
OF_CASES = ("create-a-project-with-three-exports", "drift-of-three-exports")


def _many(count: int, region: str) -> Plan:
    """Return the plan of many exports in two projects, whose region is to change."""
    desired = [project("marketing"), project("shop")]
    live = [live_project(1, "Marketing"), live_project(2, "Shop")]
    for number in range(count):
        parent = 1 if number % 5 < 2 else 2
        key = ("marketing", "shop")[parent - 1]
        destination = s3(region="eu-central-1", prefix=f"p{number}/")
        desired.append(export(f"x{number}", parent=key, destination=destination))
        destination = s3(region=region, prefix=f"p{number}/")
        live.append(live_export(f"e{number}", f"X{number}", parent=parent, destination=destination))
    return planned(desired_of(*desired), live_of(*live))


SITUATIONS: dict[str, Callable[[], Plan]] = {
    "one-change-in-300-exports": lambda: _many(300, "eu-west-1"),
}


@pytest.mark.parametrize("situation", [*OF_CASES, *SITUATIONS])
def test_a_plan_fits_the_terminal(situation: str, golden: Callable[[Path, str], None]) -> None:
    make = SITUATIONS.get(situation)
    plan = make() if make is not None else plan_of(CASES[0].parent / situation)
    for width in WIDTHS:
        text = plan_as_text(plan, RenderOptions(Style(width=width), cost=COST))
        assert max(map(len, text.splitlines())) <= width
        assert len(text.splitlines()) <= 100
        if width == WIDTHS[0] and situation != OF_CASES[0]:
            golden(EXPECTED / f"{situation}.txt", text)
