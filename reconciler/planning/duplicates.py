"""Find what does the work of another object: creates to refuse, look-alikes, and shared places.

An object that was renamed in the service is not found by its name, so the plan would create a
second one beside it, which exports the same data to the same place: refused, unless it is intended.
Notes name unmanaged objects that may be what is created, and what else writes to one place.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Identity, LiveObject, is_of_other_tool, plain_name
from reconciler.model.plan import Change, Note, Reason, Refusal, Unmanaged
from reconciler.model.resource import Resource, State
from reconciler.model.schemas import canonical_text
from reconciler.model.settings import POSSIBLE_DUPLICATE
from reconciler.model.text import listed, printable, quoted, several, yaml_text
from reconciler.model.values import MISSING, Address, JSONObject, Path, SecretRef
from reconciler.planning.compare import comparable, field_leaves, patched
from reconciler.planning.draft import Draft, Duplicate
from reconciler.planning.integrations import resolved
from reconciler.planning.match import Match, Matching, about
from reconciler.planning.places import Parts, place_of

_ON_PURPOSE = {Reason.STATE_ABSENT}
"""Why an object is deleted that a created one may replace. Pruning is no such reason: it may be the
same object under another key."""
_Doubled: TypeAlias = tuple[LiveObject, tuple[Address, ...]]
"""An object, and the resources that would double what is in it."""
_Work: TypeAlias = tuple[str, str, Parts, tuple[str, ...]]
"""A kind, a type, the parts of its place, and what is written there as text."""
_MOST_OBJECTS = 3
_MOST_NOTES = 20
_MOST_COMPARED, _SIMILAR = 200, 0.85
"""Unmanaged objects in one parent up to which similar names are looked for, and how similar."""
_DIGITS = re.compile(r"\d+")
_MOST_LISTED = 5
_MOST_COLLISIONS = 20


def duplicates_of(
    matching: Matching, now: datetime, changes: Sequence[Change] | None = None
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
    undecided = (matching.live.by_identity[identity] for identity in matching.undecided)
    for item in (*matching.unmanaged, *matching.ignored, *claimed, *undecided):
        if item.identity not in deleted:
            yield item


class _Finder:
    """The objects that a create may double, by kind and id, by place and by name."""

    def __init__(self, candidates: Iterable[LiveObject], matching: Matching, now: datetime) -> None:
        self.live, kinds = matching.live, matching.kinds
        self.objects: dict[Identity, LiveObject] = {}
        self.named: dict[tuple[str, str], list[LiveObject]] = defaultdict(list)
        self.there: dict[_Work, list[LiveObject]] = defaultdict(list)
        for item in candidates:
            self.objects[item.identity] = item
            self.named[item.kind, item.name.strip()].append(item)
            kind = kinds[item.kind]
            overlap = behaviour_of(kind).overlap
            if overlap.has_ended(item.body, now):
                continue
            paths = (*overlap.source, *overlap.selection)
            self.there[_work(kind, item.body, paths, live=True)].append(item)

    def doubled_by(self, match: Match) -> Iterable[LiveObject]:
        """Return the objects, in any parent, whose work a resource would do again."""
        overlap = behaviour_of(match.kind).overlap
        paths = (*overlap.source, *overlap.selection)
        spec = resolved(match, match.resource, self.live).spec
        work = _work(match.kind, spec, paths, live=False)
        return self.there.get(work, ()) if _is_exact(work[2]) else ()

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


def _work(kind: Kind, body: JSONObject, paths: Sequence[Path], *, live: bool) -> _Work:
    """Return what an object does: where it writes, and the comparable values at some paths."""
    leaves = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, body, live=live)}
    fields = ((kind.field_at(path, body), path) for path in paths)
    values = [
        comparable(field, leaves.get(path, MISSING)) if field is not None else None
        for field, path in fields
    ]
    # A secret reference can't be compared with a live value.
    texts = [str(item) if isinstance(item, SecretRef) else canonical_text(item) for item in values]
    return kind.name, *place_of(kind, body), tuple(texts)


def _is_exact(parts: Parts) -> bool:
    """Return whether data of two objects is mixed there: behind a mere URL may be many places."""
    return bool(parts) and parts[0][0] != "address"


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
        f"{address} would be created beside {live.kind} {name} ({about(match.kind, live)}), {what}",
        duplicate.addresses,
        match.resource.near(("name",)),
        _ways_on(duplicate),
        objects=(Unmanaged.of(live, matching.parent_name(live.kind, live.parent_id)),),
    )


def _ways_on(duplicate: Duplicate) -> str:
    live, address = duplicate.live, duplicate.match.resource.address
    name = yaml_text(live.name)
    both = f"if both are wanted, set `lifecycle: {{beside: [{name}]}}`"
    if is_of_other_tool(live.name):
        return f"keep it out of one of the tools; {both}"
    first = "take it out of `policy.ignore`, then " if duplicate.is_ignored else ""
    inside = " and all that is in it" if duplicate.inside else ""
    return (
        f"if it was renamed in the service, {first}{to_rename(live.name)} to restore the "
        f"configured name, or `name: {name}` to keep the new one; {both}; to decide later, pass "
        f"--exclude {address}{inside}"
    )


def to_rename(name: str) -> str:
    """Return what lets a resource find, and rename, the object of another name."""
    return f"set `lifecycle: {{renamed_from: [{yaml_text(name)}]}}`"


def look_alike_notes(draft: Draft) -> Iterator[Note]:
    """Yield a note on each planned create with unmanaged objects of the same or a similar name."""
    created = [change for change in draft.changes if change.action is Action.CREATE]
    if not created:
        return
    removed = (match.live for match in draft.matching.removed.values() if match.live is not None)
    everywhere: dict[tuple[str, str], list[LiveObject]] = defaultdict(list)
    beside: dict[Identity, dict[str, LiveObject]] = defaultdict(dict)
    for item in (*draft.matching.unmanaged, *removed):
        name = _plain(item.name)
        everywhere[item.kind, name].append(item)
        beside[item.kind, item.parent_id or ""][name] = item
    noted = 0
    for change in created:
        resource, kind = draft.resources[change.address], change.address.kind
        if change.address in draft.refused:
            continue
        name = _plain(resource.name)
        items, likeness = everywhere.get((kind, name), []), "same"
        if not items:
            items, likeness = (
                _similar(name, beside.get((kind, change.parent_id or ""), {})),
                "similar",
            )
        is_beside = resource.lifecycle.is_beside
        items = [item for item in items if not is_beside(item.name, item.address)]
        noted += bool(items)
        if items and noted <= _MOST_NOTES:
            yield _alike_note(draft, change, items, likeness)
    if noted > _MOST_NOTES:
        more = several(noted - _MOST_NOTES, "more planned create")
        yield Note("look-alike", f"unmanaged objects look like {more}")


def _similar(name: str, known: Mapping[str, LiveObject]) -> list[LiveObject]:
    """Return the objects whose names differ from one in a few letters, and in no number."""
    from difflib import get_close_matches

    if len(known) > _MOST_COMPARED:
        return []
    close = get_close_matches(name, known, n=_MOST_OBJECTS, cutoff=_SIMILAR)
    return [known[other] for other in close if _DIGITS.findall(other) == _DIGITS.findall(name)]


def _alike_note(draft: Draft, change: Change, items: Sequence[LiveObject], likeness: str) -> Note:
    stays = [item for item in items if item.identity not in draft.deleted]
    items = stays or items
    kind = draft.matching.kinds[change.address.kind]
    shown = []
    for item in items[:_MOST_OBJECTS]:
        elsewhere = item.parent_id is not None and item.parent_id != change.parent_id
        parent = draft.matching.parent_name(kind.name, item.parent_id) if elsewhere else None
        where = f" in {kind.parent} {quoted(parent)}" if parent is not None else ""
        shown.append(f"{quoted(item.name)}{where} (id {printable(item.id)}, {likeness} name)")
    if len(items) > _MOST_OBJECTS:
        shown.append(f"and {len(items) - _MOST_OBJECTS} more")
    one = "this one" if len(items) == 1 else "one of these"
    fate = "unmanaged" if stays else "deleted by this plan"
    text = f"{fate}: {', '.join(shown)}. If it is {one}, {_way_to(draft, change, items[0])}"
    return Note("look-alike", text, about=change.address)


def _way_to(draft: Draft, change: Change, live: LiveObject) -> str:
    """Return how a resource becomes the one of an object, in all environments if possible."""
    if live.parent_id == change.parent_id and not is_of_other_tool(live.name):
        return to_rename(live.name)
    pin = f"id: {printable(live.id)}"
    if draft.environment:
        pin = f"overrides: {{{draft.environment}: {{{pin}}}}}"
    return f"pin it: `{pin}`"


def _plain(name: str) -> str:
    """Return a name as it looks: without marks, in one case, with one form of each letter."""
    return (
        re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", plain_name(name))).strip().casefold()
    )


def collision_notes(draft: Draft) -> Iterator[Note]:
    """Yield a note for each place that a resource and another object write to, up to a number.

    Refused creates have a violation. Objects that the policy ignores count for resources that
    change.
    """
    matching, refused = draft.matching, draft.refused
    users = _users(matching)
    others: dict[Parts, list[tuple[str, Address]]] = defaultdict(list)
    watched = {change.address for change in draft.changes} - refused
    ignored = {item.identity: item for item in matching.ignored if watched}
    for item in (*draft.remaining, *ignored.values()) if users else ():
        _, parts = place_of(matching.kinds[item.kind], item.body)
        resources = [one for one in users.get(parts, ()) if one.address not in refused]
        if item.identity in ignored:
            resources = [one for one in resources if one.address in watched]
        if resources:
            others[parts].append((item.name, item.address))
    shared = (
        (_unexpected(resources, others.get(parts, ()), draft), parts)
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


def _users(matching: Matching) -> Mapping[Parts, Sequence[Resource]]:
    """Return the resources that write to each exact place. Its type does not count: S3, AwsS3."""
    users: dict[Parts, list[Resource]] = defaultdict(list)
    for match in matching.matches.values():
        resource, live = match.resource, match.live.body if match.live is not None else {}
        if resource.state is not State.ABSENT:
            # Nothing but the fields with the place, since the other fields are many.
            names = [field.name for field, _ in match.kind.variants]
            sides = ({name: body.get(name) for name in names} for body in (resource.spec, live))
            _, parts = place_of(match.kind, patched(match.kind, *sides))
            if _is_exact(parts):
                users[parts].append(resource)
    return users


def _unexpected(
    resources: Sequence[Resource], others: Iterable[tuple[str, Address]], draft: Draft
) -> list[Address]:
    """Return the addresses at a place, without those that `lifecycle.beside` of another names.

    One that is new does not count: a reviewer should see both.
    """
    trusting = [item for item in resources if item.lifecycle.beside]
    if draft.context.inventory is not None:
        was_of, matches = draft.matching.inventory.was, draft.matching.matches
        pairs = [(i, was_of(i.address, matches[i.address].live)) for i in trusting]
        trusting = [i for i, was in pairs if was and was.lifecycle.beside == i.lifecycle.beside]
    listed_there = [*((item.name, item.address) for item in resources), *others]
    left: list[Address] = []
    for name, address in listed_there:
        beside = (item for item in trusting if item.address != address)
        if not any(item.lifecycle.is_beside(name, address) for item in beside):
            left.append(address)
    return sorted(left)
