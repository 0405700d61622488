"""What a plan may contain: the options that narrow it, and the policy that limits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.public import Public, derived
from reconciler.model.values import JSON, JSONObject, mapping_of

RULE_PREFIX: Final = "rules."
"""What the codes of violations and notes begin with, so that no id of a user equals one of ours."""
POSSIBLE_DUPLICATE = "possible-duplicate"
"""The violation of a create beside an object of the same work."""
UNKNOWN_VALUE = "unknown-value"
"""The error and the violation of a misspelt value. `attempt` allows it."""


class Selection(Public, frozen=True):
    """The options that narrow the plan."""

    targets: tuple[str, ...] = ()
    """Globs of --target."""
    excludes: tuple[str, ...] = ()
    """Globs of --exclude."""
    kinds: tuple[str, ...] = ()
    """Kinds of --kind."""
    parents: tuple[str, ...] = ()
    """Globs of --project."""

    @derived
    def partial(self) -> bool:
        """Whether something may be excluded."""
        return bool(self.targets or self.excludes or self.kinds or self.parents)


class PlanOptions(Struct, frozen=True):
    """The options of a plan."""

    rotate: tuple[str, ...] = ()
    """The resources whose secrets are sent again; ("*",) means all."""
    allow_replace: bool = False
    selection: Selection = field(default_factory=Selection)
    only: frozenset[Address] | None = None
    """Limits the plan to some addresses without making it a partial plan for the reader."""
    planned_before: frozenset[Address] | None = None
    """What an earlier plan of the same selection had, which is selected again although its names
    may have changed."""
    no_inventory: bool = False
    """Whether git is not used."""


class PolicyRule(Struct, frozen=True):
    """One rule."""

    id: str
    match: JSONObject
    """What a change must fit, as written (schemas/policy/match)."""
    message: str
    denies: bool = True
    """Whether matching changes are a violation. Otherwise each one gets a note."""
    hint: str | None = None

    @property
    def code(self) -> str:
        """The code of its violations and notes, and the key of its place."""
        return f"{RULE_PREFIX}{self.id}"


def rules_of(value: JSON) -> tuple[PolicyRule, ...]:
    """Return the rules of a mapping from ids. What its schema refuses is left out."""
    written = ((str(name), mapping_of(rule)) for name, rule in mapping_of(value).items())
    return tuple(
        PolicyRule(
            id=name,
            match=rule["match"],
            message=str(rule.get("message", "")),
            denies=rule.get("severity") != "warn",
            hint=str(rule["hint"]) if rule.get("hint") is not None else None,
        )
        for name, rule in written
        if isinstance(rule.get("match"), Mapping)
    )


def trusted_first(
    own: Sequence[PolicyRule], trusted: Sequence[PolicyRule]
) -> tuple[PolicyRule, ...]:
    """Return the rules of both. Of two with one id, the trusted one applies."""
    return tuple({rule.id: rule for rule in (*own, *trusted)}.values())


class Limit(Struct, frozen=True):
    """A limit of changes: a number, or a percentage of the managed objects."""

    value: float
    percent: bool = False

    def allows(self, count: int, *, total: int) -> bool:
        """Return whether `count` of `total` is within the limit."""
        return count <= (self.value * total / 100 if self.percent else self.value)

    def __str__(self) -> str:
        return f"{self.value:g}%" if self.percent else f"{self.value:g}"


DEFAULT_DELETES = Limit(10)
"""Deletions of removed resources that a plan may have where `max_deletes` is not set."""


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _limit(value: JSON) -> Limit | None:
    if isinstance(value, str) and value.endswith("%"):
        try:
            return Limit(float(value[:-1]), percent=True)
        except ValueError:
            return None
    return Limit(float(value)) if isinstance(value, (int, float)) else None


def _is_on(value: JSON) -> bool:
    return value is True


def _union(own: tuple[str, ...], trusted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*own, *trusted)))


def _common(own: tuple[str, ...], trusted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in own if item in trusted)


def _lower(own: Limit | None, trusted: Limit | None) -> Limit | None:
    """Return the lower limit. A number and a percentage are not comparable: the trusted one."""
    if own is None or trusted is None or own.percent != trusted.percent:
        return trusted or own
    return min(own, trusted, key=lambda limit: limit.value)


def _fewer_deletes(own: Limit | None, trusted: Limit | None) -> Limit | None:
    """Return the lower limit. One that is not set has a default, which no file raises by itself."""
    if trusted is None and own is not None:
        return own if not own.percent and own.value <= DEFAULT_DELETES.value else None
    return _lower(own, trusted)


_KEYS: Mapping[str, tuple[Callable[[JSON], Any], Callable[[Any, Any], Any]]] = {
    "prune": (_is_on, min),
    "ignore": (_texts, _union),
    "max_deletes": (_limit, _fewer_deletes),
    "max_changes": (_limit, _lower),
    "deny": (_texts, _union),
    "attempt": (_texts, _common),
    "allow_literal_secrets": (_is_on, min),
    "allow_exec_secrets": (_is_on, min),
    "rules": (rules_of, trusted_first),
}
"""The keys of `policy:`: what reads the value, and the stricter of an own and a trusted value."""


class Policy(Struct, frozen=True):
    """The rules of one environment: a field for each key of `policy:` in the files."""

    prune: bool = False
    ignore: tuple[str, ...] = ()
    max_deletes: Limit | None = None
    max_changes: Limit | None = None
    deletable: frozenset[str] = frozenset()
    """The kinds whose `Kind.deletion_switch` is on."""
    deny: tuple[str, ...] = ()
    attempt: tuple[str, ...] = ()
    """The known refusals of servers that are not violations."""
    allow_literal_secrets: bool = False
    allow_exec_secrets: bool = False
    rules: tuple[PolicyRule, ...] = ()
    """Those of users."""
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """The places of the keys, and of rules by their code."""

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys of `policy:`, without the switches of kinds."""
        return tuple(_KEYS)

    @classmethod
    def read(
        cls, written: JSONObject, *, switches: Mapping[str, str], marks: Mapping[str, Mark]
    ) -> Policy:
        """Return the policy of a mapping. `switches` are the deletion switches by kind."""
        values = {key: read(written.get(key)) for key, (read, _) in _KEYS.items()}
        on = frozenset(kind for kind, switch in switches.items() if written.get(switch) is True)
        return cls(**values, deletable=on, marks=marks)

    @classmethod
    def strictest(cls) -> Policy:
        """Return the policy of what no trusted file declares: nothing may be lost."""
        return cls(max_deletes=Limit(0))

    def stricter(self, trusted: Policy) -> Policy:
        """Return the stricter of this policy and a trusted one, key by key."""
        values = {
            key: stricter(getattr(self, key), getattr(trusted, key))
            for key, (_, stricter) in _KEYS.items()
        }
        return replace(self, **values, deletable=self.deletable & trusted.deletable)

    def looser_than(self, other: Policy) -> Iterator[str]:
        """Yield by which keys this policy permits more than another one, and what to delete."""
        for key, (_, stricter) in _KEYS.items():
            own = getattr(self, key)
            least = stricter(own, getattr(other, key))
            if own != least:
                yield key
        yield from (f"deletion of {kind}" for kind in sorted(self.deletable - other.deletable))


def to_send_anyway(rule: str) -> str:
    """Return how to allow what a service is known to refuse."""
    return f"to send it anyway: `policy: {{attempt: [{rule}]}}`"
