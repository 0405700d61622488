"""Find creates that would double what an existing object does. Refused, unless it is intended.

An object that was renamed in the service is not found by its name, so the plan would create a
second one beside it, which exports the same data to the same place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, Reason
from reconciler.model.comparison import comparable, field_leaves
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject, other_tool_of, plain_name
from reconciler.model.plan import Refusal, Unmanaged
from reconciler.model.policy import POSSIBLE_DUPLICATE
from reconciler.model.resource import Resource, State
from reconciler.model.text import printable, quoted, several, yaml_text
from reconciler.model.values import MISSING, JSONObject, Path, SecretRef, value_at
from reconciler.planning.base import Base
from reconciler.planning.integrations import resolved
from reconciler.planning.matcher import Match, Matching
from reconciler.planning.places import Place, Places

_ON_PURPOSE = {Reason.STATE_ABSENT, Reason.REMOVED_FROM_FILES}
"""Why an object is deleted that may be replaced by a created one. `prune: true` is no such reason:
it deletes what it does not know."""


_Doubled: TypeAlias = tuple[LiveObject, tuple[Address, ...]]
"""An object, and the resources that would double what is in it."""


_Work: TypeAlias = tuple[str, Place, tuple[str, ...]]
"""A kind, a place, and what is written there as text."""


class Duplicate(Struct, frozen=True):
    """A resource that would be created, and the object beside which it would run.

    `was_live`: the git base declares the resource. `inside` are the resources of a created
    container that would double what is in this one.
    """

    match: Match
    live: LiveObject
    was_live: bool
    is_ignored: bool
    inside: tuple[Address, ...] = ()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The resource, then those inside."""
        return (self.match.resource.address, *self.inside)


def duplicates_of(
    matching: Matching,
    kinds: Mapping[str, Kind],
    base: Base | None,
    now: datetime,
    changes: Sequence[Change] | None = None,
    elsewhere: AbstractSet[tuple[str, str]] = frozenset(),
) -> tuple[Duplicate, ...]:
    """Return what creates would double, by address.

    `changes` are those of a plan, whose deletions count. Without them, everything is created that
    does not exist. `elsewhere` are objects that another environment declares.
    """
    created = [
        match
        for match in matching.matches.values()
        if match.live is None and match.resource.state is State.PRESENT
    ]
    if changes is not None:
        planned = {change.address for change in changes if change.action is Action.CREATE}
        created = [match for match in created if match.resource.address in planned]
    if not created:
        return ()
    candidates = _candidates(matching, changes or ())
    unclaimed = (item for item in candidates if (item.kind, item.id) not in elsewhere)
    at_base = base.present if base is not None else {}
    finder = _Finder.of(unclaimed, matching.live, kinds, at_base, now)
    ignored = {(item.kind, item.id) for item in matching.ignored}
    children: dict[Address | None, list[Match]] = defaultdict(list)
    for match in created:
        children[match.parent_address].append(match)
    duplicates: list[Duplicate] = []
    items: list[_Doubled]
    for match in created:
        if match.kind.parent is not None:
            # An object without a declared parent may be in any.
            is_anywhere = match.resource.parent is None
            items = [
                (item, ())
                for item in finder.doubled_by(match)
                if is_anywhere or item.parent_id == match.parent_id
            ]
        else:
            items = finder.renamed_containers(match, children[match.resource.address])
        duplicates += (
            Duplicate(match, item, finder.was_live(match), (item.kind, item.id) in ignored, inside)
            for item, inside in items
            if not match.resource.lifecycle.is_beside(item.name, item.address)
        )
    return tuple(duplicates)


def _candidates(matching: Matching, changes: Iterable[Change]) -> Iterator[LiveObject]:
    """Yield the live objects that no resource claims and that are not deleted on purpose."""
    deleted = {
        (change.address.kind, change.live_id)
        for change in changes
        if change.action is Action.DELETE and _ON_PURPOSE & set(change.reasons)
    }
    absent = (
        match
        for match in (*matching.removed.values(), *matching.matches.values())
        if match.resource.state is State.ABSENT or match.resource.address in matching.removed
    )
    claimed = (match.live for match in absent if match.live is not None)
    for item in (*matching.unmanaged, *matching.ignored, *claimed):
        if (item.kind, item.id) not in deleted:
            yield item


