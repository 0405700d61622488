"""The public JSON of gaps."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import orjson
from msgspec import to_builtins

from reconciler.model.codec.base import AddressText, Count, Form
from reconciler.model.field_types import Instant
from reconciler.model.gaps import Gap, GapReport, GapState, ObjectGaps
from reconciler.model.wording import plain_json

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
        return cls(
            start=time_text(gap.start),
            end=time_text(gap.end),
            state=gap.state,
            intervals=gap.intervals,
            partly=gap.partly,
            error=gap.error,
        )


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
        return cls(
            address=str(item.address),
            name=item.name,
            parent_name=item.parent_name,
            expected=item.expected,
            rows_per_run=item.rows,
            unknown=item.unknown,
            gaps=tuple(map(GapForm.of, item.gaps)),
        )


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
    form = GapReportForm(
        format_version=FORMAT_VERSION,
        environment=report.environment,
        start=time_text(report.window.start),
        end=time_text(report.window.end),
        gaps=report.gaps,
        repairable=report.repairable,
        objects=tuple(map(ObjectGapsForm.of, report.objects)),
    )
    return json_text(form)


def json_text(form: Form) -> str:
    """Return indented JSON of a form, in which control characters are escapes."""
    content = orjson.dumps(to_builtins(form), option=orjson.OPT_INDENT_2)
    return plain_json(content.decode()) + "\n"


def time_text(moment: datetime) -> str:
    """Return ISO 8601 in UTC, with microseconds only if there are some."""
    return str(Instant().canonical(moment))
