"""Name objects; select resources, what a plan prunes, and what must be read for it.

Matching always sees everything, so that a selection never changes which object is which resource.
Pruned are only objects that were applied and that the configuration does not declare any more.
What is in a project with `state: absent` is deleted with it.

One rule names objects for every option and argument: by address, id, key, name or glob. The first
of these levels that matches anything wins, so a glob never wins over an exact name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.kind import Kind, containers
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.plan import IDENTITY, Note, Reason, Refusal
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.settings import PlanOptions, Policy, Selection
from reconciler.model.text import (
    choice,
    command_text,
    fits_any,
    listed,
    named,
    nearest,
    printable,
    quoted,
)
from reconciler.model.values import Address, secret_refs
from reconciler.planning.compare import is_identical
from reconciler.planning.integrations import parents_of_names
from reconciler.planning.inventory import Inventory
from reconciler.planning.match import Match, Matching, match

EVERYTHING = "*"
"""The rotation of all secrets, which may be none."""
_MOST_LISTED = 10


class Trusted(Struct, frozen=True):
    """The policy that applies to a plan: that of the files with the stricter one that is trusted.

    `hint` says how to let that of the files apply. `others` are violations that are known already.
    """

    policy: Policy
    hint: str = ""
    others: tuple[Refusal, ...] = ()


class PlanContext(Struct, frozen=True):
    """What a plan depends on besides configuration, live state and policy.

    `now` is when live state was read: rules such as "end_at has passed" need it. `no_inventory`
    says why nothing is known of what was applied, if it is not. `head` is the commit of the
    configuration and `head_ref` its branch, if known; `uncommitted` says whether its files differ
    from it. `declared` are the resources of all environments, and `has_environments` says whether
    there are several. `trusted` judges the plan, too.
    """

    now: datetime
    tool_version: str
    inventory: Inventory | None = None
    no_inventory: str = "first apply, or refs/reconciler/* not fetched"
    options: PlanOptions = field(default_factory=PlanOptions)
    head: str | None = None
    head_ref: str | None = None
    uncommitted: bool = False
    declared: AbstractSet[Address] = frozenset()
    has_environments: bool = False
    trusted: Trusted | None = None


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

    for address, pair in sorted(matching.removed.items()):
        if pair.live is not None and address not in matching.left:
            parent = parent_of(pair.live)
            if policy.prune or is_inside_absent(parent):
                yield PrunedObject(pair, pair.live, Reason.REMOVED_FROM_FILES, parent)
    moved = {
        live.identity
        for address, live in matching.left_by_moves.items()
        if options.allow_replace or matching.matches[address].resource.lifecycle.allow_replace
    }
    for live in matching.unmanaged:
        parent, is_moved = parent_of(live), live.identity in moved
        if is_moved or is_inside_absent(parent):
            resource = Resource(live.address, {"name": live.name}, state=State.ABSENT)
            pair = Match(resource, kinds[live.kind], live)
            reason = Reason.MOVED if is_moved else Reason.STATE_ABSENT
            yield PrunedObject(pair, live, reason, parent)


class Selected(Struct, frozen=True):
    """What a plan is made of: its input, the objects of the resources, and what it is about.

    matching
        Every resource with its object, selected or not.
    pruned
        The objects that the policy prunes, selected or not.
    addresses
        The selected resources and objects to prune, and the parents that must be created for them.
    rotated
        The resources whose secrets are sent again.
    """

    desired: Desired
    policy: Policy
    context: PlanContext
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
        for pair in self.matching.matches.values():
            ref, kind = pair.resource.parent, pair.kind.parent
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
    desired: Desired, live: Live, policy: Policy, kinds: Sequence[Kind], *, context: PlanContext
) -> Selected:
    """Match every resource with its object, and select those that a plan is about.

    What was planned before is selected now, too. What the options named then may have another name
    now, so they need not match anything.

    Raises BadUsage for an option that matches nothing that can be planned, for options that match
    nothing together, and for one that excludes a parent to create.
    """
    matching = match(desired, live, policy=policy, kinds=kinds, inventory=context.inventory)
    options, selection = context.options, context.options.selection
    pruned = tuple(to_prune(matching, policy, options))
    candidates = Candidates(matching, pruned, desired.environment, context.declared)
    rotated, planned = _rotated(candidates, options.rotate), candidates.planned
    whole = Selected(desired, policy, context, matching, pruned, planned.keys(), rotated)
    if not selection.partial:
        return _limited(whole)
    before = options.planned_before
    test = _test_of(candidates, selection, is_strict=before is None)
    chosen = {address for address, item in planned.items() if test.allows(item)}
    if before is not None:
        chosen |= planned.keys() & before
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
    return _limited(replace(whole, addresses=chosen | added, notes=tuple(notes)))


def _limited(selected: Selected) -> Selected:
    only = selected.context.options.only
    return selected if only is None else replace(selected, addresses=selected.addresses & only)


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


_HOW = "write an address (kind.key), an id, a key, a name or a glob"


class Named(Struct, frozen=True):
    """The texts that name one object.

    `address` is that of the resource, or `Address.of_unmanaged`. `ids` are live ids, `names` live
    and configured names.
    """

    address: Address
    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of_live(cls, live: LiveObject, address: Address | None = None) -> Named:
        """Return the names of a live object, and those of its resource if it has one."""
        own = Address.of_unmanaged(live.kind, live.id)
        return cls(address or own, (live.id,), (live.name.strip(),))

    @classmethod
    def of_resource(cls, resource: Resource, live: LiveObject | None = None) -> Named:
        """Return the names of a resource, and those of its live object if it has one."""
        ids = (resource.pinned_id, live.id if live is not None else None)
        names = (resource.name, live.name.strip() if live is not None else None)
        return cls(resource.address, tuple(filter(None, ids)), tuple(filter(None, names)))

    @property
    def label(self) -> str:
        """The address, for messages, and the name of an unmanaged object."""
        address = printable(str(self.address))
        has_name = self.address.is_unmanaged and self.names
        return f"{named(self.names[0])} ({address})" if has_name else address

    def exact(self) -> tuple[tuple[str, ...], ...]:
        """Return the texts of each level: address, ids, key and names.

        The address of an object without a resource names it also after a resource has it.
        """
        kind = self.address.kind
        ids = (text for it in self.ids for text in (it, str(Address.of_unmanaged(kind, it))))
        return (str(self.address),), tuple(ids), (self.address.key,), self.names

    def fits(self, glob: str) -> bool:
        """Return whether a glob matches the address, the key or a name."""
        texts = (str(self.address), self.address.key, *self.names)
        return any(fits_any(text, (glob,)) for text in texts)

    def may_match(self, text: str) -> bool:
        """Return whether a text, or a part of a comma list, matches on any level."""
        return any(
            self.fits(part) or any(part in texts for texts in self.exact())
            for part in (text.strip(), *parts(text))
        )


class Names:
    """The objects that an option or argument may name, in the order of their addresses."""

    def __init__(self, objects: Iterable[Named]) -> None:
        self._objects = sorted(objects, key=lambda item: (item.address.kind, item.address.key))
        self._levels: tuple[dict[str, list[Named]], ...] = ({}, {}, {}, {})
        for item in self._objects:
            for level, texts in zip(self._levels, item.exact(), strict=True):
                for text in set(texts):
                    level.setdefault(text, []).append(item)

    def matching(self, text: str) -> tuple[Named, ...]:
        """Return the objects that a text names, none if nothing matches."""
        text = text.strip()
        for level in self._levels:
            if text in level:
                return tuple(level[text])
        return tuple(item for item in self._objects if item.fits(text))

    def split(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return texts, with comma lists split that match nothing as a whole."""
        return tuple(
            part for text in texts for part in ((text,) if self.matching(text) else parts(text))
        )

    def named(self, text: str, option: str = "") -> tuple[Named, ...]:
        """Return the objects that a text or comma list names.

        Raises BadUsage for a text, or a part of a list, that names nothing.
        """
        named: dict[Address, Named] = {}
        for part in self.split((text,)):
            items = self.matching(part)
            if not items:
                raise self.nothing(part, option)
            named |= {item.address: item for item in items}
        return tuple(named.values())

    def addresses(self, texts: Iterable[str], option: str = "") -> frozenset[Address]:
        """Return the addresses of what texts name. Raises BadUsage for one that names nothing."""
        return frozenset(item.address for text in texts for item in self.named(text, option))

    def ids_of(self, addresses: Container[Address]) -> frozenset[str]:
        """Return the live ids of objects."""
        return frozenset(
            live_id for item in self._objects if item.address in addresses for live_id in item.ids
        )

    def one(self, text: str) -> Named:
        """Return the only object that a text names. Raises BadUsage for none and for several."""
        named = self.named(text)
        if len(named) > 1:
            labels = listed([item.label for item in named], _MOST_LISTED)
            raise BadUsage(
                f"{quoted(text)} matches {len(named)} resources", hint=f"use one of: {labels}"
            )
        return named[0]

    def nothing(self, text: str, option: str = "") -> BadUsage:
        """Return the error that a text names nothing, with a similar name."""
        where = f" ({option})" if option else ""
        close = self._nearest(text)
        if close is not None:
            hint = f"did you mean {close.label}?"
        elif self._objects:
            known = listed([item.label for item in self._objects], _MOST_LISTED)
            hint = f"{_HOW}; known: {known}"
        else:
            hint = "there is nothing that it could name"
        return BadUsage(f"nothing matches {quoted(text)}{where}", hint=hint)

    def _nearest(self, text: str) -> Named | None:
        """Return the object with the most similar key or name, also of an address."""
        wanted = text.strip(" *")
        texts = {name: it for it in self._objects[::-1] for name in (it.address.key, *it.names)}
        close = nearest(wanted, texts) or nearest(wanted.rpartition(".")[2], texts)
        return texts[close] if close is not None else None