class _Finder(Struct, frozen=True):
    """The objects that a create may double, by kind and id, by place and by name."""

    objects: Mapping[tuple[str, str], LiveObject]
    places: Mapping[str, Places]
    there: Mapping[_Work, Sequence[LiveObject]]
    named: Mapping[tuple[str, str], Sequence[LiveObject]]
    at_base: Mapping[Address, Resource]
    inside_at_base: Mapping[Address, Sequence[Resource]]
    live: Live

    @classmethod
    def of(
        cls,
        candidates: Iterable[LiveObject],
        live: Live,
        kinds: Mapping[str, Kind],
        at_base: Mapping[Address, Resource],
        now: datetime,
    ) -> _Finder:
        objects: dict[tuple[str, str], LiveObject] = {}
        places = {name: Places.of(kind) for name, kind in kinds.items()}
        there: dict[_Work, list[LiveObject]] = defaultdict(list)
        named: dict[tuple[str, str], list[LiveObject]] = defaultdict(list)
        for item in candidates:
            objects[item.kind, item.id] = item
            named[item.kind, plain_name(item.name)].append(item)
            kind = kinds[item.kind]
            overlap = kind.behaviour().overlap
            if overlap.has_ended(item.body, now):
                continue
            for place in places[item.kind].of_body(item.body):
                for paths in (overlap.source, (*overlap.source, *overlap.selection)):
                    there[_work(kind, place, item.body, paths, live=True)].append(item)
        inside: dict[Address, list[Resource]] = defaultdict(list)
        for resource in at_base.values():
            parent = kinds[resource.address.kind].parent
            if parent is not None and resource.parent is not None and resource.parent.key:
                inside[Address(parent, resource.parent.key)].append(resource)
        return cls(objects, places, there, named, at_base, inside, live)

    def was_live(self, match: Match) -> bool:
        """Return whether the git base declares a resource."""
        return match.resource.address in self.at_base

    def doubled_by(self, match: Match) -> Iterable[LiveObject]:
        """Return the objects, in any parent, whose work a resource would do again."""
        overlap, was_live = match.kind.behaviour().overlap, self.was_live(match)
        # An object that was renamed in the service still is where the base placed it.
        former = [self.at_base[match.resource.address]] if was_live else []
        doubled: dict[str, LiveObject] = {}
        for resource in (match.resource, *former):
            spec = resolved(match, resource, self.live).spec
            for place in self.places[match.kind.name].of_body(spec):
                is_known = was_live and place.is_exact
                paths = overlap.source if is_known else (*overlap.source, *overlap.selection)
                if place.is_exact or was_live:
                    work = _work(match.kind, place, spec, paths, live=False)
                    doubled |= {item.id: item for item in self.there.get(work, ())}
        return doubled.values()

    def renamed_containers(self, match: Match, children: Iterable[Match]) -> list[_Doubled]:
        """Return the unclaimed containers with what a container of the base contained.

        A child would double an object in it, or the base has one of its name. The container with
        most such children is first.
        """
        if not self.was_live(match):
            return []
        kind, inside = match.kind.name, defaultdict[str, set[Address]](set)
        pairs = [
            (child.resource.address, item) for child in children for item in self.doubled_by(child)
        ]
        for child in self.inside_at_base.get(match.resource.address, ()):
            named = self.named.get((child.address.kind, plain_name(child.name)), ())
            pairs += [(child.address, item) for item in named]
        for child_address, item in pairs:
            if item.parent_id is not None and (kind, item.parent_id) in self.objects:
                inside[item.parent_id].add(child_address)
        ranked = sorted(inside.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        return [(self.objects[kind, live_id], tuple(sorted(items))) for live_id, items in ranked]


def _work(
    kind: Kind, place: Place, body: JSONObject, paths: Sequence[Path], *, live: bool
) -> _Work:
    """Return what an object does: where it writes, and the comparable values at some paths."""
    leaves = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, body, live=live)}
    fields = ((kind.field_at(path, body), path) for path in paths)
    values = [
        comparable(field, leaves.get(path, MISSING)) if field is not None else None
        for field, path in fields
    ]
    # A secret reference can't be compared with a live value.
    texts = [str(item) if isinstance(item, SecretRef) else canonical_text(item) for item in values]
    return kind.name, place, tuple(texts)


def refusal_of(
    duplicate: Duplicate, parent_names: Mapping[tuple[str, str], str], *, is_undo: bool
) -> Refusal:
    """Return the violation of a create that would double an object."""
    match, live = duplicate.match, duplicate.live
    address, name = match.resource.address, quoted(live.name)
    parent = (match.kind.parent or "", live.parent_id or "")
    if duplicate.inside:
        what = f"which contains {several(len(duplicate.inside), 'object')} of its configuration"
    elif duplicate.was_live:
        what = "which writes to the same place"
    else:
        what = "which exports the same data to the same place"
    renamed = "; it was probably renamed in the service" if duplicate.was_live else ""
    return Refusal(
        POSSIBLE_DUPLICATE,
        f"{address} would be created beside {live.kind} {name} ({_about(match.kind, live)}), "
        f"{what}{renamed}",
        duplicate.addresses,
        match.resource.near(("name",)),
        f"to create it anyway: `policy: {{attempt: [{POSSIBLE_DUPLICATE}]}}`"
        if is_undo
        else _ways_on(duplicate),
        objects=(Unmanaged.of(live, parent_names.get(parent)),),
    )


def _about(kind: Kind, live: LiveObject) -> str:
    """Return the id of an object, when it was created and when it ran last."""
    parts = [f"id {printable(live.id)}"]
    if isinstance(created := live.body.get("created_at"), str):
        parts.append(f"created {printable(created[:10])}")
    last = value_at(live.body, kind.activity) if kind.activity else MISSING
    if isinstance(last, str):
        parts.append(f"last run {printable(last[:16])}")
    return ", ".join(parts)


def _ways_on(duplicate: Duplicate) -> str:
    live, address = duplicate.live, duplicate.match.resource.address
    name = yaml_text(live.name)
    both = f"if both are wanted, set `lifecycle: {{beside: [{name}]}}`"
    if other_tool_of(live.name):
        return f"keep it out of one of the tools; {both}"
    first = "take it out of `policy.ignore`, then " if duplicate.is_ignored else ""
    inside = " and all that is in it" if duplicate.inside else ""
    return (
        f"if it was renamed in the service, {first}set `lifecycle: {{renamed_from: [{name}]}}` to "
        f"restore the configured name, or `name: {name}` to keep the new one; {both}; to decide "
        f"later, pass --exclude {address}{inside}"
    )
