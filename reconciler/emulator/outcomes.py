"""How runs end: rules of the switchboard (`/_emulator/outcomes`), or a default from the seed.

    {match: {name: Lake, nth: 2}, status: Failed, error: Access denied}
    {match: {name: Lake, interval_end: 2026-10-07T11:00:00Z},
     rows: [{status: Failed}, {status: Completed, records: 5}]}

The first rule that fires decides. Without one the outcome follows from the seed, the export and
the interval, so that the same history appears again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.store import StoredExport

LIVE = ("Starting", "Running")
STATUSES = (
    *LIVE,
    *("Completed", "Failed", "FailedRetryable", "FailedBilling"),
    *("Cancelled", "Terminated", "TimedOut", "ContinuedAsNew"),
)
MEAN_RECORDS = 25_000
"""About how many rows an interval holds by default."""

_ERRORS = (
    "The destination refused the connection.",
    "Access denied: the credentials do not allow writing.",
    "The destination did not answer in time.",
)
_MATCH_NAMES = ("export", "name", "interval_end", "backfill", "nth", "times")
_OUTCOME_NAMES = ("status", "records", "error", "seconds")


class BadOutcome(Exception):
    """A rule that cannot be read."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What a run is to export. `start` is None for everything up to the end."""

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
        """Return the outcome of a run whose default would be another."""
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
        """Return whether the rule decides about a run, and count the run."""
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
    """Return rules as they are written: a list, or a mapping with `outcomes`. Raise BadOutcome."""
    listed = rules.get("outcomes") if isinstance(rules, Mapping) else rules
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise BadOutcome("outcomes are a list")
    return [_rule(rule) for rule in listed]


def _rule(rule: Any) -> OutcomeRule:
    if not isinstance(rule, Mapping):
        raise BadOutcome("an outcome is a mapping")
    match = rule.get("match") or {}
    if not isinstance(match, Mapping):
        raise BadOutcome("match is a mapping")
    rows = rule.get("rows", [{name: rule[name] for name in _OUTCOME_NAMES if name in rule}])
    allowed = {"match", "rows"} if "rows" in rule else {"match", *_OUTCOME_NAMES}
    _known(rule, allowed, "outcome")
    _known(match, set(_MATCH_NAMES), "match")
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise BadOutcome("rows are a list of at least one outcome")
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
    if not isinstance(row, Mapping):
        raise BadOutcome("a row is a mapping")
    _known(row, set(_OUTCOME_NAMES), "outcome")
    if row.get("status", "Completed") not in STATUSES:
        raise BadOutcome(f"unknown status {row['status']!r}; a status is one of {_words(STATUSES)}")
    seconds = row.get("seconds")
    if seconds is not None and (
        isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0
    ):
        raise BadOutcome("seconds is a number of at least 0")
    return _Row(
        status=row.get("status", "Completed"),
        records=_typed(row, "records", int),
        error=_typed(row, "error", str),
        seconds=seconds,
    )


def _known(given: Mapping[str, Any], allowed: set[str], what: str) -> None:
    unknown = sorted(set(given) - allowed)
    if unknown:
        raise BadOutcome(f"unknown {what} key {unknown[0]!r}; keys are {_words(sorted(allowed))}")


def _typed(given: Mapping[str, Any], name: str, wanted: type) -> Any:
    value = given.get(name)
    if value is None or (isinstance(value, wanted) and (wanted is bool or value is not True)):
        return value
    raise BadOutcome(f"{name} is of type {wanted.__name__}")


def _interval_end(match: Mapping[str, Any]) -> str | None:
    value = _typed(match, "interval_end", str)
    try:
        return None if value is None else iso(parsed(value))
    except (ValueError, OverflowError):
        raise BadOutcome("interval_end is an ISO 8601 time") from None


def _words(names: Sequence[str]) -> str:
    return ", ".join(names)
