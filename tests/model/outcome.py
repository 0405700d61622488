"""What applying, drift, pull and compare do (docs/planning.md, operations.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.deciding import Change, Planned
from tests.model.declared import (
    TYPE,
    Declared,
    all_resources,
    canonical,
    declared,
    is_secret,
    leaves,
)
from tests.model.identity import Live
from tests.model.refusing import doubled
from tests.model.world import Files


def applied(plan: Planned) -> list[Live]:
    """Return the live objects after the changes of a plan."""
    live, new = {item.id: item for item in plan.live}, list[Live]()
    for change in plan.changes.values():
        item = live.get(change.live.id) if change.live else None
        if change.action in ("create", "replace"):
            new.append(_created(plan, change))
        elif change.action != "delete" and item:
            live[item.id] = replace(item, values={**item.values, **_sent(plan, change)})
    gone = {c.live.id for c in plan.of_action("delete", "replace") if c.live}
    return new + [item for item in live.values() if gone.isdisjoint((item.id, item.parent))]


def _sent(plan: Planned, change: Change) -> dict[str, Any]:
    values = plan.now[change.address].values
    return {path: None if reset else values[path] for path, (_, reset) in change.fields.items()}


def _created(plan: Planned, change: Change) -> Live:
    resource, parent = plan.now[change.address], change.parent
    if parent is None and resource.parent is not None:
        parent = f"new {resource.parent[1]}"
    kept = dict(change.live.values) if change.live else {}
    if change.live and change.live.value(TYPE) != resource.value(TYPE):
        kept = {path: value for path, value in kept.items() if not path.startswith("destination.")}
    values = {
        path: value
        for path, value in resource.values.items()
        if not is_secret(value) and not (path in kept and resource.ignores(path))
    }
    resets = {path: None for path, (_, is_reset) in change.fields.items() if is_reset}
    return Live(resource.kind, f"new {change.address}", parent, {**kept, **values, **resets})


@dataclass
class Drifted:
    """What `drift` reports: the exit code, fields by address, what is deleted and renamed."""

    code: int = 0
    fields: dict[str, set[str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)


def drifted(plan: Planned) -> Drifted:
    """Return what `drift` reports."""
    if plan.error or not plan.base.is_merged:
        return Drifted(plan.code if plan.base.is_merged else 1)
    result = Drifted()
    for change in plan.changes.values():
        fields = {path for path, (origin, _) in change.fields.items() if origin in ("live", "both")}
        if fields:
            result.fields.setdefault(change.address, set()).update(fields)
    at_base = {key for key, was in plan.base.versions[0].items() if not was.absent}
    created = {change.address for change in plan.of_action("create")} & at_base
    duplicates = [addresses for _, *addresses in doubled(plan)]
    result.deleted = created.difference(*duplicates)
    result.renamed = created.intersection(address for address, *_ in duplicates)
    result.code = 2 if result.fields or result.deleted or result.renamed else 0
    return result


def pulled(
    now: Declared, live: Mapping[str, Live], drift: Drifted, conflicts: set[tuple[str, str]]
) -> dict[str, dict[str, Any]]:
    """Return the values of the resources after their drift was written into the files."""
    return {
        address: comparable(resource.values)
        | {
            path: live[address].value(path)
            for path in drift.fields.get(address, ())
            if (address, path) not in conflicts
        }
        for address, resource in now.items()
    }


def comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    return {path: canonical(path, value) for path, value in values.items()}


def compared(files: Files, first: str, second: str) -> dict[tuple[str, str], bool]:
    """Return the fields in which two environments of the files differ, and if it is intended."""
    one, two, found = declared(files, first), declared(files, second), {}
    bodies = {address: dict(leaves(body)) for _, address, body in all_resources(files)}
    for address in one.keys() & two.keys():
        a, b, body = one[address], two[address], bodies[address]
        for path in a.values.keys() | b.values.keys():
            if (path in a.values) != (path in b.values) or a.value(path) != b.value(path):
                found[address, path] = (
                    path == "name"
                    or path in a.secrets | b.secrets
                    or "${var:" in str(body.get(path))
                    or all(f"overrides.{name}.{path}" in body for name in (first, second))
                )
    return found
