"""Refuse to delete what contains an object that the plan does not account for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, Reason
from reconciler.model.live import LiveObject
from reconciler.model.plan import Refusal
from reconciler.model.resource import Resource, State
from reconciler.model.wording import listed, printable, quoted
from reconciler.planning.guard_context import GuardContext
from reconciler.planning.matcher import Match, Matching

_MOST = 20


class Obstacle(Struct, frozen=True):
    """Why an object prevents the deletion of what contains it: a rule, the reason and the fix."""

    rule: str
    text: str
    fix: str


_UNMANAGED = Obstacle(
    "unmanaged-inside",
    "which no resource declares",
    "to delete all of it, declare what contains it with `state: absent`",
)
_NOT_SELECTED = Obstacle(
    "not-selected",
    "whose own deletion is not selected",
    "select what is in it, too, or leave out the options that select",
)


def lost_with_parent(context: GuardContext) -> Iterator[Refusal]:
    """Refuse to delete what contains an object that is not accounted for: it would be lost."""
    parents = {
        (change.address.kind, change.live_id): change
        for change in context.changes
        if change.action is Action.DELETE
    }
    if not parents:
        return
    names: dict[tuple[Address, Obstacle], list[str]] = {}
    for parent, obstacle, name in _obstacles(context, parents):
        names.setdefault((parent, obstacle), []).append(name)
    for (parent, obstacle), lost in names.items():
        yield Refusal(
            obstacle.rule,
            f"{parent} would be deleted with {listed(lost, _MOST)} in it, {obstacle.text}",
            (parent,),
            context.mark_of(parent),
            obstacle.fix,
        )


def _obstacles(
    context: GuardContext, parents: Mapping[tuple[str, str | None], Change]
) -> Iterator[tuple[Address, Obstacle, str]]:
    """Yield what is in objects to delete, or is to be put there: obstacle and name."""
    leaving = {
        (change.address.kind, change.live_id)
        for change in context.changes
        if change.action is Action.DELETE or change.old_parent_id not in (None, change.parent_id)
    }
    known = {(item.live.kind, item.live.id): _NOT_SELECTED for item in context.pruned}
    kept = context.base.kept if context.base is not None else {}
    known |= {(live.kind, live.id): found for live, found in _known(context.matching, kept)}
    for kind in context.kinds:
        for item in context.live.of(kind.name) if kind.parent is not None else ():
            place = (item.kind, item.id)
            parent = parents.get((kind.parent or "", item.parent_id))
            if parent is None or place in leaving:
                continue
            # `state: absent` deletes unmanaged objects, too.
            other = None if Reason.STATE_ABSENT in parent.reasons else _UNMANAGED
            if (obstacle := known.get(place, other)) is not None:
                name = f"{item.kind} {quoted(item.name)} (id {printable(item.id)})"
                yield parent.address, obstacle, name
    for match in context.matching.matches.values():
        parent = parents.get((match.kind.parent or "", match.parent_id))
        arrives = match.resource.state is State.PRESENT and (match.live is None or match.moved)
        if parent is not None and arrives:
            name = f"{match.kind.name} {quoted(match.resource.name)}"
            yield parent.address, _of_declared(match), name


def _known(
    matching: Matching, kept: Mapping[Address, str]
) -> Iterator[tuple[LiveObject, Obstacle]]:
    """Yield the objects that resources are, were or may have been, the strongest reason last."""
    # Protected resources come first, so that an object of two keys is protected if either is.
    for unclear in reversed(matching.unclear):
        ambiguous = Obstacle(
            "ambiguous-inside",
            f"which may be {unclear.resource.address}",
            f"declare {unclear.resource.address} with `id:`, or keep what contains it",
        )
        for live in unclear.objects:
            yield live, _of_removed(unclear.resource, kept) or ambiguous
    for match in matching.removed.values():
        obstacle = _of_removed(match.resource, kept)
        if match.live is not None and obstacle is not None:
            yield match.live, obstacle
    for match in matching.matches.values():
        for live in filter(None, (match.live, match.new)):
            yield live, _of_declared(match)
    fix = "keep what contains it, or narrow the glob in `policy.ignore`"
    for live in matching.ignored:
        yield live, Obstacle("ignore", "which matches `policy.ignore`", fix)


def _of_declared(match: Match) -> Obstacle:
    if match.resource.state is State.ABSENT:
        return _NOT_SELECTED
    text = f"but the configuration has {match.resource.address}"
    fix = "move it to another place in the same plan, or remove it, too"
    return Obstacle("declared-inside", text, fix)


def _of_removed(resource: Resource, kept: Mapping[Address, str]) -> Obstacle | None:
    """Return why the object of a removed resource must stay, None if it need not."""
    address = resource.address
    if resource.lifecycle.protect:
        fix = "set `lifecycle: {protect: false}` on it and apply; then remove it"
        return Obstacle("protect", f"and {address} is protected", fix)
    if address in kept:
        fix = f"declare {address} as `state: absent`, or keep what contains it"
        return Obstacle("kept", f"and {address} is kept: {kept[address]}", fix)
    return None
