"""The behaviour of batch exports: what planning and operations need besides their fields."""

from __future__ import annotations

from datetime import datetime

from reconciler.kinds.batch_export.backfill_warnings import backfill_warnings
from reconciler.kinds.batch_export.consequences import RULES
from reconciler.kinds.batch_export.facts import moment
from reconciler.kinds.batch_export.operations import OPERATIONS
from reconciler.kinds.batch_export.refusals import REFUSALS
from reconciler.model.behaviour import Behaviour, Overlap
from reconciler.model.values import JSONObject

_EVENT_LISTS = ("include_events", "exclude_events")


def _has_ended(body: JSONObject, now: datetime) -> bool:
    """Return whether the last run was before an instant."""
    end = moment(body.get("end_at"))
    return end is not None and end <= now


_OVERLAP = Overlap(
    source=(("model",),),
    selection=(
        *(("sql_query",), ("filters",)),
        *(("destination", "config", name) for name in _EVENT_LISTS),
    ),
    has_ended=_has_ended,
)

BEHAVIOUR = Behaviour(
    operations=OPERATIONS,
    rules=tuple(RULES.consequences),
    refusals=tuple(REFUSALS.refusals),
    backfill_warnings=backfill_warnings,
    overlap=_OVERLAP,
)
