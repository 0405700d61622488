"""Refuse plans that violate the policy. Each guard checks the whole plan for one rule.

All violations are reported at once, each with the place of the rule and the way to allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.errors import Mark
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.kind import Kind
from reconciler.model.plan import Refusal
from reconciler.model.policy import Policy
from reconciler.model.resource import Resource
from reconciler.model.wording import printable, quoted, several


@dataclass(frozen=True, slots=True)
class GuardContext:
    """What a guard may look at: the changes in order, and what they are measured against.

    `resources` are the declared ones, and those of the git base that were removed. `managed` is
    the number of objects that percentages refer to.
    """

    changes: Sequence[Change]
    policy: Policy
    kinds: Sequence[Kind]
    resources: Mapping[Address, Resource]
    managed: int
    allow_replace: bool
    untouchable: Sequence[Address]
    name_cycles: Sequence[Sequence[Address]]

    @property
    def destructive(self) -> list[Change]:
        """The deletions and replacements."""
        return [change for change in self.changes if change.action.destructive]

    def mark_of(self, address: Address) -> Mark | None:
        """Return the place of a resource, None if it has none."""
        resource = self.resources.get(address)
        return resource.mark if resource is not None else None


Guard: TypeAlias = Callable[[GuardContext], Iterable[Refusal]]


def protected(context: GuardContext) -> Iterator[Refusal]:
    """Refuse to delete or replace what has `lifecycle.protect`, removed resources included."""
    for change in context.destructive:
        resource = context.resources.get(change.address)
        if resource is None or not resource.lifecycle.protect:
            continue
        fate = "deleted" if change.action is Action.DELETE else "replaced"
        yield Refusal(
            "protect",
            f"{change.address} is protected and would be {fate}",
            (change.address,),
            resource.marks.get(("lifecycle", "protect"), resource.mark),
            "set `lifecycle: {protect: false}` on it and apply; then remove it",
        )


def over_limit(context: GuardContext) -> Iterator[Refusal]:
    """Refuse more than `max_deletes`, replacements included, and more than `max_changes`."""
    policy = context.policy
    made = [change for change in context.changes if change.action is not Action.NO_OP]
    for rule, limit, changes, word in (
        ("max_deletes", policy.max_deletes, context.destructive, "deletion"),
        ("max_changes", policy.max_changes, made, "change"),
    ):
        if limit is None or limit.allows(len(changes), total=context.managed):
            continue
        of = f" of {several(context.managed, 'managed object')}" if limit.percent else ""
        yield Refusal(
            rule,
            f"{several(len(changes), word)} planned, the limit is {limit}{of}",
            _addresses(changes),
            policy.marks.get(rule),
            f"raise `policy: {{{rule}: {len(changes)}}}`, or narrow the plan with --target",
        )


def _addresses(changes: Iterable[Change]) -> tuple[Address, ...]:
    return tuple(change.address for change in changes)


def deletion_switched_off(context: GuardContext) -> Iterator[Refusal]:
    """Refuse to delete objects of kinds whose deletion needs a second policy key."""
    for kind in context.kinds:
        switch = kind.deletion_switch
        deleted = [change for change in context.destructive if change.address.kind == kind.name]
        if deleted and switch is not None and kind.name not in context.policy.deletable:
            yield Refusal(
                switch,
                f"{several(len(deleted), kind.name)} would be deleted with all data",
                _addresses(deleted),
                context.policy.marks.get(switch),
                f"set `policy: {{{switch}: true}}` for this environment",
            )


def replacement_not_allowed(context: GuardContext) -> Iterator[Refusal]:
    """Refuse replacements, which lose id and history, unless they are allowed."""
    if context.allow_replace or context.policy.allow_replace:
        return
    for change in context.changes:
        resource = context.resources.get(change.address)
        allowed = resource is not None and resource.lifecycle.allow_replace
        if change.action is Action.REPLACE and not allowed:
            yield Refusal(
                "allow_replace",
                f"{change.address} must be replaced, which loses its id and history",
                (change.address,),
                context.mark_of(change.address),
                "set `lifecycle: {allow_replace: true}` on it, or pass --allow-replace",
            )


def denied_consequence(context: GuardContext) -> Iterator[Refusal]:
    """Refuse changes that have a consequence of `deny`."""
    for rule in sorted(set(context.policy.deny)):
        changes = [
            change
            for change in context.changes
            if any(consequence.rule == rule for consequence in change.consequences)
        ]
        if changes:
            yield Refusal(
                "deny",
                f"denied consequence {quoted(rule)} of {several(len(changes), 'change')}",
                _addresses(changes),
                context.policy.marks.get("deny"),
                f"remove {quoted(rule)} from `policy.deny`, or omit the change with --exclude",
            )


def ignored_name(context: GuardContext) -> Iterator[Refusal]:
    """Refuse resources whose name, or that of their object, is in `ignore`."""
    for address in context.untouchable:
        yield Refusal(
            "ignore",
            f"{address} matches `policy.ignore`",
            (address,),
            context.policy.marks.get("ignore", context.mark_of(address)),
            "remove the resource, or narrow the glob in `policy.ignore`",
        )


def name_cycle(context: GuardContext) -> Iterator[Refusal]:
    """Refuse to swap names: the server refuses whichever comes first."""
    for cycle in context.name_cycles:
        yield Refusal(
            "name-circle",
            f"{' and '.join(map(str, cycle))} swap names, but the server requires unique names",
            tuple(cycle),
            allow="rename one of them to a temporary name, apply, then set its new name",
        )


def unlisted_type(context: GuardContext) -> Iterator[Refusal]:
    """Refuse to create objects that no list has: later plans would create them again."""
    variants = {
        (kind.name, field.name): variant
        for kind in context.kinds
        for field, variant in kind.variants
    }
    for change in context.changes:
        if change.action not in (Action.CREATE, Action.REPLACE):
            continue
        for name, value in (change.body or {}).items():
            variant = variants.get((change.address.kind, name))
            if variant is not None and value.get(variant.tag) in variant.unlisted:
                yield Refusal(
                    "unlisted-type",
                    f"{change.address}: the API does not list objects of type "
                    f"{printable(str(value[variant.tag]))}, so a created one cannot be found again",
                    (change.address,),
                    allow="create it in the service, and pin it here with `id:`",
                )


GUARDS: tuple[Guard, ...] = (
    protected,
    over_limit,
    deletion_switched_off,
    replacement_not_allowed,
    denied_consequence,
    ignored_name,
    name_cycle,
    unlisted_type,
)


def refusals(context: GuardContext) -> tuple[Refusal, ...]:
    """Return every violation, in the order of the guards."""
    return tuple(refusal for guard in GUARDS for refusal in guard(context))
