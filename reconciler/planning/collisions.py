"""Find objects that write to the same place: the same table, bucket and prefix, or container."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note
from reconciler.model.resource import Resource, State
from reconciler.model.text import listed, quoted
from reconciler.planning.matcher import Matching
from reconciler.planning.places import Parts, Place, Places

_MOST_LISTED = 5
_MOST_NOTES = 20


def collision_notes(
    matching: Matching,
    unmanaged: Iterable[LiveObject],
    kinds: Mapping[str, Kind],
    *,
    changed: Collection[Address],
    refused: Collection[Address],
) -> Iterator[Note]:
    """Yield a note for each place that a resource and another object write to, up to a number.

    `refused` creates have a violation. Objects that the policy ignores count for `changed`
    resources.
    """
    places = {name: Places.of(kind) for name, kind in kinds.items()}
    users = _users(matching, places)
    others: dict[Parts, list[tuple[str, Address]]] = defaultdict(list)
    watched = {address for address in changed if address not in refused}
    ignored = {(item.kind, item.id): item for item in matching.ignored if watched}
    for item in (*unmanaged, *ignored.values()) if users else ():
        for parts in _shared(places[item.kind].of_body(item.body)):
            resources = [one for one in users.get(parts, ()) if one.address not in refused]
            if (item.kind, item.id) in ignored:
                resources = [one for one in resources if one.address in watched]
            if resources:
                others[parts].append((item.name, item.address))
    shared = (
        (_unexpected(resources, others.get(parts, ())), parts)
        for parts, resources in users.items()
        if len(resources) > 1 or parts in others
    )
    for addresses, parts in sorted(item for item in shared if len(item[0]) > 1)[:_MOST_NOTES]:
        where = ", ".join(f"{word} {quoted(value)}" for word, value in parts)
        yield Note(
            "same-place",
            f"{listed(addresses, _MOST_LISTED)} write to the same place ({where}): files may be "
            "overwritten, and a table gets the rows of all",
        )


def _users(matching: Matching, places: Mapping[str, Places]) -> Mapping[Parts, Sequence[Resource]]:
    """Return the resources that write to each place."""
    users: dict[Parts, list[Resource]] = defaultdict(list)
    for match in matching.matches.values():
        resource = match.resource
        if resource.state is not State.ABSENT:
            live = match.live.body if match.live is not None else {}
            for parts in _shared(places[match.kind.name].of_body(resource.spec, live)):
                users[parts].append(resource)
    return users


def _shared(places: Iterable[Place]) -> Iterator[Parts]:
    """Yield places that say where data is kept. Their type does not count: S3, AwsS3."""
    return (place.parts for place in places if place.is_exact)


def _unexpected(
    resources: Sequence[Resource], others: Iterable[tuple[str, Address]]
) -> list[Address]:
    """Return the addresses at a place, without those that `lifecycle.beside` of another names."""
    trusting = [item for item in resources if item.lifecycle.beside]
    listed_there = [*((item.name, item.address) for item in resources), *others]
    left: list[Address] = []
    for name, address in listed_there:
        beside = (item for item in trusting if item.address != address)
        if not any(item.lifecycle.is_beside(name, address) for item in beside):
            left.append(address)
    return sorted(left)
