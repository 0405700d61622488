"""What refuses a plan (docs/planning.md, policy.md, consequences.md). Each function is a rule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from tests.model.declared import CONFIG, INTEGRATION, TYPE, Resource
from tests.model.identity import Live

if TYPE_CHECKING:
    from tests.model.deciding import Change, Planned

# A rule and addresses each.
Refusals = Iterator[tuple[str, ...]]
_BUCKET, _TABLE = ("bucket_name", "prefix"), ("host", "database", "schema", "table_name")
DEFAULT_DELETES = 10
PLACES = {"S3": _BUCKET, "AwsS3": _BUCKET, "Postgres": _TABLE}


def refusals_of(plan: Planned) -> set[tuple[str, frozenset[str]]]:
    checks = (_unclear, _deleted, _replaced, _inside, _limits, _names, _exports)
    return {
        (rule, frozenset(addresses))
        for check in (*checks, _projects, doubled)
        for rule, *addresses in check(plan)
    }


def _unclear(plan: Planned) -> Refusals:
    for rule, addresses in plan.identity.unclear:
        if not addresses <= plan.left_out:
            yield rule, *addresses
    for address in plan.identity.untouchable - plan.left_out:
        yield "ignore", address


def _deleted(plan: Planned) -> Refusals:
    lost = plan.of_action("delete", "replace")
    for change in lost:
        known = plan.record.of_object.get(change.live.id, "") if change.live else ""
        now = plan.now.get(change.address) or plan.now.get(known)
        is_now = now is not None and now.protected
        if is_now or (change.live and plan.record.protects(change.address, change.live)):
            yield "protect", change.address
    if lost and not plan.now:
        yield "nothing-declared", *(change.address for change in lost)


def _replaced(plan: Planned) -> Refusals:
    for change in plan.of_action("replace"):
        if not (
            plan.world.allow_replace or plan.now[change.address].lifecycle.get("allow_replace")
        ):
            yield "allow_replace", change.address
        if plan.now[change.address].pinned is not None:
            yield "replaced-id", change.address
    gone = {change.live for change in plan.of_action("delete")}
    for address, item in plan.identity.left_by_moves.items():
        if item not in gone and address not in plan.left_out:
            yield "left-by-move", address


def _inside(plan: Planned) -> Refusals:
    """Every export in a project to delete is accounted for."""
    gone = {change.live for change in plan.of_action("delete")}
    moved = {c.live for c in plan.of_action("replace") if c.live and c.live.parent != c.parent}
    for change in plan.of_action("delete"):
        project = change.live.id if change.live else ""
        for item in plan.live:
            if item.parent == project and item not in gone | moved:
                yield _why(plan, item), change.address
        for other in plan.of_action("create", "replace"):
            if other.parent == project and other.live in {None, *moved}:
                yield "declared-inside", change.address


def _why(plan: Planned, item: Live) -> str:
    """Return why an export in a project to delete is not accounted for."""
    identity, address = plan.identity, plan.identity.owner.get(item, "")
    if item in identity.ignored:
        return "ignore"
    if not identity.ambiguous.isdisjoint(identity.leads.get(item, ())):
        return "ambiguous"
    if address in plan.now:
        return "not-selected" if plan.now[address].absent else "declared-inside"
    was = plan.record.applied.get(address) or plan.record.trusted.get(address)
    if address and was and was.protected:
        return "protect"
    if address in identity.left:
        return "kept"
    is_pruned = any(change.live is item for change in plan.pruned())
    return "not-selected" if is_pruned else "unmanaged-inside"


def _limits(plan: Planned) -> Refusals:
    lost = [change.address for change in plan.of_action("delete", "replace")]
    managed = [item for item in plan.identity.matched.values() if item]
    every = [address for address, _ in plan.changes]
    removed = [change.address for change in plan.pruned() if not change.on_purpose]
    if "max_deletes" not in plan.policy and len(removed) > DEFAULT_DELETES:
        yield "max_deletes", *removed
    for rule, addresses in {"max_deletes": lost, "max_changes": every}.items():
        limit = plan.policy.get(rule, len(addresses))
        if isinstance(limit, str):
            limit = len(managed) * int(limit.rstrip("%")) / 100
        if len(addresses) > limit:
            yield rule, *addresses
    projects = [address for address in lost if address.startswith("project.")]
    exports = [address for address in lost if address not in projects]
    if projects and not plan.policy.get("allow_project_deletion"):
        yield "allow_project_deletion", *projects
    for rule, addresses in {"history-lost": exports, "project-data-lost": projects}.items():
        if addresses and rule in plan.policy.get("deny", ()):
            yield "deny", *addresses


def _names(plan: Planned) -> Refusals:
    """No project waits for a name that is only free after it, and those of another tool stay."""
    projects = [c for c in plan.changes.values() if c.address.startswith("project.")]
    named = [c for c in projects if c.action in ("create", "delete") or "name" in c.fields]
    try:
        TopologicalSorter({c.address: _before(plan, c, named) for c in named}).prepare()
    except CycleError:
        yield ("name-circle",)
    for change in plan.of_action("update", "replace"):
        is_renamed = change.action == "replace" or "name" in change.fields
        if is_renamed and change.live and change.live.has_marker:
            yield "posthog-definitions", change.address


def _before(plan: Planned, change: Change, named: list[Change]) -> Iterator[str]:
    """Yield the projects that must free the name of one, or be there to move out of it."""
    if change.action == "delete":
        for moved in plan.of_action("replace"):
            if change.live and moved.live and moved.live.parent == change.live.id:
                yield (plan.now[moved.address].parent or ("", ""))[1]
    else:
        name = plan.now[change.address].name.lower()
        freeing = [x for x in named if x is not change and x.live and x.live.name.lower() == name]
        yield from (x.address for x in freeing)


# What the server is known to refuse


def dialect_of(plan: Planned) -> str | None:
    """Return the version of the server, as far as a plan can know it."""
    is_known = plan.world.dialect == "2026" or any(item.parent for item in plan.live)
    return plan.world.dialect if is_known else None


def _exports(plan: Planned) -> Refusals:
    dialect = dialect_of(plan)
    for change in plan.of_action("update", "pause"):
        live = change.live  # A paused export keeps its schedule.
        has_ended = live and live.has_ended(timedelta(days=7)) and not live.value("paused")
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


def _projects(plan: Planned) -> Refusals:
    """Servers of 2026 compare the names of projects without case."""
    deleted = [change.live for change in plan.of_action("delete")]
    projects = [item for item in plan.live if item.kind == "project" and item not in deleted]
    changes = [c for c in plan.of_action("create", "update") if c.address.startswith("project.")]
    names = {item: item.name for item in projects}
    names |= {change.live: plan.now[change.address].name for change in changes if change.live}
    taken = [name.lower() for name in names.values()]
    freed = {change.live.name.lower() for change in changes if change.live}
    waits = {c.address: not c.live and plan.now[c.address].name.lower() in freed for c in changes}
    for change in sorted(changes, key=lambda change: (waits[change.address], change.address)):
        name, is_new = plan.now[change.address].name.lower(), change.live is None
        taken += [name] if is_new else []
        is_named = is_new or "name" in change.fields
        if is_named and taken.count(name) > 1 and dialect_of(plan) == "2026":
            yield "name-taken", change.address


# Creates that would double an object


def doubled(plan: Planned) -> Refusals:
    free, created = [*_unclaimed(plan)], plan.of_action("create", "replace")
    for change in created:
        key, resource, is_new = change.address, plan.now[change.address], change.live is None
        others = [item for item in free if not item.is_beside(resource)]
        here = [item for item in others if item.kind == resource.kind]
        here = [item for item in here if not resource.parent or item.parent == change.parent]
        names = set() if is_new else {item.name for item in here}
        recorded = plan.identity.replaced.get(key) if is_new else None
        own = [c.address for c in created if plan.now[c.address].parent == ("key", key)]
        for project in others:
            inside = [item for item in free if item.parent == project.id]
            named = [child for child in own if _has_twin(plan.now[child], inside)]
            if named:
                recorded = recorded if project != recorded else None
                yield "possible-duplicate", key, *named
        if _has_twin(resource, here) or resource.name in names or recorded in others:
            yield "possible-duplicate", key


def _unclaimed(plan: Planned) -> Iterator[Live]:
    """Yield what no resource claims and what the plan does not delete on purpose."""
    deleted = {change.live for change in plan.of_action("delete") if change.on_purpose}
    for item in plan.live:
        owner = plan.now.get(plan.identity.owner.get(item, ""))
        if (owner is None or owner.absent) and item not in deleted:
            yield item


def _has_twin(export: Resource, items: list[Live]) -> bool:
    """Return whether an export would do the work of a live one again."""
    own, selected = _place(export), f"{CONFIG}exclude_events"
    return own is not None and any(
        own == _place(item)
        and export.value(selected) == item.value(selected)
        and not item.has_ended()
        for item in items
    )


def _place(export: Resource | Live) -> tuple[object, ...] | None:
    """Return where an export of a type and a model writes, None for types without a place."""
    to = export.value(TYPE)
    parts = [export.value(CONFIG + name) for name in PLACES.get(to, ())]
    return (to, export.value("model"), *parts) if parts else None
