"""Why a live export is paused. No field of the service says it (service.md, 14)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.run import (
    COMPLETED,
    COUNTED_FAILURE,
    FAILED,
    FAILURES_OF_A_PAUSE,
    InvalidRun,
    failures_in_a_row,
    moment_at,
)
from reconciler.model.values import JSONObject

_AT_ONCE = timedelta(minutes=5)
"""How long after the end of a failed run the service has paused the export."""


class Cause(StrEnum):
    """Who paused an export."""

    INTENDED = "intended"
    SERVICE = "service"
    UNKNOWN = "unknown"


def cause_of_pause(body: JSONObject, *, declared: bool = False) -> Cause | None:
    """Return why a live export is paused, None if it is not.

    A pause that the configuration declares is intended. The service pauses an export right after a
    run that ended as `Failed` (service.md, 14). So the runs that ended before the pause decide:

    - the newest did not fail: intended
    - FAILURES_OF_A_PAUSE or more in a row failed, and the pause began at once or at an unknown
      time: the service. It may not set `last_paused_at`, which updates do not set either.
    - otherwise: unknown

    Runs that have not ended or were cancelled do not count.
    """
    if not body.get("paused"):
        return None
    since = pause_began(body)
    listed = body.get("latest_runs")
    ended = [
        (str(run.get("status")), _moment(run, "finished_at"))
        for run in (listed if isinstance(listed, list) else ())
        if isinstance(run, Mapping) and run.get("status") in {COMPLETED, *FAILED}
    ]
    before = [run for run in ended if since is None or run[1] is None or run[1] <= since + _AT_ONCE]
    if declared or not before or before[0][0] != COUNTED_FAILURE:
        return Cause.INTENDED
    at = before[0][1]
    at_once = since is None or at is None or since - at <= _AT_ONCE
    failures = failures_in_a_row(status for status, _ in before)
    return Cause.SERVICE if at_once and failures >= FAILURES_OF_A_PAUSE else Cause.UNKNOWN


def may_be_by_service(body: JSONObject, *, declared: bool = False) -> bool:
    """Return whether a live export is paused, and possibly not on purpose."""
    return cause_of_pause(body, declared=declared) in (Cause.SERVICE, Cause.UNKNOWN)


def pause_began(body: JSONObject) -> datetime | None:
    """Return when the current pause of a live export began, None if unknown or not paused.

    An update that pauses an export leaves the time of an earlier pause (service.md, 1.7): then the
    schedule has run since.
    """
    since, listed = _moment(body, "last_paused_at"), body.get("latest_runs")
    if not body.get("paused") or since is None:
        return None
    runs = listed if isinstance(listed, list) else ()
    ends = (
        _moment(run, "data_interval_end")
        for run in runs
        if isinstance(run, Mapping) and run.get("backfill") is None
    )
    return None if any(end is not None and end > since for end in ends) else since


def _moment(body: JSONObject, name: str) -> datetime | None:
    try:
        return moment_at(body, name)
    except InvalidRun:
        return None
