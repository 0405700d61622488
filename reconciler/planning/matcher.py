"""Match resources with live objects, by id, name and former name; report what is ambiguous."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address, fits_any
from reconciler.model.inventory import Entry
from reconciler.model.kind import Kind, containers
from reconciler.model.live import Identity, Live, LiveObject, is_same_id, other_tool_of
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.text import printable, quoted
from reconciler.model.values import MISSING, value_at
from reconciler.planning.differ import difference
from reconciler.planning.inventory import Declared, Inventory

_Key = TypeVar("_Key")


class Ambiguities(Struct):
    """The problems of one matching, with their hints and the objects to look at."""

    problems: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    candidates: set[tuple[str, str]] = field(default_factory=set)

    def add(self, problem: str, hint: str, candidates: Sequence[LiveObject] = ()) -> None:
        """Add a problem. `candidates` are the objects of which one may be the right one."""
        self.problems.append(problem)
        self.hints.append(hint)
        self.candidates |= {item.identity for item in candidates}

    def add_choice(
        self,
        kind: Kind,
        resource: Resource,
        problem: str,
        objects: Sequence[LiveObject],
    ) -> None:
        """Add a choice between objects, which are listed by age. The oldest is in the hint.

        With a single object, the choice is between it and none.
        """
        by_age = sorted(objects, key=_age)
        collection, former_names = kind.collection, resource.lifecycle.renamed_from
        pin = f"{collection}: {{{resource.address.key}: {{id: {printable(by_age[0].id)}}}}}"
        names, places = {item.name.strip() for item in by_age}, {item.parent_id for item in by_age}
        listed = [
            f"  {printable(_shown(kind, item))}"
            + (f"   name {quoted(item.name)}" if len(names) > 1 else "")
            + (f"   {kind.parent} {item.parent_id}" if len(places) > 1 else "")
            for item in by_age
        ]
        hint = f"pin the intended one: {pin}, and declare or delete the other"
        if len(names) > 1 and names <= set(map(str.strip, former_names)):
            hint = f"keep only the intended name in `lifecycle.renamed_from`, or pin it: {pin}"
        if len(by_age) == 1:
            hint = f"pin it: {pin}, or declare it by another key or delete it"
        self.add("\n".join([f"{resource.located(('name',))}: {problem}", *listed]), hint, by_age)

    def raise_any(self) -> None:
        """Raise AmbiguousIdentity for all problems, if there are any."""
        if self.problems:
            raise self.error()

    def error(self) -> AmbiguousIdentity:
        """Return the exception for all problems."""
        return AmbiguousIdentity(
            "\n".join(self.problems),
            hint="\n".join(self.hints),
            candidates=tuple(sorted(self.candidates)),
        )


def _age(live: LiveObject) -> tuple[str, str]:
    return (str(live.body.get("created_at")), live.id)


def _shown(kind: Kind, live: LiveObject) -> str:
    last = value_at(live.body, kind.activity) if kind.activity else MISSING
    run = "" if last in (MISSING, None) else f", last run {last}"
    return f"id: {live.id}   created {live.body.get('created_at')}{run}"


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
        What was applied, None if that is not known.
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
    """

    live: Live
    kinds: Mapping[str, Kind]
    matches: Mapping[Address, Match]
    removed: Mapping[Address, Match]
    unmanaged: tuple[LiveObject, ...]
    ignored: tuple[LiveObject, ...]
    untouchable: Mapping[Address, Match]
    inventory: Inventory | None = None
    left: Mapping[Address, str] = field(default_factory=dict)
    replaced: Mapping[Address, LiveObject] = field(default_factory=dict)
    left_by_moves: Mapping[Address, LiveObject] = field(default_factory=dict)
    gone: Mapping[Address, Entry] = field(default_factory=dict)

    def declared(self, resource: Resource, live: LiveObject | None) -> Declared:
        """Return how the object of a resource was applied."""
        inventory = self.inventory
        return inventory.declared(resource.address, live) if inventory is not None else Declared()

    @cached_property
    def owners(self) -> Mapping[Identity, Address]:
        """The resources of live objects."""
        return owners_of(self.matches)

    @property
    def resources(self) -> Mapping[Address, Match]:
        """The resources, with those that the policy ignores."""
        return {**self.matches, **self.untouchable} if self.untouchable else self.matches

    @cached_property
    def _parent_names(self) -> Mapping[tuple[str, str], str]:
        kinds = containers(self.kinds.values())
        return {(kind, item.id): item.name for kind in kinds for item in self.live.of(kind)}

    def parent_name(self, kind: str, parent_id: str | None) -> str | None:
        """Return the name of the parent of a live object of a kind, None if it is unknown."""
        return self._parent_names.get((self.kinds[kind].parent or "", parent_id or ""))


def owners_of(matches: Mapping[Address, Match]) -> Mapping[Identity, Address]:
    """Return the addresses of live objects."""
    pairs = matches.items()
    return {match.live.identity: address for address, match in pairs if match.live is not None}


