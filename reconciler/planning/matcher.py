"""Match resources with live objects, by id, name and former name; report what is ambiguous."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address, fits_any
from reconciler.model.kind import Kind, containers
from reconciler.model.live import (
    Identity,
    Live,
    LiveObject,
    is_same_id,
    other_tool_of,
    parse_marked_name,
)
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.text import printable, quoted
from reconciler.model.values import MISSING, value_at
from reconciler.planning.base import (
    Base,
    DeclaredNames,
    FormerObjects,
    History,
    Names,
    RemovedResource,
    candidates_of,
)


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


class MarkedObject(Struct, frozen=True):
    """A new object with the plain name of its resource and the id of the object it replaces."""

    live: LiveObject
    name: str
    old_id: str


def _marked(
    objects: Iterable[LiveObject], declared: Collection[str]
) -> tuple[dict[str, str], list[MarkedObject]]:
    """Return the marked ones of all live objects of a kind, without `declared` names.

    First the names without mark, by id, where the old object is gone: such an object is the one of
    its resource, and only the rename is left. Then the others.
    """
    plain: dict[str, str] = {}
    unfinished: list[MarkedObject] = []
    ids = {item.id for item in objects}
    for item in objects:
        parsed = parse_marked_name(item.name)
        if parsed is None or item.name.strip() in declared:
            continue
        name, old_id = parsed
        if old_id in ids:
            unfinished.append(MarkedObject(item, name.strip(), old_id))
        else:
            plain[item.id] = name.strip()
    return plain, unfinished


class Match(Struct, frozen=True, gc=False):
    """A resource and its live object, None if it does not exist.

    `parent_id` is the live id of its parent, None if that does not exist yet or there is none.
    `moved`: the object has another parent than the configuration says. `new`: the new object of a
    replacement of `live` that was cut short.
    """

    resource: Resource
    kind: Kind
    live: LiveObject | None = None
    parent_id: str | None = None
    parent_address: Address | None = None
    moved: bool = False
    new: LiveObject | None = None


# With a dict, since cached properties need one.
class Matching(Struct, frozen=True, dict=True):
    """The outcome: every resource with its object, and the objects that no resource claims.

    live
        The live state.
    former
        What the objects were at the git base.
    removed
        Live resources that the configuration had at the git base and has no longer.
    unclear
        Resources that were removed since the git base, and the objects that they may be.
    maybe_protected
        Objects, by kind and id, of which one may be a removed resource with `protect`.
    untouchable
        Resources whose own name, or that of the object they pin, is in `policy.ignore`.
    """

    live: Live
    matches: Mapping[Address, Match]
    removed: Mapping[Address, Match]
    unmanaged: tuple[LiveObject, ...]
    ignored: tuple[LiveObject, ...]
    untouchable: Mapping[Address, Match]
    former: FormerObjects
    unclear: tuple[RemovedResource, ...] = ()
    maybe_protected: Mapping[tuple[str, str], Address] = field(default_factory=dict)

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """All kinds by name, parents first."""
        return self.former.kinds

    @property
    def base(self) -> Base | None:
        """The git base."""
        return self.former.history.base

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


def interrupted(match: Match, reason: str) -> AmbiguousIdentity:
    """Return the error for a replacement that was interrupted and can't be continued."""
    problems, objects = Ambiguities(), [item for item in (match.live, match.new) if item]
    problem = f"a replacement of it was interrupted and can't be continued: {reason}"
    problems.add_choice(match.kind, match.resource, problem, objects)
    return problems.error()


