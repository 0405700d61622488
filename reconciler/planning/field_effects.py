"""Which consequences and known refusals a field can cause: its rules, tried on sample values.

The rules themselves answer, so that nothing else lists which field each of them reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import permutations
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, FieldChange
from reconciler.model.dialect import Dialect
from reconciler.model.json_tree import JSONObject
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.resource import Resource
from reconciler.model.rule import KnownRefusal, Rule, RuleContext
from reconciler.model.values import JSON, MISSING, Path, put_at
from reconciler.planning.matcher import Match
from reconciler.planning.new_places import Known

AnyRule: TypeAlias = Rule | KnownRefusal

NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at which the rules are tried: samples of times are before and after it."""
_DIALECTS = (*Dialect, None)


class _Trial(Struct, frozen=True):
    """A kind, the path of the field, and the other fields that a valid object has."""

    kind: Kind
    path: Path
    spec: JSONObject

    def causes(self, rule: AnyRule, values: Sequence[JSON]) -> bool:
        """Return whether a rule applies to a change of the field, and not without it."""
        field = self.kind.field_at(self.path, self.spec)
        switch = field.toggle if field is not None else None
        own = (switch.on, switch.off) if switch is not None else ()
        return any(
            rule(context) is not None
            and (context.action in own or rule(self._without(context)) is None)
            for context in self._contexts(rule.actions, values)
        )

    def _contexts(self, actions: Iterable[Action], values: Sequence[JSON]) -> Iterator[RuleContext]:
        for before, after in permutations((*values, MISSING), 2):
            for action in actions:
                for dialect in _DIALECTS:
                    if action is not Action.CREATE or after is not MISSING:
                        yield self._context(action, before, after, dialect)

    def _context(
        self, action: Action, before: JSON, after: JSON, dialect: Dialect | None
    ) -> RuleContext:
        creates = action is Action.CREATE
        address = Address(self.kind.name, "sample")
        changed = FieldChange(self.path, MISSING if creates else before, after)
        desired = self._with(after)
        body = {} if action is Action.DELETE else desired
        change = Change(address, action, "sample", fields=(changed,), body=body)
        live = LiveObject(self.kind.name, "1", "sample", self._with(before), parent_id="1")
        resource = None if action is Action.DELETE else Resource(address, desired)
        if resource is not None:
            known = Known(None, {self.kind.name: self.kind}, NOW)
            match = Match(resource, self.kind, None if creates else live)
            change = replace(change, new=known.reached(change, match, None)[1])
        return RuleContext(change, resource, None if creates else live, NOW, dialect)

    def _without(self, context: RuleContext) -> RuleContext:
        """Return the same change without the field: it is as live, or absent in a new object."""
        spec = self._with(MISSING) if context.live is None else context.live.body
        change = replace(context.change, fields=(), body=spec, new=())
        desired = context.desired
        return replace(context, change=change, desired=desired and replace(desired, spec=spec))

    def _with(self, value: JSON) -> dict[str, JSON]:
        spec = _copied(self.spec)
        if value is not MISSING:
            put_at(spec, self.path, value)
        return spec


def rules_about(
    kind: Kind, path: Path, values: Sequence[JSON], spec: JSONObject
) -> tuple[AnyRule, ...]:
    """Return the rules of a kind that a change of the field at a path can cause.

    `values` are samples for the field, and `spec` has the other fields.
    """
    trial = _Trial(kind, path, spec)
    rules: tuple[AnyRule, ...] = (*kind.rules, *kind.refusals)
    return tuple(rule for rule in rules if trial.causes(rule, values))


def _copied(spec: JSONObject) -> dict[str, JSON]:
    return {
        name: _copied(value) if isinstance(value, dict) else value for name, value in spec.items()
    }
