"""The rules of `policy.rules`, which users write over the changes of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from reconciler.model.values import JSON, JSONObject

if TYPE_CHECKING:
    from reconciler.model.change import Change

RULE_PREFIX: Final = "rules."
"""What the codes of violations and notes begin with, so that no id of a user equals one of ours."""


class PolicyRule(Struct, frozen=True):
    """One rule. `match` is the expression over a change, as written (schemas/policy/match).

    denies
        Whether matching changes are a violation. Otherwise each one gets a note.
    more_than
        How many matching changes of a plan are fine.
    """

    id: str
    match: JSONObject
    message: str
    denies: bool = True
    hint: str | None = None
    more_than: int = 0

    @property
    def code(self) -> str:
        """The code of its violations and notes, and the key of its place."""
        return f"{RULE_PREFIX}{self.id}"


class RuleBreach(Struct, frozen=True):
    """A rule, and the changes of a plan that match it: more of them than it permits."""

    rule: PolicyRule
    changes: tuple[Change, ...]


def rules_of(value: JSON) -> tuple[PolicyRule, ...]:
    """Return the rules of a mapping from ids. What its schema refuses is left out."""
    rules = value.items() if isinstance(value, Mapping) else ()
    return tuple(_rule(str(name), rule) for name, rule in rules if _is_rule(rule))


def _is_rule(value: JSON) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("match"), Mapping)


def _rule(name: str, written: JSONObject) -> PolicyRule:
    hint, more_than = written.get("hint"), written.get("more_than")
    return PolicyRule(
        id=name,
        match=written["match"],
        message=str(written.get("message", "")),
        denies=written.get("severity") != "warn",
        hint=str(hint) if hint is not None else None,
        more_than=more_than if isinstance(more_than, int) else 0,
    )


def trusted_first(
    own: Sequence[PolicyRule], trusted: Sequence[PolicyRule]
) -> tuple[PolicyRule, ...]:
    """Return the rules of both. Of two with one id, the trusted one applies."""
    return tuple({rule.id: rule for rule in (*own, *trusted)}.values())
