"""Identity: which live object is which resource (design, section 4). Never guesses.

Comes before the differ. What must not be touched (ignored names) and what nobody claims leaves
here, so that the differ sees only pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.values import MISSING, value_at
from reconciler.model.wording import printable, quoted


@dataclass(frozen=True, slots=True)
class Match:
    """One resource and its live object, None where it does not exist.

    `parent_id` is the live id of its parent, None while that is to be created (or where there is
    none). `moved` says that the object lives under another parent than the files want.
    """

    resource: Resource
    live: LiveObject | None
    parent_id: str | None = None
    parent_address: Address | None = None
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Matching:
    """The outcome: every resource with its object, and the objects that nobody claims."""

    matches: Mapping[Address, Match]
    removed: Mapping[Address, Match]
    """Resources that stand in the files at the git base and are gone now, where still live."""
    unmanaged: tuple[LiveObject, ...]
    ignored: tuple[LiveObject, ...]
    untouchable: tuple[Address, ...]
    """Resources whose own name, or that of the object they pin, is in `policy.ignore`."""
    near_names: tuple[tuple[Address, LiveObject], ...] = ()
    """Resources to create although a live name differs in case only."""


@dataclass(slots=True)
class _State:
    """What is known while the kinds are matched one after another, parents first."""

    kinds: Mapping[str, Kind]
    base: Desired | None
    matches: dict[Address, Match] = field(default_factory=dict)
    claims: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    near_names: list[tuple[Address, LiveObject]] = field(default_factory=list)

    def claim(self, match: Match) -> None:
        self.matches[match.resource.address] = match
        if match.live is not None:
            claimed = self.claims.setdefault((match.live.kind, match.live.id), [])
            claimed.append(match.resource.address)


def match(
    desired: Desired,
    live: Live,
    *,
    policy: Policy,
    kinds: Sequence[Kind],
    base: Desired | None = None,
) -> Matching:
    """Pair every resource with its live object.

    Raises:
        AmbiguousIdentity: two live objects could be one resource, two resources claim one
            object, a pinned id or a parent does not exist. Tells all of them, with the ids and
            the lines to paste.

    """
    state = _State({kind.name: kind for kind in kinds}, base)
    ignored: list[LiveObject] = []
    untouchable: list[Address] = []
    open_objects: dict[str, list[LiveObject]] = {}
    for kind in kinds:
        objects = open_objects.setdefault(kind.name, [])
        ignored_ids = set()
        for each in live.of(kind.name):
            if _is_ignored(each.name, policy):
                ignored.append(each)
                ignored_ids.add(each.id)
            else:
                objects.append(each)
        resources = [each for each in desired.in_order() if each.address.kind == kind.name]
        touched = []
        for resource in resources:
            if _is_ignored(resource.name, policy) or resource.pinned_id in ignored_ids:
                untouchable.append(resource.address)
            else:
                touched.append(resource)
        _match_kind(kind, touched, objects, live, state)
    _complain_of_shared_claims(state)
    if state.problems:
        raise AmbiguousIdentity("\n".join(state.problems), hint="\n".join(state.hints) or None)
    removed = _removed(desired, base, open_objects, live, state)
    claimed = set(state.claims)
    unmanaged = tuple(
        each
        for kind in kinds
        for each in sorted(open_objects[kind.name], key=lambda each: (each.name, each.id))
        if (each.kind, each.id) not in claimed
    )
    return Matching(
        matches=state.matches,
        removed=removed,
        unmanaged=unmanaged,
        ignored=tuple(sorted(ignored, key=lambda each: (each.kind, each.name, each.id))),
        untouchable=tuple(sorted(untouchable)),
        near_names=tuple(state.near_names),
    )


def _is_ignored(name: str, policy: Policy) -> bool:
    return any(fnmatchcase(name.strip(), glob) for glob in policy.ignore)


def _match_kind(
    kind: Kind,
    resources: Sequence[Resource],
    objects: Sequence[LiveObject],
    live: Live,
    state: _State,
) -> None:
    pinned_ids = {each.pinned_id for each in resources if each.pinned_id is not None}
    free = [each for each in objects if each.id not in pinned_ids]
    by_id = {each.id: each for each in objects}
    waiting: list[tuple[Resource, Match]] = []
    by_scope = _by_scope_and_name(kind, free)
    for resource in resources:
        start = _with_parent(kind, resource, live, state)
        if resource.pinned_id is not None:
            _match_pinned(start, by_id.get(resource.pinned_id), state)
            continue
        found = by_scope.get((_scope(kind, start), resource.name), [])
        if not found or (resource.parent is not None and start.parent_id is None):
            waiting.append((resource, start))
        else:
            _take(kind, start, found, state)
    for resource, start in waiting:
        _match_by_former_name(kind, start, by_scope, state)
        if state.matches[resource.address].live is None:
            _note_near_names(kind, start, free, state)


def _by_scope_and_name(
    kind: Kind, objects: Sequence[LiveObject]
) -> dict[tuple[str | None, str], list[LiveObject]]:
    """Objects by parent and name.

    Those of a kind with parents are also found without one: an export of the organization may
    live in any project.
    """
    found: dict[tuple[str | None, str], list[LiveObject]] = {}
    for each in objects:
        found.setdefault((each.parent_id, each.name.strip()), []).append(each)
        if kind.parent is not None and each.parent_id is not None:
            found.setdefault((None, each.name.strip()), []).append(each)
    return found


def _scope(kind: Kind, start: Match) -> str | None:
    return start.parent_id if kind.parent is not None else None


def _with_parent(kind: Kind, resource: Resource, live: Live, state: _State) -> Match:
    """The resource with its parent resolved as far as it exists."""
    ref = resource.parent
    if ref is None or kind.parent is None:
        return Match(resource, None)
    if ref.key is not None:
        address = Address(kind.parent, ref.key)
        parent = state.matches.get(address)
        parent_id = parent.live.id if parent is not None and parent.live is not None else None
        return Match(resource, None, parent_id=parent_id, parent_address=address)
    if ref.id is not None:
        return Match(resource, None, parent_id=ref.id)
    found = [each for each in live.of(kind.parent) if each.name.strip() == (ref.name or "").strip()]
    if len(found) == 1:
        return Match(resource, None, parent_id=found[0].id)
    state.problems.append(
        f"{resource.address}: {len(found) or 'no'} live {kind.parent}s are named "
        f"{quoted(ref.name or '')}"
    )
    ids = printable(", ".join(sorted(each.id for each in found)))
    way = f"one of {ids}" if found else "the id of one that exists"
    state.hints.append(f"name it by id: {kind.parent_key}: {{id: …}} with {way}")
    return Match(resource, None)


def _match_pinned(start: Match, found: LiveObject | None, state: _State) -> None:
    resource = start.resource
    if found is None:
        pinned = printable(str(resource.pinned_id))
        if resource.state is State.PRESENT:
            state.problems.append(
                f"{resource.address}: no live {resource.address.kind} has the id {pinned}"
            )
            state.hints.append(
                f"remove `id: {pinned}` from {resource.address} to find it by name or "
                "create it, or correct the id"
            )
        state.claim(start)
        return
    state.claim(_found(start, found))


def _found(start: Match, found: LiveObject) -> Match:
    wants_parent = start.parent_address is not None or start.parent_id is not None
    moved = wants_parent and found.parent_id != start.parent_id
    return Match(
        start.resource,
        found,
        parent_id=start.parent_id,
        parent_address=start.parent_address,
        moved=moved,
    )


def _take(kind: Kind, start: Match, found: Sequence[LiveObject], state: _State) -> None:
    if len(found) == 1:
        state.claim(_found(start, found[0]))
        return
    _complain_of_twins(kind, start.resource, found, state)
    state.claim(start)


def _match_by_former_name(
    kind: Kind,
    start: Match,
    by_scope: Mapping[tuple[str | None, str], list[LiveObject]],
    state: _State,
) -> None:
    resource = start.resource
    places = [(_scope(kind, start), name.strip()) for name in resource.lifecycle.renamed_from]
    if resource.parent is not None and start.parent_id is None:
        places = []
    places += _places_at_base(kind, resource, start, state)
    for place in places:
        found = [
            each for each in by_scope.get(place, []) if (each.kind, each.id) not in state.claims
        ]
        if found:
            _take(kind, start, found, state)
            return
    state.claim(start)


def _places_at_base(
    kind: Kind, resource: Resource, start: Match, state: _State
) -> list[tuple[str | None, str]]:
    """Where the same key stood at the git base: tells renames and moves without a word more."""
    before = state.base.resources.get(resource.address) if state.base is not None else None
    if before is None or before.pinned_id is not None:
        return []
    if kind.parent is None:
        return [(None, before.name)]
    parent_id = _base_parent_id(kind, before.parent, state)
    if before.parent is not None and parent_id is None:
        return []
    same_place = before.parent == resource.parent
    return [(start.parent_id if same_place else parent_id, before.name)]


def _base_parent_id(kind: Kind, ref: ParentRef | None, state: _State) -> str | None:
    if ref is None or kind.parent is None:
        return None
    if ref.key is not None:
        parent = state.matches.get(Address(kind.parent, ref.key))
        return parent.live.id if parent is not None and parent.live is not None else None
    return ref.id


def _note_near_names(
    kind: Kind, start: Match, objects: Sequence[LiveObject], state: _State
) -> None:
    if not kind.unique_names or start.resource.state is State.ABSENT:
        return
    wanted = start.resource.name.casefold()
    for each in objects:
        if each.name.strip().casefold() == wanted and (each.kind, each.id) not in state.claims:
            state.near_names.append((start.resource.address, each))


def _complain_of_twins(
    kind: Kind, resource: Resource, found: Sequence[LiveObject], state: _State
) -> None:
    name = quoted(found[0].name)
    lines = [f"{resource.address}: {len(found)} live {kind.collection} are named {name}"]
    lines += [f"  {printable(_twin(kind, each))}" for each in sorted(found, key=_by_age)]
    state.problems.append("\n".join(lines))
    example = printable(min(found, key=_by_age).id)
    state.hints.append(
        f"pin the one that is meant, in {kind.collection}: {{{resource.address.key}: "
        f"{{id: {example}}}}}, and declare or delete the other"
    )


def _by_age(each: LiveObject) -> tuple[str, str]:
    return (str(each.body.get("created_at")), each.id)


def _twin(kind: Kind, each: LiveObject) -> str:
    last = value_at(each.body, kind.activity) if kind.activity else MISSING
    run = "" if last in (MISSING, None) else f", last run {last}"
    return f"id: {each.id}   created {each.body.get('created_at')}{run}"


def _complain_of_shared_claims(state: _State) -> None:
    for (kind, live_id), addresses in sorted(state.claims.items()):
        if len(addresses) > 1:
            listed = " and ".join(str(each) for each in sorted(addresses))
            state.problems.append(f"{listed} claim the same live {kind}, id {printable(live_id)}")
            state.hints.append(f"give all but one of {listed} another name, or pin them by `id`")


def _removed(
    desired: Desired,
    base: Desired | None,
    objects: Mapping[str, Sequence[LiveObject]],
    live: Live,
    state: _State,
) -> dict[Address, Match]:
    """What stood in the files at the git base, is gone from them, and is still live."""
    if base is None:
        return {}
    removed: dict[Address, Match] = {}
    for resource in base.in_order():
        address = resource.address
        kind = state.kinds.get(address.kind)
        if address in desired.resources or resource.state is State.ABSENT or kind is None:
            continue
        found = [
            each
            for each in objects[kind.name]
            if (each.kind, each.id) not in state.claims
            and _was_it(kind, resource, each, removed, live, state)
        ]
        if len(found) == 1:
            state.claims[found[0].kind, found[0].id] = [address]
            removed[address] = Match(resource, found[0], parent_id=found[0].parent_id)
    return removed


def _was_it(
    kind: Kind,
    resource: Resource,
    each: LiveObject,
    removed: Mapping[Address, Match],
    live: Live,
    state: _State,
) -> bool:
    if resource.pinned_id is not None:
        return each.id == resource.pinned_id
    if each.name.strip() != resource.name:
        return False
    if kind.parent is None or resource.parent is None:
        return True
    ref = resource.parent
    if ref.key is not None:
        address = Address(kind.parent, ref.key)
        parent = state.matches.get(address) or removed.get(address)
        return parent is not None and parent.live is not None and parent.live.id == each.parent_id
    if ref.id is not None:
        return each.parent_id == ref.id
    return any(
        parent.id == each.parent_id and parent.name.strip() == (ref.name or "").strip()
        for parent in live.of(kind.parent)
    )
