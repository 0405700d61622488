"""The outcomes of runs: rules of the switchboard (`/_emulator/outcomes`), or a default.

    {match: {name: Lake, nth: 2}, status: Failed, error: Access denied}
    {match: {name: Lake, interval_end: 2026-10-07T11:00:00Z},
     rows: [{status: Failed}, {status: Completed, records: 5}]}

The first rule that fires decides. The default depends on the seed, the export and the interval
only, so that histories are repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.inputs import BadInput, list_of, mapping_of, typed
from reconciler.emulator.store import StoredExport

LIVE = ("Starting", "Running")
STATUSES = (
    *LIVE,
    *("Completed", "Failed", "FailedRetryable", "FailedBilling"),
    *("Cancelled", "Terminated", "TimedOut", "ContinuedAsNew"),
)
MEAN_RECORDS = 25_000
"""The mean of the rows of an interval by default."""

_ERRORS = (
    "The destination refused the connection.",
    "Access denied: the credentials do not allow writing.",
    "The destination did not answer in time.",
)
_MATCH_NAMES = ("export", "name", "interval_end", "backfill", "nth", "times")
_OUTCOME_NAMES = ("status", "records", "error", "seconds")


@dataclass(frozen=True, slots=True)
class Interval:
    """The range that a run exports. `start` is None for everything up to the end."""

    start: datetime | None
    end: datetime
    backfill: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ends, `seconds` after it was created.

    A status of Starting or Running stays until the run is cancelled. `by_rule` is False for a
    default outcome.
    """

    status: str
    records: int
    error: str | None
    delay: int
    seconds: float
    by_rule: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """The part of an outcome that a rule sets; None leaves the default."""

    status: str
    records: int | None
    error: str | None
    seconds: float | None

    def outcome(self, default: Outcome) -> Outcome:
        """Return the outcome, with what the rule leaves open taken from a default."""
        failed = self.status not in (*LIVE, "Completed")
        error = self.error if self.error is not None else (default.error or _ERRORS[0])
        seconds = default.seconds if self.seconds is None else self.seconds
        return Outcome(
            status=self.status,
            records=default.records if self.records is None else self.records,
            error=error if failed and self.status != "Cancelled" else None,
            delay=default.delay,
            seconds=0 if self.status == "FailedBilling" else seconds,
            by_rule=True,
        )


@dataclass(slots=True)
class OutcomeRule:
    """A rule and its counts. `interval_end` is ISO 8601 in UTC; None matches everything."""

    rows: tuple[_Row, ...]
    export: str | None = None
    name: str | None = None
    interval_end: str | None = None
    backfill: bool | None = None
    nth: int | None = None
    times: int | None = None
    matched: int = 0
    fired: int = 0

    def fires(self, export: StoredExport, interval: Interval) -> bool:
        """Count a run, and return whether the rule sets its outcome."""
        if not self._matches(export, interval):
            return False
        self.matched += 1
        if self.nth is not None and self.matched != self.nth:
            return False
        if self.times is not None and self.fired >= self.times:
            return False
        self.fired += 1
        return True

    def _matches(self, export: StoredExport, interval: Interval) -> bool:
        return (
            self.export in (None, export.id)
            and self.name in (None, export.body["name"])
            and self.interval_end in (None, iso(interval.end))
            and self.backfill in (None, interval.backfill is not None)
        )

    def summary(self) -> dict[str, Any]:
        """Return the rule and its counts, for inspection."""
        match = {name: getattr(self, name) for name in _MATCH_NAMES}
        return {
            "match": {name: value for name, value in match.items() if value is not None},
            "rows": [{"status": row.status, "records": row.records} for row in self.rows],
            "matched": self.matched,
            "fired": self.fired,
        }


def default_outcome(seed: int, export: StoredExport, interval: Interval) -> Outcome:
    """Return the outcome that follows from the seed, the export and the interval."""
    key = f"{seed}/{export.id}/{iso(interval.end)}/{interval.backfill or ''}"
    dice = int.from_bytes(sha256(key.encode()).digest()[:8], "big")
    failed = dice % 29 == 0
    return Outcome(
        status="Failed" if failed else "Completed",
        records=dice // 7 % (2 * MEAN_RECORDS),
        error=_ERRORS[dice // 11 % len(_ERRORS)] if failed else None,
        delay=2 + dice % 20,
        seconds=5 + dice // 3 % 90,
    )


def outcomes_of(
    rules: Sequence[OutcomeRule], seed: int, export: StoredExport, interval: Interval
) -> tuple[Outcome, ...]:
    """Return the outcomes of an interval: one, or several if a rule makes several rows."""
    default = default_outcome(seed, export, interval)
    rule = next((rule for rule in rules if rule.fires(export, interval)), None)
    return (default,) if rule is None else tuple(row.outcome(default) for row in rule.rows)


def outcome_rules(rules: Any) -> list[OutcomeRule]:
    """Return the rules of a list, or of a mapping with `outcomes`. Raise BadInput."""
    return [_rule(rule) for rule in list_of(rules, "outcomes")]


def _rule(rule: Any) -> OutcomeRule:
    given = mapping_of(rule, "outcome")
    row_names = ("rows",) if "rows" in given else _OUTCOME_NAMES
    mapping_of(rule, "outcome", ("match", *row_names))
    match = mapping_of(given.get("match") or {}, "match", _MATCH_NAMES)
    single = {name: given[name] for name in _OUTCOME_NAMES if name in given}
    rows = list_of(given.get("rows", [single]), "rows")
    if not rows:
        raise BadInput("rows must have at least one outcome")
    return OutcomeRule(
        rows=tuple(_row(row) for row in rows),
        export=_typed(match, "export", str),
        name=_typed(match, "name", str),
        interval_end=_interval_end(match),
        backfill=_typed(match, "backfill", bool),
        nth=_typed(match, "nth", int),
        times=_typed(match, "times", int),
    )


def _row(row: Any) -> _Row:
    mapping_of(row, "outcome", _OUTCOME_NAMES)
    if row.get("status", "Completed") not in STATUSES:
        raise BadInput(f"unknown status {row['status']!r}; allowed: {', '.join(STATUSES)}")
    seconds = _typed(row, "seconds", float)
    if seconds is not None and seconds < 0:
        raise BadInput("seconds must be at least 0")
    return _Row(
        status=row.get("status", "Completed"),
        records=_typed(row, "records", int),
        error=_typed(row, "error", str),
        seconds=seconds,
    )


def _typed(given: Mapping[str, Any], name: str, wanted: type) -> Any:
    value = given.get(name)
    return None if value is None else typed(name, value, wanted)


def _interval_end(match: Mapping[str, Any]) -> str | None:
    value = _typed(match, "interval_end", str)
    try:
        return None if value is None else iso(parsed(value))
    except (ValueError, OverflowError):
        raise BadInput("interval_end must be an ISO 8601 time") from None