def match(
    desired: Desired,
    live: Live,
    *,
    policy: Policy,
    kinds: Sequence[Kind],
    history: History | None = None,
) -> Matching:
    """Match every resource with its live object.

    Raises:
        AmbiguousIdentity: two live objects could be one resource, two resources claim one
            object, a pinned id or a parent does not exist, a replacement that was cut short
            can't be continued. Lists all of them, with ids and the lines to paste.

    """
    ignored = {
        item.identity: item
        for kind in kinds
        for item in live.of(kind.name)
        if policy.ignore and _is_ignored(item.name, policy)
    }
    declared = desired.in_order()
    untouchable = {
        resource.address: resource
        for resource in declared
        if policy.ignore
        and (
            _is_ignored(resource.name, policy)
            or (resource.address.kind, resource.pinned_id) in ignored
        )
    }
    by_name = {kind.name: kind for kind in kinds}
    matcher = _Matcher(live, history or History({}), by_name, frozenset(ignored))
    for kind in kinds:
        own = [resource for resource in declared if resource.address.kind == kind.name]
        matcher.match_kind(kind, [item for item in own if item.address not in untouchable])
    matcher.raise_problems()
    matcher.claim_removed(desired)
    unmanaged = tuple(
        item
        for kind in kinds
        for item in sorted(filter(matcher.is_free, live.of(kind.name)), key=_place)
    )
    # `former` keeps the matcher, and needs no claims, which take the memory of the matches.
    matcher.claims.clear()
    return Matching(
        live=live,
        matches=matcher.matches,
        removed=matcher.removed,
        unmanaged=unmanaged,
        ignored=tuple(sorted(ignored.values(), key=_place)),
        untouchable={
            address: matcher.with_parent(by_name[address.kind], untouchable[address])
            for address in sorted(untouchable)
        },
        former=matcher.former,
        unclear=tuple(matcher.unclear),
        maybe_protected=matcher.maybe_protected,
    )


def _is_ignored(name: str, policy: Policy) -> bool:
    return fits_any(name.strip(), policy.ignore)


def _place(live: LiveObject) -> tuple[str, str, str]:
    return (live.kind, live.name, live.id)


