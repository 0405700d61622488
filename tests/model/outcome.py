"""What applying, drift and undo do (docs/planning.md, operations.md, restores.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.deciding import Planned
from tests.model.declared import CONFIG, Path, is_secret
from tests.model.oracle import TYPE, Change, Live, Prediction, has_marker

FIELDS: Mapping[str, tuple[str, ...]] = {
    "project": ("timezone", "anonymize_ips", "surveys_opt_in"),
    "batch_export": ("interval", "model", "paused", "end_at"),
    "S3": ("bucket_name", "region", "prefix", "exclude_events"),
    "AwsS3": ("bucket_name", "region", "prefix", "exclude_events"),
    "Postgres": ("host", "database", "schema", "table_name", "exclude_events"),
    "HTTP": ("url", "exclude_events"),
    "NoOp": ("arg", "exclude_events"),
}


def state_of(live: Iterable[Live]) -> list[Any]:
    """Return what a configuration decides about live objects, by names."""
    names = {item.id: item.name for item in live if item.kind == "project"}
    found = []
    for item in live:
        to = item.values.get(TYPE)
        paths: list[Path] = [(name,) for name in FIELDS[item.kind]]
        if item.kind == "batch_export":
            paths += [TYPE, ("destination", "integration")]
            paths += [(*CONFIG, name) for name in FIELDS[str(to)]]
        values = [(".".join(path), item.value(path)) for path in paths]
        shown = [(path, str(value)) for path, value in values if value not in (None, False)]
        found.append((item.kind, names.get(item.parent or "", item.parent), item.name, shown))
    return sorted(found, key=repr)


def applied(planned: Planned, predicted: Prediction) -> list[Live]:
    """Return the live objects after the changes of a plan."""
    live = {(item.kind, item.id): item for item in planned.oracle.live}
    changes = sorted(predicted.changes.values(), key=lambda item: item.address, reverse=True)
    for change in changes:  # Projects come first: their exports are created in them.
        if change.action == "delete" and change.live:
            gone = change.live.id
            live = {
                place: item
                for place, item in live.items()
                if place != (change.live.kind, gone)
                and (change.live.kind != "project" or item.parent != gone)
            }
        elif change.action in ("create", "replace"):
            new = _created(planned, change)
            if change.live:
                live.pop((new.kind, change.live.id), None)
            live[new.kind, new.id] = new
        elif change.live:
            item = live.get((change.live.kind, change.live.id))
            if item is not None:
                live[item.kind, item.id] = _updated(planned, change, item)
    return list(live.values())


def _created(planned: Planned, change: Change) -> Live:
    resource = planned.oracle.now[change.address]
    sent = {path: value for path, value in resource.values.items() if not is_secret(value)}
    parent = change.parent
    if parent is None and resource.parent is not None:
        parent = f"new {resource.parent[1]}"
    kept = dict(change.live.values) if change.live else {}
    if kept.get(TYPE) != sent.get(TYPE):
        kept = {path: value for path, value in kept.items() if path[0] != "destination"}
    if change.live and ("paused",) in sent and sent["paused",] is None:
        del sent["paused",]
    for path in planned.reset_of(change):
        kept.pop(path, None)
    for path in [path for path in sent if resource.ignores(path) and path in kept]:
        del sent[path]
    return Live(resource.kind, f"new {change.address}", resource.name, parent, {**kept, **sent})


def _updated(planned: Planned, change: Change, item: Live) -> Live:
    resource = planned.oracle.now[change.address]
    values = dict(item.values)
    for path, (_, is_reset) in change.fields.items():
        values[path] = None if is_reset else resource.values[path]
    name = resource.name if ("name",) in change.fields else item.name
    return replace(item, values=values, name=name)


@dataclass
class Drifted:
    """What `drift` reports: the exit code, fields by address, what is deleted and renamed."""

    code: int = 0
    fields: dict[str, set[Path]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)


def drifted(planned: Planned, predicted: Prediction) -> Drifted:
    """Return what `drift` reports."""
    base = planned.oracle.base
    if base is None or not base.is_merged:
        return Drifted(1)
    if predicted.error:
        return Drifted(predicted.code)
    result = Drifted()
    for change in predicted.changes.values():
        fields = {path for path, (origin, _) in change.fields.items() if origin in ("live", "both")}
        if fields and change.action != "create":
            result.fields.setdefault(change.address, set()).update(fields)
    doubled = [addresses for rule, addresses in predicted.refusals if rule == "possible-duplicate"]
    explained = {address for addresses in doubled for address in addresses}
    declared = {key for key, was in planned.oracle.versions[0].items() if not was.absent}
    created = {address for address, action in predicted.changes if action == "create"} & declared
    result.deleted = created - explained
    heads = planned.doubled_heads()
    result.renamed = heads & created
    result.code = 2 if result.fields or result.deleted or result.renamed else 0
    return result


def is_undoable(planned: Planned, predicted: Prediction) -> bool:
    """Return whether an undo restores everything: no history, secret or other setting is lost."""
    policy, now = planned.policy, planned.oracle.now
    if set(policy) & {"max_deletes", "max_changes", "deny", "ignore"}:
        return False
    for change in predicted.changes.values():
        resource = now.get(change.address)
        is_odd = change.action == "replace" or TYPE in change.fields or change.secrets
        is_odd = is_odd or bool(
            resource and ("name",) in change.fields and has_marker(resource.name)
        )
        if is_odd or (resource and (resource.protected or "ignore_changes" in resource.lifecycle)):
            return False
        is_deletion = change.action == "delete" and change.live is not None
        if is_deletion and change.live and change.live.value(TYPE) not in (None, "NoOp"):
            return False
        is_project = change.address.startswith("project.")
        is_refused = is_project and not policy.get("allow_project_deletion")
        if change.action in ("delete", "create") and is_refused:
            return False
        if change.action == "delete" and is_project and planned.dialect() is None:
            return False
    names = [item.name for item in planned.oracle.live if item.kind == "project"]
    return len(set(names)) == len(names)
