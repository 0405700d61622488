"""Match resources with live objects, by id, name and former name; report what is ambiguous."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.kind import Kind, containers
from reconciler.model.live import (
    OTHER_TOOL,
    Identity,
    Live,
    LiveObject,
    is_of_other_tool,
    is_same_id,
)
from reconciler.model.plan import AMBIGUOUS, UNRESOLVED, Refusal, Unmanaged
from reconciler.model.resource import (
    DEFAULT_LIFECYCLE,
    Desired,
    Entry,
    ParentRef,
    Resource,
    State,
)
from reconciler.model.settings import Policy
from reconciler.model.text import fits_any, listed, printable, quoted, several
from reconciler.model.values import MISSING, Address, Path, SecretSource, secret_refs, value_at
from reconciler.planning.compare import difference
from reconciler.planning.inventory import Applied, Declared, Inventory

SecretId: TypeAlias = SecretSource | str
"""What a secret is known by: its reference, or the content of a tracked file."""
_MOST_LISTED = 10


class Match(Struct, frozen=True, gc=False):
    """A resource and its live object, None if it does not exist.

    `parent_id` is the live id of its parent, None if that does not exist yet or there is none.
    `moved`: the object has another parent than the configuration says.
    """

    resource: Resource
    kind: Kind
    live: LiveObject | None = None
    parent_id: str | None = None
    parent_address: Address | None = None
    moved: bool = False


# With a dict, since cached properties need one.
class Matching(Struct, frozen=True, dict=True):
    """The outcome: every resource with its object, and the objects that no resource claims.

    live
        The live state.
    kinds
        All kinds by name, parents first.
    inventory
        What was applied, empty if that is not known.
    removed
        The objects of entries that no resource claims and whose address is not declared.
    left
        Those that must not be deleted, each with the reason.
    replaced
        The recorded objects of resources that have another one now, by the address of the resource.
    left_by_moves
        Those of them that a move that was cut short left in another project.
    gone
        Removed entries whose object does not exist.
    untouchable
        Resources whose own name, or that of the object they pin, is in `policy.ignore`.
    ambiguous
        Resources that may have one of several objects, or name what does not exist.
    undecided
        The objects that may be theirs, with the addresses. No resource has them.
    unclear
        What is ambiguous or unknown, with the lines to paste.
    """

    live: Live
    kinds: Mapping[str, Kind]
    matches: Mapping[Address, Match]
    removed: Mapping[Address, Match]
    unmanaged: tuple[LiveObject, ...]
    ignored: tuple[LiveObject, ...]
    untouchable: Mapping[Address, Match]
    ambiguous: Mapping[Address, Match] = field(default_factory=dict)
    undecided: Mapping[Identity, Sequence[Address]] = field(default_factory=dict)
    unclear: tuple[Refusal, ...] = ()
    inventory: Inventory = field(default_factory=Inventory)
    left: Mapping[Address, str] = field(default_factory=dict)
    replaced: Mapping[Address, LiveObject] = field(default_factory=dict)
    left_by_moves: Mapping[Address, LiveObject] = field(default_factory=dict)
    gone: Mapping[Address, Entry] = field(default_factory=dict)

    def declared(self, resource: Resource, live: LiveObject | None) -> Declared:
        """Return how the object of a resource was applied."""
        return self.inventory.declared(resource.address, live)

    @cached_property
    def owners(self) -> Mapping[Identity, Address]:
        """The resources of live objects."""
        pairs = self.matches.items()
        return {pair.live.identity: address for address, pair in pairs if pair.live is not None}

    def secrets_of(self, address: Address, entry: Applied) -> AbstractSet[SecretId]:
        """Return what the secrets are known by that were sent to the object of an entry.

        Files that were not committed are not known: what has the same hash today was sent.
        """
        was, contents, owner = entry.was, entry.contents, self.owners.get((address.kind, entry.id))
        if was is None and owner and entry.secrets == self.inventory.hashes.get(owner):
            was, contents = self.matches[owner].resource, self.inventory.contents
        refs = secret_refs(was.spec) if was is not None else ()
        return {item for _, ref in refs for of in ref.sources for item in ids_of(of, contents)}

    def name_before(self, address: Address) -> str | None:
        """Return the name of the recorded object that a create leaves because of a variable.

        The files at its commit declare another name than the recorded one: only a variable that
        the name reads can have changed since.
        """
        entry, match = self.inventory.every.get(address), self.matches.get(address)
        if entry is None or entry.was is None or match is None or match.live is not None:
            return None
        live = self.live.by_identity.get((address.kind, entry.id))
        if live is None or live.identity in self.owners or live in self.ignored:
            return None
        return entry.name if live.name.strip() == entry.name != entry.was.name else None

    @property
    def resources(self) -> Mapping[Address, Match]:
        """The resources, with those that the policy ignores and ambiguous ones."""
        return {**self.matches, **self.untouchable, **self.ambiguous}

    @cached_property
    def _parent_names(self) -> Mapping[tuple[str, str], str]:
        kinds = containers(self.kinds.values())
        return {(kind, item.id): item.name for kind in kinds for item in self.live.of(kind)}

    def parent_name(self, kind: str, parent_id: str | None) -> str | None:
        """Return the name of the parent of a live object of a kind, None if it is unknown."""
        return self._parent_names.get((self.kinds[kind].parent or "", parent_id or ""))

    def parent_of(self, match: Match, parent_id: str | None) -> str | None:
        """Return the name of a parent: the live one, or the declared one if it does not exist."""
        kind, ref = match.kind, match.resource.parent
        if kind.parent is None or parent_id is not None:
            return self.parent_name(kind.name, parent_id)
        if ref is None or ref.key is None:
            return ref.name if ref is not None else None
        parent = self.resources.get(Address(kind.parent, ref.key))
        return parent.resource.name if parent is not None else None

    @cached_property
    def _children(self) -> Mapping[Identity, Sequence[LiveObject]]:
        children = defaultdict[Identity, list[LiveObject]](list)
        for child in self.live.by_identity.values():
            children[self.kinds[child.kind].parent or "", child.parent_id or ""].append(child)
        return children

    def children(self, parent: LiveObject) -> Sequence[LiveObject]:
        """Return the live children of an object, managed or not."""
        children = self._children.get(parent.identity, ())
        return sorted(children, key=lambda child: (child.name, child.id))


def ids_of(source: SecretSource, contents: Mapping[str, str]) -> Sequence[SecretId]:
    """Return what a secret is known by, with the ids of the contents of tracked files."""
    return (source, contents[source.origin]) if source.origin in contents else (source,)


def match(
    desired: Desired,
    live: Live,
    *,
    policy: Policy,
    kinds: Sequence[Kind],
    inventory: Inventory | None = None,
) -> Matching:
    """Match every resource with its live object."""
    ignored = {
        item.identity: item
        for kind in kinds
        for item in live.of(kind.name)
        if policy.ignore and _is_ignored(item.name, policy)
    }
    declared = desired.in_order()
    untouchable = {
        item.address: item
        for item in declared
        if policy.ignore
        and (_is_ignored(item.name, policy) or (item.address.kind, item.pinned_id) in ignored)
    }
    by_name = {kind.name: kind for kind in kinds}
    inventory = (inventory or Inventory()).counted(live)
    matcher = _Matcher(live, inventory, by_name, frozenset(ignored), untouchable.keys())
    for kind in kinds:
        matcher.match_kind(kind, [item for item in declared if item.address.kind == kind.name])
    matcher.claim_removed()
    unmanaged = tuple(
        item
        for kind in kinds
        for item in sorted(filter(matcher.is_free, live.of(kind.name)), key=_place)
    )
    return Matching(
        live=live,
        kinds=by_name,
        matches=matcher.matches,
        removed=matcher.removed,
        unmanaged=unmanaged,
        ignored=tuple(sorted(ignored.values(), key=_place)),
        untouchable={
            address: matcher.with_parent(by_name[address.kind], untouchable[address])
            for address in sorted(untouchable)
        },
        ambiguous=matcher.ambiguous,
        undecided={
            identity: addresses
            for identity, addresses in matcher.claims.items()
            if not matcher.ambiguous.keys().isdisjoint(addresses)
        },
        unclear=tuple(matcher.unclear),
        inventory=inventory,
        left=matcher.left,
        replaced=matcher.replaced,
        left_by_moves=matcher.left_by_moves,
        gone=matcher.gone,
    )


def _is_ignored(name: str, policy: Policy) -> bool:
    return fits_any(name.strip(), policy.ignore)


def _place(live: LiveObject) -> tuple[str, str, str]:
    return (live.kind, live.name, live.id)


# Without slots, since cached properties need a dict.
class _Matcher(Struct, dict=True):
    """The kinds that are matched so far, parents first."""

    live: Live
    inventory: Inventory
    kinds: Mapping[str, Kind]
    ignored: frozenset[tuple[str, str]]
    untouchable: AbstractSet[Address]
    matches: dict[Address, Match] = field(default_factory=dict)
    removed: dict[Address, Match] = field(default_factory=dict)
    left: dict[Address, str] = field(default_factory=dict)
    replaced: dict[Address, LiveObject] = field(default_factory=dict)
    left_by_moves: dict[Address, LiveObject] = field(default_factory=dict)
    gone: dict[Address, Entry] = field(default_factory=dict)
    claims: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    ambiguous: dict[Address, Match] = field(default_factory=dict)
    unclear: list[Refusal] = field(default_factory=list)
    names: dict[str, Names] = field(default_factory=dict)

    def match_kind(self, kind: Kind, resources: Sequence[Resource]) -> None:
        """Match by one rule after the other, each for all resources that have no object yet.

        What an earlier rule claimed, a later one does not see.
        """
        objects = self.live.of(kind.name)
        names = self.names[kind.name] = Names({item.id: item for item in objects})
        own = [item for item in resources if item.address not in self.untouchable]
        starts = self._placed([self.with_parent(kind, resource) for resource in own])
        left = [start for start in starts if start.resource.pinned_id is None]
        for start in starts:
            if start.resource.pinned_id is not None:
                self._match_pinned(start, names.by_id)
        for rule in (self._recorded_in_place, self._named, self._recorded, self._of_former_name):
            pairs = [(start, self._every(start, rule(start, left), left)) for start in left]
            for start, candidates in pairs:
                if candidates:
                    self._claim_single(start, candidates)
            left = [start for start, candidates in pairs if not candidates]
        for start in left:
            self._claim(start, None)
        self._refuse_shared(kind)
        for address, start in self.ambiguous.items():
            entry = self.inventory.entries.get(address)
            for live_id in (start.resource.pinned_id, entry.id if entry is not None else None):
                if address.kind == kind.name and live_id in names.by_id:
                    self.claims.setdefault((kind.name, live_id or ""), [address])

    def is_free(self, live: LiveObject) -> bool:
        """Return whether no resource claims an object and the policy does not ignore it."""
        place = live.identity
        return place not in self.claims and place not in self.ignored

    def claim_removed(self) -> None:
        """Claim the objects of entries that no resource has, and note why they must stay.

        Resources without a match are declared, so nothing of them leaves.
        """
        entries = self.inventory.entries
        for address in sorted(entries.keys() - self.untouchable - self.ambiguous.keys()):
            entry = entries[address]
            identity = (address.kind, entry.id)
            live, match = self.live.by_identity.get(identity), self.matches.get(address)
            if live is None and match is None and (address.kind, entry.parent) not in self.unread:
                self.gone[address] = entry
            if live is None or identity in self.claims:
                continue
            kind = self.kinds[address.kind]
            parent = self.live.by_identity.get((kind.parent or "", live.parent_id or ""))
            reason = self.inventory.reason_to_keep(address, live, parent)
            if identity in self.ignored:
                reason = "named in `policy.ignore`"
            elif is_of_other_tool(live.name):
                reason = f"also managed by {OTHER_TOOL}"
            if match is not None:
                if match.resource.state is State.PRESENT:
                    self.replaced[address] = live
                    is_moved = match.live is not None and not _is_in_place(match, live)
                    if is_moved and match.resource.pinned_id is None and not reason:
                        self.left_by_moves[address] = live
                continue
            trusted = self.inventory.trusted.get(address)
            kept = trusted.lifecycle if trusted is not None else DEFAULT_LIFECYCLE
            was = entry.was or Resource(address, {"name": live.name}, lifecycle=kept)
            self.claims[identity] = [address]
            self.removed[address] = Match(was, kind, live, live.parent_id)
            if reason:
                self.left[address] = reason

    @cached_property
    def unread(self) -> Collection[tuple[str, str | None]]:
        """The kinds and parents whose objects were not read."""
        return {
            (kind.name, parent)
            for kind in self.kinds.values()
            for of, parent in self.live.unread
            if kind.parent == of
        }

    def _refuse_shared(self, kind: Kind) -> None:
        """Refuse the resources that have the same object, or one that may be that of another."""
        for (name, live_id), addresses in sorted(self.claims.items()):
            if name != kind.name or len(addresses) == 1 or self.ambiguous.keys() >= {*addresses}:
                continue
            ordered = sorted(addresses)
            first = (self.matches.get(ordered[0]) or self.ambiguous[ordered[0]]).resource
            self.unclear.append(
                Refusal(
                    AMBIGUOUS,
                    f"{listed(ordered, _MOST_LISTED)} match the same live {kind.name}, "
                    f"id {printable(live_id)}",
                    tuple(ordered),
                    first.near(("name",)),
                    "give all but one of them another name, or pin them by `id`; "
                    + _without(first),
                )
            )
            for address in ordered:
                if address in self.matches:
                    self.ambiguous[address] = self.matches.pop(address)

    def _refuse(
        self,
        start: Match,
        rule: str,
        problem: str,
        fix: str,
        *,
        at: Path = ("name",),
        candidates: Sequence[LiveObject] = (),
    ) -> None:
        """Leave a resource undecided. `candidates` are the objects of which one may be its own."""
        resource = start.resource
        self.ambiguous[resource.address] = start
        for item in candidates:
            self.claims.setdefault(item.identity, []).append(resource.address)
        self.unclear.append(
            Refusal(
                rule,
                f"{resource.address}: {problem}",
                (resource.address,),
                resource.near(at),
                f"{fix}; {_without(resource)}",
                objects=tuple(Unmanaged.of(item, None) for item in candidates),
            )
        )

    def _placed(self, starts: Sequence[Match]) -> list[Match]:
        """Return the resources whose parent is known or to be created. Refuse the others."""
        placed: list[Match] = []
        inside = defaultdict[Address, list[Resource]](list)
        for start in starts:
            ref, kind = start.resource.parent, start.kind
            ids = self._parent_ids(kind.parent, ref) if kind.parent and ref is not None else [""]
            parent = start.parent_address
            if parent is not None and (parent in self.ambiguous or parent in self.untouchable):
                self.ambiguous[start.resource.address] = start
                inside[parent].append(start.resource)
            elif ref is not None and ref.name is not None and len(ids) != 1:
                below = str(kind.parent_key)
                choice = f"one of {', '.join(ids)}" if ids else "the id of an existing one"
                same = (kind.parent, ref.name.strip())
                present = [it.resource for it in self.matches.values() if _is_present(it)]
                keys = [it.address.key for it in present if (it.address.kind, it.name) == same]
                self._refuse(
                    start,
                    AMBIGUOUS if ids else UNRESOLVED,
                    f"{len(ids) or 'no'} live {kind.parent}s are named {quoted(ref.name)}",
                    f"set `{below}: {keys[0]}`, its key in the files"
                    if len(keys) == 1
                    else f"name it by id: {below}: {{id: …}} with {printable(choice)}",
                    at=(below,),
                )
            elif ref is not None and ref.id is not None and not ids and _is_present(start):
                below = str(kind.parent_key)
                self._refuse(
                    start,
                    UNRESOLVED,
                    f"no live {kind.parent} has the id {quoted(ref.id)}",
                    f"correct the id as the service writes it, or use {below}: {{name: …}}",
                    at=(below, "id"),
                )
            else:
                placed.append(start)
        self._refuse_inside(inside)
        return placed

    def _refuse_inside(self, inside: Mapping[Address, Sequence[Resource]]) -> None:
        """Refuse the resources in projects of which no object is known."""
        for parent, resources in inside.items():
            rule, why = AMBIGUOUS, "is ambiguous"
            if parent in self.untouchable:
                rule, why = "ignore", "matches `policy.ignore`"
            self.unclear.append(
                Refusal(
                    rule,
                    f"{several(len(resources), 'resource')} in {parent}, which {why}",
                    tuple(item.address for item in resources),
                    resources[0].mark,
                    f"correct {parent} first; to plan without them, pass --exclude for each",
                )
            )

    def with_parent(self, kind: Kind, resource: Resource) -> Match:
        """Return the resource with its parent, resolved as far as it exists."""
        ref = resource.parent
        if ref is None or kind.parent is None:
            return Match(resource, kind)
        address = Address(kind.parent, ref.key) if ref.key is not None else None
        ids = self._parent_ids(kind.parent, ref)
        parent_id = ids[0] if len(ids) == 1 else None
        return Match(resource, kind, parent_id=parent_id, parent_address=address)

    def _parent_ids(self, kind: str, ref: ParentRef) -> list[str]:
        """Return the ids of the live objects that a reference may mean: several of one name."""
        if ref.key is not None:
            pair = self.matches.get(Address(kind, ref.key))
            return [pair.live.id] if pair is not None and pair.live is not None else []
        if ref.id is not None:
            return [ref.id] if ref.id in self.names[kind].by_id else []
        named = self.names[kind].named(None, (ref.name or "").strip())
        return sorted(item.id for item in named)

    def _in_place_named(self, start: Match, name: str) -> list[LiveObject]:
        """Return the objects of a name in the place of a resource, without ignored ones."""
        if start.resource.parent is not None and start.parent_id is None:
            return []
        named = self.names[start.kind.name].named(start.parent_id, name.strip())
        return [item for item in named if item.identity not in self.ignored]

    def _match_pinned(self, start: Match, by_id: Mapping[str, LiveObject]) -> None:
        resource, pinned_id = start.resource, str(start.resource.pinned_id)
        live, pinned = by_id.get(pinned_id), quoted(pinned_id)
        other = next((item for item in by_id if live is None and is_same_id(item, pinned_id)), None)
        if live is not None or (other is None and not _is_present(start)):
            self._claim(start, live)
            return
        remove = f"remove the id of {resource.address} to match it by name or create it"
        self._refuse(
            start,
            UNRESOLVED,
            f"no live {resource.address.kind} has the id {pinned}",
            f"write it as the service does: `id: {other}`"
            if other
            else f"{remove}, or correct the id",
            at=("id",),
            candidates=[by_id[other]] if other else (),
        )

    def _claim_single(self, start: Match, candidates: Sequence[LiveObject]) -> None:
        """Claim the only candidate. Refuse a choice, whose objects are listed by age."""
        if len(candidates) == 1:
            self._claim(start, candidates[0])
            return
        kind, address, by_age = start.kind, start.resource.address, sorted(candidates, key=_age)
        former = {name.strip() for name in start.resource.lifecycle.renamed_from}
        names, places = {item.name.strip() for item in by_age}, {item.parent_id for item in by_age}
        those = f"named {quoted(by_age[0].name)}" if len(names) == 1 else "it by their names"
        shown = [
            about(kind, item)
            + (f", name {quoted(item.name)}" if len(names) > 1 else "")
            + (f", {kind.parent} {item.parent_id}" if len(places) > 1 else "")
            for item in by_age
        ]
        more = f"; and {len(shown) - _MOST_LISTED} more" if len(shown) > _MOST_LISTED else ""
        pin = f"{kind.collection}: {{{address.key}: {{id: {printable(by_age[0].id)}}}}}"
        self._refuse(
            start,
            AMBIGUOUS,
            f"{len(by_age)} live {kind.collection} {'are' if len(names) == 1 else 'may be'} "
            f"{those}: {'; '.join(shown[:_MOST_LISTED])}{more}",
            f"keep only the intended name in `lifecycle.renamed_from`, or pin it: {pin}"
            if len(names) > 1 and names <= former
            else f"pin the intended one: {pin}, and declare or delete the other",
            candidates=by_age,
        )

    def _claim(self, start: Match, live: LiveObject | None) -> None:
        address = start.resource.address
        if live is not None:
            self.claims.setdefault(live.identity, []).append(address)
            has_parent = start.parent_address is not None or start.parent_id is not None
            moved = has_parent and live.parent_id != start.parent_id
            start = replace(start, live=live, moved=moved)
        self.matches[address] = start

    def _of_entry(self, start: Match) -> LiveObject | None:
        """Return the unclaimed object that the inventory has for a resource."""
        entry = self.inventory.entries.get(start.resource.address)
        live = self.names[start.kind.name].by_id.get(entry.id) if entry is not None else None
        return live if live is not None and self.is_free(live) else None

    def _recorded_in_place(self, start: Match, left: Sequence[Match]) -> list[LiveObject]:
        """Return the recorded object, if it is in the declared project.

        With another name than the declared one, it is ambiguous beside an object of that name,
        unless that is the recorded object of another resource.
        """
        live = self._of_entry(start)
        if live is None or not _is_in_place(start, live):
            return []
        if live.name.strip() == start.resource.name:
            return [live]
        recorded = {item.id for item in map(self._of_entry, left) if item is not None}
        return [live, *(item for item in self._free_named(start) if item.id not in recorded)]

    def _every(
        self, start: Match, candidates: list[LiveObject], left: Sequence[Match]
    ) -> list[LiveObject]:
        """Return the candidates of a rule, and of a resource to delete what has a name of it.

        The next plan would find that, and delete it, too.
        """
        if not candidates or _is_present(start):
            return candidates
        others = {item.id for item in (*candidates, *map(self._of_entry, left)) if item is not None}
        named = (*self._free_named(start), *self._of_former_name(start, left))
        more = {item.id: item for item in named if item.id not in others}
        return [*candidates, *more.values()]

    def _named(self, start: Match, _: Sequence[Match]) -> list[LiveObject]:
        """Return the unclaimed object of the declared name in the declared project.

        If the recorded object is in another project, it is a move that was cut short if nothing
        but secrets would change, and ambiguous otherwise, also for what is to be deleted.
        """
        named, live = self._free_named(start), self._of_entry(start)
        if live is None or len(named) != 1:
            return named
        differs = difference(start.kind, start.resource, named[0], Declared())
        is_done = start.resource.state is State.PRESENT and not (differs.changes or differs.toggles)
        return named if is_done else [*named, live]

    def _recorded(self, start: Match, _: Sequence[Match]) -> list[LiveObject]:
        """Return the recorded object in another project: a move."""
        live = self._of_entry(start)
        return [live] if live is not None else []

    def _free_named(self, start: Match) -> list[LiveObject]:
        named = self._in_place_named(start, start.resource.name)
        return [item for item in named if self.is_free(item)]

    def _of_former_name(self, start: Match, _: Sequence[Match]) -> list[LiveObject]:
        """Return the unclaimed objects of all former names: none of them counts more."""
        names = start.resource.lifecycle.renamed_from
        objects = (item for name in names for item in self._in_place_named(start, name))
        return self._renamable(start, {item.id: item for item in objects}.values())

    def _renamable(self, start: Match, objects: Iterable[LiveObject]) -> list[LiveObject]:
        """Return the unclaimed objects that may be a resource, by another name than its own.

        Another tool finds some by their names, and others are declared to be beside it.
        """
        return [
            item
            for item in objects
            if self.is_free(item)
            and not is_of_other_tool(item.name)
            and not start.resource.lifecycle.is_beside(item.name, item.address)
        ]


def _is_present(match: Match) -> bool:
    return match.resource.state is State.PRESENT


def _without(resource: Resource) -> str:
    return f"to plan without it, pass --exclude {resource.address}"


def _age(live: LiveObject) -> tuple[str, str]:
    return (str(live.body.get("created_at")), live.id)


def about(kind: Kind, live: LiveObject) -> str:
    """Return the id of an object, when it was created and when it ran last."""
    parts = [f"id {printable(live.id)}"]
    if isinstance(created := live.body.get("created_at"), str):
        parts.append(f"created {printable(created[:10])}")
    last = value_at(live.body, kind.activity) if kind.activity else MISSING
    if isinstance(last, str):
        parts.append(f"last run {printable(last[:16])}")
    return ", ".join(parts)


def _is_in_place(match: Match, live: LiveObject) -> bool:
    """Return whether an object is where the configuration places the resource."""
    return match.resource.parent is None or live.parent_id == match.parent_id


# With a dict, since cached properties need one.
class Names(Struct, frozen=True, dict=True):
    """The live objects of one kind by id, and by name below a parent and anywhere."""

    by_id: Mapping[str, LiveObject]

    def named(self, parent_id: str | None, name: str) -> Sequence[LiveObject]:
        """Return the objects of a name below a parent, or anywhere without one.

        An export of the organization may be in any project.
        """
        return self._index.get((parent_id, name), ())

    @cached_property
    def _index(self) -> Mapping[tuple[str | None, str], Sequence[LiveObject]]:
        index: dict[tuple[str | None, str], list[LiveObject]] = defaultdict(list)
        for item in self.by_id.values():
            for parent_id in {item.parent_id, None}:
                index[parent_id, item.name.strip()].append(item)
        return index
