"""Turn one matched resource into changes: create, update, replace, toggle, delete or no-op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.model.address import Address
from reconciler.model.change import (
    Action,
    Change,
    Consequence,
    FieldChange,
    Origin,
    Reason,
    SecretNote,
    SecretUse,
)
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.rule import Situation
from reconciler.model.values import JSON, MISSING, path_text
from reconciler.model.wording import printable
from reconciler.planning.bodies import create_bodies, sends_anything, update_body
from reconciler.planning.differ import Difference, difference, same_at_a_glance, toggled
from reconciler.planning.leaves import comparable, display_value, leaves
from reconciler.planning.matcher import Match
from reconciler.planning.secrets import secrets_of_create, secrets_of_update
from reconciler.planning.seen import seen_of_object, seen_of_update, seen_paths


@dataclass(slots=True)
class PlanContext:
    """The input of every decision besides the resource itself."""

    kinds: Mapping[str, Kind]
    live: Live
    base: Desired | None
    now: datetime
    rotate: tuple[str, ...]
    _children: dict[tuple[str, str], list[LiveObject]] | None = field(default=None, repr=False)

    def children(self, parent: LiveObject) -> Sequence[LiveObject]:
        """Return the live children of an object, managed or not. Indexed on first use."""
        if self._children is None:
            self._children = {}
            for objects in self.live.objects.values():
                for child in objects:
                    parent_kind = self.kinds[child.kind].parent
                    if parent_kind is not None and child.parent_id is not None:
                        self._children.setdefault((parent_kind, child.parent_id), []).append(child)
        children = self._children.get((parent.kind, parent.id), [])
        return sorted(children, key=lambda child: (child.name, child.id))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes of one resource, with notes for the reader of the plan."""

    changes: tuple[Change, ...]
    notes: tuple[Note, ...] = ()


def resource_changes(match: Match, context: PlanContext) -> Outcome:
    """Return every change of one resource."""
    resource = match.resource
    if match.live is None:
        if resource.state is State.ABSENT:
            return Outcome((_unchanged(match),))
        return Outcome((_creation(match, context),))
    if resource.state is State.ABSENT:
        return Outcome((deletion_of(match, Reason.STATE_ABSENT, context),))
    return _changes_of_pair(match, match.live, context)


def _changes_of_pair(match: Match, live: LiveObject, context: PlanContext) -> Outcome:
    resource = match.resource
    kind = context.kinds[resource.address.kind]
    base = context.base.resources.get(resource.address) if context.base is not None else None
    rotate = resource.address.matches(context.rotate)
    if base is None and not rotate and not match.moved and same_at_a_glance(kind, resource, live):
        return Outcome((_unchanged(match),))
    differs = difference(kind, resource, live, base=base)
    notes = tuple(_unreset_notes(resource, differs))
    fixed = _fixed(kind, differs.changes, context)
    if match.moved or fixed:
        causes = {Reason.MOVED: match.moved, Reason.FIXED_FIELD: fixed}
        reasons = tuple(reason for reason, holds in causes.items() if holds)
        return Outcome((_replacement(match, live, differs, reasons, context),), notes)
    changes = [
        *_update(match, live, differs, base=base, rotate=rotate, context=context),
        *_toggles(match, live, base=base, context=context),
    ]
    return Outcome(tuple(changes) or (_unchanged(match),), notes)


def _unchanged(match: Match) -> Change:
    return Change(
        match.resource.address,
        Action.NO_OP,
        match.resource.name,
        live_id=match.live.id if match.live is not None else None,
        parent=match.resource.parent,
        parent_id=match.parent_id,
    )


def _creation(match: Match, context: PlanContext) -> Change:
    resource = match.resource
    kind = context.kinds[resource.address.kind]
    bodies = create_bodies(kind, resource, context.live.dialect)
    fields = tuple(_all_new(kind, resource))
    return Change(
        resource.address,
        Action.CREATE,
        resource.name,
        parent=resource.parent,
        parent_id=match.parent_id,
        fields=fields,
        body=bodies.create,
        after_create=bodies.after or None,
        secrets=secrets_of_create(resource),
        reasons=(Reason.NOT_LIVE,),
        consequences=_consequences(Action.CREATE, kind, resource, None, fields, context),
    )


