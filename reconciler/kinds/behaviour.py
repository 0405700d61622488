"""What a kind does besides its fields: consequences, known refusals and operations.

Each rule is declared once, on a function: `@RULES.rule("id", Severity.WARNING)` or
`@RULES.refusal("id")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.kind import Action, Dialect, Integrations, Kind
from reconciler.model.live import LiveObject, Operation
from reconciler.model.plan import Change, Consequence, Effect, FieldChange, Severity
from reconciler.model.resource import Resource
from reconciler.model.text import IMPLICIT_ENVIRONMENT
from reconciler.model.values import JSON, MISSING, JSONObject, Path, value_at


class Overlap(Struct, frozen=True):
    """When two objects at one place do the same work.

    source
        Paths of the fields that are equal in any case.
    selection
        Paths of the fields that are equal, too, unless one object was the other before.
    has_ended
        Return whether the object of a live body does nothing any more at an instant.
    tables
        Return the names of the tables that a query reads.
    """

    source: tuple[Path, ...] = ()
    selection: tuple[Path, ...] = ()
    has_ended: Callable[[JSONObject, datetime], bool] = lambda _body, _now: False
    tables: Callable[[str], Iterable[str]] = lambda _: ()


class Behaviour(Struct, frozen=True):
    """What planning and operations need of a kind, and loading files does not.

    backfill_warnings
        Return the consequences of backfilling an object, by its live body.
    overlap
        When an object would double the work of another one.
    """

    operations: tuple[Operation, ...] = ()
    rules: tuple[Rule, ...] = ()
    refusals: tuple[KnownRefusal, ...] = ()
    backfill_warnings: Callable[[JSONObject], Iterable[Consequence]] = lambda _: ()
    overlap: Overlap = field(default_factory=Overlap)

    def operation(self, name: str) -> Operation:
        """Return the operation of a name. Raises KeyError."""
        return {operation.name: operation for operation in self.operations}[name]


# With a dict, since cached properties need one.
class RuleContext(Struct, frozen=True, dict=True):
    """What a rule depends on: one change and its surroundings.

    `desired` is None for a deletion, `live` for a creation. `children` are the live objects
    below a deleted one, managed or not. For refusals only, `siblings` are the live objects in the
    same parent, with the names that the plan gives them, `created` are the creates in it that come
    before, and `integrations` are those of it, None if they were not read. `now` is when live state
    was read. `environment` is for commands in messages.
    """

    change: Change
    kind: Kind
    desired: Resource | None
    live: LiveObject | None
    now: datetime
    dialect: Dialect | None = None
    children: Sequence[LiveObject] = ()
    siblings: Sequence[LiveObject] = ()
    created: Sequence[Change] = ()
    integrations: Integrations | None = None
    environment: str = IMPLICIT_ENVIRONMENT

    @property
    def action(self) -> Action:
        """The action of the change."""
        return self.change.action

    @cached_property
    def fields(self) -> Mapping[Path, FieldChange]:
        """The changes of fields by path."""
        return {change.path: change for change in self.change.fields}

    def field(self, *path: str) -> FieldChange | None:
        """Return the change of the field at a path, None where it does not change."""
        return self.fields.get(path)

    def sides(self, *path: str) -> tuple[JSON, JSON]:
        """Return the values at a path before and after the change, MISSING if absent."""
        change = self.field(*path)
        if change is not None:
            return change.before, change.after
        value = value_at(self.live.body, path) if self.live is not None else MISSING
        return value, value

    def sent(self, *path: str) -> JSON:
        """Return the value at a path of the bodies that are sent, or MISSING."""
        value = value_at(self.change.body or {}, path)
        return value_at(self.change.after_create or {}, path) if value is MISSING else value

    @property
    def creates(self) -> bool:
        """Whether a new object is created."""
        return self.action is Action.CREATE or (self.action is Action.REPLACE)


Outcome: TypeAlias = str | tuple[Severity | Effect, str] | None
"""A message, a message with another severity or effect, or None."""


class Rule(Struct, frozen=True):
    """A rule with its stable id, which `policy.deny` names.

    The first of `severities` is the default. `meaning` is the docstring of its function: when it
    applies, what it means, and what to do. `judge` is called for changes with one of the `actions`
    that change a field of `of`, if there are any.
    """

    id: str
    severities: tuple[Severity, ...]
    meaning: str
    judge: Callable[[RuleContext], Outcome]
    actions: tuple[Action, ...]
    effect: Effect = Effect.OTHER
    of: AbstractSet[Path] = frozenset()

    def __call__(self, context: RuleContext) -> Consequence | None:
        """Return the consequence of a change that it is about, if there is one."""
        outcome = self.judge(context)
        if outcome is None:
            return None
        other, message = (None, outcome) if isinstance(outcome, str) else outcome
        severity = other if isinstance(other, Severity) else self.severities[0]
        effect = other if isinstance(other, Effect) else self.effect
        return Consequence(self.id, severity, message, effect)


class Objection(Struct, frozen=True):
    """What the server objects to, the field of the resource that it is about, and the fix.

    `because_of` is the live object that is the reason, if there is one.
    """

    message: str
    fix: str
    path: Path = ()
    because_of: LiveObject | None = None


class KnownRefusal(Struct, frozen=True):
    """A change that the server is known to refuse, with a stable id, which `policy.attempt` names.

    `meaning` is the docstring of its function. `judge` is called for changes with one of the
    `actions`, and returns what the server objects to, if anything.
    """

    id: str
    meaning: str
    judge: Callable[[RuleContext], Objection | None]
    actions: tuple[Action, ...]


class Rules(Struct):
    """The rules of a kind, in the order of their definition."""

    consequences: list[Rule] = field(default_factory=list)
    refusals: list[KnownRefusal] = field(default_factory=list)

    def rule(
        self,
        rule_id: str,
        severities: Severity | tuple[Severity, ...],
        effect: Effect = Effect.OTHER,
        *,
        on: tuple[Action, ...] = tuple(Action),
        of: Iterable[str | Path] = (),
    ) -> Callable[[Callable[[RuleContext], Outcome]], Rule]:
        """Add the decorated function as a rule for changes with one of the actions, of fields."""

        def add(judge: Callable[[RuleContext], Outcome]) -> Rule:
            paths = frozenset((field,) if isinstance(field, str) else field for field in of)
            degrees = severities if isinstance(severities, tuple) else (severities,)
            rule = Rule(rule_id, degrees, str(judge.__doc__), judge, on, effect, paths)
            self.consequences.append(rule)
            return rule

        return add

    def refusal(
        self, rule_id: str, *, on: tuple[Action, ...]
    ) -> Callable[[Callable[[RuleContext], Objection | None]], KnownRefusal]:
        """Add the decorated function as a known refusal of changes with one of the actions."""

        def add(judge: Callable[[RuleContext], Objection | None]) -> KnownRefusal:
            refusal = KnownRefusal(rule_id, str(judge.__doc__), judge, on)
            self.refusals.append(refusal)
            return refusal

        return add