def check_clear(texts: Iterable[str], refusals: Iterable[Refusal]) -> None:
    """Raise ReconcilerError if a text is the address or key of a resource that is ambiguous."""
    for refusal in refusals:
        names = {text for it in refusal.addresses for text in (str(it), it.key)}
        if refusal.rule in IDENTITY and not names.isdisjoint(texts):
            raise ReconcilerError(refusal.message, hint="use the id of a live object")


def kinds_named(text: str, kinds: Sequence[Kind]) -> frozenset[str]:
    """Return the names of the kinds that a text names, such as a collection (`batch_exports`).

    Raises BadUsage for an unknown one.
    """
    known = {name: kind.name for kind in kinds for name in (kind.name, kind.collection)}
    for part in parts(text):
        if part not in known:
            hint = choice(part, [kind.name for kind in kinds], "kinds")
            raise BadUsage(f"unknown kind {quoted(part)}", hint=hint)
    return frozenset(known[part] for part in parts(text))


def parts(text: str) -> tuple[str, ...]:
    """Return the parts of a comma list."""
    return tuple(part.strip() for part in text.split(","))


class Needs(Struct, frozen=True):
    """What a plan depends on and live state lacks.

    objects
        Objects of which only the short form of a list is known.
    integrations
        The ids of the parents whose integrations are named.
    """

    objects: frozenset[Identity] = frozenset()
    integrations: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        live: Live,
        objects: AbstractSet[Identity],
        integrations: AbstractSet[str] = frozenset(),
    ) -> Needs:
        """Return those of some objects and lists of integrations that live state lacks."""
        return cls(
            frozenset(objects & short_forms(live).keys()),
            frozenset(integrations - live.integrations.keys()),
        )

    def __bool__(self) -> bool:
        """Return whether anything is lacking."""
        return bool(self.objects or self.integrations)


