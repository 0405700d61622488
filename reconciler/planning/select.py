"""Select the resources of a plan by options, and what is deleted without `state: absent`.

Matching always sees everything, so that a selection never changes which object is which resource.
Pruned are only objects that were applied and that the configuration does not declare any more.
What is in a project with `state: absent` is deleted with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from reconciler.errors import BadUsage
from reconciler.model.address import Address
from reconciler.model.kind import containers
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note, Reason
from reconciler.model.policy import PlanOptions, Policy, Selection
from reconciler.model.resource import Resource, State
from reconciler.model.text import command_text, listed, printable
from reconciler.model.values import secret_refs
from reconciler.planning.match import Match, Matching
from reconciler.planning.names import Named, Names, kinds_named

EVERYTHING = "*"
"""The rotation of all secrets, which may be none."""
_MOST_LISTED = 10


class PrunedObject(Struct, frozen=True):
    """An object to delete, with the reason and its parent, if that is declared."""

    match: Match
    live: LiveObject
    reason: Reason
    parent: Address | None


def to_prune(matching: Matching, policy: Policy, options: PlanOptions) -> Iterator[PrunedObject]:
    """Yield every object that the policy prunes: those of entries that no resource claims.

    So is the old object of a move that was cut short, if the move is allowed, and all that is in an
    object with `state: absent`, which is deleted with it.
    """
    kinds = matching.kinds

    def parent_of(live: LiveObject) -> Address | None:
        return matching.owners.get((kinds[live.kind].parent or "", live.parent_id or ""))

    def is_inside_absent(parent: Address | None) -> bool:
        return parent is not None and matching.matches[parent].resource.state is State.ABSENT

    for address, match in sorted(matching.removed.items()):
        if match.live is not None and address not in matching.left:
            parent = parent_of(match.live)
            if policy.prune or is_inside_absent(parent):
                yield PrunedObject(match, match.live, Reason.REMOVED_FROM_FILES, parent)
    moved = {
        live.identity
        for address, live in matching.left_by_moves.items()
        if options.allow_replace or matching.matches[address].resource.lifecycle.allow_replace
    }
    for live in matching.unmanaged:
        parent, is_moved = parent_of(live), live.identity in moved
        if is_moved or is_inside_absent(parent):
            resource = Resource(live.address, {"name": live.name}, state=State.ABSENT)
            match = Match(resource, kinds[live.kind], live)
            reason = Reason.MOVED if is_moved else Reason.STATE_ABSENT
            yield PrunedObject(match, live, reason, parent)


class Selected(Struct, frozen=True):
    """The outcome.

    matching
        Every resource with its object, selected or not.
    pruned
        The objects that the policy prunes, selected or not.
    addresses
        The selected resources and objects to prune, and the parents that must be created for them.
    rotated
        The resources whose secrets are sent again.
    """

    matching: Matching
    pruned: Sequence[PrunedObject]
    addresses: AbstractSet[Address]
    rotated: AbstractSet[Address]
    notes: tuple[Note, ...] = ()


class Candidates(Struct, frozen=True, dict=True):
    """What a selection may name.

    matching, pruned
        Every resource with its object, unmanaged objects, and the objects that the policy prunes.
    declared
        The resources of all environments.
    """

    matching: Matching
    pruned: Sequence[PrunedObject]
    environment: str
    declared: AbstractSet[Address]

    @cached_property
    def planned(self) -> Mapping[Address, Match]:
        """Return what a plan may change or explain, with the objects to prune."""
        return {
            **self.matching.resources,
            **self.matching.removed,
            **{
                item.match.resource.address: replace(
                    item.match, parent_id=item.live.parent_id, parent_address=item.parent
                )
                for item in self.pruned
            },
        }

    @cached_property
    def names(self) -> Names:
        """Return the names of everything."""
        return Names(self._everything())

    @cached_property
    def parents(self) -> Names:
        """Return the names of what may contain other objects."""
        kinds = containers(self.matching.kinds.values())
        named = {item.address: item for item in self._everything() if item.address.kind in kinds}
        known = {live_id for item in named.values() for live_id in item.ids}
        for match in self.matching.matches.values():
            ref, kind = match.resource.parent, match.kind.parent
            if kind is not None and ref is not None and ref.id is not None and ref.id not in known:
                # The key may not list it.
                address = Address.of_unmanaged(kind, ref.id)
                named[address] = Named(address, (ref.id,))
        return Names(named.values())

    def _everything(self) -> Iterator[Named]:
        yield from map(_named, self.planned.values())
        for live in (*self.matching.unmanaged, *self.matching.ignored):
            if Address.of_unmanaged(*live.identity) not in self.planned:
                yield Named.of_live(live)

    def elsewhere(self, text: str) -> BadUsage | None:
        """Return the error for a resource of another environment, None for other texts."""
        others = Names(Named(address) for address in self.declared - self.planned.keys())
        named = others.matching(text)
        if not named:
            return None
        labels = listed([item.label for item in named], _MOST_LISTED)
        verb = "is" if len(named) == 1 else "are"
        return BadUsage(
            f"{labels} {verb} not in environment {self.environment}",
            hint="select another environment with -e, or change `environments` of the resource",
        )


def select(
    matching: Matching,
    policy: Policy,
    options: PlanOptions,
    environment: str,
    declared: AbstractSet[Address] = frozenset(),
) -> Selected:
    """Return what the options of a plan select. `declared` are the resources of all environments.

    What was planned before is selected now, too. What the options named then may have another name
    now, so they need not match anything.

    Raises BadUsage for an option that matches nothing that can be planned, for options that match
    nothing together, and for one that excludes a parent to create.
    """
    pruned = tuple(to_prune(matching, policy, options))
    candidates = Candidates(matching, pruned, environment, declared)
    rotated = _rotated(candidates, options.rotate)
    selection, planned_before = options.selection, options.planned_before
    if not selection.partial:
        return Selected(matching, pruned, _limited(candidates.planned.keys(), options), rotated)
    test = _test_of(candidates, selection, is_strict=planned_before is None)
    chosen = {address for address, match in candidates.planned.items() if test.allows(match)}
    if planned_before is not None:
        chosen |= candidates.planned.keys() & planned_before
    elif not chosen:
        raise BadUsage(f"the options select no resource: {_written(selection)}")
    added = _needed(matching.matches, chosen) - chosen
    for address in sorted(added & test.excludes):
        raise BadUsage(
            f"{address} is excluded, but must be created for what is in it",
            hint="exclude that as well, or leave out --exclude",
        )
    notes = [Note("partial", "partial plan: other resources are not compared")]
    if added:
        names = listed(sorted(added), _MOST_LISTED)
        notes.append(Note("dependencies-follow", f"included because others need it: {names}"))
    addresses = _limited(chosen | added, options)
    return Selected(matching, pruned, addresses, rotated, tuple(notes))


def _limited(addresses: AbstractSet[Address], options: PlanOptions) -> AbstractSet[Address]:
    return addresses if options.only is None else addresses & options.only


class _Test(Struct, frozen=True):
    """The objects that options name, None for an option that is not given."""

    targets: AbstractSet[Address] | None
    excludes: AbstractSet[Address]
    kinds: AbstractSet[str] | None
    parents: AbstractSet[Address] | None
    parent_ids: AbstractSet[str]

    def names(self, address: Address) -> bool:
        """Return whether an address is selected, regardless of its parent."""
        return (
            (self.targets is None or address in self.targets)
            and address not in self.excludes
            and (self.kinds is None or address.kind in self.kinds)
        )

    def allows(self, match: Match) -> bool:
        """Return whether a resource or an object to prune is selected."""
        address = match.resource.address
        return self.names(address) and (
            self.parents is None
            or address in self.parents
            or match.parent_address in self.parents
            or (match.parent_id is not None and match.parent_id in self.parent_ids)
        )


def _test_of(candidates: Candidates, selection: Selection, *, is_strict: bool) -> _Test:
    def addresses(option: str, texts: Sequence[str], names: Names) -> AbstractSet[Address]:
        named: set[Address] = set()
        for text in names.split(texts):
            if is_strict:
                _check(candidates, text, option, names)
            named |= {item.address for item in names.matching(text)}
        return named

    targets = addresses("--target", selection.targets, candidates.names)
    parents = addresses("--project", selection.parents, candidates.parents)
    every_kind = tuple(candidates.matching.kinds.values())
    kinds = {name for text in selection.kinds for name in kinds_named(text, every_kind)}
    return _Test(
        targets=targets if selection.targets else None,
        excludes=addresses("--exclude", selection.excludes, candidates.names),
        kinds=kinds if selection.kinds else None,
        parents=parents if selection.parents else None,
        parent_ids=candidates.parents.ids_of(parents),
    )


def _check(candidates: Candidates, text: str, option: str, names: Names) -> None:
    """Raise BadUsage for a text that names nothing, and for a target that no plan changes."""
    named = names.matching(text)
    if not named:
        raise candidates.elsewhere(text) or names.nothing(text, option)
    addresses = {item.address for item in named}
    if option != "--target" or addresses & candidates.planned.keys():
        return
    first = named[0]
    ignored = {item.identity for item in candidates.matching.ignored}
    if (first.address.kind, first.ids[0]) in ignored:
        raise BadUsage(
            f"{first.label} is ignored by the policy", hint="change policy.ignore to manage it"
        )
    command = command_text("import", first.ids[0], environment=candidates.environment)
    raise BadUsage(
        f"{first.label} is unmanaged: no resource has it",
        hint=f"import it with `{command}`, or pin it: add `id: {first.ids[0]}` to a resource",
    )


def _needed(matches: Mapping[Address, Match], chosen: AbstractSet[Address]) -> set[Address]:
    """Return the parents that must be created for selected resources, new or moved there."""
    parents = (
        matches[address].parent_address
        for address in chosen
        if address in matches and matches[address].resource.state is State.PRESENT
    )
    return {
        address
        for address in parents
        if address is not None and address in matches and matches[address].live is None
    }


def _rotated(candidates: Candidates, rotate: Sequence[str]) -> AbstractSet[Address]:
    """Return the resources whose secrets are sent again. Raises BadUsage for none."""
    if not rotate:
        return frozenset()
    matches = candidates.matching.resources
    names = Names(map(_named, matches.values()))
    rotated: set[Address] = set()
    for text in names.split(text for text in rotate if text != EVERYTHING):
        _check(candidates, text, "--rotate-secrets", names)
        addresses = [item.address for item in names.matching(text)]
        if not any(secret_refs(matches[address].resource.spec) for address in addresses):
            raise BadUsage(f"{listed(addresses, _MOST_LISTED)}: no secret to send again")
        rotated.update(addresses)
    return matches.keys() if EVERYTHING in rotate else rotated


def _named(match: Match) -> Named:
    return Named.of_resource(match.resource, match.live)


def _written(selection: Selection) -> str:
    """Return the options as they were given."""
    given = {
        "--target": selection.targets,
        "--exclude": selection.excludes,
        "--kind": selection.kinds,
        "--project": selection.parents,
    }
    return ", ".join(f"{option} {printable(text)}" for option in given for text in given[option])
