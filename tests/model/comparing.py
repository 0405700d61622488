"""Compare what the model predicts with what the real commands say and do."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.model.deciding import Change, Planned
from tests.model.declared import CONFIG, INTEGRATION, TYPE
from tests.model.drawing import drawn
from tests.model.identity import Live
from tests.model.outcome import applied, code_of_apply, drifted, is_stale, recorded
from tests.model.real import Clone, Ended, clone_of, live_of
from tests.model.world import World, checkout, line_of
from tests.reliability.service import KEY
from tests.support.virtual_loop import run_virtually

AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
_CHANGED = ("rotate", "version_changed", "reference_changed", "resent")
_MEANWHILE = (
    ("PATCH", {"interval": "day"}),
    ("PATCH", {"interval": "hour"}),
    ("PATCH", {"name": "Omega"}),
    ("PATCH", {"end_at": "2028-01-01T00:00:00Z"}),
    ("DELETE", None),
)
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "project": ("timezone", "anonymize_ips", "surveys_opt_in"),
    "batch_export": ("interval", "model", "paused", "end_at", TYPE, INTEGRATION),
    "S3": ("bucket_name", "region", "prefix", "exclude_events"),
    "AwsS3": ("bucket_name", "region", "prefix", "exclude_events"),
    "Postgres": ("host", "database", "schema", "table_name", "exclude_events"),
    "HTTP": ("url", "exclude_events"),
    "NoOp": ("arg", "exclude_events"),
}


def differing(what: str, expected: Any, actual: Any) -> Iterator[str]:
    if expected != actual:
        yield f"{what}: the model says {expected!r}, the command {actual!r}"


def plan_differences(predicted: Planned, ended: Ended) -> Iterator[str]:
    yield from differing("exit code", predicted.code, ended.code)
    yield from differing("error", predicted.error, ended.error)
    if predicted.error or ended.error:
        return
    plan = ended.plan
    refusals = {
        # Which names are in a circle depends on the order of the changes.
        (item["rule"], frozenset(item["addresses"] if item["rule"] != "name-circle" else ()))
        for item in plan["refusals"]
    }
    yield from differing("refusals", predicted.refusals, refusals)
    actual = {(change["address"], change["action"]): change for change in plan["changes"]}
    yield from differing("changes", sorted(predicted.changes), sorted(actual))
    yield from differing("unchanged", len(ended.unchanged), plan["unchanged"])
    objects = {change["address"]: change["live_id"] for change in plan["changes"]}
    objects |= ended.unchanged
    matched, left_out = predicted.identity.matched, predicted.left_out
    found = {key: item for key, item in matched.items() if key not in left_out}
    found |= {change.address: change.live for change in predicted.changes.values()}
    expected = {address: item.id if item else None for address, item in found.items()}
    yield from differing("objects", expected, objects)
    for key in sorted(predicted.changes.keys() & actual.keys()):
        yield from _change_differences(" ".join(key), predicted.changes[key], actual[key])
    unmanaged = {item["address"].rpartition(":")[2] for item in plan["unmanaged"]}
    yield from differing("unmanaged", sorted(predicted.unmanaged), sorted(unmanaged))
    notes = [(note["code"], note["message"], note["about"]) for note in plan["notes"]]
    called = " ".join(
        text for code, text, _ in notes if code == "look-alike" and text.startswith("unmanaged")
    )
    gone = {c.live.id for c in predicted.of_action("delete") if c.live}
    named = {identity for identity in gone if f"(id {identity}," in called}
    yield from differing("called unmanaged although deleted", set(), named)
    leaving = {item["address"] for item in plan["leaving"]}
    yield from differing("leaving", sorted(predicted.leaving), sorted(leaving))
    codes = {code for code, _, _ in notes}
    yield from differing("no inventory", not predicted.record.exists, "no-inventory" in codes)
    is_behind = bool(predicted.record.behind) or predicted.record.is_older
    yield from differing("behind", is_behind, "behind" in codes)
    said = " ".join(text for code, text, _ in notes if code == "not-counted")
    uncounted = {key for key in predicted.world.record or {} if f"{key} (" in said}
    yield from differing("not counted", predicted.record.uncounted, uncounted)
    stays = {(about, text.split()[0]) for code, text, about in notes if code == "stays-as-it-is"}
    yield from differing("stays", sorted(predicted.stays), sorted(stays))
    yield from differing("loosened", sorted(predicted.loosened), sorted(_loosened(notes)))


def _change_differences(what: str, change: Change, actual: dict[str, Any]) -> Iterator[str]:
    if change.action == "create":
        yield from differing(f"{what} parent", change.parent, actual["parent_id"])
    if change.action not in ("update", "replace", "pause", "unpause"):
        return
    fields = {
        ".".join(field["path"]): (field["origin"], field["reset"])
        for field in actual["fields"]
        if not field["secret"] and field["path"] != ["project"]
    }
    yield from differing(f"{what} fields", change.fields, fields)
    if change.action == "update":
        secrets = {".".join(s["path"]) for s in actual["secrets"] if s["use"] in _CHANGED}
        yield from differing(f"{what} secrets", sorted(change.secrets), sorted(secrets))


def _loosened(notes: list[tuple[str, str, str | None]]) -> Iterator[tuple[str, str]]:
    """Yield what resources loosen by the notes, in the words of the model, with the resource."""
    for code, text, _ in notes:
        if code == "loosened" and re.search("lifecycle|protection|`id:", text):
            what, _, users = text.rpartition(" is new: " if "is new" in text else " is removed: ")
            what = re.sub(r"[`':]|lifecycle\.|(?<=protect)ion", "", what)
            yield from ((what, user) for user in users.split(", "))


async def judged(world: World, folder: Path, *, only_plan: bool) -> list[str]:
    async with clone_of(world, folder) as clone:
        live = live_of(world.projects)
        planned = Planned(replace(world, rollback=False), live)
        ended = await clone.plan()
        problems = [*plan_differences(planned, ended)]
        if problems or planned.error or only_plan:
            return problems
        dice = random.Random(world.seed)  # noqa: S311
        if dice.random() < 0.4 or planned.record.uncounted:
            # It looks at all resources.
            whole = Planned(replace(world.whole(), rollback=False), live)
            problems += differing("drift", drifted(whole), await clone.drift())
        if dice.random() < 0.7:
            problems += await _applied(clone, planned, ended, dice)
        return problems


async def _applied(
    clone: Clone, predicted: Planned, ended: Ended, dice: random.Random
) -> list[str]:
    """Apply, perhaps a saved plan, and compare the end state; then plan again."""
    before = live_of(clone.world.projects)
    saved = clone.folder.parent / "plan.json" if dice.random() < 0.5 else None
    clone.world.rollback &= saved is None
    predicted = Planned(clone.world, before)
    expected = code_of_apply(predicted)
    if saved is not None:
        saved.write_text(json.dumps(ended.plan), encoding="utf-8")
        if predicted.changes and expected == 0 and dice.random() < 0.6:
            return await _outdated(clone, saved, dice)
    made = await clone.apply(saved)
    problems = [*differing(f"apply: exit code ({made.text})", expected, made.code)]
    after = made.after = live_of(await clone.projects())
    end = before if expected in (4, 5) else applied(predicted)
    problems += _apart("apply: end state", end, after)
    if problems or expected:
        return problems
    wanted = _recorded(clone.world, predicted, made).record or {}
    lines = {key: line_of(entry, clone.ids) for key, entry in wanted.items()}
    problems += differing("inventory", lines, clone.recorded())
    if predicted.changes:
        problems += await _again(clone, predicted, made, saved, after)
    return problems


def _recorded(world: World, predicted: Planned, made: Ended) -> World:
    """Return the world with what a run wrote down."""
    if world.no_inventory or world.job:
        return world
    known = {item.id: item for item in made.after}
    created = {key: known[live_id] for key, live_id in made.created.items()}
    return replace(world, record=recorded(predicted, created), newest=world.head)


async def _again(
    clone: Clone, predicted: Planned, made: Ended, saved: Path | None, after: list[Live]
) -> list[str]:
    """Apply a saved plan again, or plan again."""
    world = _recorded(replace(clone.world, rollback=False), predicted, made)
    second = Planned(world, after, predicted if saved is not None else None)
    if saved is not None:
        repeated = await clone.apply(saved)
        expected = 4 if is_stale(predicted, second) else code_of_apply(second)
        what = f"saved plan again: exit code ({repeated.text})"
        problems = [*differing(what, expected, repeated.code)]
        return problems + _apart("saved plan again", after, live_of(await clone.projects()))
    # A plan without changes for a project does not notice that it is pending deletion.
    is_pending = world.dialect == "2026" and any(
        change.action == "delete" and address.startswith("project.")
        for (address, _), change in predicted.changes.items()
    )
    problems = [
        f"second plan: {problem}"
        for problem in plan_differences(second, await clone.plan())
        if not (is_pending and problem.startswith("unmanaged: "))
    ]
    # What a job left because of a live name, and did not record, is deleted once that is set back.
    # What the options left out because its project did not exist may be created then.
    left = (
        key
        for key, change in second.changes.items()
        if (change.fields or not change.secrets) and not (world.job and change.action == "delete")
        if change.address not in predicted.left_out
    )
    return problems + [f"second plan: {key} is left" for key in left]


async def _outdated(clone: Clone, saved: Path, dice: random.Random) -> list[str]:
    """Apply a saved plan after something changed, in the service or in the files."""
    world = clone.world
    predicted = Planned(world, live_of(await clone.projects()))
    if world.later is not None and not (world.is_partial or world.rotate):
        world = replace(world, work=world.later)
        checkout(world, clone.folder, world.work)
    else:
        await _meanwhile(clone, dice)
    before = live_of(await clone.projects())
    now = Planned(world, before, predicted)
    stale = 4 if is_stale(predicted, now) else code_of_apply(now)
    expected = now.code if now.error else stale
    made = await clone.apply(saved)
    what = f"outdated plan: exit code ({made.text} {[*now.changes]} {now.refusals})"
    problems = [*differing(what, expected, made.code)]
    end = before if expected else applied(now)
    return problems + _apart("outdated plan", end, live_of(await clone.projects()))


async def _meanwhile(clone: Clone, dice: random.Random) -> None:
    """Let something happen to an export in the service."""
    projects = await clone.projects()
    exports = [(p["id"], body) for p in projects for body in p.get("batch_exports", ())]
    if exports:
        project, body = dice.choice(exports)
        path = f"/api/projects/{project}/batch_exports/{body['id']}/"
        method, sent = dice.choice(_MEANWHILE)
        await clone.service.http.request(method, path, json=sent, headers=AUTHORIZED)


def state_of(live: Iterable[Live]) -> list[Any]:
    """Return what a configuration decides about live objects, by names."""
    names = {item.id: item.name for item in live if item.kind == "project"}
    found = []
    for item in live:
        own = _FIELDS.get(item.value(TYPE), ())
        paths = [*_FIELDS[item.kind], *(CONFIG + name for name in own)]
        values = [(path, item.value(path)) for path in paths]
        shown = [(path, str(value)) for path, value in values if value not in (None, False)]
        found.append((item.kind, names.get(item.parent or "", item.parent), item.name, shown))
    return sorted(found, key=repr)


def _apart(what: str, expected: Iterable[Live], actual: Iterable[Live]) -> list[str]:
    """Return what only one of two states has, if they differ."""
    one, two = state_of(expected), state_of(actual)
    only = ([x for x in one if x not in two], [x for x in two if x not in one])
    return [*differing(what, *only)]


def reproduced(seed: int, dialect: str, *, only_plan: bool = False) -> list[str]:
    """Run the world of a seed and return the disagreements. `only_plan` runs no other command."""
    world = drawn(seed, dialect)
    world.seed = seed
    with TemporaryDirectory() as folder:
        return run_virtually(judged(world, Path(folder) / "w", only_plan=only_plan))
