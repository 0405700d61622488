"""Which live objects are imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from reconciler.errors import BadUsage
from reconciler.importing.context import ImportContext, identity_of
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.naming import Named, Names
from reconciler.model.resource import Resource


class Choice(Struct, frozen=True):
    """Which live objects to import. What is empty does not limit.

    `names` and `parents` name objects (`model/naming.py`); a parent also selects what is in it.
    `ids` are exact. `kinds` are names of kinds.
    """

    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def chosen(choice: Choice, context: ImportContext) -> tuple[LiveObject, ...]:
    """Return the objects that a choice selects, parents first, then by name and id.

    Raises BadUsage for a part that matches no live object, and for parts that match none together.
    """
    objects = {_address(live, context): live for live in context.objects.values()}
    names = Names(Named.of_live(live, address) for address, live in objects.items())
    parents = Names(
        Named.of_live(live, address)
        for address, live in objects.items()
        if context.kinds_by_name[live.kind].parent is None
    )
    named = _addresses(names, choice.names, "--name")
    inside = _addresses(parents, choice.parents, "--project")
    for live_id in choice.ids:
        if all(live.id != live_id for live in objects.values()):
            raise names.nothing(live_id, "--id")

    def fits(address: Address, live: LiveObject) -> bool:
        parent = context.parent_of(live)
        own = address if parent is None else _address(parent, context)
        return (
            (not choice.kinds or live.kind in choice.kinds)
            and (not choice.ids or live.id in choice.ids)
            and (not choice.names or address in named)
            and (not choice.parents or own in inside)
        )

    selected = [live for address, live in objects.items() if fits(address, live)]
    if not selected and (choice.names or choice.ids or choice.parents):
        given = ", ".join((*choice.parents, *choice.names, *choice.ids))
        raise BadUsage(f"no live object matches {given} together")
    order = [kind.name for kind in context.kinds]
    return tuple(sorted(selected, key=lambda live: (order.index(live.kind), live.name, live.id)))


def may_choose(
    choice: Choice, kinds: Iterable[Kind], resources: Iterable[Resource]
) -> Callable[[LiveObject], bool]:
    """Return the test whether a choice may select an object of which only the list is read.

    The object of a resource has its key, too.
    """
    top_level = {kind.name for kind in kinds if kind.parent is None}
    keyed: dict[tuple[str, str], list[Address]] = {}
    for resource in resources:
        for text in (resource.name, resource.pinned_id):
            keyed.setdefault((resource.address.kind, text or ""), []).append(resource.address)

    def may_match(live: LiveObject, texts: Sequence[str]) -> bool:
        addresses = (
            None,
            *keyed.get((live.kind, live.name.strip()), ()),
            *keyed.get((live.kind, live.id), ()),
        )
        return not texts or any(
            Named.of_live(live, address).may_match(text) for address in addresses for text in texts
        )

    return lambda live: (
        (not choice.kinds or live.kind in choice.kinds)
        and (not choice.ids or live.id in choice.ids)
        and may_match(live, choice.names)
        and (live.kind not in top_level or may_match(live, choice.parents))
    )


def _address(live: LiveObject, context: ImportContext) -> Address:
    """Return the address of the resource that has an object, or that of an unmanaged object."""
    return context.claims.get(identity_of(live)) or Address.of_unmanaged(live.kind, live.id)


def _addresses(names: Names, texts: Sequence[str], option: str) -> AbstractSet[Address]:
    return {item.address for text in names.split(texts) for item in names.named(text, option)}
