"""Consequences of changes, declared once: `@RULES.rule("id", Severity.WARNING)` on a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from reconciler.model.address import Address
from reconciler.model.change import Action, Consequence, FieldChange, Severity
from reconciler.model.live import Dialect, LiveObject
from reconciler.model.resource import Resource


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What a rule depends on: one change and its surroundings.

    `desired` is None for a deletion, `live` for a creation. `children` are the live objects
    below the changed one, managed or not. `now` is when live state was read.
    """

    action: Action
    address: Address
    desired: Resource | None
    live: LiveObject | None
    fields: tuple[FieldChange, ...]
    now: datetime
    dialect: Dialect | None = None
    children: Sequence[LiveObject] = ()

    def field(self, *path: str) -> FieldChange | None:
        """Return the change of the field at a path, None where it does not change."""
        for change in self.fields:
            if change.path == path:
                return change
        return None


Outcome: TypeAlias = str | tuple[Severity, str] | None
"""A message, a message with another severity, or None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its stable id, which `policy.deny` names.

    The first of `severities` is the default. `meaning` is the docstring of its function: when it
    applies, and what it means.
    """

    id: str
    severities: tuple[Severity, ...]
    meaning: str
    judge: Callable[[RuleContext], Outcome]

    def __call__(self, context: RuleContext) -> Consequence | None:
        """Return the consequence of a change, if there is one."""
        outcome = self.judge(context)
        if outcome is None:
            return None
        severity, message = (self.severities[0], outcome) if isinstance(outcome, str) else outcome
        return Consequence(self.id, severity, message)


@dataclass(slots=True)
class Rules:
    """The rules of a kind, in the order of their definition."""

    known: list[Rule] = field(default_factory=list)

    def rule(
        self, rule_id: str, *severities: Severity
    ) -> Callable[[Callable[[RuleContext], Outcome]], Rule]:
        """Add the decorated function as a rule."""

        def add(judge: Callable[[RuleContext], Outcome]) -> Rule:
            rule = Rule(rule_id, severities, str(judge.__doc__), judge)
            self.known.append(rule)
            return rule

        return add

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.known)
