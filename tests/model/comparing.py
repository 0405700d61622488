"""Compare what the model predicts with what the real commands say and do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.model.deciding import Planned
from tests.model.drawing import drawn
from tests.model.oracle import Prediction, live_of
from tests.model.real import Clone, Ended, clone_of
from tests.model.world import World
from tests.reliability.virtual import run_virtually

_CHANGED = ("rotate", "version_changed", "reference_changed")


def differing(what: str, expected: Any, actual: Any) -> Iterator[str]:
    if expected != actual:
        yield f"{what}: the model says {expected!r}, the command {actual!r}"


def plan_differences(predicted: Prediction, ended: Ended, ids: list[str]) -> Iterator[str]:
    """Yield how a plan differs from what the model predicts."""
    yield from differing("exit code", predicted.code, ended.code)
    yield from differing("error", predicted.error, ended.error)
    if predicted.error or ended.error:
        return
    plan = ended.plan
    base = ids[predicted.base] if predicted.base is not None else None
    yield from differing("base", base, plan["source"]["base"])
    refusals = {(item["rule"], frozenset(item["addresses"])) for item in plan["refusals"]}
    yield from differing("refusals", _sorted(predicted.refusals), _sorted(refusals))
    effective = [change for change in plan["changes"] if change["action"] != "no-op"]
    actual = {(change["address"], change["action"]): change for change in effective}
    yield from differing("changes", sorted(predicted.changes), sorted(actual))
    objects = {change["address"]: change["live_id"] for change in plan["changes"]}
    yield from differing("objects", _items(predicted.objects), _items(objects))
    for key in sorted(predicted.changes.keys() & actual.keys()):
        yield from _change_differences(" ".join(key), predicted.changes[key], actual[key])
    unmanaged = {item["address"].rpartition(":")[2] for item in plan["unmanaged"]}
    yield from differing("unmanaged", sorted(predicted.unmanaged), sorted(unmanaged))
    notes = [(note["code"], note["message"], note["about"]) for note in plan["notes"]]
    adopted = {about for code, _, about in notes if code == "adopted" and about}
    yield from differing("adopted", sorted(predicted.adopted), sorted(adopted))
    stays = {(about, text.split()[0]) for code, text, about in notes if code == "stays-as-it-is"}
    yield from differing("stays", sorted(predicted.stays), sorted(stays))
    loosened = {text: sorted(users) for text, users in predicted.loosened.items()}
    yield from differing("loosened", _items(loosened), _items(_loosened(notes)))


def _change_differences(what: str, change: Any, actual: dict[str, Any]) -> Iterator[str]:
    if change.action == "create":
        yield from differing(f"{what} parent", change.parent, actual["parent_id"])
    if change.action not in ("update", "replace", "pause", "unpause"):
        return
    fields = {
        tuple(field["path"]): (field["origin"], field["reset"])
        for field in actual["fields"]
        if not field["secret"] and field["path"] != ["project"]
    }
    yield from differing(f"{what} fields", _items(change.fields), _items(fields))
    if change.action == "update":
        secrets = {tuple(s["path"]) for s in actual["secrets"] if s["use"] in _CHANGED}
        yield from differing(f"{what} secrets", sorted(change.secrets), sorted(secrets))


def _loosened(notes: list[tuple[str, str, str | None]]) -> dict[str, list[str]]:
    """Return the notes on what resources loosen, in the words of the model."""
    found = {}
    for code, text, _ in notes:
        if code != "loosened" or "lifecycle" not in text and "protection" not in text and "`id:" not in text:
            continue
        what, _, users = text.rpartition(" is new: " if "is new" in text else " is removed: ")
        for old, new in (("`", ""), ("lifecycle.", ""), ("protection", "protect"), ("'", ""), (":", "")):
            what = what.replace(old, new)
        found[what] = sorted(users.split(", "))
    return found


def _sorted(values: Any) -> list[Any]:
    return sorted((rule, sorted(addresses)) for rule, addresses in values)


def _items(value: Any) -> list[Any]:
    return sorted(value.items())


async def judged(world: World, folder: Path) -> list[str]:
    """Run a world; return the disagreements."""
    async with clone_of(world, folder) as clone:
        return [problem async for problem in _judged(clone)]


async def _judged(clone: Clone) -> Any:
    world = clone.world
    predicted = Planned(world, live_of(world.projects)).prediction()
    ended = await clone.plan()
    for problem in plan_differences(predicted, ended, clone.ids):
        yield problem
    if ended.error and ended.text:
        yield f"({ended.text})" if predicted.error != ended.error else ""


def reproduced(seed: int, dialect: str) -> list[str]:
    """Run the world of a seed and return the disagreements."""
    world = drawn(seed, dialect)
    with TemporaryDirectory() as folder:
        return [text for text in run_virtually(judged(world, Path(folder) / "w")) if text]
