"""The public JSON of gaps."""

from __future__ import annotations

from typing import Literal

from reconciler.model.codec.base import AddressText, Count, Form, copied
from reconciler.model.codec.text import json_text
from reconciler.model.field_types import time_text
from reconciler.model.gaps import Gap, GapReport, GapState, ObjectGaps

FORMAT_VERSION: Literal[1] = 1


class GapForm(Form, frozen=True, kw_only=True):
    """Neighbouring intervals that are not exported for one reason. Times are ISO 8601 in UTC."""

    start: str
    end: str
    """Exclusive."""
    state: GapState
    intervals: Count
    partly: Count
    """Of the intervals: how many are exported in part."""
    error: str | None
    """Of the last run, as the service returns it."""

    @classmethod
    def of(cls, gap: Gap) -> GapForm:
        """Return the form of a gap."""
        return copied(cls, gap, start=time_text(gap.start), end=time_text(gap.end))


class ObjectGapsForm(Form, frozen=True, kw_only=True):
    """The gaps of one object."""

    address: AddressText
    name: str
    parent_name: str | None
    expected: Count
    """Intervals of the window whose runs are due."""
    rows_per_run: int | None
    """Median of the latest completed runs."""
    unknown: str | None
    """Why its intervals are unknown, null if they are known."""
    gaps: tuple[GapForm, ...]

    @classmethod
    def of(cls, item: ObjectGaps) -> ObjectGapsForm:
        """Return the form of the gaps of an object."""
        gaps = tuple(map(GapForm.of, item.gaps))
        return copied(cls, item, address=str(item.address), rows_per_run=item.rows, gaps=gaps)


class GapReportForm(Form, frozen=True, kw_only=True):
    """All gaps. `gaps` and `repairable` count intervals."""

    format_version: Literal[1]
    environment: str
    start: str
    end: str
    gaps: Count
    repairable: Count
    objects: tuple[ObjectGapsForm, ...]


def gaps_as_json(report: GapReport) -> str:
    """Return the JSON of a report."""
    return json_text(
        copied(
            GapReportForm,
            report,
            format_version=FORMAT_VERSION,
            start=time_text(report.window.start),
            end=time_text(report.window.end),
            objects=tuple(map(ObjectGapsForm.of, report.objects)),
        )
    )