def match(
    desired: Desired,
    live: Live,
    *,
    policy: Policy,
    kinds: Sequence[Kind],
    inventory: Inventory | None = None,
) -> Matching:
    """Match every resource with its live object.

    Raises:
        AmbiguousIdentity: two live objects could be one resource, two resources claim one
            object, a pinned id or a parent does not exist. Lists all of them, with ids and the
            lines to paste.

    """
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
    if inventory is not None:
        inventory = inventory.counted(live, by_name)
    matcher = _Matcher(live, inventory or Inventory(), by_name, frozenset(ignored))
    for kind in kinds:
        own = [resource for resource in declared if resource.address.kind == kind.name]
        matcher.match_kind(kind, [item for item in own if item.address not in untouchable])
    matcher.raise_problems()
    matcher.claim_removed(untouchable)
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
    matches: dict[Address, Match] = field(default_factory=dict)
    removed: dict[Address, Match] = field(default_factory=dict)
    left: dict[Address, str] = field(default_factory=dict)
    replaced: dict[Address, LiveObject] = field(default_factory=dict)
    left_by_moves: dict[Address, LiveObject] = field(default_factory=dict)
    gone: dict[Address, Entry] = field(default_factory=dict)
    claims: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    ambiguities: Ambiguities = field(default_factory=Ambiguities)
    names: dict[str, Names] = field(default_factory=dict)

    def match_kind(self, kind: Kind, resources: Sequence[Resource]) -> None:
        """Match by one rule after the other, each for all resources that have no object yet.

        What an earlier rule claimed, a later one does not see.
        """
        objects = self.live.of(kind.name)
        names = self.names[kind.name] = Names({item.id: item for item in objects})
        left: list[Match] = []
        for start in [self.with_parent(kind, resource) for resource in resources]:
            if start.resource.pinned_id is not None:
                self._match_pinned(start, names.by_id)
            else:
                left.append(start)
        for rule in (self._recorded_in_place, self._named, self._recorded, self._of_former_name):
            pairs = [(start, rule(start, left)) for start in left]
            for start, candidates in pairs:
                if candidates:
                    self._claim_single(start, candidates)
            left = [start for start, candidates in pairs if not candidates]
        for start in left:
            self._claim(start, None)

    def is_free(self, live: LiveObject) -> bool:
        """Return whether no resource claims an object and the policy does not ignore it."""
        place = live.identity
        return place not in self.claims and place not in self.ignored

    def claim_removed(self, untouchable: Container[Address]) -> None:
        """Claim the objects of entries that no resource has, and note why they must stay.

        `untouchable` are resources without a match: they are declared, so nothing of them leaves.
        """
        entries = self.inventory.entries
        for address in sorted(address for address in entries if address not in untouchable):
            entry = entries[address]
            identity = (address.kind, entry.id)
            live, match = self.live.by_identity.get(identity), self.matches.get(address)
            if live is None and match is None and (address.kind, entry.parent) not in self.unread:
                self.gone[address] = entry
            if live is None or identity in self.claims:
                continue
            kind = self.kinds[address.kind]
            parent = self.live.by_identity.get((kind.parent or "", live.parent_id or ""))
            problem = self.inventory.problem_of(address, live, parent)
            if identity in self.ignored:
                problem = "`policy.ignore` names it"
            elif (other := other_tool_of(live.name)) is not None:
                problem = f"{other} manages it, too"
            if match is not None:
                if match.resource.state is State.PRESENT:
                    self.replaced[address] = live
                    is_moved = match.live is not None and not _is_in_place(match, live)
                    if is_moved and match.resource.pinned_id is None and not problem:
                        self.left_by_moves[address] = live
                continue
            was = self.inventory.applied.get(address) or Resource(address, {"name": live.name})
            self.claims[identity] = [address]
            self.removed[address] = Match(was, kind, live, live.parent_id)
            if problem:
                self.left[address] = problem

    @cached_property
    def unread(self) -> Collection[tuple[str, str | None]]:
        """The kinds and parents whose objects were not read."""
        return {
            (kind.name, parent)
            for kind in self.kinds.values()
            for of, parent in self.live.unread
            if kind.parent == of
        }

    def raise_problems(self) -> None:
        """Raise AmbiguousIdentity for all problems, if there are any."""
        shared = [item for item in self.claims.items() if len(item[1]) > 1]
        for (kind, live_id), addresses in sorted(shared):
            listed = " and ".join(map(str, sorted(addresses)))
            resources = [self.matches[address].resource for address in sorted(addresses)]
            located = " and ".join(item.located(("name",)) for item in resources)
            self.ambiguities.add(
                f"{located} claim the same live {kind}, id {printable(live_id)}",
                f"give all but one of {listed} another name, or pin them by `id`",
            )
        self.ambiguities.raise_any()

    def _live_of(self, address: Address) -> LiveObject | None:
        match = self.matches.get(address)
        return match.live if match is not None else None

    def with_parent(self, kind: Kind, resource: Resource) -> Match:
        """Return the resource with its parent, resolved as far as it exists."""
        ref = resource.parent
        if ref is None or kind.parent is None:
            return Match(resource, kind)
        address = Address(kind.parent, ref.key) if ref.key is not None else None
        ids, below = self._parent_ids(kind.parent, ref, address), str(kind.parent_key)
        if len(ids) != 1 and ref.name is not None:
            choice = printable(f"one of {', '.join(ids)}" if ids else "the id of an existing one")
            self.ambiguities.add(
                f"{resource.located((below,))}: {len(ids) or 'no'} live {kind.parent}s are named "
                f"{quoted(ref.name)}",
                f"name it by id: {below}: {{id: …}} with {choice}",
            )
        elif not ids and ref.id is not None and resource.state is State.PRESENT:
            self.ambiguities.add(
                f"{resource.located((below, 'id'))}: no live {kind.parent} has the id "
                f"{quoted(ref.id)}",
                f"correct the id as the service writes it, or use {below}: {{name: …}}",
            )
        parent_id = ids[0] if len(ids) == 1 else None
        return Match(resource, kind, parent_id=parent_id, parent_address=address)

    def _parent_ids(self, kind: str, ref: ParentRef, address: Address | None) -> list[str]:
        """Return the ids of the live objects that a reference may mean: several of one name.

        `address` is that of a declared parent.
        """
        if address is not None:
            live = self._live_of(address)
            return [live.id] if live is not None else []
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
        if live is None and (other or resource.state is State.PRESENT):
            remove = f"remove the id of {resource.address} to match it by name or create it"
            self.ambiguities.add(
                f"{resource.located(('id',))}: no live {resource.address.kind} has the id {pinned}",
                f"write it as the service does: `id: {other}`"
                if other
                else f"{remove}, or correct the id",
            )
        self._claim(start, live)

    def _claim_single(self, start: Match, candidates: Sequence[LiveObject]) -> None:
        """Claim the only candidate; report several."""
        if len(candidates) > 1:
            same = len({item.name.strip() for item in candidates}) == 1
            those = (
                f"named {quoted(candidates[0].name)}" if same else "this resource by their names"
            )
            count = f"{len(candidates)} live {start.kind.collection}"
            problem = f"{count} {'are' if same else 'may be'} {those}"
            self.ambiguities.add_choice(start.kind, start.resource, problem, candidates)
        self._claim(start, candidates[0] if len(candidates) == 1 else None)

    def _claim(self, start: Match, live: LiveObject | None) -> None:
        address = start.resource.address
        if live is not None:
            self.claims.setdefault(live.identity, []).append(address)
            has_parent = start.parent_address is not None or start.parent_id is not None
            moved = has_parent and live.parent_id != start.parent_id
            start = replace(start, live=live, moved=moved)
        self.matches[address] = start

    def _of_entry(self, start: Match) -> LiveObject | None:
        """Return the unclaimed object that the inventory has for a resource.

        Another tool finds its objects by their names, so these are never renamed.
        """
        entry = self.inventory.entries.get(start.resource.address)
        live = self.names[start.kind.name].by_id.get(entry.id) if entry is not None else None
        if live is None or not self.is_free(live):
            return None
        is_renamed = live.name.strip() != start.resource.name
        return None if is_renamed and other_tool_of(live.name) is not None else live

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
            and not other_tool_of(item.name)
            and not start.resource.lifecycle.is_beside(item.name, item.address)
        ]


