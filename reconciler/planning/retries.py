"""Plan retries: the intervals of runs, each exported again on its own (docs/service.md, 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from reconciler.errors import BadUsage
from reconciler.model.backfill_plan import PlannedBackfill
from reconciler.model.run import Run
from reconciler.model.run_status import BILLING
from reconciler.model.text import printable, several


def retry_of(run: Run) -> tuple[PlannedBackfill, tuple[str, ...]]:
    """Return the retry of a run, and notes on it.

    Raises BadUsage for a run that has not ended, and for one without a start.
    """
    name = f"run {printable(run.id)}"
    if run.pending:
        hint = "wait until it ends, or cancel it with --cancel"
        raise BadUsage(f"{name} has not ended: {printable(run.status)}", hint=hint)
    if run.start is None or run.end is None:
        hint = "pass the range to backfill: reconciler backfill NAME --from TIME --to TIME"
        raise BadUsage(f"{name} exports all data up to its end, without a start", hint=hint)
    notes = (f"{name} completed; the retry exports its interval again",) * run.completed
    return PlannedBackfill(run.start, run.end, 1, run=run.id), notes


def retries_of_failed(
    failed: Iterable[Run], known: Sequence[Run]
) -> tuple[list[PlannedBackfill], tuple[str, ...]]:
    """Return a retry of each interval that no other run exported, by time, and notes.

    `failed` are the runs to retry, the newest first, and `known` all runs of their intervals.
    """
    settled = {(run.start, run.end) for run in known if run.completed or run.pending}
    latest: dict[tuple[datetime | None, datetime | None], Run] = {}
    for run in failed:
        latest.setdefault((run.start, run.end), run)
    left = [run for interval, run in latest.items() if interval not in settled]
    planned = [
        PlannedBackfill(run.start, run.end, 1, run=run.id)
        for run in left
        if run.status != BILLING and run.start is not None and run.end is not None
    ]
    rest = several(len(left) - len(planned), "run")
    notes = (f"{rest} left out: over a billing limit, or without a start",)
    return sorted(planned, key=lambda item: item.start), notes * (len(left) > len(planned))
