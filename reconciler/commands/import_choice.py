"""Which live objects are imported, and which resources they become. Pure.

The planner compares the same fields, so that the plan of the imported files is empty.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain, count

from msgspec import Struct

from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.kind import Kind
from reconciler.model.live import Identity, Live, LiveObject, plain_name
from reconciler.model.redaction import Mask
from reconciler.model.resource import ParentRef
from reconciler.model.values import Address, value_at
from reconciler.planning.select import Named, Names

_LONGEST_KEY = 60


class ImportContext(Struct, frozen=True, dict=True):
    """Live state, the addresses of claimed objects, and all addresses in the files.

    `recorded` are the ids of the objects that addresses were applied as: they identify them.
    `environment` is the one that resources are written for, "" if the workspace has only one.
    `mask` masks known secrets. `share_secrets`: exports with the same account share variables.
    """

    live: Live
    claims: Mapping[Identity, Address]
    declared: AbstractSet[Address]
    recorded: Mapping[Address, str]
    environment: str
    mask: Mask
    share_secrets: bool = False

    @cached_property
    def secret_names(self) -> AbstractSet[Identity]:
        """Return unclaimed objects with a known secret in their names: no key is made from it."""
        return {
            identity
            for identity, live in self.live.by_identity.items()
            if identity not in self.claims and self.mask(live.name) != live.name
        }

    @cached_property
    def ambiguous(self) -> AbstractSet[Identity]:
        """Return the objects that their name alone does not identify below their parent.

        Where names must be unique, names that differ in case only are ambiguous, too.
        """
        every = self.live.by_identity.values()
        counts = Counter(scope for live in every for scope in _scopes(live))
        return {
            live.identity for live in every if not live.name.strip() or counts[_scopes(live)[0]] > 1
        }

    def parent_of(self, live: LiveObject) -> LiveObject | None:
        """Return the live object that contains another one, None without one."""
        parent_kind = kinds_by_name()[live.kind].parent
        if parent_kind is None or live.parent_id is None:
            return None
        return self.live.by_identity.get((parent_kind, live.parent_id))

    def name_of(self, live: LiveObject) -> str:
        """Return the name as files may contain it, "" if it contains a known secret."""
        return "" if live.identity in self.secret_names else live.name.strip()


def _scopes(live: LiveObject) -> tuple[tuple[str, str | None, str], ...]:
    """Return where a name finds an object: below its parent, and in the organization."""
    name = live.name.strip()
    name = name.casefold() if kinds_by_name()[live.kind].unique_names else name
    return tuple((live.kind, scope, name) for scope in dict.fromkeys((live.parent_id, None)))


class Choice(Struct, frozen=True):
    """Which live objects to import. What is empty does not limit.

    `names` and `parents` name objects (`planning/select.py`); a parent also selects what is in it.
    `kinds` are names of kinds.
    """

    names: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def chosen(choice: Choice, context: ImportContext) -> tuple[LiveObject, ...]:
    """Return the objects that a choice selects, parents first, then by name and id.

    Raises BadUsage for a part that matches no live object, and for parts that match none together.
    """
    objects = {
        context.claims.get(identity) or live.address: live
        for identity, live in context.live.by_identity.items()
    }
    names = Names(Named.of_live(live, address) for address, live in objects.items())
    parents = Names(
        Named.of_live(live, address)
        for address, live in objects.items()
        if kinds_by_name()[live.kind].parent is None
    )
    named = names.addresses(choice.names)
    inside = parents.addresses(choice.parents, "--project")

    def fits(address: Address, live: LiveObject) -> bool:
        parent = context.parent_of(live) or live
        own = context.claims.get(parent.identity) or parent.address
        return (
            (not choice.kinds or live.kind in choice.kinds)
            and (not choice.names or address in named)
            and (not choice.parents or own in inside)
        )

    selected = [live for address, live in objects.items() if fits(address, live)]
    if not selected and (choice.names or choice.parents):
        given = ", ".join((*choice.parents, *choice.names))
        raise BadUsage(f"no live object matches {given} together")
    order = [kind.name for kind in all_kinds()]
    return tuple(sorted(selected, key=lambda live: (order.index(live.kind), live.name, live.id)))


def may_choose(choice: Choice) -> Callable[[LiveObject], bool]:
    """Return the test whether a choice may select an object of which only the list is read.

    An object that has a resource, which may be named by its key, is not written.
    """

    def may_match(live: LiveObject, texts: Sequence[str]) -> bool:
        named = Named.of_live(live)
        return not texts or any(map(named.may_match, texts))

    return lambda live: (
        (not choice.kinds or live.kind in choice.kinds)
        and may_match(live, choice.names)
        and (kinds_by_name()[live.kind].parent is not None or may_match(live, choice.parents))
    )


class Adoption(Struct, frozen=True):
    """A live object that is written as a resource. `pinned` if only its id identifies it."""

    kind: Kind
    live: LiveObject
    address: Address
    parent: ParentRef | None
    pinned: bool


def adoptions(objects: Sequence[LiveObject], context: ImportContext) -> tuple[Adoption, ...]:
    """Return each object with its key: made from the name, unique, and the same in each run.

    Objects whose names give the same key get the key of their parent, the environment, or the id as
    a further part. A claimed object keeps its address.
    """
    keys = {identity: address.key for identity, address in context.claims.items()}
    for kind in all_kinds():
        new = [live for live in objects if live.kind == kind.name and live.identity not in keys]
        keys |= _keys(kind, new, keys, context)
    kinds = kinds_by_name()
    return tuple(
        Adoption(
            kind=kinds[live.kind],
            live=live,
            address=Address(live.kind, keys[live.identity]),
            parent=_parent(live, keys, context),
            pinned=live.identity in context.ambiguous
            or (live.parent_id is None and live.kind in context.live.unlisted)
            or _unlisted(live, kinds[live.kind]),
        )
        for live in objects
    )


def _keys(
    kind: Kind,
    objects: Sequence[LiveObject],
    assigned: Mapping[Identity, str],
    context: ImportContext,
) -> dict[Identity, str]:
    """Return a new key for each object of a kind: its first candidate that no other object has.

    Nor was another one applied under it.
    """
    used = {address.key.casefold() for address in context.declared if address.kind == kind.name}
    names = Counter(key_of(plain_name(context.name_of(live))) for live in objects)
    keys: dict[Identity, str] = {}
    for live in objects:
        name = key_of(plain_name(context.name_of(live)))
        candidates = _candidates(live, name, assigned, context, alone=names[name] == 1)
        free = (key for key in candidates if key not in used)
        key = next(
            key for key in free if context.recorded.get(Address(kind.name, key), live.id) == live.id
        )
        keys[live.identity] = key
        used.add(key)
    return keys


def _candidates(
    live: LiveObject,
    name: str,
    assigned: Mapping[Identity, str],
    context: ImportContext,
    *,
    alone: bool,
) -> Iterator[str]:
    """Yield keys for an object without end, best first, that of its name only if `alone`."""
    parent, stems = context.parent_of(live), [name] if alone else []
    if parent is not None:
        prefix = assigned.get(parent.identity) or key_of(context.name_of(parent)) or parent.id
        stems.append(f"{prefix}-{name}")
    for stem in stems if name else ():
        yield stem
        if context.environment:
            yield f"{stem}-{key_of(context.environment)}"
    stem = name or live.kind.replace("_", "-")
    yield f"{stem}-{live.id.split('-')[0]}"
    yield from (f"{stem}-{live.id}{end}" for end in chain([""], (f"-{n}" for n in count(2))))


def key_of(name: str) -> str:
    """Return a key for a name: `Straße / Web (2)` gives `strasse-web-2`, `!` gives ""."""
    folded = unicodedata.normalize("NFKD", name.casefold())
    plain = re.sub(r"[^a-z0-9]+", "-", "".join(c for c in folded if not unicodedata.combining(c)))
    key = plain.strip("-")
    if len(key) > _LONGEST_KEY:
        key = key[:_LONGEST_KEY].rpartition("-")[0] or key[:_LONGEST_KEY]
    return key.strip("-")


def _parent(
    live: LiveObject, keys: Mapping[Identity, str], context: ImportContext
) -> ParentRef | None:
    """Return a reference by key if the parent is a resource, else by name, else by id."""
    kind = kinds_by_name()[live.kind]
    if kind.parent is None or live.parent_id is None:
        return None
    key = keys.get((kind.parent, live.parent_id))
    if key is not None:
        return ParentRef(key=key)
    parent = context.parent_of(live)
    if parent is None or not context.name_of(parent) or parent.identity in context.ambiguous:
        return ParentRef(id=live.parent_id)
    return ParentRef(name=context.name_of(parent))


def _unlisted(live: LiveObject, kind: Kind) -> bool:
    """Return whether the object is of a type that no list contains: only its id finds it again."""
    return any(
        value_at(live.body, (field.name, variant.tag)) in variant.unlisted
        for field, variant in kind.variants
    )
