"""Test reports of backfills and gaps."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.commands.gaps import Gap, GapReport, GapState, ObjectGaps
from reconciler.model.plan import Consequence, Severity
from reconciler.model.text import safe_output
from reconciler.model.values import Address
from tests.golden.test_situations import backfills
from tests.support.reports import written
from tests.support.worlds import NOW

HOSTILE = "<b>x</b> | `y` @team ##[error]z\n::error::no \x1b[1m"


def test_names_are_escaped() -> None:
    consequence = Consequence("billing-limit", Severity.DANGER, HOSTILE)
    names = {"name": HOSTILE, "parent_name": HOSTILE, "notes": (HOSTILE,)}
    objects = tuple(
        replace(item, consequences=(consequence,), **names) for item in backfills().objects
    )
    text = safe_output(written("backfills", "text", replace(backfills(), objects=objects)))
    assert "\x1b" not in text
    assert "##[" not in text
    assert not any(line.startswith("::error") for line in text.splitlines())


def test_apply_p3_all_counts_have_separators() -> None:
    gap = Gap(NOW, NOW, GapState.MISSING, intervals=2015)
    item = ObjectGaps(Address("batch_export", "lake"), "Lake", "Web", (gap,), 2015)
    text = written("gaps", "text", GapReport("production", NOW, NOW, (item,)))
    assert "2,015 of 2,015 intervals" in text
    assert "2015 " not in text