def parents_to_read(
    kind: Kind, parents: Sequence[LiveObject], desired: Desired, inventory: Inventory | None
) -> AbstractSet[str]:
    """Return the ids of the live parents in which objects of a kind are or were declared.

    So are parents that are deleted. All are returned if a resource pins an `id` or names no parent:
    it may be in any.
    """
    entries = inventory.entries if inventory is not None else {}
    own = [item for item in desired.resources.values() if item.address.kind == kind.name]
    refs = [item.parent for item in own if item.parent is not None]
    if len(refs) < len(own) or any(item.pinned_id is not None for item in own):
        return {item.id for item in parents}
    ids = {ref.id for ref in refs}
    ids |= {entry.parent for address, entry in entries.items() if address.kind == kind.name}
    names = {(ref.name or "").strip() for ref in refs}
    declared = {Address(kind.parent or "", ref.key) for ref in refs if ref.key is not None}
    for address in {*desired.resources, *entries}:
        if address.kind != kind.parent:
            continue
        parent, entry = desired.resources.get(address), entries.get(address)
        if address in declared or parent is None or parent.state is State.ABSENT:
            ids.add(entry.id if entry is not None else None)
            if parent is not None:
                ids.add(parent.pinned_id)
                names |= {item.strip() for item in (parent.name, *parent.lifecycle.renamed_from)}
    return {item.id for item in parents if item.id in ids or item.name.strip() in names}


def needs_of(selected: Selected, in_full: AbstractSet[Identity] = frozenset()) -> Needs:
    """Return what the plan of a selection needs.

    In full are needed: objects that may be one of several, or are deleted; objects that differ from
    their resource, as far as their short form shows; and the parents in which something is created,
    and namesakes of it, which may be pending deletion.
    """
    matching = selected.matching
    wanted = {*matching.undecided, *in_full}
    wanted |= {
        item.live.identity
        for item in selected.pruned
        if item.match.resource.address in selected.addresses
    }
    created: set[tuple[str, str]] = set()
    for address in selected.addresses & matching.matches.keys():
        match = matching.matches[address]
        parent, live = match.kind.parent or "", match.live
        if live is None and match.resource.state is State.ABSENT:
            continue
        if live is None or match.moved:
            created.add((match.kind.name, match.resource.name.casefold()))
            wanted.add((parent, match.parent_id or ""))
        if live is not None and match.moved:
            wanted.add((parent, live.parent_id or ""))
        if live is not None and not live.complete and not _is_settled(match, live, matching):
            wanted.add(live.identity)
    wanted |= {
        identity
        for identity, item in (short_forms(matching.live) if created else {}).items()
        if (item.kind, item.name.strip().casefold()) in created
    }
    return Needs.of(matching.live, wanted, parents_of_names(matching, selected.addresses))


def _is_settled(match: Match, live: LiveObject, matching: Matching) -> bool:
    """Return whether the short form of an object shows that nothing of it changes."""
    resource = match.resource
    was = matching.declared(resource, live).applied
    return (
        resource.state is State.PRESENT
        and (was is None or was.spec == resource.spec)
        and is_identical(match.kind, resource.spec, live.body)
    )


def short_forms(live: Live) -> Mapping[Identity, LiveObject]:
    """Return the objects of which only the short form of a list is known."""
    return {it.identity: it for items in live.objects.values() for it in items if not it.complete}
