"""Parse the rules of faults and select the calls that they concern.

    {match: {method: POST, path: "*/batch_exports/", nth: 2}, fault: error, when: after}

A rule matches by method, by a glob of the path and by fields of the body, and then by count: the
`nth` matching call, all `from` the n-th on, the first `times` calls, or any with a `probability`
(from the rule's `seed`, so that the same calls fail again). The first rule that fires is used.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

import orjson

from reconciler.emulator.fault_effects import EFFECTS, PARAMETERS, Effect
from reconciler.emulator.inputs import BadInput, list_of, mapping_of, typed

_RULE_NAMES = ("match", "fault", "seed")
_TYPES = {"int": int, "float": float, "str": str, "bool": bool, "Mapping": Mapping}
_MATCH_NAMES = ("method", "path", "body", "nth", "from", "times", "probability")


@dataclass(frozen=True, slots=True)
class Match:
    """Which calls a rule is about. `body` is compared field by field with the top level."""

    method: str = "*"
    path: str = "*"
    body: Mapping[str, Any] = field(default_factory=dict)
    nth: int | None = None
    first: int | None = None
    times: int | None = None
    probability: float | None = None

    def fits(self, method: str, path: str, body: bytes) -> bool:
        """Return whether a call is one of these, counts aside."""
        if self.method not in ("*", method) or not fnmatchcase(path, self.path):
            return False
        return not self.body or _has_fields(body, self.body)


@dataclass(slots=True)
class Fault:
    """One rule, and how often it matched and fired."""

    kind: str
    effect: Effect
    match: Match
    dice: random.Random
    matched: int = 0
    fired: int = 0

    def fires(self, method: str, path: str, body: bytes = b"") -> bool:
        """Return whether it happens to this call. Count the call."""
        match = self.match
        if not match.fits(method, path, body):
            return False
        self.matched += 1
        if match.nth is not None and self.matched != match.nth:
            return False
        if match.first is not None and self.matched < match.first:
            return False
        if match.times is not None and self.fired >= match.times:
            return False
        if match.probability is not None and self.dice.random() >= match.probability:
            return False
        self.fired += 1
        return True

    def summary(self) -> dict[str, Any]:
        """Return the rule and its counts as JSON."""
        return {
            "fault": self.kind,
            "method": self.match.method,
            "path": self.match.path,
            "matched": self.matched,
            "fired": self.fired,
        }


def _has_fields(body: bytes, wanted: Mapping[str, Any]) -> bool:
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(sent, dict) and all(
        name in sent and sent[name] == value for name, value in wanted.items()
    )


def fault_of(rule: Any) -> Fault:
    """Return the fault that a rule describes. Raise BadInput."""
    kind = mapping_of(rule, "fault").get("fault")
    if not isinstance(kind, str) or kind not in EFFECTS:
        raise BadInput(f"'fault' must be one of {', '.join(sorted(EFFECTS))}")
    cls = EFFECTS[kind]
    types = {parameter.name: str(parameter.type) for parameter in fields(cls)}
    mapping_of(rule, kind, (*_RULE_NAMES, *types))
    sent = {
        name: _converted(name, rule[name], type_name)
        for name, type_name in types.items()
        if name in rule
    }
    for name, check in PARAMETERS.items():
        if name in sent:
            check(sent[name])
    seed = rule.get("seed", 0)
    if not isinstance(seed, int | str):
        raise BadInput("'seed' must be a whole number")
    dice = random.Random(seed)  # noqa: S311 - repeatable on purpose
    return Fault(kind, cls(**sent), _match_of(rule.get("match")), dice)


def _match_of(match: Any) -> Match:
    match = mapping_of({} if match is None else match, "match", _MATCH_NAMES)
    body = mapping_of(match.get("body", {}), "match.body")
    counts = {
        name: _converted(name, match[name], "int | None")
        for name in ("nth", "from", "times")
        if name in match
    }
    return Match(
        method=str(match.get("method", "*")),
        path=str(match.get("path", "*")),
        body=body,
        nth=counts.get("nth"),
        first=counts.get("from"),
        times=counts.get("times"),
        probability=_converted("probability", match.get("probability"), "float | None"),
    )


def _converted(name: str, value: Any, type_name: str) -> Any:
    """Return a parameter in its type. Raise BadInput."""
    if value is None and "None" in type_name:
        return None
    if type_name.startswith("Any"):
        return value
    base = type_name.split(" ", maxsplit=1)[0].split("[", maxsplit=1)[0]
    value = typed(f"'{name}'", value, _TYPES[base])
    return float(value) if base == "float" else value


def faults_of(rules: Any) -> list[Fault]:
    """Return the faults of a list of rules, or of a mapping with `faults`. Raise BadInput."""
    return [fault_of(rule) for rule in list_of(rules, "faults")]
