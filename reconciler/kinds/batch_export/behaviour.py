"""The behaviour of batch exports: what planning and operations need besides their fields."""

from __future__ import annotations

from reconciler.kinds.batch_export.backfill_warnings import backfill_warnings
from reconciler.kinds.batch_export.consequences import RULES
from reconciler.kinds.batch_export.copies import copied_export
from reconciler.kinds.batch_export.operations import OPERATIONS
from reconciler.kinds.batch_export.refusals import REFUSALS
from reconciler.model.behaviour import Behaviour

BEHAVIOUR = Behaviour(
    operations=OPERATIONS,
    rules=tuple(RULES.consequences),
    refusals=tuple(REFUSALS.refusals),
    backfill_warnings=backfill_warnings,
    copied=copied_export,
)
