"""Test the formats of backfills, with names that are markup."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from reconciler.model.plan import Consequence, PlanSource, Severity
from reconciler.model.run import BackfillPlan, ObjectBackfills, PlannedBackfill
from reconciler.model.text import safe_output
from reconciler.model.values import Address
from reconciler.render import formats_of, writer_of
from reconciler.render.options import RenderOptions

START = datetime(2026, 6, 1, tzinfo=UTC)
HOSTILE = "<b>x</b> | `y` @team ##[error]z\n::error::no \x1b[1m"


def plan_of(text: str = "Lake") -> BackfillPlan:
    item = ObjectBackfills(
        address=Address("batch_export", "lake"),
        name=text,
        live_id="e1",
        parent_id="1",
        parent_name=text,
        backfills=(PlannedBackfill(START, START + timedelta(hours=1), 1),),
        consequences=(
            Consequence("billing-limit", Severity.DANGER, text),
            Consequence("rows-twice", Severity.INFO, text),
        ),
        notes=(text,),
    )
    source = PlanSource("production", "org", "https://eu.example.com", "test")
    return BackfillPlan(source, (item,), created_at="2026-06-02T00:00:00Z")


def test_names_are_escaped() -> None:
    text = safe_output(writer_of("text", "backfills")(plan_of(HOSTILE), RenderOptions()))
    assert "\x1b" not in text
    assert "##[" not in text
    assert not any(line.startswith("::error") for line in text.splitlines())


@pytest.mark.parametrize("name", formats_of("backfills"))
def test_nothing_to_backfill_is_said(name: str) -> None:
    text = writer_of(name, "backfills")(replace(plan_of(), objects=()), RenderOptions())
    assert ('"objects": []' if name == "json" else "Nothing to backfill.") in text
    assert "↻" not in text
