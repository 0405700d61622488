"""Find what does the work of another object: creates to refuse, look-alikes, and shared places.

An object that was renamed in the service is not found by its name, so the plan would create a
second one beside it, which exports the same data to the same place: refused, unless it is intended.
Notes name unmanaged objects that may be what is created, and what else writes to one place.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from reconciler.model.address import Address
from reconciler.model.comparison import comparable, field_leaves, is_default, is_equal
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Identity, LiveObject, other_tool_of, plain_name
from reconciler.model.plan import Change, Note, Reason, Refusal, Unmanaged
from reconciler.model.policy import POSSIBLE_DUPLICATE
from reconciler.model.resource import Resource, State
from reconciler.model.text import listed, printable, quoted, several, yaml_text
from reconciler.model.values import MISSING, JSONObject, Path, SecretRef, value_at
from reconciler.planning.draft import Draft, Duplicate
from reconciler.planning.integrations import resolved
from reconciler.planning.matcher import Match, Matching
from reconciler.planning.places import Parts, Place, Places

_ON_PURPOSE = {Reason.STATE_ABSENT}
"""Why an object is deleted that a created one may replace. Pruning is no such reason: it may be the
same object under another key."""
_Doubled: TypeAlias = tuple[LiveObject, tuple[Address, ...]]
"""An object, and the resources that would double what is in it."""
_Work: TypeAlias = tuple[str, Place, tuple[str, ...]]
"""A kind, a place, and what is written there as text."""
_MOST_OBJECTS = 3
_MOST_NOTES = 20
_MOST_COMPARED = 200
"""Unmanaged objects of a kind up to which names and fields are compared one by one."""
_MOST_AT_A_PLACE = 20
_SIMILAR = 0.85
_DIGITS = re.compile(r"\d+")
_MOST_LISTED = 5
_MOST_COLLISIONS = 20


def duplicates_of(
    matching: Matching,
    now: datetime,
    changes: Sequence[Change] | None = None,
) -> tuple[Duplicate, ...]:
    """Return what creates would double, by address.

    `changes` are those of a plan, whose deletions count. Without them, everything is created that
    does not exist.
    """
    created = [
        match
        for match in matching.matches.values()
        if match.live is None and match.resource.state is State.PRESENT
    ]
    if changes is not None:
        # A replacement creates, too: one that was cut short left the new object.
        creating = (Action.CREATE, Action.REPLACE)
        planned = {change.address for change in changes if change.action in creating}
        created = [
            matching.matches[address] for address in sorted(planned & matching.matches.keys())
        ]
    if not created:
        return ()
    finder = _Finder(_candidates(matching, changes or ()), matching, now)
    ignored = {item.identity for item in matching.ignored}
    children: dict[Address | None, list[Match]] = defaultdict(list)
    for match in created:
        children[match.parent_address].append(match)
    duplicates: list[Duplicate] = []
    items: list[_Doubled]
    for match in created:
        if match.kind.parent is not None:
            # An object without a declared parent may be in any.
            is_anywhere = match.resource.parent is None
            doubled = {item.id: item for item in finder.doubled_by(match)}
            doubled |= {item.id: item for item in finder.made_by(match)}
            items = [
                (item, ())
                for item in doubled.values()
                if is_anywhere or item.parent_id == match.parent_id
            ]
        else:
            items = finder.containers_of(match, children[match.resource.address])
        recorded = matching.replaced.get(match.resource.address) if match.live is None else None
        if recorded is not None and recorded.id not in {item.id for item, _ in items}:
            items.append((recorded, ()))
        duplicates += (
            Duplicate(match, item, item.identity in ignored, inside)
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
        if item.identity not in deleted:
            yield item


class _Finder:
    """The objects that a create may double, by kind and id, by place and by name."""

    def __init__(
        self,
        candidates: Iterable[LiveObject],
        matching: Matching,
        now: datetime,
    ) -> None:
        self.live, kinds = matching.live, matching.kinds
        self.places = {name: Places.of(kind) for name, kind in kinds.items()}
        self.objects: dict[Identity, LiveObject] = {}
        self.named: dict[tuple[str, str], list[LiveObject]] = defaultdict(list)
        self.there: dict[_Work, list[LiveObject]] = defaultdict(list)
        for item in candidates:
            self.objects[item.identity] = item
            self.named[item.kind, plain_name(item.name)].append(item)
            kind = kinds[item.kind]
            overlap = kind.behaviour().overlap
            if overlap.has_ended(item.body, now):
                continue
            paths = (*overlap.source, *overlap.selection)
            for place in self.places[item.kind].of_body(item.body):
                self.there[_work(kind, place, item.body, paths, live=True)].append(item)

    def doubled_by(self, match: Match) -> Iterable[LiveObject]:
        """Return the objects, in any parent, whose work a resource would do again."""
        overlap = match.kind.behaviour().overlap
        paths = (*overlap.source, *overlap.selection)
        doubled: dict[str, LiveObject] = {}
        spec = resolved(match, match.resource, self.live).spec
        for place in self.places[match.kind.name].of_body(spec):
            if place.is_exact:
                work = _work(match.kind, place, spec, paths, live=False)
                doubled |= {item.id: item for item in self.there.get(work, ())}
        return doubled.values()

    def made_by(self, match: Match) -> Iterable[LiveObject]:
        """Return what a replacement that was cut short may have made: what has the new name."""
        if match.live is None:
            return ()
        return self.named.get((match.kind.name, match.resource.name), ())

    def containers_of(self, match: Match, children: Iterable[Match]) -> list[_Doubled]:
        """Return the unclaimed containers with an object that a child would double.

        The one with most such children is first.
        """
        kind, inside = match.kind.name, defaultdict[str, set[Address]](set)
        for child in children:
            for item in self.doubled_by(child):
                if item.parent_id is not None and (kind, item.parent_id) in self.objects:
                    inside[item.parent_id].add(child.resource.address)
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


def refusal_of(duplicate: Duplicate, matching: Matching) -> Refusal:
    """Return the violation of a create that would double an object."""
    match, live = duplicate.match, duplicate.live
    address, name = match.resource.address, quoted(live.name)
    if duplicate.inside:
        what = f"which contains {several(len(duplicate.inside), 'object')} of its configuration"
    elif matching.replaced.get(address) == live:
        what = "which was applied as this resource"
    else:
        what = "which exports the same data to the same place"
    return Refusal(
        POSSIBLE_DUPLICATE,
        f"{address} would be created beside {live.kind} {name} ({_about(match.kind, live)}), "
        f"{what}",
        duplicate.addresses,
        match.resource.near(("name",)),
        _ways_on(duplicate),
        objects=(Unmanaged.of(live, matching.parent_name(live.kind, live.parent_id)),),
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


class _Alike(NamedTuple):
    """An object that looks like a resource, and what is alike."""

    live: LiveObject
    reason: str


class LookAlikes:
    """The unmanaged objects, by what may look like a planned one."""

    def __init__(self, objects: Iterable[LiveObject], draft: Draft) -> None:
        self.draft, self.kinds = draft, draft.matching.kinds
        self.by_id: dict[str, dict[str, LiveObject]] = defaultdict(dict)
        self.by_name: dict[Identity, list[LiveObject]] = defaultdict(list)
        self.by_place: dict[tuple[str, Place], list[LiveObject]] = defaultdict(list)
        self.places = draft.known.of_kind
        for item in objects:
            self.by_id[item.kind][item.id] = item
            self.by_name[item.kind, plain_name(item.name).casefold()].append(item)
            for place in self.places[item.kind].of_body(item.body):
                self.by_place[item.kind, place].append(item)

    def notes(self) -> Iterator[Note]:
        """Yield a note on each planned create that looks like unmanaged objects.

        Objects inside of one that looks like a planned parent are left out, and creates that are
        refused for such an object.
        """
        changes, resources = self.draft.changes, self.draft.resources
        alike = {
            change.address: self._alike(change, resources[change.address])
            for change in changes
            if change.action is Action.CREATE
        }
        families = self._families(changes, alike)
        noted = compared = 0
        for change in changes:
            if change.action is not Action.CREATE or change.address in self.draft.refused:
                continue
            kind, items = self.kinds[change.address.kind], alike[change.address]
            parents: Mapping[str, int] = families.get(
                Address(kind.parent or "", _key_of_parent(change) or ""), {}
            )
            lifecycle = resources[change.address].lifecycle
            items = [item for item in items if item.live.parent_id not in parents]
            if change.address in families:
                items = self._by_children(kind, families[change.address])
            elif not alike[change.address] and compared < _MOST_NOTES:
                compared += 1
                items = self._similar(change, resources[change.address])
            items = [
                item for item in items if not lifecycle.is_beside(item.live.name, item.live.address)
            ]
            noted += bool(items)
            if items and noted <= _MOST_NOTES:
                yield self._note(change, kind, items)
        if noted > _MOST_NOTES:
            more = several(noted - _MOST_NOTES, "more planned create")
            yield Note("look-alike", f"unmanaged objects look like {more}")

    def _alike(self, change: Change, resource: Resource) -> list[_Alike]:
        """Return the objects with the name or the place of a resource, both first."""
        kind = self.kinds[change.address.kind]
        objects: dict[str, LiveObject] = {}
        same: dict[str, list[str]] = defaultdict(list)
        named = self.by_name.get((kind.name, resource.name.casefold()), ())
        for item in named[:_MOST_COMPARED]:
            objects[item.id] = item
            is_same = plain_name(item.name) == resource.name
            refused = ", which newer servers refuse" if kind.unique_names else ""
            same[item.id].append("name" if is_same else f"name in another case{refused}")
        for place in self.places[kind.name].of_body(resource.spec):
            there = self.by_place.get((kind.name, place), ())
            # A place of many objects does not distinguish them.
            for item in there if len(there) <= _MOST_AT_A_PLACE else ():
                objects[item.id] = item
                same[item.id].append(place.field)
        best = sorted(objects, key=lambda live_id: (-len(same[live_id]), live_id))
        return [_Alike(objects[item], f"same {' and '.join(same[item])}") for item in best]

    def _families(
        self, changes: Sequence[Change], alike: Mapping[Address, Sequence[_Alike]]
    ) -> dict[Address, Counter[str]]:
        """Return the unmanaged parents of the objects that look like children of a planned one.

        By the address of the planned parent, with the number of its children.
        """
        families: dict[Address, Counter[str]] = defaultdict(Counter)
        for change in changes:
            kind, key = self.kinds[change.address.kind], _key_of_parent(change)
            if kind.parent is None or key is None or change.parent_id is not None:
                continue
            ids = {item.live.parent_id for item in alike.get(change.address, ())}
            ids.add(change.old_parent_id)
            unmanaged = self.by_id.get(kind.parent, {})
            families[Address(kind.parent, key)].update(
                parent_id for parent_id in ids if parent_id in unmanaged
            )
        return {address: family for address, family in families.items() if family}

    def _by_children(self, kind: Kind, family: Counter[str]) -> list[_Alike]:
        return [
            _Alike(self.by_id[kind.name][live_id], f"{several(count, 'object')} in it alike")
            for live_id, count in sorted(family.items(), key=lambda item: (-item[1], item[0]))
        ]

    def _similar(self, change: Change, resource: Resource) -> list[_Alike]:
        """Return the few objects in the same parent with a similar name or with equal fields."""
        from difflib import get_close_matches

        kind = self.kinds[change.address.kind]
        objects = self.by_id.get(kind.name, {})
        if len(objects) > _MOST_COMPARED:
            return []
        beside = [item for item in objects.values() if item.parent_id == change.parent_id]
        names = {_plain(item.name): item for item in beside}
        name = _plain(resource.name)
        similar = [
            _Alike(names[close], "similar name")
            for close in get_close_matches(name, names, n=_MOST_OBJECTS, cutoff=_SIMILAR)
            if _DIGITS.findall(close) == _DIGITS.findall(name)
        ]
        # Where an object writes says more than its fields, if it writes anywhere.
        compared = [] if any(kind.variants) else beside
        equal = [
            _Alike(item, "same fields") for item in compared if _has_fields(kind, resource, item)
        ]
        # Many objects with equal fields mean that the fields do not distinguish objects.
        return similar or (equal if len(equal) <= _MOST_OBJECTS else [])

    def _note(self, change: Change, kind: Kind, items: Sequence[_Alike]) -> Note:
        stays = [item for item in items if item.live.identity not in self.draft.deleted]
        items = stays or items
        shown = ", ".join(self._shown(change, kind, item) for item in items[:_MOST_OBJECTS])
        if len(items) > _MOST_OBJECTS:
            shown += f" and {len(items) - _MOST_OBJECTS} more"
        one = "this one" if len(items) == 1 else "one of these"
        fate = "unmanaged" if stays else "deleted by this plan"
        return Note(
            "look-alike",
            f"{fate}: {shown}. If it is {one}, {self._way(change, items[0].live)}",
            about=change.address,
        )

    def _way(self, change: Change, live: LiveObject) -> str:
        """Return how a resource becomes the one of an object, in all environments if possible."""
        if live.parent_id == change.parent_id and not other_tool_of(live.name):
            return f"set `lifecycle: {{renamed_from: [{yaml_text(live.name)}]}}`"
        pin = f"id: {printable(live.id)}"
        if environment := self.draft.environment:
            pin = f"overrides: {{{environment}: {{{pin}}}}}"
        return f"pin it: `{pin}`"

    def _shown(self, change: Change, kind: Kind, item: _Alike) -> str:
        live, where = item.live, ""
        if kind.parent is not None and live.parent_id != change.parent_id:
            name = self.draft.matching.parent_name(kind.name, live.parent_id)
            where = f" in {kind.parent} {quoted(name)}" if name is not None else ""
        return f"{quoted(live.name)}{where} (id {printable(live.id)}, {item.reason})"


def _key_of_parent(change: Change) -> str | None:
    return change.parent.key if change.parent is not None else None


def _has_fields(kind: Kind, resource: Resource, live: LiveObject) -> bool:
    """Return whether all declared fields that are known of an object are equal.

    One of them must have another value than its default. The name does not count.
    """
    known = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, live.body, live=True)}
    declared = [
        (leaf.field, leaf.value, known[leaf.path])
        for leaf in field_leaves(kind.fields, resource.spec, live=False)
        if leaf.path in known and leaf.path != ("name",)
    ]
    return any(not is_default(item, wanted) for item, wanted, _ in declared) and all(
        is_equal(item, wanted, current) for item, wanted, current in declared
    )


def _plain(name: str) -> str:
    # One letter may be written as several characters, which look the same.
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", name)).strip().casefold()


def collision_notes(draft: Draft) -> Iterator[Note]:
    """Yield a note for each place that a resource and another object write to, up to a number.

    Refused creates have a violation. Objects that the policy ignores count for resources that
    change.
    """
    matching, refused, places = draft.matching, draft.refused, draft.known.of_kind
    users = _users(matching, places)
    others: dict[Parts, list[tuple[str, Address]]] = defaultdict(list)
    watched = {change.address for change in draft.changes} - refused
    ignored = {item.identity: item for item in matching.ignored if watched}
    for item in (*draft.unmanaged, *ignored.values()) if users else ():
        for parts in _shared(places[item.kind].of_body(item.body)):
            resources = [one for one in users.get(parts, ()) if one.address not in refused]
            if item.identity in ignored:
                resources = [one for one in resources if one.address in watched]
            if resources:
                others[parts].append((item.name, item.address))
    shared = (
        (_unexpected(resources, others.get(parts, ()), matching), parts)
        for parts, resources in users.items()
        if len(resources) > 1 or parts in others
    )
    for addresses, parts in sorted(item for item in shared if len(item[0]) > 1)[:_MOST_COLLISIONS]:
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
    resources: Sequence[Resource], others: Iterable[tuple[str, Address]], matching: Matching
) -> list[Address]:
    """Return the addresses at a place, without those that `lifecycle.beside` of another names.

    One that is new does not count: a reviewer should see both.
    """
    trusting = [item for item in resources if item.lifecycle.beside]
    if (inventory := matching.inventory) is not None:
        pairs = [(i, inventory.was(i.address, matching.matches[i.address].live)) for i in trusting]
        trusting = [i for i, was in pairs if was and was.lifecycle.beside == i.lifecycle.beside]
    listed_there = [*((item.name, item.address) for item in resources), *others]
    left: list[Address] = []
    for name, address in listed_there:
        beside = (item for item in trusting if item.address != address)
        if not any(item.lifecycle.is_beside(name, address) for item in beside):
            left.append(address)
    return sorted(left)
