"""A plan of backfills: which past ranges of which objects are exported again."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Literal

import orjson

from reconciler.model.address import Address
from reconciler.model.plan import Consequence, PlanSource, Severity
from reconciler.model.public import Count, Public, Term, derived


class PlannedBackfill(Public, frozen=True):
    """One backfill. Times are ISO 8601 in UTC; the end is exclusive."""

    start: datetime
    """Begin of the range."""
    end: datetime
    """End of the range, exclusive."""
    runs: Count
    """Intervals in the range."""
    partly: Count = 0
    """Of the intervals: how many are exported in part already."""
    trial: bool = False
    """Whether it is tried before the others, since the last run failed."""


class BackfillState(Term):
    """How far a backfill came."""

    STARTED = "started", "The service accepted it."
    RUNNING = "running", "The same range runs already. Nothing was sent."
    COMPLETED = "completed", "Every run of it completed."
    EMPTY = "empty", "It completed. The range has no data."
    PARTLY = "partly", "It ended, and some of its runs did not complete."
    FAILED = "failed", "It was refused, or it ended without a result."
    UNKNOWN = "unknown", "A request may have started it."
    SKIPPED = "skipped", "Nothing was sent."

    @property
    def fine(self) -> bool:
        """Whether nothing is left to do but to wait."""
        return self not in (
            BackfillState.PARTLY,
            BackfillState.FAILED,
            BackfillState.UNKNOWN,
            BackfillState.SKIPPED,
        )


class BackfillEnd(Public, frozen=True):
    """How a backfill ended."""

    internal = frozenset({"planned"})

    planned: PlannedBackfill
    state: BackfillState
    """How it ended."""
    id: str | None = None
    """Id of the backfill, null if unknown."""
    detail: str | None = None
    """Reason or progress, null without."""
    hint: str | None = None
    """What to do, null without a hint."""

    @derived
    def start(self) -> datetime:
        """Begin of the range."""
        return self.planned.start

    @derived
    def end(self) -> datetime:
        """End of the range, exclusive."""
        return self.planned.end


class ObjectBackfills(Public, frozen=True):
    """The backfills of one object."""

    address: Address
    name: str
    """Name of the object."""
    live_id: str
    """Id of the object."""
    parent_id: str | None
    """Id of its project."""
    parent_name: str | None
    """Name of its project, null if unknown."""
    backfills: tuple[PlannedBackfill, ...]
    """The backfills, in order."""
    consequences: tuple[Consequence, ...] = ()
    """Consequences of all of them."""
    notes: tuple[str, ...] = ()
    """What to know about them."""
    rows: int | None = None
    """Median rows of a run, null if unknown."""
    ends: tuple[BackfillEnd, ...] = ()
    """How they ended, empty before they are started."""

    @property
    def runs(self) -> int:
        """The number of runs of all backfills."""
        return sum(item.runs for item in self.backfills)

    @property
    def dangerous(self) -> bool:
        """Whether a consequence is a danger."""
        return any(item.severity is Severity.DANGER for item in self.consequences)


class BackfillPlan(Public, frozen=True):
    """A plan of backfills. `plan_id` is the digest of what it does."""

    version = 2
    schema = "backfill"

    source: PlanSource
    """What the plan was computed from."""
    objects: tuple[ObjectBackfills, ...]
    """The objects, by address."""
    created_at: str = ""
    """Time of the plan, ISO 8601."""
    notes: tuple[str, ...] = ()
    """What was left out."""

    @derived
    def type(self) -> Literal["backfill"]:
        """Distinguishes it from a plan of changes."""
        return "backfill"

    @property
    def backfills(self) -> tuple[PlannedBackfill, ...]:
        """The backfills of all objects."""
        return tuple(item for planned in self.objects for item in planned.backfills)

    @property
    def runs(self) -> int:
        """The number of runs of all backfills."""
        return sum(item.runs for item in self.objects)

    @derived
    def plan_id(self) -> str:
        """Digest of what it does, without texts for readers."""
        content = {
            "version": 2,
            "environment": self.source.environment,
            "organization": self.source.organization,
            "base_url": self.source.base_url,
            "objects": [
                {
                    "address": str(item.address),
                    "id": item.live_id,
                    "backfills": [
                        [part.start.isoformat(), part.end.isoformat(), part.runs, part.trial]
                        for part in item.backfills
                    ],
                    "rules": sorted((it.rule, it.severity.value) for it in item.consequences),
                }
                for item in self.objects
            ],
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
