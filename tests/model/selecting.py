"""What the options that select resources leave out (docs/planning.md, Select resources).

Imports nothing of what it judges.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from tests.model.identity import Live

if TYPE_CHECKING:
    from tests.model.deciding import Planned


class Thing(NamedTuple):
    """What an option may name: a resource, with its object or without, or an unmanaged object."""

    address: str
    names: frozenset[str]
    live: Live | None
    parents: frozenset[str | None]
    is_unmanaged: bool = False

    @property
    def key(self) -> str:
        return self.address.partition(".")[2]

    @property
    def ids(self) -> set[str]:
        return {self.live.id, self.live.address} if self.live else set()


def things_of(plan: Planned) -> dict[str, Thing]:
    """Return everything that an option may name, by address."""
    identity, things = plan.identity, list[Thing]()
    for address in identity.untouchable | identity.ambiguous | identity.matched.keys():
        resource, live = plan.now[address], identity.matched.get(address)
        names = frozenset({resource.name, *({live.name} if live else ())})
        parents = frozenset({identity.parent_of(resource), *(resource.parent or ())[1:]})
        things.append(Thing(address, names, live, parents))
    for address, item in identity.removed.items():
        was = plan.record.applied.get(address)
        names = frozenset({was.name if was else item.name, item.name})
        things.append(Thing(address, names, item, frozenset({item.parent})))
    for item in plan.live:
        if item not in identity.owner and item not in identity.leads:
            names, parents = frozenset({item.name}), frozenset({item.parent})
            things.append(Thing(item.address, names, item, parents, is_unmanaged=True))
    return {thing.address: thing for thing in things}


def named(text: str, things: dict[str, Thing]) -> set[str]:
    """Return the addresses that a text names: the first kind of name that anything has counts."""
    for of in (
        lambda thing: text == thing.address,
        lambda thing: text in thing.ids,
        lambda thing: text == thing.key,
        lambda thing: text in thing.names,
        lambda thing: any(
            fnmatch.fnmatchcase(own, text) for own in (thing.address, thing.key, *thing.names)
        ),
    ):
        found = {address for address, thing in things.items() if of(thing)}
        if found:
            return found
    return set()


def left_out(plan: Planned, candidates: set[str]) -> set[str] | None:
    """Return the addresses that the options leave out, None if the options are not usable.

    `candidates` are the resources and objects with a change. What a saved plan selected is selected
    again, and its options need not match anything.
    """
    world, things = plan.world, things_of(plan)
    unmanaged = {address for address, thing in things.items() if thing.is_unmanaged} - candidates
    targets = [named(text, things) for text in world.targets]
    excludes = [named(text, things) for text in world.excludes]
    projects = {key: thing for key, thing in things.items() if key.startswith("project.")}
    parents = [named(text, projects) for text in world.parents]
    kinds = {text.removesuffix("s") for text in world.kinds}
    is_strict = plan.saved is None
    if not kinds <= {"project", "batch_export"}:
        return None
    if is_strict and not all((*targets, *excludes, *parents)):
        return None
    if is_strict and any(found <= unmanaged for found in targets):
        return None
    chosen = {*things} - unmanaged
    if targets:
        chosen &= set().union(*targets)
    if parents:
        chosen &= _inside(set().union(*parents), things)
    if kinds:
        chosen = {key for key in chosen if key.partition(".")[0] in kinds}
    excluded = set().union(*excludes) if excludes else set()
    chosen -= excluded
    if plan.saved is not None:
        chosen |= plan.saved.selected & things.keys()
    matched = plan.identity.matched
    for address in chosen & matched.keys():
        # What is created or moved needs its project.
        resource = plan.now[address]
        to = (resource.parent or ("", ""))[1]
        is_new = to in matched and matched[to] is None
        if is_new and not plan.now[to].absent and not resource.absent:
            chosen.add(to)
            if to in excluded:
                return None
    plan.selected = chosen
    is_usable = chosen or not world.is_partial or not is_strict
    return {*things} - unmanaged - chosen if is_usable else None


def _inside(projects: set[str], things: dict[str, Thing]) -> set[str]:
    ids = {thing.live.id for key in projects if (thing := things[key]).live} | projects
    return projects | {key for key, thing in things.items() if not ids.isdisjoint(thing.parents)}
