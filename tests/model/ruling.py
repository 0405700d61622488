"""Which rules of the policy a plan breaks (docs/policy.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.model.declared import TYPE
from tests.model.identity import Live

if TYPE_CHECKING:
    from tests.model.deciding import Change, Planned

Match = Mapping[str, Any]


def broken(plan: Planned) -> Iterator[tuple[str, ...]]:
    """Yield the rules of severity `deny` that a plan breaks, each with the addresses."""
    files, environment = plan.world.work, plan.world.environment
    layers = (files["reconciler.yaml"], files["reconciler.yaml"]["environments"][environment])
    rules = {k: v for layer in layers for k, v in layer.get("policy", {}).get("rules", {}).items()}
    for name, rule in rules.items():
        matching = [change for change in plan.changes.values() if _is(plan, change, rule["match"])]
        if rule.get("severity") != "warn" and matching:
            yield f"rules.{name}", *(change.address for change in matching)


def _is(plan: Planned, change: Change, match: Match) -> bool:
    """Return whether all tests of a match are true."""
    return all(_test(plan, change, test, wanted) for test, wanted in match.items())


def _test(plan: Planned, change: Change, test: str, wanted: Any) -> bool:
    live = change.live
    found: dict[str, Iterable[str]] = {
        "kind": [change.address.partition(".")[0]],
        "action": _actions(plan, change),
        "address": [change.address, *_applied(plan, live)],
        "name": _names(plan, change.address, live),
        "destination": _types(plan, change),
        "consequence": _consequences(change),
        "field": _paths(plan, change),
    }
    values = [(text,) for text in found[test]] if test in found else _projects(plan, change)
    return _fits(test, list(values), wanted)


def _actions(plan: Planned, change: Change) -> list[str]:
    """Return its action, and the pause or unpause in a replacement."""
    if change.action != "replace" or "paused" not in change.fields:
        return [change.action]
    return ["replace", "pause" if plan.now[change.address].value("paused") else "unpause"]


def _fits(test: str, values: list[tuple[str, ...]], globs: Any) -> bool:
    """Return whether a value fits. `!GLOB` excludes names only if all of them fit it."""
    given = globs if isinstance(globs, list) else [globs]
    out = [glob[1:] for glob in given if glob[0] == "!"]
    wanted = [glob for glob in given if glob[0] != "!"] or ["*"]
    kept = [value for value in values if not _any(value, out)]
    kept = values if kept and test in ("address", "name", "project") else kept
    return any(_any(value, wanted) for value in kept)


def _any(texts: Iterable[str], globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, glob) for text in texts for glob in globs)


def _names(plan: Planned, address: str, live: Live | None) -> set[str]:
    """Return the names in the service: as configured, as applied and as live."""
    own = plan.now.get(address)
    found = {item.name for item in (own, live) if item is not None}
    return found | {*_applied(plan, live).values()}


def _applied(plan: Planned, live: Live | None) -> dict[str, str]:
    """Return the address and the name under which an object was applied."""
    entries = plan.record.entries
    return {
        k: e.name for k, e in entries.items() if live and (e.id, k[:5]) == (live.id, live.kind[:5])
    }


def _projects(plan: Planned, change: Change) -> Iterator[tuple[str, ...]]:
    """Yield keys and names of the projects of a change, each with the id."""
    own, live = plan.now.get(change.address), change.live
    if change.address.startswith("project."):
        yield from _called(plan, live.id if live else None, change.address)
        return
    how, text = own.parent if own and own.parent else ("", None)
    if how == "name" and text:
        yield text, *([change.parent] if change.parent else [])
    yield from _called(plan, change.parent, text if how == "key" else None)
    if live:
        yield from _called(plan, live.parent, None)


def _called(plan: Planned, identity: str | None, address: str | None) -> Iterator[tuple[str, ...]]:
    item = next((x for x in plan.live if x.kind == "project" and x.id == identity), None)
    address = plan.identity.owner.get(item, address) if item else address
    found = _names(plan, address or "", item)
    found |= {key.partition(".")[2] for key in _applied(plan, item)}
    found |= {address.partition(".")[2]} if address else set()
    yield from ((text, *([item.id] if item else [])) for text in found)


def _paths(plan: Planned, change: Change) -> set[str]:
    """Return the fields that change, and the secrets that are sent. A replacement sends all."""
    paths, live = {*change.fields, *change.secrets}, change.live
    if change.action != "replace" or live is None:
        return paths
    moved = {"project"} if live.parent != change.parent else set[str]()
    return paths | plan.now[change.address].secrets | moved


def _types(plan: Planned, change: Change) -> set[str]:
    """Return the types of the destination before and after a change. Pauses have none."""
    if change.action in ("pause", "unpause"):
        return set()
    own = plan.now.get(change.address) if change.action != "delete" else None
    return {str(item.value(TYPE)) for item in (own, change.live) if item and item.value(TYPE)}


def _consequences(change: Change) -> set[str]:
    """Return those of the deletion and replacement of objects."""
    if change.action not in ("delete", "replace"):
        return set()
    return {"project-data-lost" if change.address.startswith("project.") else "history-lost"}
