"""Decide which objects prevent the deletion of what contains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from reconciler.model.address import Address
from reconciler.model.resource import Resource, State
from reconciler.planning.matcher import Match, Matching
from reconciler.planning.pruning import PrunedObject

Obstacle: TypeAlias = tuple[str, str, str]
"""A rule, why an object prevents the deletion of what contains it, and the fix."""
_ABSENT = "to delete unmanaged objects, too, declare what contains them with `state: absent`"
UNMANAGED: Obstacle = ("unmanaged-inside", "which no resource declares", _ABSENT)
_NOT_SELECTED: Obstacle = (
    "not-selected",
    "whose own deletion is not selected",
    "select it, too, for example with --project",
)


def obstacles(
    matching: Matching, pruned: Iterable[PrunedObject], kept: Mapping[Address, str]
) -> Iterator[tuple[tuple[str, str], Obstacle]]:
    """Yield by kind and id which objects are no unmanaged ones, the strongest reason last."""
    known = [(item.live, _NOT_SELECTED) for item in pruned]
    # Protected resources come first, so that an object of two keys is protected if either is.
    for unclear in reversed(matching.unclear):
        address = unclear.resource.address
        ambiguous = ("ambiguous-inside", f"which may be {address}", f"declare {address} with `id:`")
        obstacle = _of_removed(unclear.resource, kept) or ambiguous
        known += [(live, obstacle) for live in unclear.objects]
    for match in matching.removed.values():
        if match.live is not None and (removed := _of_removed(match.resource, kept)) is not None:
            known.append((match.live, removed))
    for match in matching.matches.values():
        known += [(live, of_declared(match)) for live in (match.live, match.new) if live]
    ignored = ("ignore", "which matches `policy.ignore`", "narrow the glob in `policy.ignore`")
    known += [(live, ignored) for live in matching.ignored]
    return (((live.kind, live.id), obstacle) for live, obstacle in known)


def of_declared(match: Match) -> Obstacle:
    """Return why the object of a resource prevents it."""
    if match.resource.state is State.ABSENT:
        return _NOT_SELECTED
    fix = "move it to another place in the same plan, or remove it, too"
    return "declared-inside", f"but the configuration has {match.resource.address}", fix


def _of_removed(resource: Resource, kept: Mapping[Address, str]) -> Obstacle | None:
    """Return why the object of a removed resource must stay, None if it need not."""
    address = resource.address
    if resource.lifecycle.protect:
        fix = "set `lifecycle: {protect: false}` on it and apply; then remove it"
        return "protect", f"and {address} is protected", fix
    if address in kept:
        return "kept", f"and {address} is kept: {kept[address]}", "declare it as `state: absent`"
    return None
