"""Consequences of changes, declared once: `@RULES.rule("id", Severity.WARNING)` on a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        return next((change for change in self.fields if change.path == path), None)


Outcome: TypeAlias = str | tuple[Severity, str] | None
"""A message, a message with another severity, or None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its stable id, which `policy.deny` names.

    The first of `severities` is the default. `meaning` is the docstring of its function: when it
    applies, and what it means. `judge` is called for changes with one of the `actions`.
    """

    id: str
    severities: tuple[Severity, ...]
    meaning: str
    judge: Callable[[RuleContext], Outcome]
    actions: tuple[Action, ...]

    def __call__(self, context: RuleContext) -> Consequence | None:
        """Return the consequence of a change, if there is one."""
        outcome = self.judge(context) if context.action in self.actions else None
        if outcome is None:
            return None
        severity, message = (self.severities[0], outcome) if isinstance(outcome, str) else outcome
        return Consequence(self.id, severity, message)


class Rules(list[Rule]):
    """The rules of a kind, in the order of their definition."""

    def rule(
        self, rule_id: str, *severities: Severity, on: tuple[Action, ...] = tuple(Action)
    ) -> Callable[[Callable[[RuleContext], Outcome]], Rule]:
        """Add the decorated function as a rule for changes with one of the actions."""

        def add(judge: Callable[[RuleContext], Outcome]) -> Rule:
            rule = Rule(rule_id, severities, str(judge.__doc__), judge, on)
            self.append(rule)
            return rule

        return add
