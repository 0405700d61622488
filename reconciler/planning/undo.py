"""The way back: what a plan did, taken back as far as that is possible.

Built from the plan that was carried out and from what is live now. A field goes back only where
it still has the value that the plan gave it; what moved since, or can't be brought back, is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Reason
from reconciler.model.kind import Field, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note, Plan
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.values import JSON, MISSING, Path, path_text
from reconciler.model.wording import printable
from reconciler.planning.changes import Around, deletion_of, resource_changes
from reconciler.planning.guards import Proposal, refusals
from reconciler.planning.leaves import comparable, leaves, live_fields
from reconciler.planning.masking import holds_mask
from reconciler.planning.matcher import Match
from reconciler.planning.ordering import in_order
from reconciler.planning.planfile import digest
from reconciler.planning.planner import Circumstances, source_of


@dataclass(frozen=True, slots=True)
class Undone:
    """What is to be taken back: a plan, and which of its changes were made.

    `done` is None where the file does not tell (a saved plan): then all were. `created` are the
    ids of what was created, by address, as far as they are known.
    """

    plan: Plan
    done: frozenset[str] | None = None
    created: Mapping[Address, str] = field(default_factory=dict)

    def changes(self) -> Iterator[Change]:
        """The changes that were made, in order."""
        for change in self.plan.effective:
            if self.done is None or change.id in self.done:
                yield change


@dataclass(slots=True)
class _Back:
    """The way back while it is being found."""

    live: Live
    around: Around
    undone: Undone
    changes: list[Change] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def tell(self, change: Change, what: str) -> None:
        self.notes.append(Note("not-undone", printable(f"{change.address}: {what}")))

    def kind(self, change: Change) -> Kind:
        return self.around.kinds[change.address.kind]

    def found(self, change: Change, live_id: str | None) -> LiveObject | None:
        return next(
            (each for each in self.live.of(change.address.kind) if each.id == live_id), None
        )


def undo_plan(
    undone: Undone,
    desired: Desired,
    live: Live,
    policy: Policy,
    kinds: Sequence[Kind],
    *,
    given: Circumstances,
) -> Plan:
    """The plan that takes another one back. Pure, and under the same guards as any plan."""
    by_name = {kind.name: kind for kind in kinds}
    around = Around(kinds=by_name, live=live, base=None, now=given.now, rotate=())
    back = _Back(live, around, undone)
    updates: dict[Address, list[Change]] = {}
    for change in undone.changes():
        match change.action:
            case Action.CREATE:
                _uncreate(change, back)
            case Action.DELETE:
                _recreate(change, back)
            case Action.REPLACE:
                back.tell(
                    change, "a replacement can't be taken back: the old id and history are gone"
                )
            case Action.UPDATE | Action.PAUSE | Action.UNPAUSE:
                updates.setdefault(change.address, []).append(change)
            case Action.NO_OP:
                continue
    for changes in updates.values():
        _unchange(changes, back)
    ordered = in_order(back.changes, kinds)
    proposal = Proposal(
        changes=ordered.changes,
        policy=policy,
        kinds=kinds,
        resources=desired.resources,
        managed=len(desired.resources),
        allow_replace=False,
        untouchable=(),
        circles=ordered.circles,
    )
    return Plan(
        source=source_of(desired, live, kinds, given, undoes=digest(undone.plan)),
        changes=tuple(
            replace(each, reasons=(Reason.UNDO, *each.reasons)) for each in ordered.changes
        ),
        notes=tuple(back.notes),
        refusals=refusals(proposal),
        created_at=given.told_now,
    )


def _uncreate(change: Change, back: _Back) -> None:
    """What was created is deleted, if it can be told which object that is."""
    known = back.undone.created.get(change.address)
    name = change.name.strip()
    found = [
        each
        for each in back.live.of(change.address.kind)
        if (each.id == known if known is not None else each.name.strip() == name)
        and (change.parent_id is None or each.parent_id == change.parent_id)
    ]
    if len(found) != 1:
        how = "it is gone already" if not found else "several live objects have its name"
        back.tell(change, f"{how}: nothing is deleted")
        return
    resource = Resource(change.address, {"name": change.name}, state=State.ABSENT)
    match = Match(resource, found[0], parent_id=found[0].parent_id)
    back.changes.append(deletion_of(match, Reason.UNDO, back.around))


def _recreate(change: Change, back: _Back) -> None:
    """What was deleted is created again, with a new id, without history and without secrets."""
    kind = back.kind(change)
    twin = any(
        each.name.strip() == change.name.strip() and each.parent_id == change.parent_id
        for each in back.live.of(kind.name)
    )
    if twin:
        back.tell(change, "an object of its name is there again: nothing is created")
        return
    hidden = [path_text(each.path) for each in change.fields if holds_mask(each.before)]
    if hidden:
        back.tell(change, f"{', '.join(hidden)} held a secret, which is needed again")
    spec = _spec(
        kind, {each.path: each.before for each in change.fields if not holds_mask(each.before)}
    )
    parent = ParentRef(id=change.parent_id) if change.parent_id is not None else None
    resource = Resource(change.address, spec, parent=parent)
    outcome = resource_changes(Match(resource, None, parent_id=change.parent_id), back.around)
    back.changes.extend(outcome.changes)
    lost = "it comes back with a new id and without history"
    if _has_secrets(kind, spec):
        lost += "; its secrets are needed again, and are not in this plan"
    back.tell(change, lost)


def _unchange(changes: Sequence[Change], back: _Back) -> None:
    """Fields and toggles of one object go back where they still are as the plan left them."""
    first = changes[0]
    live = back.found(first, first.live_id)
    if live is None:
        back.tell(first, "it is gone, so nothing of it is taken back")
        return
    kind = back.kind(first)
    now = live_fields(kind, live.body)
    wanted: dict[Path, JSON] = {}
    for change in changes:
        for each in change.fields:
            if each.secret:
                back.tell(change, f"{path_text(each.path)}: a secret that was sent stays")
            elif holds_mask(each.before) or holds_mask(each.after):
                back.tell(change, f"{path_text(each.path)} held a secret: it stays as it is now")
            elif _still(kind, each, now):
                wanted[each.path] = each.before
            else:
                back.tell(change, f"{path_text(each.path)} moved since: it stays as it is now")
    if not wanted:
        return
    spec = {"name": live.name, **_spec(kind, wanted, live)}
    resource = Resource(
        first.address, spec, parent=ParentRef(id=live.parent_id) if live.parent_id else None
    )
    outcome = resource_changes(Match(resource, live, parent_id=live.parent_id), back.around)
    back.changes.extend(each for each in outcome.changes if each.action is not Action.NO_OP)


def _still(kind: Kind, each: FieldChange, now: Mapping[str, JSON]) -> bool:
    """Whether a field has the value that the plan gave it."""
    have = now.get(path_text(each.path))
    known = _field_at(kind, each.path)
    after = None if each.after is MISSING else each.after
    if known is None:
        return bool(have == after)
    return bool(comparable(known, have) == comparable(known, after))


def _field_at(kind: Kind, path: Path) -> Field | None:
    top = kind.field_named(str(path[0]))
    if top is None or len(path) == 1 or top.variant is None:
        return top
    inner = (each for variant in top.variant.variants.values() for each in variant)
    return next((each for each in inner if each.name == path[-1]), None)


def _spec(
    kind: Kind, values: Mapping[Path, JSON], live: LiveObject | None = None
) -> dict[str, JSON]:
    """Values by path as the fields of a resource, tags included."""
    spec: dict[str, JSON] = {}
    for path, value in values.items():
        known = _field_at(kind, path)
        absent = value is MISSING or value is None
        if absent and known is not None and not known.clearable and known.default is not MISSING:
            value = known.default  # noqa: PLW2901 - what "not set" means for this field
        holder = spec
        for part in path[:-1]:
            holder = holder.setdefault(str(part), {})
        holder[str(path[-1])] = None if value is MISSING else value
    if live is not None:
        _with_tags(kind, spec, live)
    return spec


def _with_tags(kind: Kind, spec: dict[str, JSON], live: LiveObject) -> None:
    """The tag of a tagged object stands beside whatever of its body goes back."""
    tags = {
        leaf.path: leaf.value
        for leaf in leaves(kind.fields, live.body, live=True)
        if len(leaf.path) == 2
    }
    for each in kind.fields:
        if each.variant is not None and each.name in spec:
            tag = tags.get((each.name, each.variant.tag))
            spec[each.name].setdefault(each.variant.tag, tag)


def _has_secrets(kind: Kind, spec: Mapping[str, JSON]) -> bool:
    for each in kind.fields:
        if each.variant is not None and isinstance(spec.get(each.name), dict):
            variant = each.variant.variants.get(str(spec[each.name].get(each.variant.tag)), ())
            if any(inner.secret for inner in variant):
                return True
    return False
