"""Faults on request: what networks and servers do to clients, by rule and in a fixed order.

    {match: {method: POST, path: "*/batch_exports/", nth: 2}, fault: error, when: after}

A rule matches by method, by a glob of the path, and then by count: the `nth` matching call, the
first `times` calls, or each with a `probability` (from the rule's `seed`, so that the same calls
fail again). The first rule that fires wins.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

KINDS = ("latency", "error", "throttle", "drop", "truncate", "html", "slow", "stale", "edit")
"""
latency
    Wait `seconds`, then go on.
error
    Answer `status` (500, 502, 503, 504, …) `before` or `after` the write took effect.
throttle
    429 with `retry_after` seconds.
drop
    Break the connection `before` or `after` the write took effect.
truncate
    Half of the answer's body, and the connection ends.
html
    The page of a proxy with `status`, instead of JSON.
slow
    The answer's body in small pieces over `seconds`.
stale
    Before a page other than the first is answered, an object is created (`change: create`) or
    deleted (`change: delete`) at the head of the list.
edit
    Just before the call, somebody else changes the object that it names: `set` is merged over it.
"""
_NAMES = frozenset(
    {"match", "fault", "status", "when", "seconds", "retry_after", "change", "set", "seed"}
)
_MATCH_NAMES = frozenset({"method", "path", "nth", "times", "probability"})


class BadFault(Exception):
    """A rule that does not fit; the message says why."""


@dataclass(slots=True)
class Fault:
    """One rule and how often it matched."""

    kind: str
    method: str = "*"
    path: str = "*"
    nth: int | None = None
    times: int | None = None
    probability: float | None = None
    status: int = 500
    after: bool = False
    seconds: float = 1.0
    retry_after: int = 1
    change: str = "create"
    set: Mapping[str, Any] = field(default_factory=dict)
    dice: random.Random = field(default_factory=random.Random)
    matched: int = 0
    fired: int = 0

    def fires(self, method: str, path: str) -> bool:
        """Whether it happens to this call. Counts the call."""
        if self.method not in ("*", method) or not fnmatchcase(path, self.path):
            return False
        self.matched += 1
        if self.nth is not None and self.matched != self.nth:
            return False
        if self.times is not None and self.fired >= self.times:
            return False
        if self.probability is not None and self.dice.random() >= self.probability:
            return False
        self.fired += 1
        return True

    def told(self) -> dict[str, Any]:
        """The rule and its counts, for inspection."""
        return {
            "fault": self.kind,
            "method": self.method,
            "path": self.path,
            "matched": self.matched,
            "fired": self.fired,
        }


def fault_of(rule: Any) -> Fault:
    """A rule as it is written. Raises BadFault."""
    if not isinstance(rule, Mapping):
        raise BadFault("a fault is a mapping")
    match = rule.get("match") or {}
    unknown = (set(rule) - _NAMES) | (set(match) - _MATCH_NAMES)
    if unknown:
        raise BadFault(f"unknown: {', '.join(sorted(unknown))}")
    if rule.get("fault") not in KINDS:
        raise BadFault(f"fault is one of {', '.join(KINDS)}")
    if rule.get("when", "before") not in ("before", "after"):
        raise BadFault("when is before or after")
    try:
        return Fault(
            kind=rule["fault"],
            method=str(match.get("method", "*")),
            path=str(match.get("path", "*")),
            nth=match.get("nth"),
            times=match.get("times"),
            probability=match.get("probability"),
            status=int(rule.get("status", 500)),
            after=rule.get("when") == "after",
            seconds=float(rule.get("seconds", 1.0)),
            retry_after=int(rule.get("retry_after", 1)),
            change=str(rule.get("change", "create")),
            set=rule.get("set") or {},
            dice=random.Random(rule.get("seed", 0)),  # noqa: S311 - repeatable on purpose
        )
    except (TypeError, ValueError) as error:
        raise BadFault(str(error)) from None


def faults_of(rules: Any) -> list[Fault]:
    """Rules as they are written, a list or a mapping with `faults`. Raises BadFault."""
    listed = rules.get("faults") if isinstance(rules, Mapping) else rules
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise BadFault("faults are a list")
    return [fault_of(each) for each in listed]