def _all_new(kind: Kind, resource: Resource) -> Iterator[FieldChange]:
    for leaf in leaves(kind.fields, resource.spec, live=False):
        if leaf.value is None:
            continue
        if leaf.field.secret:
            yield FieldChange(leaf.path, MISSING, MISSING, secret=True)
        else:
            yield FieldChange(leaf.path, MISSING, display_value(leaf.field, leaf.value))


def _update(
    match: Match,
    live: LiveObject,
    differs: Difference,
    *,
    base: Resource | None,
    rotate: bool,
    context: PlanContext,
) -> Iterator[Change]:
    resource = match.resource
    kind = context.kinds[resource.address.kind]
    secrets = secrets_of_update(kind, resource, differs.changes, base=base, rotate=rotate)
    if not differs.changes and not sends_anything(secrets):
        return
    fields = (*differs.changes, *_secret_fields(secrets))
    yield Change(
        resource.address,
        Action.UPDATE,
        resource.name,
        live_id=live.id,
        parent=resource.parent,
        parent_id=live.parent_id,
        fields=fields,
        body=update_body(
            kind,
            resource,
            live,
            changes=differs.changes,
            secrets=secrets,
            dialect=context.live.dialect,
        ),
        secrets=secrets,
        reasons=_reasons(differs.changes, secrets),
        consequences=_consequences(Action.UPDATE, kind, resource, live, fields, context),
        seen=seen_of_update(kind, resource, live, differs.changes),
    )


def _secret_fields(secrets: Sequence[SecretNote]) -> Iterator[FieldChange]:
    for note in secrets:
        if note.use.sent:
            yield FieldChange(note.path, MISSING, MISSING, secret=True)


def _reasons(changes: Sequence[FieldChange], secrets: Sequence[SecretNote]) -> tuple[Reason, ...]:
    by_origin = {
        Origin.UNKNOWN: Reason.FIELDS_DIFFER,
        Origin.FILES: Reason.CHANGED_IN_FILES,
        Origin.LIVE: Reason.DRIFTED,
        Origin.BOTH: Reason.CONFLICT,
    }
    reasons = {
        Reason.REMOVED_KEY if change.reset else by_origin[change.origin] for change in changes
    }
    reasons |= {Reason.RENAMED for change in changes if change.path == ("name",)}
    uses = {note.use for note in secrets}
    if SecretUse.ROTATE in uses:
        reasons.add(Reason.SECRET_ROTATED)
    if uses & {SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED}:
        reasons.add(Reason.SECRET_CHANGED)
    return tuple(reason for reason in Reason if reason in reasons)


def _toggles(
    match: Match, live: LiveObject, *, base: Resource | None, context: PlanContext
) -> Iterator[Change]:
    resource = match.resource
    kind = context.kinds[resource.address.kind]
    for toggled_field, wanted in toggled(kind, resource, live):
        if toggled_field.toggle is None:
            continue
        action = toggled_field.toggle.on if wanted else toggled_field.toggle.off
        origin = Origin.UNKNOWN
        if base is not None:
            was = base.spec.get(toggled_field.name)
            stayed = was is not None and comparable(toggled_field, was) == wanted
            origin = Origin.LIVE if stayed else Origin.FILES
        fields = (FieldChange((toggled_field.name,), not wanted, wanted, origin=origin),)
        yield Change(
            resource.address,
            action,
            resource.name,
            live_id=live.id,
            parent=resource.parent,
            parent_id=live.parent_id,
            fields=fields,
            reasons=_reasons(fields, ()),
            consequences=_consequences(action, kind, resource, live, fields, context),
            seen=seen_paths(kind, live, [(toggled_field.name,)]),
        )


def _fixed(kind: Kind, changes: Sequence[FieldChange], context: PlanContext) -> bool:
    """Return whether a field differs that servers of this dialect can't change in place."""
    known = [kind.field_at(change.path, {}) for change in changes]
    return any(field is not None and field.is_fixed(context.live.dialect) for field in known)


