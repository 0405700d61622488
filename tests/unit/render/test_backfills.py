"""Test the formats of backfills with names that are markup, and with very many ranges."""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.backfill_plan import BackfillPlan, ObjectBackfills, PlannedBackfill
from reconciler.model.plan import Consequence, PlanSource, Severity
from reconciler.model.text import safe_output
from reconciler.render.formats import formats_of, writer_of
from reconciler.render.options import RenderOptions

START = datetime(2026, 6, 1, tzinfo=UTC)
HOSTILE = "<b>x</b> | `y` @team ##[error]z\n::error::no \x1b[1m"


def plan_of(count: int = 1, text: str = "Lake") -> BackfillPlan:
    item = ObjectBackfills(
        address=Address("batch_export", "lake"),
        name=text,
        live_id="e1",
        parent_id="1",
        parent_name=text,
        backfills=tuple(
            PlannedBackfill(
                START + timedelta(hours=2 * number), START + timedelta(hours=2 * number + 1), 1
            )
            for number in range(count)
        ),
        consequences=(
            Consequence("billing-limit", Severity.DANGER, text),
            Consequence("rows-twice", Severity.INFO, text),
        ),
        notes=(text,),
    )
    source = PlanSource("production", "org", "https://eu.example.com", "test")
    return BackfillPlan(source, (item,), created_at="2026-06-02T00:00:00Z")


def test_the_formats_of_backfills() -> None:
    assert formats_of("backfills") == ("text", "github", "html", "json", "markdown")


@pytest.mark.parametrize("name", [name for name in formats_of("backfills") if name != "json"])
def test_names_are_text_in_every_format(name: str) -> None:
    written = writer_of(name, "backfills")(plan_of(text=HOSTILE), RenderOptions())
    text = safe_output(written)
    assert "\x1b" not in text
    assert "##[" not in text
    assert not any(line.startswith("::error") for line in text.splitlines())
    if name == "html":
        assert "<b>" not in text
        assert html.escape("<b>x</b>") in text
    if name == "markdown":
        assert "<b>" not in text
        assert "@team" not in text
        assert "`y`" not in text.splitlines()[2]


@pytest.mark.parametrize("name", formats_of("backfills"))
def test_nothing_to_backfill_is_said(name: str) -> None:
    text = writer_of(name, "backfills")(replace(plan_of(), objects=()), RenderOptions())
    assert ('"objects": []' if name == "json" else "nothing to backfill") in text.replace(
        "No", "no"
    )
    assert "↻" not in text


def test_a_comment_has_as_many_ranges_as_fit() -> None:
    plan, options = plan_of(count=3_000), RenderOptions(limit=10_000)
    text = writer_of("markdown", "backfills")(plan, options)
    assert 9_000 < len(text) <= 10_000
    rows = text.count("| ↻ |")
    assert f"… and {3_000 - rows:,} more backfills" in text
    assert "3,000 runs" in text
    assert text.endswith("note: Lake\n")
