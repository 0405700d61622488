"""What a kind does besides its fields: consequences, known refusals and operations.

Each rule is declared once, on a function: `@RULES.rule("id", Severity.WARNING)` or
`@RULES.refusal("id")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.kind import Action, Dialect, Field, Integrations, Kind, Variant
from reconciler.model.live import LiveObject, Operation
from reconciler.model.plan import Change, Consequence, Effect, FieldChange, Severity
from reconciler.model.resource import Resource
from reconciler.model.text import IMPLICIT_ENVIRONMENT, json_shown
from reconciler.model.values import JSON, MISSING, JSONObject, Path, mapping_of, path_text, value_at


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


def not_accepted(context: RuleContext) -> Objection | None:
    """The server does not have a field, a type or a value: it refuses or ignores it.

    Such as destination type S3 on servers of 2026, and `timezone` on older ones. Use what the
    message proposes, or `${unset}` in `overrides` of this environment.
    """
    if context.dialect is None:
        return None
    parts = list(_unaccepted(context, context.dialect))
    if not parts:
        return None
    listed = ", ".join(part.message for part in parts)
    message = f"the server (dialect {context.dialect}) does not accept {listed}"
    return Objection(message, parts[0].fix, parts[0].path)


def _unaccepted(context: RuleContext, dialect: Dialect) -> Iterator[Objection]:
    live = context.live.body if context.live is not None else {}
    for name in dict.fromkeys(str(change.path[0]) for change in context.change.fields):
        field, value = context.kind.field_named(name), context.sent(name)
        if field is None or value in (MISSING, None):
            continue
        if field.variant is not None:
            yield from _inside(field.variant, (name,), value, dialect)
        elif field.has(dialect):
            yield from _values(field, (name,), value, dialect)
        # A live object with the field proves that the server has it. A default changes nothing.
        elif field.until is not None or (name not in live and value != field.default):
            fix = "remove it, or set it to ${unset} in `overrides` of this environment"
            yield Objection(name, fix, (name,))


def _inside(variant: Variant, path: Path, value: JSON, dialect: Dialect) -> Iterator[Objection]:
    """Yield the tag, or else the fields of the body."""
    tag_path = (*path, variant.tag)
    tag = str(value_at(value, (variant.tag,)))
    if dialect not in variant.dialects.get(tag, (dialect,)):
        others = [other for other, has in variant.dialects.items() if dialect in has]
        fix = variant.instead.get(tag) or _one_of(others)
        yield Objection(f"{path_text(tag_path)} {tag}", f"use {fix}", tag_path)
        return
    fields = variant.named_fields_of(value)
    for name, inner in mapping_of(value_at(value, (variant.body,))).items():
        if (field := fields.get(name)) is None:
            continue
        if field.has(dialect):
            yield from _values(field, (*path, variant.body, name), inner, dialect)
        else:
            fix = "remove it and use an `integration`" if field.secret else "remove it"
            yield Objection(name, fix, (*path, variant.body, name))


def _values(field: Field, path: Path, value: JSON, dialect: Dialect) -> Iterator[Objection]:
    accepted = field.accepts.get(dialect, (value,))
    if value not in accepted:
        what = f"{path_text(path)} {json_shown(value)}"
        yield Objection(what, f"use {_one_of(map(json_shown, accepted))}", path)


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


NOT_ACCEPTED = KnownRefusal(
    "not-accepted",
    str(not_accepted.__doc__),
    not_accepted,
    (Action.CREATE, Action.REPLACE, Action.UPDATE),
)
