"""A plan of backfills: which past ranges of which objects are exported again."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

import orjson
from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.change import Consequence, Severity
from reconciler.model.intervals import Interval
from reconciler.model.plan import PlanSource
from reconciler.model.public import Term


class PlannedBackfill(Struct, frozen=True):
    """One backfill. `runs` is the number of its intervals.

    `partly` of them are exported in part already. `trial`: it is tried before the others, since the
    last run of the object failed. `run`: it is requested as a retry of the run with this id.
    """

    start: datetime
    end: datetime
    runs: int
    partly: int = 0
    trial: bool = False
    run: str | None = None

    @property
    def range(self) -> Interval:
        """Its range."""
        return Interval(self.start, self.end)


class ObjectBackfills(Struct, frozen=True):
    """The backfills of one object, in order.

    rows
        The median number of rows of a run, None if unknown.
    known
        The ids of backfills that the service listed when the plan was made, and that concern its
        ranges: those were not started from it. Empty for a plan that is not saved.
    newest_run
        When the newest run was created then, ISO 8601 by the clock of the service. None without
        runs.
    """

    address: Address
    name: str
    live_id: str
    parent_id: str | None
    parent_name: str | None
    backfills: tuple[PlannedBackfill, ...]
    consequences: tuple[Consequence, ...] = ()
    notes: tuple[str, ...] = ()
    rows: int | None = None
    known: tuple[str, ...] = ()
    newest_run: str | None = None

    @property
    def runs(self) -> int:
        """The number of runs of all backfills."""
        return sum(item.runs for item in self.backfills)

    @property
    def dangerous(self) -> bool:
        """Whether a consequence is a danger."""
        return any(item.severity is Severity.DANGER for item in self.consequences)


class BackfillPlan(Struct, frozen=True):
    """The backfills of objects, by address.

    closes_gaps
        Whether a backfill is dropped once its range has no gap any more.
    created_at
        ISO 8601.

    Notes
    -----
        What was left out.

    """

    source: PlanSource
    objects: tuple[ObjectBackfills, ...]
    closes_gaps: bool = False
    created_at: str = ""
    notes: tuple[str, ...] = ()

    @property
    def backfills(self) -> tuple[PlannedBackfill, ...]:
        """The backfills of all objects."""
        return tuple(item for planned in self.objects for item in planned.backfills)

    @property
    def runs(self) -> int:
        """The number of runs of all backfills."""
        return sum(item.runs for item in self.objects)

    @property
    def id(self) -> str:
        """The SHA-256 (hex) of all that it does, without texts for readers."""
        content = {
            "version": 1,
            "environment": self.source.environment,
            "organization": self.source.organization,
            "base_url": self.source.base_url,
            "closes_gaps": self.closes_gaps,
            "objects": [
                {
                    "address": str(item.address),
                    "id": item.live_id,
                    "backfills": [
                        [
                            *(part.start.isoformat(), part.end.isoformat()),
                            *(part.runs, part.trial, part.run),
                        ]
                        for part in item.backfills
                    ],
                    "known": item.known,
                    "newest_run": item.newest_run,
                    "rules": sorted((it.rule, it.severity.value) for it in item.consequences),
                }
                for item in self.objects
            ],
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


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


class BackfillEnd(Struct, frozen=True):
    """How a planned backfill ended. `id` is that of its row, None if unknown."""

    planned: PlannedBackfill
    state: BackfillState
    id: str | None = None
    detail: str | None = None
    hint: str | None = None


class ObjectEnds(Struct, frozen=True):
    """How the backfills of an object ended."""

    object: ObjectBackfills
    ends: tuple[BackfillEnd, ...]
