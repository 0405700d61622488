"""What applying, drift, pull and compare do (docs/planning.md, operations.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from tests.model.deciding import Change, Planned
from tests.model.declared import INTEGRATION, TYPE, declared, sent_by
from tests.model.identity import Live
from tests.model.refusing import doubled
from tests.model.world import Entry


def applied(plan: Planned) -> list[Live]:
    """Return the live objects after the changes of a plan."""
    live, new = {item.id: item for item in plan.live}, list[Live]()
    # A pause comes before the update that the server refuses.
    refused, all_changes = refused_later(plan), plan.changes.values()
    changes = [c for c in all_changes if c.address not in refused or c.action == "pause"]
    for change in changes:
        item = live.get(change.live.id) if change.live else None
        if change.action in ("create", "replace"):
            new.append(_created(plan, change))
        elif change.action != "delete" and item:
            own = plan.now[change.address].values
            sent = {path: own.get(path) for path in change.fields}
            live[item.id] = replace(item, values={**item.values, **sent})
    gone = {c.live.id for c in changes if c.live and c.action in ("delete", "replace")}
    return new + [item for item in live.values() if gone.isdisjoint((item.id, item.parent))]


def refused_later(plan: Planned) -> set[str]:
    """Return the resources in a project that is not there, and those that name its integration.

    Only servers of 2026 check that an integration is of the same project.
    """
    projects = {None, *(item.id for item in plan.live if item.kind == "project")}
    made = plan.of_action("create", "replace")
    lost = {change.address for change in made if change.parent not in projects}
    changes = [*made, *plan.of_action("update")] if plan.world.dialect == "2026" else []
    named = {c.address: (plan.now[c.address].value(INTEGRATION), c.parent) for c in changes}
    return lost | {key for key, (to, of) in named.items() if to and of and int(to) != 100 + int(of)}


def _parts(plan: Planned, change: Change) -> Iterator[tuple[Any, ...]]:
    """Yield what a saved plan says of a change: the object, its values, the secrets to send."""
    own, live = plan.now.get(change.address), change.live
    place = (change.address, change.action, live and live.id)
    if live and change.action in ("delete", "replace"):
        yield from ((*place[:2], x.id, "", "", "") for x in plan.live if x.parent == live.id)
        values = {path: x for path, x in live.values.items() if path != "last_updated_at"}
        yield (*place, "", repr(values), "")
    if own and change.action != "delete":
        yield from ((*place, path, "", "") for path in change.secrets)
        # A create sends what `ignore_changes` names.
        checked = own.values.keys() - {"paused"} if change.action == "update" else set[str]()
        checked = {path for path in checked if not own.ignores(path)} | change.fields.keys()
        for path in checked - own.secrets:
            yield (*place, path, repr(live and live.value(path)), repr(own.value(path)))


def is_stale(saved: Planned, now: Planned) -> bool:
    """Return whether a plan of now has another change than a saved one, or lacks one to do."""
    old, new = (
        {key: set(_parts(plan, change)) for key, change in plan.changes.items()}
        for plan in (saved, now)
    )
    # What was in a project and is deleted as the saved plan says is done.
    lost = {change.live.id for change in saved.of_action("delete", "replace") if change.live}
    done = lost - {item.id for item in now.live}
    inside = {(*key, identity, "", "", "") for key in old for identity in done}
    is_other = any(key not in old or old[key] - inside != parts for key, parts in new.items())
    missing = (part for key in old.keys() - new.keys() for part in old[key])
    return is_other or not all(_is_done(now, part) for part in missing)


def _is_done(now: Planned, part: tuple[Any, ...]) -> bool:
    """Return whether live state has a value of a saved plan, or has no deleted object."""
    address, _, identity, path, _, after = part
    item, is_gone = now.identity.matched.get(address), identity not in {x.id for x in now.live}
    return is_gone if not path else item is not None and repr(item.value(path)) == after


def _created(plan: Planned, change: Change) -> Live:
    resource, parent = plan.now[change.address], change.parent
    if parent is None and resource.parent is not None:
        parent = f"new {resource.parent[1]}"
    old = change.live.values if change.live else {}
    same = old.get(TYPE) == resource.values.get(TYPE)
    kept = {path: x for path, x in old.items() if same or not path.startswith("destination.")}
    moves = bool(change.live and change.live.parent != change.parent)
    left = {path for path in kept if resource.ignores(path) and not (moves and path == INTEGRATION)}
    sent = {path: value for path, value in resource.values.items() if path not in left}
    resets = {path: None for path, (_, is_reset) in change.fields.items() if is_reset}
    return Live(resource.kind, f"new {change.address}", parent, {**kept, **sent, **resets})


class Drifted(NamedTuple):
    """What `drift` reports: the exit code, fields, and what is deleted and renamed."""

    code: int = 0
    fields: AbstractSet[tuple[str, str]] = frozenset()
    deleted: AbstractSet[str] = frozenset()
    renamed: AbstractSet[str] = frozenset()


def drifted(plan: Planned) -> Drifted:
    if plan.error:
        return Drifted(plan.code)
    changes = plan.of_action("update", "replace", "pause", "unpause")
    fields = [(c.address, path, origin) for c in changes for path, (origin, _) in c.fields.items()]
    drift = {(address, path) for address, path, origin in fields if origin != "files"}
    created = {change.address for change in plan.of_action("create")} & plan.record.entries.keys()
    duplicates = [addresses for _, *addresses in doubled(plan)]
    deleted = created.difference(*duplicates)
    renamed = {address for address, *_ in duplicates}
    renamed &= created if plan.record.exists else renamed
    return Drifted(2 if drift or deleted or renamed else 0, drift, deleted, renamed)


def code_of_apply(plan: Planned) -> int:
    if plan.refusals:
        return 5
    is_behind = not plan.record.behind.isdisjoint(plan.identity.matched.keys() - plan.left_out)
    if is_behind or plan.record.is_older:
        return 4
    return 3 if refused_later(plan) else 0


def recorded(plan: Planned, ids: Mapping[str, Live | None]) -> dict[str, Entry]:
    """Return the inventory after a run that did everything. `ids` are the new objects."""
    world, after = plan.world, dict(plan.world.record or {})
    head = declared(world.commits[world.head].files, world.environment)
    lost = {change.live.id for change in plan.of_action("delete") if change.live}
    written = set[str]()
    for address, own in plan.now.items():
        item = ids.get(address) or plan.identity.matched.get(address)
        if address in plan.left_out or address not in plan.identity.matched:
            continue
        if own.absent or item is None:
            if own.absent:
                after.pop(address, None)
            continue
        sent, key = sent_by(own), plan.record.of_object.get(item.id)
        change = plan.changes.get((address, "update"))
        is_sent = ids.get(address) is not None or bool(change and change.secrets)
        if key is not None and not is_sent:
            sent = plan.record.entries[key].sent
        commit = world.head if head.get(address) == own else None
        after[address] = Entry(item.id, own.name, item.parent, commit, sent)
        written.add(address)
    lost |= {after[address].id for address in written}
    leaving = plan.leaving - plan.record.behind
    for address in after.keys() - written:
        if after[address].id in lost or address in leaving:
            del after[address]
    return after