def _is_in_place(match: Match, live: LiveObject) -> bool:
    """Return whether an object is where the configuration places the resource."""
    return match.resource.parent is None or live.parent_id == match.parent_id


# With a dict, since cached properties need one.
class Names(Struct, frozen=True, dict=True):
    """The live objects of one kind by id and by name.

    Most plans look in known parents only, and each index takes memory, so both are made when used.
    """

    by_id: Mapping[str, LiveObject]

    def named(self, parent_id: str | None, name: str) -> Sequence[LiveObject]:
        """Return the objects of a name below a parent, or anywhere without one.

        An export of the organization may be in any project.
        """
        if parent_id is None:
            return self._anywhere.get(name, ())
        return self._below.get((parent_id, name), ())

    @cached_property
    def _anywhere(self) -> Mapping[str, Sequence[LiveObject]]:
        return self._indexed(lambda _, name: name)

    @cached_property
    def _below(self) -> Mapping[tuple[str | None, str], Sequence[LiveObject]]:
        return self._indexed(lambda item, name: (item.parent_id, name))

    def _indexed(
        self, key_of: Callable[[LiveObject, str], _Key]
    ) -> Mapping[_Key, Sequence[LiveObject]]:
        index: dict[_Key, list[LiveObject]] = {}
        for item in self.by_id.values():
            index.setdefault(key_of(item, item.name.strip()), []).append(item)
        return index
