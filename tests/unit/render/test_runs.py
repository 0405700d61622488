"""Test reports of backfills and gaps."""

from __future__ import annotations

from reconciler.commands.gaps import Gap, GapReport, GapState, ObjectGaps
from reconciler.model.values import Address
from tests.support.reports import written
from tests.support.worlds import NOW


def test_apply_p3_all_counts_have_separators() -> None:
    gap = Gap(NOW, NOW, GapState.MISSING, intervals=2015)
    item = ObjectGaps(Address("batch_export", "lake"), "Lake", "Web", (gap,), 2015)
    text = written("gaps", "text", GapReport("production", NOW, NOW, (item,)))
    assert "2,015 of 2,015 intervals" in text
    assert "2015 " not in text
