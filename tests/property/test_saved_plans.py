"""Saved plans that were applied in part, are outdated or are forged, without a network."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.decoding import decode
from reconciler.model.kind import Action
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, Plan, encode
from reconciler.model.resource import Desired, State
from reconciler.model.settings import PlanOptions, Policy, rules_of
from reconciler.model.values import MISSING, Address, path_text
from reconciler.planning.approval import differences
from reconciler.planning.guards import breaches
from tests.support.forging import forged
from tests.support.worlds import KINDS, NOW, PureServer, planned, worlds

ROTATING = PlanOptions(rotate=("*",))


def compared(saved: Plan, desired: Desired, live: Live) -> tuple[str, ...]:
    new = planned(desired, live)
    return differences(decode(encode(saved)), new, live=live, kinds=KINDS, mask=str)


@given(worlds(), st.randoms(use_true_random=False))
def test_f7_a_saved_plan_of_which_a_part_was_applied_is_applied_again(
    world: tuple[Desired, Live], chance: random.Random
) -> None:
    desired, live = world
    plan = planned(desired, live)
    done = part_of(plan, chance)
    server = PureServer(live)
    server.apply(replace(plan, changes=done))
    after = server.live()
    assert compared(plan, desired, after) == ()
    rest = planned(desired, after)
    server.apply(rest)
    addresses = {change.address for change in plan.effective}
    assert addresses >= {change.address for change in rest.effective}
    assert planned(desired, server.live()).empty


def part_of(plan: Plan, chance: random.Random) -> tuple[Change, ...]:
    """Return changes of a plan together with those that they depend on."""
    done: dict[str, Change] = {}
    for change in plan.effective:
        if done.keys() >= set(change.depends_on) and chance.random() < 0.5:
            done[change.id] = change
    return tuple(done.values())


@given(worlds(), st.randoms(use_true_random=False))
def test_i7_a_forged_or_outdated_plan_applies_only_what_it_contains(
    world: tuple[Desired, Live], chance: random.Random
) -> None:
    """I7: whatever happened since, nothing is sent that the file does not contain."""
    desired, live = world
    saved = planned(desired, live)
    for _ in range(chance.randint(1, 3)):
        saved, desired, live = mutated(saved, desired, live, chance)
    if not compared(saved, desired, live):
        for change in planned(desired, live).effective:
            assert any(contains(item, change) for item in saved.effective), (saved, change)


def contains(saved: Change, change: Change) -> bool:
    """Return whether a saved change for the same object sends the same.

    It says what the comparison should ensure in another way: by the values that are shown.
    """
    is_create = change.action is Action.CREATE
    same = saved.address == change.address and (is_create or saved.live_id == change.live_id)
    secrets = {(note.path, str(note.ref)) for note in saved.secrets if note.use.sent}
    return (
        same
        and saved.action is change.action
        and sides(saved) == sides(change)
        and secrets == {(note.path, str(note.ref)) for note in change.secrets if note.use.sent}
        and change.body == saved.body
        and change.after_create == saved.after_create
        and set(saved.inside) >= set(change.inside)
        and (not is_create or saved.name == change.name)
    )


def sides(change: Change) -> set[tuple[Any, ...]]:
    """Return the values of the fields before and after.

    The former value of a field is for readers where `seen` has it: the change depends on that. All
    fields of a deletion are for readers.
    """
    seen = change.seen or {}
    if change.action is Action.DELETE:
        return {((name,), repr(value), repr(MISSING)) for name, value in seen.items()}
    return {
        (item.path, repr(seen.get(path_text(item.path), item.before)), repr(item.after))
        for item in change.fields
    }


def mutated(
    saved: Plan, desired: Desired, live: Live, chance: random.Random
) -> tuple[Plan, Desired, Live]:
    """Return a forged plan, another workspace or other live state."""
    match chance.choice(["file", "file", "workspace", "live"]):
        case "file":
            return forged(saved, chance), desired, live
        case "workspace":
            return saved, edited(desired, chance), live
        case _:
            return saved, desired, drifted(saved, live, chance)


def edited(desired: Desired, chance: random.Random) -> Desired:
    """Return a workspace in which one resource is removed, absent, renamed or changed."""
    resources = dict(desired.resources)
    if not resources:
        return desired
    address = chance.choice(sorted(resources))
    resource = resources.pop(address)
    parents = {item.parent.key for item in resources.values() if item.parent is not None}
    if address.key in parents:
        return desired
    match chance.choice(["removed", "absent", "renamed", "changed", "moved"]):
        case "absent":
            resources[address] = replace(resource, state=State.ABSENT)
        case "renamed":
            resources[address] = replace(resource, spec={**resource.spec, "name": "Other"})
        case "changed" if address.kind == "batch_export":
            resources[address] = replace(resource, spec={**resource.spec, "interval": "week"})
        case "changed":
            resources[address] = replace(resource, spec={**resource.spec, "timezone": "Asia/Tokyo"})
        case "moved":
            other = Address(address.kind, f"{address.key}2")
            resources[other] = replace(resource, address=other)
    return replace(desired, resources=resources)


def drifted(saved: Plan, live: Live, chance: random.Random) -> Live:
    """Return live state in which one object is deleted, renamed, changed or added.

    I7: one that is added may have the name of an export that the plan creates.
    """
    objects = {kind: list(items) for kind, items in live.objects.items()}
    some = [item for items in objects.values() for item in items]
    if not some:
        return live
    item = chance.choice(some)
    match chance.choice(["deleted", "renamed", "changed", "copied", "created", "created"]):
        case "deleted":
            objects[item.kind].remove(item)
            if item.kind == "project":
                exports = objects["batch_export"]
                objects["batch_export"] = [it for it in exports if it.parent_id != item.id]
        case "renamed":
            swap(objects, item, replace(item, name="Other", body={**item.body, "name": "Other"}))
        case "changed":
            body = {**item.body, "interval": "week", "timezone": "Asia/Tokyo"}
            swap(objects, item, replace(item, body=body))
        case "copied" if item.kind == "batch_export":
            body = {**item.body, "id": "copy", "name": "Copy"}
            copied = replace(item, id="copy", name="Copy", body=body)
            objects[item.kind].append(copied)
        case "created":
            objects["batch_export"] += created(saved, live, chance)
    return replace(live, objects={kind: tuple(items) for kind, items in objects.items()})


def created(saved: Plan, live: Live, chance: random.Random) -> Iterator[LiveObject]:
    """Yield the object of a create of a plan, as another client may have made it just now."""
    creates = [
        change
        for change in saved.effective
        if (change.address.kind, change.action) == ("batch_export", Action.CREATE)
        if change.parent_id in {item.id for item in live.of("project")} and change.body
    ]
    if creates:
        change = chance.choice(creates)
        own = {"id": "new", "team_id": change.parent_id, "created_at": NOW.isoformat()}
        odd = chance.choice([{}, {"interval": "week"}, {"end_at": NOW.isoformat()}])
        body = {"paused": False, "latest_runs": [], **(change.body or {}), **odd, **own}
        yield LiveObject("batch_export", "new", change.name, body, parent_id=change.parent_id)


def swap(objects: dict[str, list[LiveObject]], old: LiveObject, new: LiveObject) -> None:
    objects[old.kind] = [new if item is old else item for item in objects[old.kind]]


TEXTS = st.sampled_from(
    ["*", "web", "batch_export", "create", "S3", "[", "history-*", "*.config.*", "!web", "!*"]
)
GLOBS = TEXTS | st.lists(TEXTS, max_size=2)
VALUES = st.none() | st.booleans() | st.integers(0, 2) | TEXTS
NAMES = (
    *("kind", "action", "address", "name", "project"),
    *("destination", "consequence", "severity", "field"),
)
MATCHES = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, GLOBS))
JUNK = st.recursive(VALUES, lambda inside: st.dictionaries(TEXTS, inside, max_size=2))


@given(worlds(), MATCHES)
def test_a_saved_plan_breaks_the_same_rules(world: tuple[Desired, Live], match: Any) -> None:
    plan = planned(*world, options=ROTATING)
    policy = Policy(rules=rules_of({"a": {"match": match, "message": "m"}}))
    broken = tuple(breaches(policy, plan.changes, KINDS))
    assert broken == tuple(breaches(policy, decode(encode(plan)).changes, KINDS))


@given(worlds(), st.dictionaries(TEXTS | st.sampled_from(NAMES), JUNK))
def test_what_no_schema_accepts_raises_nothing(world: tuple[Desired, Live], match: Any) -> None:
    plan = planned(*world)
    tuple(breaches(Policy(rules=rules_of({"a": {"match": match}})), plan.changes, KINDS))
