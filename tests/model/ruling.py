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
    found: dict[str, Iterable[str]] = {
        "kind": [change.address.partition(".")[0]],
        "action": _actions(plan, change),
        "address": [change.address],
        "name": _names(plan, change.address, change.live),
        "project": _projects(plan, change),
        "destination": _types(plan, change),
        "consequence": _consequences(change),
    }
    return _fits(test, found[test], wanted)


def _actions(plan: Planned, change: Change) -> list[str]:
    """Return its action, and the pause or unpause in a replacement."""
    if change.action != "replace" or "paused" not in change.fields:
        return [change.action]
    return ["replace", "pause" if plan.now[change.address].value("paused") else "unpause"]


def _fits(test: str, texts: Iterable[str], globs: Any) -> bool:
    wanted = globs if isinstance(globs, list) else [globs]
    out = [glob[1:] for glob in wanted if glob[0] == "!"]
    wanted = [glob for glob in wanted if glob[0] != "!"] or ["*"]
    texts = list(texts)
    kept = [text for text in texts if not any(fnmatch.fnmatchcase(text, glob) for glob in out)]
    kept = texts if kept and test in ("address", "name", "project") else kept
    return any(fnmatch.fnmatchcase(text, glob) for text in kept for glob in wanted)


def _names(plan: Planned, address: str, live: Live | None) -> set[str]:
    """Return the name in the service, before and after a change of it."""
    own, found = plan.now.get(address), {live.name} if live else set[str]()
    is_renamed = any(
        "name" in change.fields
        for change in plan.of_action("update", "replace", "create")
        if change.address == address
    )
    is_managed = own and live and live.is_called(own.name)
    return found | {own.name} if own and (is_renamed or is_managed or not live) else found


def _projects(plan: Planned, change: Change) -> Iterator[str]:
    """Yield key, name and id of the projects of a change: its own, and where it was and will be."""
    own, live = plan.now.get(change.address), change.live
    if change.address.startswith("project."):
        yield from _called(plan, live.id if live else None, change.address)
        return
    key = own.parent[1] if own and own.parent and own.parent[0] == "key" else None
    yield from _called(plan, change.parent, key)
    if live:
        yield from _called(plan, live.parent, None)


def _called(plan: Planned, identity: str | None, address: str | None) -> Iterator[str]:
    item = next((x for x in plan.live if x.kind == "project" and x.id == identity), None)
    address = plan.identity.owner.get(item) if item else address
    if item:
        yield item.id
    if address or item:
        yield from _names(plan, address or "", item)
    if address:
        yield address.partition(".")[2]


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
