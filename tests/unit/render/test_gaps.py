"""The text of gaps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.commands.gaps import Gap, GapReport, GapState, ObjectGaps
from reconciler.model.values import Address
from tests.support.reports import written

START = datetime(2026, 6, 1, tzinfo=UTC)
END = START + timedelta(minutes=5 * 2015)


def test_apply_p3_all_counts_have_separators() -> None:
    gap = Gap(START, END, GapState.MISSING, intervals=2015)
    item = ObjectGaps(Address("batch_export", "lake"), "Lake", "Web", (gap,), 2015)
    text = written("gaps", "text", GapReport("production", START, END, (item,)))
    assert "2,015 of 2,015 intervals" in text
    assert "2015 " not in text
