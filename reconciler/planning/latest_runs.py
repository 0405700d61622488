"""The latest runs of a live object, as far as its list entry has them."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.change import RecentRun
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.run import InvalidRun, moment_at
from reconciler.model.text import printable, shortened
from reconciler.model.values import JSON, value_at

_MOST = 10
_LONGEST_STATUS = 40


def latest_runs(kind: Kind, live: LiveObject | None) -> tuple[RecentRun, ...]:
    """Return the latest runs of an object, newest first, without those that cannot be read.

    Errors of runs are left out, since they may contain anything.
    """
    bodies = value_at(live.body, kind.activity[:1]) if live is not None and kind.activity else ()
    if not isinstance(bodies, list):
        return ()
    runs = (_run(body) for body in bodies[:_MOST])
    return tuple(run for run in runs if run is not None)


def _run(body: JSON) -> RecentRun | None:
    if not isinstance(body, Mapping) or not isinstance(status := body.get("status"), str):
        return None
    try:
        end = moment_at(body, "data_interval_end")
    except InvalidRun:
        return None
    text = end.isoformat(timespec="seconds").replace("+00:00", "Z") if end is not None else ""
    return RecentRun(shortened(printable(status), _LONGEST_STATUS), text)
