"""Compare the plans of large and unusual situations with expected texts in every format.

Of a long text the beginning and the end are stored, with the size and a digest of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.apply.execution import stale_message
from reconciler.errors import StalePlan
from reconciler.model.decoding import decode
from reconciler.model.live import Live
from reconciler.model.plan import Consequence, Plan, PlanSource, Severity, encode
from reconciler.model.resource import Desired, State
from reconciler.model.run import (
    BackfillEnd,
    BackfillPlan,
    BackfillState,
    ObjectBackfills,
    PlannedBackfill,
)
from reconciler.model.values import Address
from reconciler.planning.approval import differences
from reconciler.render.ci_reports import plan_as_github
from reconciler.render.html import plan_as_html
from reconciler.render.options import DEFAULTS, PLAIN, RenderOptions, Style
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from reconciler.render.progress import error_as_text
from reconciler.render.runs import ends_as_text
from tests.golden.test_plans import CASES, plan_of
from tests.support.reports import written
from tests.support.worlds import (
    KINDS,
    NOW,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

EXPECTED = Path(__file__).parent / "situations"
LONGEST = 8_000
STATUSES = ("Completed", "Completed", "Failed", "Running")
FORMATS: Mapping[str, Callable[[Plan], str]] = {
    "80.txt": lambda plan: plan_as_text(plan, RenderOptions(Style(width=80))),
    "md": plan_as_markdown,
    "html": lambda plan: plan_as_html(plan).partition("<body>")[2].partition("<script>")[0],
    "github": lambda plan: plan_as_github(plan, RenderOptions(root="infra")),
}


def _runs(number: int) -> list[dict[str, str]]:
    """Return the latest runs of an export, newest first."""
    hours = range(number % 4)
    return [
        {
            "id": f"{number}-{hour}",
            "status": STATUSES[(number + hour) % 4],
            "data_interval_end": (NOW - timedelta(hours=hour)).isoformat(),
            "created_at": (NOW - timedelta(hours=hour)).isoformat(),
        }
        for hour in hours
    ]


def _world(count: int, change: Callable[[int], dict[str, Any]]) -> tuple[Desired, Live]:
    """Return exports in two projects, with what `change` returns for a number as the difference."""
    resources = [project("marketing"), project("shop")]
    live = [live_project(1, "Marketing"), live_project(2, "Shop")]
    for number in range(count):
        parent = 1 + number % 2
        own = {"parent": ("marketing", "shop")[parent - 1], "destination": _stored(number)}
        resources.append(export(f"x{number}", **{**own, **change(number)}))
        body = {"destination": _stored(number), "latest_runs": _runs(number)}
        live.append(live_export(f"e{number}", f"X{number}", parent=parent, **body))
    return desired_of(*resources), live_of(*live)


def _stored(number: int, region: str = "eu-west-1") -> dict[str, Any]:
    return s3(region=region, prefix=f"p{number}/")


def _mixed(number: int) -> dict[str, Any]:
    if number % 50 == 0:
        return {"state": State.ABSENT}
    if number % 25 == 0:
        return {"paused": True}
    if number % 10 == 0:
        return {"destination": s3(region="eu-west-1", prefix=f"new/{number}/")}
    if number % 7 == 0:
        return {"interval": "day"}
    return {"destination": _stored(number, "eu-central-1")}


def five_hundred_changes() -> Plan:
    desired, live = _world(480, _mixed)
    new = [export(f"new{number}", parent="shop", destination=_stored(900)) for number in range(20)]
    return planned(desired_of(*desired.resources.values(), *new), live)


def one_danger_among_200() -> Plan:
    def change(number: int) -> dict[str, Any]:
        if number == 137:
            return {"state": State.ABSENT}
        return {"destination": s3(region="eu-west-1", prefix=f"new/{number}/")}

    return planned(*_world(200, change))


def only_drift() -> Plan:
    desired, live = _world(4, lambda number: {"interval": "day"} if number % 2 else {})
    return planned(desired, live, base=desired)


def grouped() -> Plan:
    def change(number: int) -> dict[str, Any]:
        return {"destination": _stored(number, "eu-central-1")} if number < 8 else {}

    plan = planned(*_world(10, change))
    head = {"applied": "1a2b3c4d", "head": "9f8e7d6c", "head_ref": "feature", "uncommitted": True}
    return replace(plan, source=replace(plan.source, **head))


def one_change_in_300_exports() -> Plan:
    return planned(*_world(300, lambda number: {"destination": _stored(number, "eu-central-1")}))


SITUATIONS = (five_hundred_changes, one_danger_among_200, only_drift, grouped)


@pytest.mark.parametrize("make", SITUATIONS, ids=lambda make: make.__name__)
def test_a_situation_reads_as_expected(
    make: Callable[[], Plan], golden: Callable[[Path, str], None]
) -> None:
    plan = make()
    assert decode(encode(plan)) == replace(plan, changes=plan.effective)
    for name, write in FORMATS.items():
        if name != "html" or make is grouped:
            golden(EXPECTED / f"{make.__name__}.{name}", _ends_of(write(plan)))


@pytest.mark.parametrize(
    "name",
    [
        "create-a-project-with-three-exports",
        "drift-of-three-exports",
        "one_change_in_300_exports",
    ],
)
def test_a_plan_fits_the_terminal(name: str, golden: Callable[[Path, str], None]) -> None:
    case = CASES[0].parent / name
    plan = plan_of(case) if case.exists() else one_change_in_300_exports()
    for width in (60, 80, 160):
        options = RenderOptions(Style(width=width), cost="606 calls, about 1 min 20 s")
        text = plan_as_text(plan, options)
        assert max(map(len, text.splitlines())) <= width
        assert len(text.splitlines()) <= 100
        if (expected := EXPECTED / f"{name}.{width}.txt").exists():
            golden(expected, text)


def _ends_of(text: str) -> str:
    """Return a text, or if it is long, its beginning and its end."""
    if len(text) <= LONGEST:
        return text
    beginning = text[: LONGEST // 2].rpartition("\n")[0]
    end = text[-LONGEST // 8 :].partition("\n")[2]
    whole = f"{len(text.splitlines())} lines, sha256 {sha256(text.encode()).hexdigest()}"
    return f"{beginning}\n… {whole}\n{end}"


def test_five_hundred_changes_are_five_hundred() -> None:
    assert len(five_hundred_changes().effective) == 500
    assert len(one_danger_among_200().effective) == 200


def test_a_stale_plan_reads_as_expected(golden: Callable[[Path, str], None]) -> None:
    desired, before = _world(6, lambda number: {"paused": number == 0, "interval": "day"})
    objects = list(before.of("batch_export"))
    objects[1] = replace(objects[1], body={**objects[1].body, "interval": "week"})
    objects[2] = replace(objects[2], body={**objects[2].body, "interval": "day"})
    del objects[3]
    now = live_of(*before.of("project"), *objects)
    saved, new = planned(desired, before), planned(desired, now)
    lines = differences(saved, new, live=now, kinds=KINDS, mask=str)
    error = StalePlan(stale_message(lines), hint="make a new plan")
    golden(EXPECTED / "stale.txt", error_as_text(error, PLAIN))


def backfills() -> BackfillPlan:
    start = NOW - timedelta(days=2)
    ranges = ((0, 1, True), (1, 10, False), (20, 44, False))
    item = ObjectBackfills(
        address=Address("batch_export", "lake"),
        name="Events to the lake",
        live_id="e1",
        parent_id="1",
        parent_name="Web shop",
        backfills=tuple(
            PlannedBackfill(
                start + timedelta(hours=first),
                start + timedelta(hours=last),
                last - first,
                0,
                trial,
            )
            for first, last, trial in ranges
        ),
        consequences=(Consequence("last-run-failed", Severity.WARNING, "the last run failed"),),
        notes=("2 intervals failed for billing and are left out",),
        rows=1_200_000,
    )
    warning = Consequence("stays-paused", Severity.WARNING, "it stays paused")
    other = replace(
        item,
        address=Address("batch_export", "orders"),
        name="Orders",
        live_id="e2",
        backfills=item.backfills[2:],
        consequences=(*item.consequences, warning),
        notes=(),
    )
    source = PlanSource("production", "0188461e", "https://eu.example.com", "test")
    left_out = ("batch_export.daily: its schedule is unknown",)
    return BackfillPlan(source, (item, other), "2026-06-01T12:00:00Z", left_out)


def test_backfills_read_as_expected(golden: Callable[[Path, str], None]) -> None:
    plan = backfills()
    states = (BackfillState.COMPLETED, BackfillState.STARTED, BackfillState.UNKNOWN)
    ended = [
        replace(
            of,
            ends=tuple(
                BackfillEnd(item, state, id=f"b{number}")
                for number, (item, state) in enumerate(zip(of.backfills, states, strict=False))
            ),
        )
        for of in plan.objects
    ]
    options = RenderOptions(Style(width=80), cost="5 calls, about 1 s")
    golden(EXPECTED / "backfills.80.txt", written("backfills", "text", plan, options))
    golden(EXPECTED / "backfills.ends.txt", ends_as_text(ended, DEFAULTS, "staging"))
