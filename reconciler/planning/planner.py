"""Decide every change. A pure function of its arguments: no I/O, no clock, no randomness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note, Plan, PlanSource, Selection, Unmanaged
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Desired
from reconciler.model.wording import printable, quoted
from reconciler.planning.changes import ChangeContext, deletion_of, resource_changes
from reconciler.planning.guards import GuardContext, refusals
from reconciler.planning.matcher import Matching, match
from reconciler.planning.ordering import Ordered, in_order
from reconciler.planning.pruning import to_prune
from reconciler.planning.selection import Selector, selected_addresses


@dataclass(frozen=True, slots=True)
class Base:
    """The configuration at a git commit."""

    desired: Desired
    commit: str


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options of a plan.

    `rotate` are address globs whose secrets are sent again; ("*",) means all. `only` limits the
    plan to some addresses without making it a partial plan for the reader, as undo needs it.
    """

    rotate: tuple[str, ...] = ()
    allow_replace: bool = False
    selection: Selection = field(default_factory=Selection)
    only: frozenset[Address] | None = None


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What a plan depends on besides configuration, live state and policy.

    `now` is when live state was read: rules such as "end_at has passed" need it.
    """

    now: datetime
    tool_version: str
    base: Base | None = None
    options: PlanOptions = field(default_factory=PlanOptions)


def make_plan(
    desired: Desired,
    live: Live,
    policy: Policy,
    kinds: Sequence[Kind],
    *,
    context: PlanContext,
) -> Plan:
    """Return every change that turns `live` into `desired`.

    Pure: equal arguments give equal bytes. Changes are in the order in which they can be applied:
    parents first, deletions last and children first; no-ops follow, by address.

    Raises:
        AmbiguousIdentity: two live objects could be one resource, or two resources claim one
            object. Lists their ids; never picks one.

    """
    base = context.base.desired if context.base is not None else None
    by_name = {kind.name: kind for kind in kinds}
    matching = match(desired, live, policy=policy, kinds=kinds, base=base)
    ordered, notes = _decided(
        matching,
        policy,
        context.options,
        ChangeContext(by_name, live, base, context.now, context.options.rotate),
    )
    unmanaged = _unmanaged(matching, ordered.changes, by_name)
    return Plan(
        source=PlanSource(
            environment=desired.environment,
            organization=desired.organization,
            base_url=desired.base_url,
            tool_version=context.tool_version,
            config_digest=desired.digest,
            dialect=live.dialect,
            base=context.base.commit if context.base is not None else None,
        ),
        changes=ordered.changes,
        unmanaged=tuple(_described(unmanaged, live, by_name)),
        ignored=tuple(_described(matching.ignored, live, by_name)),
        notes=(*notes, *_notes(matching, policy, context)),
        refusals=refusals(
            GuardContext(
                changes=ordered.changes,
                policy=policy,
                kinds=kinds,
                resources={**(base.resources if base else {}), **desired.resources},
                managed=sum(match.live is not None for match in matching.matches.values()),
                allow_replace=context.options.allow_replace,
                untouchable=matching.untouchable,
                name_cycles=ordered.name_cycles,
            )
        ),
        selection=context.options.selection,
        created_at=context.now.isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def _decided(
    matching: Matching, policy: Policy, options: PlanOptions, context: ChangeContext
) -> tuple[Ordered, tuple[Note, ...]]:
    """Return the changes in order, no-ops last, and notes."""
    parent_kinds = frozenset(kind.parent for kind in context.kinds.values() if kind.parent)
    selector = Selector(options.selection, parent_kinds)
    selected, selection_notes = selected_addresses(matching.matches, selector)
    if options.only is not None:
        selected &= options.only
    changes: list[Change] = []
    no_ops: list[Change] = []
    notes = list(selection_notes)
    for address in sorted(selected):
        decided, resource_notes = resource_changes(matching.matches[address], context)
        mark = matching.matches[address].resource.mark
        for change in decided:
            if change.action is Action.NO_OP:
                no_ops.append(change)
            else:
                changes.append(replace(change, at=mark))
        notes += resource_notes
    changes += (
        deletion_of(pruned.match, pruned.live, pruned.reason, context)
        for pruned in to_prune(matching, policy, context.kinds)
        if selector.selects(
            pruned.match.resource.address, pruned.parent.key if pruned.parent else None
        )
    )
    ordered = in_order(changes, context.kinds)
    return replace(ordered, changes=(*ordered.changes, *no_ops)), tuple(notes)


def _unmanaged(
    matching: Matching, changes: Iterable[Change], kinds: Mapping[str, Kind]
) -> list[LiveObject]:
    """Return the objects that no resource claims, except deleted ones and children of those."""
    deleted = {
        (change.address.kind, change.live_id)
        for change in changes
        if change.action is Action.DELETE
    }
    removed = [match.live for match in matching.removed.values() if match.live is not None]
    unmanaged = [
        item
        for item in (*matching.unmanaged, *removed)
        if not {(item.kind, item.id), (kinds[item.kind].parent, item.parent_id)} & deleted
    ]
    return sorted(unmanaged, key=lambda item: (item.kind, item.name, item.id))


def _described(
    objects: Iterable[LiveObject], live: Live, kinds: Mapping[str, Kind]
) -> Iterator[Unmanaged]:
    names = {(kind, item.id): item.name for kind in kinds for item in live.of(kind)}
    for item in objects:
        address = Address.of_unmanaged(item.kind, item.id)
        parent = (kinds[item.kind].parent or "", item.parent_id or "")
        yield Unmanaged(address, item.name, item.parent_id, names.get(parent))


def _notes(matching: Matching, policy: Policy, context: PlanContext) -> Iterator[Note]:
    if context.base is None:
        yield Note(
            "no-git-base",
            "no git base. Removed resources, the origin of differences and changed secret "
            "references are not detected. Use --base REF.",
        )
    kept = [
        str(address)
        for address in sorted(matching.removed)
        if policy.prune_of(address.kind) is Prune.NEVER
    ]
    if kept:
        yield Note(
            "removed-but-kept",
            f"removed from the configuration but still live: {', '.join(kept)}; to delete, use "
            "`prune: git`, `prune: true` or `state: absent`",
        )
    for address, near in matching.near_names:
        yield Note(
            "near-name",
            f"{address} is created although {quoted(near.name)} (id {printable(near.id)}) differs "
            "from its name in case only; newer servers refuse that",
        )
