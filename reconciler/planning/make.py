"""Make a plan: match, select, decide the changes, order them, judge them, and note the rest.

Pure: no I/O, no clock, no randomness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter

from msgspec.structs import replace

from reconciler.model.kind import Action, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, Note, Plan, PlanSource, Unmanaged
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired
from reconciler.planning.changes import ChangeContext, deletion_of, resource_changes
from reconciler.planning.draft import Draft, PlanContext
from reconciler.planning.duplicates import duplicates_of
from reconciler.planning.guards import refusals
from reconciler.planning.integrations import with_integrations, with_labels
from reconciler.planning.match import Matching, match
from reconciler.planning.notes import leaving, loosened, notes_of
from reconciler.planning.order import in_order
from reconciler.planning.places import Known
from reconciler.planning.select import Selected, select


def make_plan(
    desired: Desired,
    live: Live,
    policy: Policy,
    kinds: Sequence[Kind],
    *,
    context: PlanContext,
) -> Plan:
    """Return every change that turns `live` into `desired`. Pure: equal arguments give equal bytes.

    Changes are in the order in which they can be applied, and no-ops follow, by address.

    Raises BadUsage for an option that selects nothing.
    """
    selected = chosen(desired, live, policy, kinds, context=context)
    matching = with_integrations(selected.matching, selected.addresses)
    known = Known(matching, context.now)
    deciding = ChangeContext(matching, known, selected.rotated, desired.environment)
    changes, no_ops, notes = _decided(selected, deciding)
    ordered, name_cycles = in_order(changes, matching.kinds)
    draft = Draft(
        policy,
        context,
        desired.environment if context.has_environments else "",
        *(matching, known, selected.addresses, selected.pruned),
        *(ordered, name_cycles),
        duplicates_of(matching, context.now, ordered),
    )
    return Plan(
        _source(desired, live, context, matching),
        (*ordered, *no_ops),
        len(no_ops),
        tuple(_described(draft.unmanaged, matching)),
        tuple(_described(matching.ignored, matching)),
        leaving=tuple(leaving(draft)),
        notes=(*selected.notes, *notes, *notes_of(draft), *loosened(draft, desired)),
        refusals=refusals(draft),
        selection=context.options.selection,
        created_at=_iso(context.now),
    )


def chosen(
    desired: Desired,
    live: Live,
    policy: Policy,
    kinds: Sequence[Kind],
    *,
    context: PlanContext,
) -> Selected:
    """Match every resource with its object, and select those that a plan is about.

    Raises BadUsage for an option that selects nothing.
    """
    matching = match(desired, live, policy=policy, kinds=kinds, inventory=context.inventory)
    return select(matching, policy, context.options, desired.environment, context.declared)


def _source(desired: Desired, live: Live, context: PlanContext, matching: Matching) -> PlanSource:
    record = matching.inventory.record
    return PlanSource(
        environment=desired.environment,
        organization=desired.organization,
        base_url=desired.base_url,
        tool_version=context.tool_version,
        dialect=live.dialect,
        inventory=record.ref if record is not None else None,
        applied=record.applied if record is not None else None,
        applied_commits=record.commits if record is not None else 0,
        applied_time=_iso(record.time) if record is not None else None,
        recorded=len(matching.inventory.entries.keys() & matching.matches.keys()),
        declared=len(matching.matches),
        head=context.head,
        head_ref=context.head_ref,
        uncommitted=context.uncommitted,
    )


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _decided(
    selected: Selected, context: ChangeContext
) -> tuple[list[Change], list[Change], list[Note]]:
    """Return the changes with the names of integrations, no-ops by address, and notes."""
    changes: list[Change] = []
    no_ops: list[Change] = []
    notes: list[Note] = []
    for address, pair in sorted(context.matching.matches.items(), key=itemgetter(0)):
        if address not in selected.addresses:
            continue
        decided, resource_notes = resource_changes(pair, context)
        for change in decided:
            (no_ops if change.action is Action.NO_OP else changes).append(change)
        notes += resource_notes
    # A removed resource has no place in the files.
    changes += (
        replace(deletion_of(item.match, item.live, item.reason, context), at=None)
        for item in selected.pruned
        if item.match.resource.address in selected.addresses
    )
    kinds = context.matching.kinds
    labelled = [with_labels(change, kinds[change.address.kind], context.live) for change in changes]
    return labelled, no_ops, notes


def _described(objects: Iterable[LiveObject], matching: Matching) -> Iterator[Unmanaged]:
    for item in objects:
        yield Unmanaged.of(item, matching.parent_name(item.kind, item.parent_id))
