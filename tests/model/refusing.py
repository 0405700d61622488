"""What refuses a plan (docs/planning.md, policy.md, consequences.md). Each function is a rule.

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.model.declared import CONFIG, INTEGRATION, TYPE, Resource
from tests.model.identity import Live

if TYPE_CHECKING:
    from tests.model.deciding import Change, Planned

Refusals = Iterator[tuple[str, ...]]
"""A rule and addresses each."""
PLACES: Mapping[str, Iterable[str]] = {
    "S3": ("bucket_name", "prefix"),
    "AwsS3": ("bucket_name", "prefix"),
    "Postgres": ("host", "database", "schema", "table_name"),
    "HTTP": ("url",),
}


def refusals_of(plan: Planned) -> set[tuple[str, frozenset[str]]]:
    """Return the rules that refuse a plan, each with its addresses."""
    return {(rule, frozenset(addresses)) for check in CHECKS for rule, *addresses in check(plan)}


def _lost(plan: Planned) -> list[Change]:
    return plan.of_action("delete", "replace")


def _deletions(plan: Planned) -> Refusals:
    for change in _lost(plan):
        resource = plan.resource_of(change.address)
        is_maybe = change.live in plan.identity.maybe_protected and change.address not in plan.now
        if (resource and resource.protected) or is_maybe:
            yield "protect", change.address
    lost = [change.address for change in _lost(plan) if change.live in plan.elsewhere]
    if lost:
        yield "declared-elsewhere", *lost
    if _lost(plan) and not plan.now:
        yield "nothing-declared", *(change.address for change in _lost(plan))


def _replacements(plan: Planned) -> Refusals:
    for change in plan.of_action("replace"):
        resource = plan.now[change.address]
        allowed = plan.world.allow_replace or plan.policy.get("allow_replace")
        if not (allowed or resource.lifecycle.get("allow_replace")):
            yield "allow_replace", change.address
        if resource.pinned is not None:
            yield "replaced-id", change.address


def _lost_with_project(plan: Planned) -> Refusals:
    """Every export in a project to delete is accounted for."""
    gone = {change.live for change in plan.of_action("delete")}
    moved = {c.live for c in plan.of_action("replace") if c.live and c.live.parent != c.parent}
    for change in plan.of_action("delete"):
        project = change.live.id if change.live else ""
        for item in plan.live:
            if item.parent == project and item not in gone | moved:
                yield _rule_inside(plan, item), change.address
        for other in plan.of_action("create", "replace"):
            if other.parent == project and other.live in {None, *moved}:
                yield "declared-inside", change.address


def _rule_inside(plan: Planned, item: Live) -> str:
    """Return why an export in a project to delete is not accounted for."""
    identity, address = plan.identity, plan.identity.owner.get(item, "")
    if item in identity.ignored:
        return "ignore"
    if address in plan.now:
        return "not-selected" if plan.now[address].absent else "declared-inside"
    unclear = [key for key, items in identity.unclear.items() if item in items]
    owners = [address, *unclear] if address else unclear
    if any(identity.was[key].protected for key in owners):
        return "protect"
    if not plan.base.kept.isdisjoint(owners):
        return "kept"
    if unclear:
        return "ambiguous-inside"
    is_pruned = any(change.live is item for change in plan.pruned())
    return "not-selected" if is_pruned else "unmanaged-inside"


def _limits(plan: Planned) -> Refusals:
    lost = [change.address for change in _lost(plan)]
    managed = [item for item in plan.identity.matched.values() if item]
    for rule, addresses in (
        ("max_deletes", lost),
        ("max_changes", [key for key, _ in plan.changes]),
    ):
        limit = plan.policy.get(rule, len(addresses))
        if isinstance(limit, str):
            limit = len(managed) * int(limit.rstrip("%")) / 100
        if len(addresses) > limit:
            yield rule, *addresses
    projects = [address for address in lost if address.startswith("project.")]
    exports = [address for address in lost if address not in projects]
    if projects and not plan.policy.get("allow_project_deletion"):
        yield "allow_project_deletion", *projects
    for rule, addresses in (("history-lost", exports), ("project-data-lost", projects)):
        if addresses and rule in plan.policy.get("deny", ()):
            yield "deny", *addresses


def _names(plan: Planned) -> Refusals:
    """Names are not exchanged, and those by which another tool finds its objects stay."""
    changed = {address for address, _ in plan.changes}
    for address, item in plan.identity.matched.items():
        owners = [was.address for was in plan.identity.at_base(item)]
        other = owners[0] if len(owners) == 1 else address
        is_pinned = plan.now[address].pinned is not None
        if other in plan.identity.matched.keys() - {address} and not is_pinned:
            if not changed.isdisjoint((address, other)):
                yield "permuted-names", address, other
    for change in plan.of_action("update", "replace"):
        is_renamed = change.action == "replace" or "name" in change.fields
        if is_renamed and change.live and change.live.of_other_tool:
            yield "posthog-definitions", change.address


def _workspace(plan: Planned) -> Refusals:
    for address in plan.identity.untouchable:
        yield "ignore", address
    mode = plan.policy.get("prune")
    modes = mode.values() if isinstance(mode, dict) else [mode]
    files = plan.world.commits[plan.world.head].files
    if True in modes and not files.keys().isdisjoint(plan.world.sparse):
        yield ("sparse-checkout",)


# What the server is known to refuse


def dialect_of(plan: Planned) -> str | None:
    """Return the version of the server, as far as a plan can know it."""
    has_live = any(item.parent is not None for item in plan.live)
    has_any = any(item.parent is not None for item in plan.now.values())
    is_known = has_live or (plan.world.dialect == "2026" and has_any)
    return plan.world.dialect if is_known else None


def _exports_of_server(plan: Planned) -> Refusals:
    dialect = dialect_of(plan)
    for change in plan.of_action("update", "pause"):
        has_ended = change.live and change.live.has_ended(timedelta(days=7))
        if has_ended and dialect in ("2025", "2026"):
            yield "schedule-deleted", change.address
    for change in plan.of_action("create", "replace"):
        resource, live = plan.now[change.address], change.live
        if resource.value(TYPE) == "HTTP" and f"{CONFIG}token" not in resource.values:
            yield "field-required", change.address
        to = resource.value(INTEGRATION)
        is_of_other = live and live.parent != change.parent and live.value(INTEGRATION) == to
        if dialect == "2026" and to and (change.parent is None or is_of_other):
            yield "integration-of-another-project", change.address


def _names_of_server(plan: Planned) -> Refusals:
    """Servers of 2026 compare the names of projects without case."""
    if dialect_of(plan) != "2026":
        return
    names = {item: item.name for item in plan.live if item.kind == "project"}
    for change in plan.of_action("update", "delete"):
        if change.live in names:
            del names[change.live]
    changes = [
        c for c in plan.of_action("create", "update") if plan.now[c.address].kind == "project"
    ]
    after = {c.address: plan.now[c.address].name.lower() for c in changes}
    for change in changes:
        if change.action == "create" or "name" in change.fields:
            others = {name.lower() for name in names.values()}
            others |= {
                after[other.address]
                for other in changes
                if other.action == "update"
                and other is not change
                or (other.action == "create" and other.address < change.address)
            }
            if after[change.address] in others:
                yield "name-taken", change.address


# Creates that would double an object


def doubled(plan: Planned) -> Refusals:
    identity = plan.identity
    versions = identity.versions[0] if identity.versions else {}
    at_base = {key: was for key, was in versions.items() if not was.absent}
    free, created = [*_unclaimed(plan)], plan.of_action("create")
    for change in created:
        resource, key = plan.now[change.address], change.address
        others = [item for item in free if not resource.is_beside(item.name, item.address)]
        if resource.kind == "batch_export":
            if any(
                item.parent == change.parent for item in _twins(resource, at_base.get(key), others)
            ):
                yield "possible-duplicate", key
        elif key in at_base:
            names = {was.name for was in at_base.values() if was.parent == ("key", key)}
            for project in [item for item in others if item.kind == "project"]:
                inside = [item for item in free if item.parent == project.id]
                children = [
                    child.address
                    for child in created
                    if plan.now[child.address].parent == ("key", key)
                    and _is_inside(plan.now[child.address], at_base.get(child.address), inside)
                ]
                if children or any(item.plain_name in names for item in inside):
                    yield "possible-duplicate", key, *children


def _is_inside(export: Resource, was: Resource | None, inside: list[Live]) -> bool:
    is_named = any(item.plain_name == export.name for item in inside)
    return bool(_twins(export, was, inside)) or (was is not None and is_named)


def _unclaimed(plan: Planned) -> Iterator[Live]:
    """Yield what no resource claims and what the plan does not delete on purpose."""
    deleted = {change.live for change in plan.of_action("delete") if change.on_purpose}
    for item in plan.live:
        owner = plan.now.get(plan.identity.owner.get(item, ""))
        if (owner is None or owner.absent) and item not in deleted | plan.elsewhere:
            yield item


def _twins(resource: Resource, was: Resource | None, items: list[Live]) -> list[Live]:
    """Return the exports whose work a resource would do again."""
    found = []
    for item in items:
        for known in filter(None, (resource, was)):
            same = known.value(f"{CONFIG}exclude_events") == item.value(f"{CONFIG}exclude_events")
            exact = known.value(TYPE) != "HTTP"
            is_twin = (same and exact) or (was is not None and (same or exact))
            if is_twin and _place(known) == _place(item) is not None and not item.has_ended():
                found.append(item)
    return found


def _place(export: Resource | Live) -> tuple[object, ...] | None:
    """Return where an export of a type and a model writes, None for types without a place."""
    to = export.value(TYPE)
    parts = [export.value(CONFIG + name) for name in PLACES.get(to, ())]
    return (to, export.value("model"), *parts) if parts else None


CHECKS = (
    _deletions,
    _replacements,
    _lost_with_project,
    _limits,
    _names,
    _workspace,
    _exports_of_server,
    _names_of_server,
    doubled,
)
