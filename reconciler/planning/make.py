"""Make a plan: match, select, decide the changes, order them, judge them, and note the rest.

Pure: no I/O, no clock, no randomness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from operator import itemgetter

from msgspec.structs import replace

from reconciler.model.kind import Action
from reconciler.model.live import LiveObject
from reconciler.model.plan import Change, Note, Plan, PlanSource, Unmanaged
from reconciler.planning.changes import deletion_of, resource_changes
from reconciler.planning.draft import Draft
from reconciler.planning.duplicates import duplicates_of
from reconciler.planning.guards import refusals
from reconciler.planning.integrations import with_integrations, with_labels
from reconciler.planning.match import Matching
from reconciler.planning.notes import leaving, loosened, notes_of
from reconciler.planning.order import in_order
from reconciler.planning.places import Known
from reconciler.planning.select import Selected


def make_plan(selected: Selected) -> Plan:
    """Return every change that turns live state into what is declared.

    Pure: equal arguments give equal bytes. Changes are in the order in which they can be applied,
    and no-ops follow, by address.
    """
    resolved = with_integrations(selected.matching, selected.addresses)
    selected = replace(selected, matching=resolved)
    context, matching = selected.context, selected.matching
    draft = Draft(selected, Known(matching, context.now), selected.policy)
    changes, no_ops, notes = _decided(draft)
    ordered, name_cycles = in_order(changes, matching.kinds)
    duplicates = duplicates_of(matching, context.now, ordered)
    draft = replace(draft, changes=ordered, name_cycles=name_cycles, duplicates=duplicates)
    return Plan(
        _source(selected),
        (*ordered, *no_ops),
        len(no_ops),
        tuple(_described(draft.unmanaged, matching)),
        tuple(_described(matching.ignored, matching)),
        leaving=tuple(leaving(draft)),
        notes=(*selected.notes, *notes, *notes_of(draft), *loosened(draft)),
        refusals=refusals(draft),
        selection=context.options.selection,
        created_at=_iso(context.now),
    )


def _source(selected: Selected) -> PlanSource:
    desired, context, matching = selected.desired, selected.context, selected.matching
    record = matching.inventory.record
    return PlanSource(
        environment=desired.environment,
        organization=desired.organization,
        base_url=desired.base_url,
        tool_version=context.tool_version,
        dialect=matching.live.dialect,
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


def _decided(draft: Draft) -> tuple[list[Change], list[Change], list[Note]]:
    """Return the changes with the names of integrations, no-ops by address, and notes."""
    matching, addresses = draft.matching, draft.selected.addresses
    changes: list[Change] = []
    no_ops: list[Change] = []
    notes: list[Note] = []
    for address, pair in sorted(matching.matches.items(), key=itemgetter(0)):
        if address not in addresses:
            continue
        decided, resource_notes = resource_changes(pair, draft)
        for change in decided:
            (no_ops if change.action is Action.NO_OP else changes).append(change)
        notes += resource_notes
    # A removed resource has no place in the files.
    changes += (
        replace(deletion_of(item.match, item.live, item.reason, draft), at=None)
        for item in draft.selected.pruned
        if item.match.resource.address in addresses
    )
    kinds, live = matching.kinds, matching.live
    labelled = [with_labels(change, kinds[change.address.kind], live) for change in changes]
    return labelled, no_ops, notes


def _described(objects: Iterable[LiveObject], matching: Matching) -> Iterator[Unmanaged]:
    for item in objects:
        yield Unmanaged.of(item, matching.parent_name(item.kind, item.parent_id))