# Without slots, since cached properties need a dict.
class _Matcher(Struct, dict=True):
    """The kinds that are matched so far, parents first."""

    live: Live
    history: History
    kinds: Mapping[str, Kind]
    ignored: frozenset[tuple[str, str]]
    matches: dict[Address, Match] = field(default_factory=dict)
    removed: dict[Address, Match] = field(default_factory=dict)
    unclear: list[RemovedResource] = field(default_factory=list)
    maybe_protected: dict[tuple[str, str], Address] = field(default_factory=dict)
    claims: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    ambiguities: Ambiguities = field(default_factory=Ambiguities)
    names: dict[str, Names] = field(default_factory=dict)

    @cached_property
    def former(self) -> FormerObjects:
        """The objects that the resources were."""
        return FormerObjects(self.history, self.kinds, self.names, self._live_of)

    def match_kind(self, kind: Kind, resources: Sequence[Resource]) -> None:
        """Match by id, then by name; what is left by former names."""
        objects = self.live.of(kind.name)
        plain, unfinished = _marked(objects, {resource.name for resource in resources})
        names = self.names[kind.name] = Names({item.id: item for item in objects}, plain)
        pinned = {resource.pinned_id for resource in resources}
        single: list[Match] = []
        unmatched: list[Match] = []
        for resource in resources:
            start = self.with_parent(kind, resource)
            if resource.pinned_id is not None:
                self._match_pinned(start, names.by_id)
            elif candidates := [
                item for item in self._named(start, resource.name) if item.id not in pinned
            ]:
                self._claim_single(start, candidates)
                single.append(start)
            else:
                unmatched.append(start)
        single += self._match_former(unmatched)
        self._continue_replacements(resources, unfinished)
        for start in single:
            self._report_second(start)
        if kind.name in containers(self.kinds.values()):
            declared = DeclaredNames.of(
                resource for resource in resources if self._live_of(resource.address)
            )
            for resource in resources:
                self.former.remember(resource, self._live_of(resource.address), declared)

    def _match_former(self, unmatched: Sequence[Match]) -> Iterator[Match]:
        """Match by former names; yield the resources that have one object or none."""
        # A former name that a resource gives counts before what the git base says about others.
        for find in (self._of_former_name, self._at_base):
            pairs, unmatched = candidates_of(unmatched, find)
            for start, candidates in pairs:
                self._claim_single(start, candidates)
                if len(candidates) == 1:
                    yield start
        for start in unmatched:
            self._claim(start, None)
            yield start

    def is_free(self, live: LiveObject) -> bool:
        """Return whether no resource claims an object and the policy does not ignore it."""
        place = live.identity
        return place not in self.claims and place not in self.ignored

    def claim_removed(self, desired: Desired) -> None:
        """Claim live objects of resources that were removed since the git base.

        An object that one of them certainly is leaves fewer for the others, in any order of keys.
        """
        left = [self.former.removed(*item) for item in self.history.removed(desired)]
        for item in left:
            if item.resource.lifecycle.protect:
                for live in self._free_of(item):
                    self.maybe_protected.setdefault(live.identity, item.resource.address)
        count = 0
        while len(left) != count:
            count = len(left)
            left = [item for item in left if not self._claim_certain(item)]
        for item in left:
            if free := self._free_of(item):
                self.unclear.append(replace(item, objects=free))

    def _free_of(self, removed: RemovedResource) -> tuple[LiveObject, ...]:
        return tuple(item for item in removed.objects if self.is_free(item))

    def _claim_certain(self, removed: RemovedResource) -> bool:
        """Claim the only object that a removed resource can be; return whether there is one."""
        free, address = self._free_of(removed), removed.resource.address
        known = tuple(item for item in free if item.id == self.history.known.get(address))
        free = known or (free if removed.is_certain else ())
        if len(free) != 1 or free[0].id not in removed.own:
            return False
        (live,) = free
        self.claims[live.identity] = [address]
        self.removed[address] = Match(removed.resource, removed.kind, live, live.parent_id)
        return True

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

    def _named(self, start: Match, name: str) -> list[LiveObject]:
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

    def _of_former_name(self, start: Match) -> list[LiveObject]:
        """Return the unclaimed objects of all former names: none of them counts more."""
        names = start.resource.lifecycle.renamed_from
        objects = (item for name in names for item in self._named(start, name))
        return self._renamable(start, {item.id: item for item in objects}.values())

    def _at_base(self, start: Match) -> list[LiveObject]:
        """Return the unclaimed objects of the names and places that the key had in the base."""
        return self._renamable(start, self.former.of(start.kind, start.resource.address))

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

    def _report_second(self, start: Match) -> None:
        """Report an object of the key's former names and places beside the one that it has.

        It would go on running after a move or a rename that was made in part.
        """
        own, address = self._live_of(start.resource.address), start.resource.address
        if own is None and address not in self.history.versions:
            return
        if own and self.former.is_as_today(start.kind, start.resource, start.parent_id):
            return
        elsewhere = self.former.elsewhere(start.kind, address)
        others = {item.id: item for item in self._at_base(start)}
        others |= {item.id: item for item in self._renamable(start, elsewhere)}
        if others:
            objects = [*filter(None, [own]), *others.values()]
            count = f"{len(objects)} live {start.kind.collection}"
            those = f"a live {start.kind.name} in another place" if len(objects) == 1 else count
            problem = f"{those} may be this resource, by its name or by the git base"
            self.ambiguities.add_choice(start.kind, start.resource, problem, objects)

    def _continue_replacements(
        self, resources: Iterable[Resource], unfinished: Iterable[MarkedObject]
    ) -> None:
        """Give resources the new object of their unfinished replacement, or report it."""
        marked = [item for item in unfinished if self.is_free(item.live)]
        for resource in resources if marked else ():
            match = self.matches[resource.address]
            own = match.live.id if match.live is not None else None
            items = [
                item
                for item in marked
                if item.old_id == own
                or (item.name == resource.name and _is_in_place(match, item.live))
            ]
            if not items or resource.state is State.ABSENT:
                continue
            new = items[0].live
            if len(items) == 1 and items[0].old_id == own and _is_in_place(match, new):
                self.claims[new.identity] = [resource.address]
                self.matches[resource.address] = replace(match, new=new)
            elif resource.pinned_id is None:
                self._report_unfinished(match, items)

    def _report_unfinished(self, match: Match, items: Sequence[MarkedObject]) -> None:
        by_id = self.names[match.kind.name].by_id
        objects = {item.live.id: item.live for item in items}
        objects |= {item.old_id: by_id[item.old_id] for item in items}
        if match.live is not None:
            objects[match.live.id] = match.live
        self.ambiguities.add_choice(
            match.kind,
            match.resource,
            "a replacement of it was interrupted and can't be continued, since it is not clear "
            "that it replaces the object of this resource in this place",
            list(objects.values()),
        )


def _is_in_place(match: Match, live: LiveObject) -> bool:
    """Return whether an object is where the configuration places the resource."""
    return match.resource.parent is None or live.parent_id == match.parent_id
