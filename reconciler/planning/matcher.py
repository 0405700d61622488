"""Match resources with live objects, by id, name and former name. Never guesses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address
from reconciler.model.globs import fits_any
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.values import MISSING, value_at
from reconciler.model.wording import printable, quoted

_ScopedName = tuple[str | None, str]
"""The id of the parent, and a name in it."""


@dataclass(frozen=True, slots=True)
class Match:
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


@dataclass(frozen=True, slots=True)
class Matching:
    """The outcome: every resource with its object, and the objects that no resource claims.

    removed
        Live resources that the configuration had at the git base and has no longer.
    untouchable
        Resources whose own name, or that of the object they pin, is in `policy.ignore`.
    near_names
        Resources to create although a live name differs in case only.
    """

    matches: Mapping[Address, Match]
    removed: Mapping[Address, Match]
    unmanaged: tuple[LiveObject, ...]
    ignored: tuple[LiveObject, ...]
    untouchable: tuple[Address, ...]
    near_names: tuple[tuple[Address, LiveObject], ...] = ()


def match(
    desired: Desired,
    live: Live,
    *,
    policy: Policy,
    kinds: Sequence[Kind],
    base: Desired | None = None,
) -> Matching:
    """Match every resource with its live object.

    Raises:
        AmbiguousIdentity: two live objects could be one resource, two resources claim one
            object, a pinned id or a parent does not exist. Lists all of them, with ids and the
            lines to paste.

    """
    ignored = {
        (item.kind, item.id): item
        for kind in kinds
        for item in live.of(kind.name)
        if _is_ignored(item.name, policy)
    }
    objects = {
        kind.name: [item for item in live.of(kind.name) if (kind.name, item.id) not in ignored]
        for kind in kinds
    }
    declared = desired.in_order()
    untouchable = {
        resource.address
        for resource in declared
        if _is_ignored(resource.name, policy)
        or (resource.address.kind, resource.pinned_id) in ignored
    }
    matcher = _Matcher(live, base, objects)
    for kind in kinds:
        resources = [
            resource
            for resource in declared
            if resource.address.kind == kind.name and resource.address not in untouchable
        ]
        matcher.match_kind(kind, resources)
    matcher.raise_problems()
    matcher.claim_removed(desired, {kind.name: kind for kind in kinds})
    return Matching(
        matches=matcher.matches,
        removed=matcher.removed,
        unmanaged=tuple(
            item
            for kind in kinds
            for item in sorted(objects[kind.name], key=_place)
            if matcher.is_free(item)
        ),
        ignored=tuple(sorted(ignored.values(), key=_place)),
        untouchable=tuple(sorted(untouchable)),
        near_names=tuple(matcher.near_names),
    )


def _is_ignored(name: str, policy: Policy) -> bool:
    return fits_any(name.strip(), policy.ignore)


def _place(live: LiveObject) -> tuple[str, str, str]:
    return (live.kind, live.name, live.id)


@dataclass(slots=True)
class _Matcher:
    """The kinds that are matched so far, parents first. `objects` are without the ignored ones."""

    live: Live
    base: Desired | None
    objects: Mapping[str, Sequence[LiveObject]]
    matches: dict[Address, Match] = field(default_factory=dict)
    removed: dict[Address, Match] = field(default_factory=dict)
    claims: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    near_names: list[tuple[Address, LiveObject]] = field(default_factory=list)

    def match_kind(self, kind: Kind, resources: Sequence[Resource]) -> None:
        """Match by id, then by name; what is left by former names."""
        objects = self.objects[kind.name]
        by_id = {item.id: item for item in objects}
        pinned = {resource.pinned_id for resource in resources}
        free = [item for item in objects if item.id not in pinned]
        by_name = _by_scoped_name(kind, free)
        unmatched: list[Match] = []
        for resource in resources:
            start = self._with_parent(kind, resource)
            if resource.pinned_id is not None:
                self._match_pinned(start, by_id.get(resource.pinned_id))
            elif (resource.parent is None or start.parent_id is not None) and (
                candidates := by_name.get((start.parent_id, resource.name))
            ):
                self._claim_single(start, candidates)
            else:
                unmatched.append(start)
        for start in unmatched:
            self._claim_single(start, self._of_former_name(start, by_name))
            if self.matches[start.resource.address].live is None:
                self._note_near_names(start, free)

    def is_free(self, live: LiveObject) -> bool:
        """Return whether no resource claims an object."""
        return (live.kind, live.id) not in self.claims

    def claim_removed(self, desired: Desired, kinds: Mapping[str, Kind]) -> None:
        """Claim live objects of resources that were removed since the git base."""
        for resource in self.base.in_order() if self.base is not None else ():
            address = resource.address
            kind = kinds.get(address.kind)
            if address in desired.resources or resource.state is State.ABSENT or kind is None:
                continue
            candidates = [
                item
                for item in self.objects[kind.name]
                if self.is_free(item) and self._was_of(kind, resource, item)
            ]
            if len(candidates) == 1:
                live = candidates[0]
                self.claims[live.kind, live.id] = [address]
                self.removed[address] = Match(resource, kind, live, parent_id=live.parent_id)

    def raise_problems(self) -> None:
        """Raise AmbiguousIdentity for all problems, if there are any."""
        for (kind, live_id), addresses in sorted(self.claims.items()):
            if len(addresses) > 1:
                listed = " and ".join(map(str, sorted(addresses)))
                self._report(
                    f"{listed} claim the same live {kind}, id {printable(live_id)}",
                    f"give all but one of {listed} another name, or pin them by `id`",
                )
        if self.problems:
            raise AmbiguousIdentity("\n".join(self.problems), hint="\n".join(self.hints))

    def _report(self, problem: str, hint: str) -> None:
        self.problems.append(problem)
        self.hints.append(hint)

    def _with_parent(self, kind: Kind, resource: Resource) -> Match:
        """Return the resource with its parent, resolved as far as it exists."""
        ref = resource.parent
        if ref is None or kind.parent is None:
            return Match(resource, kind)
        ids = self._parent_ids(kind.parent, ref)
        if len(ids) != 1 and ref.name is not None:
            choice = printable(f"one of {', '.join(ids)}" if ids else "the id of an existing one")
            self._report(
                f"{resource.address}: {len(ids) or 'no'} live {kind.parent}s are named "
                f"{quoted(ref.name)}",
                f"name it by id: {kind.parent_key}: {{id: …}} with {choice}",
            )
        address = Address(kind.parent, ref.key) if ref.key is not None else None
        parent_id = ids[0] if len(ids) == 1 else None
        return Match(resource, kind, parent_id=parent_id, parent_address=address)

    def _parent_ids(self, kind: str, ref: ParentRef) -> list[str]:
        """Return the ids of the live objects that a reference may mean: several of one name."""
        if ref.key is not None:
            address = Address(kind, ref.key)
            match = self.matches.get(address) or self.removed.get(address)
            return [match.live.id] if match is not None and match.live is not None else []
        if ref.id is not None:
            return [ref.id]
        name = (ref.name or "").strip()
        return sorted(item.id for item in self.live.of(kind) if item.name.strip() == name)

    def _match_pinned(self, start: Match, live: LiveObject | None) -> None:
        resource = start.resource
        if live is None and resource.state is State.PRESENT:
            pinned = printable(str(resource.pinned_id))
            self._report(
                f"{resource.address}: no live {resource.address.kind} has the id {pinned}",
                f"remove `id: {pinned}` from {resource.address} to match it by name or create it, "
                "or correct the id",
            )
        self._claim(start, live)

    def _claim_single(self, start: Match, candidates: Sequence[LiveObject]) -> None:
        """Claim the only candidate; report duplicates."""
        if len(candidates) > 1:
            address, collection = start.resource.address, start.kind.collection
            by_age = sorted(candidates, key=_age)
            name = quoted(candidates[0].name)
            problem = f"{address}: {len(by_age)} live {collection} are named {name}"
            listed = [f"  {printable(_duplicate(start.kind, item))}" for item in by_age]
            pin = f"{{{address.key}: {{id: {printable(by_age[0].id)}}}}}"
            self._report(
                "\n".join([problem, *listed]),
                f"pin the intended one: {collection}: {pin}, and declare or delete the other",
            )
        self._claim(start, candidates[0] if len(candidates) == 1 else None)

    def _claim(self, start: Match, live: LiveObject | None) -> None:
        address = start.resource.address
        if live is not None:
            self.claims.setdefault((live.kind, live.id), []).append(address)
            has_parent = start.parent_address is not None or start.parent_id is not None
            start = replace(
                start, live=live, moved=has_parent and live.parent_id != start.parent_id
            )
        self.matches[address] = start

    def _of_former_name(
        self, start: Match, by_name: Mapping[_ScopedName, Sequence[LiveObject]]
    ) -> Sequence[LiveObject]:
        """Return the unclaimed objects of the first former name that has any."""
        resource = start.resource
        names: list[_ScopedName] = []
        if resource.parent is None or start.parent_id is not None:
            names += [(start.parent_id, name.strip()) for name in resource.lifecycle.renamed_from]
        for name in (*names, *self._name_at_base(start)):
            if candidates := [item for item in by_name.get(name, ()) if self.is_free(item)]:
                return candidates
        return ()

    def _name_at_base(self, start: Match) -> Iterator[_ScopedName]:
        """Yield the name and parent of the key at the git base, which shows renames and moves."""
        base = self.base.resources if self.base is not None else {}
        before = base.get(start.resource.address)
        if before is None or before.pinned_id is not None:
            return
        if before.parent is None or start.kind.parent is None:
            yield (None, before.name)
        elif len(ids := self._parent_ids(start.kind.parent, before.parent)) == 1:
            yield (ids[0], before.name)

    def _note_near_names(self, start: Match, objects: Iterable[LiveObject]) -> None:
        resource = start.resource
        if start.kind.unique_names and resource.state is State.PRESENT:
            self.near_names += (
                (resource.address, item)
                for item in objects
                if item.name.strip().casefold() == resource.name.casefold() and self.is_free(item)
            )

    def _was_of(self, kind: Kind, resource: Resource, live: LiveObject) -> bool:
        """Return whether an object was that of a resource at the git base."""
        if resource.pinned_id is not None:
            return live.id == resource.pinned_id
        if live.name.strip() != resource.name:
            return False
        if kind.parent is None or resource.parent is None:
            return True
        return live.parent_id in self._parent_ids(kind.parent, resource.parent)


def _by_scoped_name(
    kind: Kind, objects: Iterable[LiveObject]
) -> dict[_ScopedName, list[LiveObject]]:
    """Return objects by parent and name.

    Those of a kind with parents are also listed without one: an export of the organization may
    be in any project.
    """
    by_name: dict[_ScopedName, list[LiveObject]] = {}
    for item in objects:
        scopes = {item.parent_id, None} if kind.parent is not None else {None}
        for scope in scopes:
            by_name.setdefault((scope, item.name.strip()), []).append(item)
    return by_name


def _age(live: LiveObject) -> tuple[str, str]:
    return (str(live.body.get("created_at")), live.id)


def _duplicate(kind: Kind, live: LiveObject) -> str:
    last = value_at(live.body, kind.activity) if kind.activity else MISSING
    run = "" if last in (MISSING, None) else f", last run {last}"
    return f"id: {live.id}   created {live.body.get('created_at')}{run}"
