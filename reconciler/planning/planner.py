"""Decides every change. A pure function of its arguments: no I/O, no clock, no randomness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note, Plan, PlanSource, Selection, Unmanaged
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Desired
from reconciler.model.wording import printable, quoted
from reconciler.planning.changes import PlanContext, deletion_of, resource_changes
from reconciler.planning.guards import Proposal, refusals
from reconciler.planning.matcher import Matching, match
from reconciler.planning.ordering import in_order
from reconciler.planning.pruning import PrunedObject, to_prune
from reconciler.planning.selection import is_selected, selected_addresses


@dataclass(frozen=True, slots=True)
class Base:
    """The workspace as it stands at a git commit."""

    desired: Desired
    commit: str


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options of one plan.

    `rotate` are address globs whose secrets are sent again; ("*",) means all. `only` limits the
    plan to some addresses without making it a partial plan for the reader, as undo needs it.
    """

    rotate: tuple[str, ...] = ()
    allow_replace: bool = False
    selection: Selection = field(default_factory=Selection)
    only: frozenset[Address] | None = None


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a plan depends on besides files, API and policy.

    `now` is when the live side was read: rules such as "end_at has passed" need it, and a pure
    function can't look at a clock.
    """

    now: datetime
    tool_version: str
    base: Base | None = None
    options: PlanOptions = field(default_factory=PlanOptions)

    @property
    def timestamp(self) -> str:
        """`now` as plans show it: ISO 8601, to the second, in UTC."""
        return self.now.isoformat(timespec="seconds").replace("+00:00", "Z")


def make_plan(
    desired: Desired,
    live: Live,
    policy: Policy,
    kinds: Sequence[Kind],
    *,
    given: Circumstances,
) -> Plan:
    """Decide every change that turns `live` into `desired`.

    Pure: equal arguments give equal bytes. Changes come in the order in which they can be carried
    out: parents first, deletions last and children first; no-ops follow, by address.

    Raises:
        AmbiguousIdentity: two live objects could be one resource, or two resources claim one
            object. Lists their ids; never picks one.

    """
    base = given.base.desired if given.base is not None else None
    matching = match(desired, live, policy=policy, kinds=kinds, base=base)
    context = PlanContext(
        kinds={kind.name: kind for kind in kinds},
        live=live,
        base=base,
        now=given.now,
        rotate=given.options.rotate,
    )
    pruned = tuple(_selected_pruned(to_prune(matching, policy, context), given, kinds))
    changes, notes, circles = _decided(matching, pruned, context, given, kinds)
    proposal = Proposal(
        changes=changes,
        policy=policy,
        kinds=kinds,
        resources={**(base.resources if base else {}), **desired.resources},
        managed=sum(each.live is not None for each in matching.matches.values()),
        allow_replace=given.options.allow_replace,
        untouchable=matching.untouchable,
        circles=circles,
    )
    gone = {(each.address.kind, each.live_id) for each in changes if each.action is Action.DELETE}
    return Plan(
        source=_source(desired, live, kinds, given),
        changes=changes,
        unmanaged=tuple(_told(_left_alone(matching, gone, context.kinds), live, context.kinds)),
        ignored=tuple(_told(matching.ignored, live, context.kinds)),
        notes=(*notes, *_notes(matching, policy, given)),
        refusals=refusals(proposal),
        selection=given.options.selection,
        created_at=given.timestamp,
    )


def _decided(
    matching: Matching,
    pruned: Sequence[PrunedObject],
    context: PlanContext,
    given: Circumstances,
    kinds: Sequence[Kind],
) -> tuple[tuple[Change, ...], tuple[Note, ...], tuple[tuple[Address, ...], ...]]:
    """The changes in order, what a reader must know, and names that go round in a circle."""
    selected, selection_notes = selected_addresses(matching.matches, given.options.selection, kinds)
    if given.options.only is not None:
        selected &= given.options.only
    changes: list[Change] = []
    notes = list(selection_notes)
    for address in sorted(selected):
        outcome = resource_changes(matching.matches[address], context)
        mark = matching.matches[address].resource.mark
        changes += (
            change if change.action is Action.NO_OP else replace(change, at=mark)
            for change in outcome.changes
        )
        notes += outcome.notes
    changes += [deletion_of(each.match, each.reason, context) for each in pruned]
    ordered = in_order([each for each in changes if each.action is not Action.NO_OP], kinds)
    idle = [each for each in changes if each.action is Action.NO_OP]
    return (*ordered.changes, *idle), tuple(notes), ordered.circles


def _source(
    desired: Desired, live: Live, kinds: Sequence[Kind], given: Circumstances
) -> PlanSource:
    return PlanSource(
        environment=desired.environment,
        organization=desired.organization,
        base_url=desired.base_url,
        tool_version=given.tool_version,
        config_digest=desired.digest,
        live_digest=live_digest(live, kinds),
        dialect=live.dialect,
        base=given.base.commit if given.base is not None else None,
    )


def _selected_pruned(
    pruned: Iterable[PrunedObject], given: Circumstances, kinds: Sequence[Kind]
) -> Iterator[PrunedObject]:
    roots = frozenset(kind.parent for kind in kinds if kind.parent is not None)
    for item in pruned:
        address = item.match.resource.address
        if is_selected(address, given.options.selection, parent=item.parent_word, roots=roots):
            yield item


def _left_alone(
    matching: Matching, gone: set[tuple[str, str | None]], kinds: Mapping[str, Kind]
) -> list[LiveObject]:
    """What nobody claims and nothing happens to: it does not go with a parent either."""
    removed = [each.live for each in matching.removed.values() if each.live is not None]
    objects = [
        each
        for each in (*matching.unmanaged, *removed)
        if (each.kind, each.id) not in gone
        and (kinds[each.kind].parent or "", each.parent_id) not in gone
    ]
    return sorted(objects, key=lambda each: (each.kind, each.name, each.id))


def _told(
    objects: Sequence[LiveObject], live: Live, kinds: Mapping[str, Kind]
) -> Iterator[Unmanaged]:
    names = {(each.kind, each.id): each.name for found in live.objects.values() for each in found}
    for each in objects:
        parent_kind = kinds[each.kind].parent
        parent_name = names.get((parent_kind, each.parent_id)) if parent_kind else None  # type: ignore[arg-type]
        yield Unmanaged(
            Address.of_unmanaged(each.kind, each.id), each.name, each.parent_id, parent_name
        )


def _notes(matching: Matching, policy: Policy, given: Circumstances) -> Iterator[Note]:
    if given.base is None:
        yield Note(
            "no-git-base",
            "without a git base (--base REF) it can't be told what was removed from the files, "
            "which side a difference comes from, or whether a secret reference changed",
        )
    elif matching.removed:
        kept = [
            address
            for address in sorted(matching.removed)
            if policy.prune_of(address.kind) is Prune.NEVER
        ]
        if kept:
            yield Note(
                "removed-but-kept",
                f"removed from the files and still live: {', '.join(map(str, kept))}; nothing is "
                "deleted without `prune: git`, `prune: true` or `state: absent`",
            )
    for address, near in matching.near_names:
        yield Note(
            "near-name",
            f"{address} will be created although {quoted(near.name)} (id {printable(near.id)}) "
            "differs from its name in case only; newer servers refuse that",
        )


def live_digest(live: Live, kinds: Sequence[Kind]) -> str:
    """SHA-256 (hex) over what files can manage of every object that was read, in any order."""
    digest = sha256()
    for kind in kinds:
        names = [each.name for each in kind.fields if not each.secret]
        for each in sorted(live.of(kind.name), key=lambda each: each.id):
            kept = {name: each.body[name] for name in names if name in each.body}
            digest.update(canonical_text([kind.name, each.id, each.parent_id, kept]).encode())
    return digest.hexdigest()