def _replacement(
    match: Match,
    live: LiveObject,
    differs: Difference,
    reasons: tuple[Reason, ...],
    context: PlanContext,
) -> Change:
    resource = match.resource
    kind = context.kinds[resource.address.kind]
    bodies = create_bodies(kind, resource, context.live.dialect)
    fields = (*_move(kind, match, live), *differs.changes)
    carried = _carried(kind, resource, live, context)
    return Change(
        resource.address,
        Action.REPLACE,
        resource.name,
        live_id=live.id,
        parent=resource.parent,
        parent_id=match.parent_id if match.moved else live.parent_id,
        old_parent_id=live.parent_id,
        fields=fields,
        body={**carried, **bodies.create},
        after_create=bodies.after or None,
        secrets=secrets_of_create(resource),
        reasons=reasons,
        consequences=_consequences(Action.REPLACE, kind, resource, live, fields, context),
        seen=seen_of_object(kind, live, resource.lifecycle, used=carried),
    )


def _move(kind: Kind, match: Match, live: LiveObject) -> Iterator[FieldChange]:
    """Yield the change of parent, by live ids, or the key of a parent that does not exist yet."""
    if match.moved and kind.parent_key is not None:
        target = match.parent_id or str(match.resource.parent)
        yield FieldChange((kind.parent_key,), live.parent_id, target)


def _carried(
    kind: Kind, resource: Resource, live: LiveObject, context: PlanContext
) -> dict[str, JSON]:
    """Return the live settings that the configuration does not manage, for the new object.

    Without them a replacement would change more than it shows: a paused export would run again.
    """
    carried: dict[str, JSON] = {}
    for leaf in leaves(kind.fields, live.body, live=True):
        undeclared = len(leaf.path) == 1 and leaf.field.name not in resource.spec
        value = comparable(leaf.field, leaf.value) if undeclared else None
        if value is not None and value != comparable(leaf.field, None):
            for name in leaf.field.sent_as(context.live.dialect):
                carried[name] = display_value(leaf.field, leaf.value)
    return carried


def deletion_of(match: Match, reason: Reason, context: PlanContext) -> Change:
    """Return the deletion of a live object, with every field that an undo can restore."""
    live = match.live
    if live is None:
        raise ValueError(f"{match.resource.address} is not live")
    kind = context.kinds[live.kind]
    fields = tuple(
        FieldChange(leaf.path, display_value(leaf.field, leaf.value), MISSING)
        for leaf in leaves(kind.fields, live.body, live=True)
        if leaf.value is not None
    )
    return Change(
        match.resource.address,
        Action.DELETE,
        live.name,
        live_id=live.id,
        parent=match.resource.parent,
        parent_id=live.parent_id,
        fields=fields,
        reasons=(reason,),
        consequences=_consequences(Action.DELETE, kind, None, live, fields, context),
        seen=seen_of_object(kind, live, match.resource.lifecycle),
    )


def _consequences(
    action: Action,
    kind: Kind,
    resource: Resource | None,
    live: LiveObject | None,
    fields: tuple[FieldChange, ...],
    context: PlanContext,
) -> tuple[Consequence, ...]:
    """Return the consequences of a change, worst first."""
    address = resource.address if resource else Address.of_unmanaged(kind.name, _id_of(live))
    situation = Situation(
        action=action,
        address=address,
        desired=resource,
        live=live,
        fields=fields,
        now=context.now,
        dialect=context.live.dialect,
        children=context.children(live) if live is not None and action is Action.DELETE else (),
    )
    consequences = [
        # Messages contain live values.
        replace(consequence, message=printable(consequence.message))
        for rule in kind.rules
        if (consequence := rule(situation)) is not None
    ]
    return tuple(sorted(consequences, key=lambda item: (item.severity.rank, item.rule)))


def _id_of(live: LiveObject | None) -> str:
    return live.id if live is not None else ""


def _unreset_notes(resource: Resource, differs: Difference) -> Iterator[Note]:
    for path in differs.unreset:
        yield Note(
            "stays-as-it-is",
            f"{resource.address}: {printable(path_text(path))} was removed from the files, and the "
            "API can't reset it: it keeps its live value and is no longer managed",
        )
