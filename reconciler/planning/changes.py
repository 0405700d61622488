"""One matched resource to its changes: create, update, replace, toggle, delete or nothing."""

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
    Seen,
)
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.rule import Situation
from reconciler.model.values import JSON, MISSING, Path, path_text
from reconciler.model.wording import printable
from reconciler.planning.bodies import create_bodies, sends_anything, update_body
from reconciler.planning.differ import Difference, difference, same_at_a_glance, toggled
from reconciler.planning.leaves import comparable, leaves, seen_fields, told
from reconciler.planning.matcher import Match
from reconciler.planning.secrets import secrets_of_create, secrets_of_update


@dataclass(slots=True)
class Around:
    """What every decision may look at besides its own resource."""

    kinds: Mapping[str, Kind]
    live: Live
    base: Desired | None
    now: datetime
    rotate: tuple[str, ...]
    _children: dict[tuple[str, str], list[LiveObject]] | None = field(default=None, repr=False)

    def children(self, parent: LiveObject) -> Sequence[LiveObject]:
        """The live objects below one, managed or not. Indexed once, when first asked."""
        if self._children is None:
            self._children = {}
            for objects in self.live.objects.values():
                for each in objects:
                    above = self.kinds[each.kind].parent
                    if above is not None and each.parent_id is not None:
                        self._children.setdefault((above, each.parent_id), []).append(each)
        found = self._children.get((parent.kind, parent.id), [])
        return sorted(found, key=lambda each: (each.name, each.id))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes of one resource, and what a reader must know about them."""

    changes: tuple[Change, ...]
    notes: tuple[Note, ...] = ()


def resource_changes(match: Match, around: Around) -> Outcome:
    """Everything that is to be done about one resource."""
    resource = match.resource
    if match.live is None:
        if resource.state is State.ABSENT:
            return Outcome((_unchanged(match),))
        return Outcome((_creation(match, around),))
    if resource.state is State.ABSENT:
        return Outcome((deletion_of(match, Reason.STATE_ABSENT, around),))
    return _changes_of_pair(match, match.live, around)


def _changes_of_pair(match: Match, live: LiveObject, around: Around) -> Outcome:
    resource = match.resource
    kind = around.kinds[resource.address.kind]
    base = around.base.resources.get(resource.address) if around.base is not None else None
    rotate = resource.address.matches(around.rotate)
    if base is None and not rotate and not match.moved and same_at_a_glance(kind, resource, live):
        return Outcome((_unchanged(match),))
    found = difference(kind, resource, live, base=base)
    notes = tuple(_unreset_notes(resource, found))
    fixed = _fixed(kind, found.changes, around)
    if match.moved or fixed:
        true_of_it = {Reason.MOVED: match.moved, Reason.FIXED_FIELD: fixed}
        reasons = tuple(reason for reason, holds in true_of_it.items() if holds)
        return Outcome((_replacement(match, live, found, reasons, around),), notes)
    changes = [
        *_update(match, live, found, base=base, rotate=rotate, around=around),
        *_toggles(match, live, base=base, around=around),
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


def _creation(match: Match, around: Around) -> Change:
    resource = match.resource
    kind = around.kinds[resource.address.kind]
    bodies = create_bodies(kind, resource, around.live.dialect)
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
        consequences=_consequences(Action.CREATE, kind, resource, None, fields, around),
    )


def _all_new(kind: Kind, resource: Resource) -> Iterator[FieldChange]:
    for leaf in leaves(kind.fields, resource.spec, live=False):
        if leaf.value is None:
            continue
        if leaf.field.secret:
            yield FieldChange(leaf.path, MISSING, MISSING, secret=True)
        else:
            yield FieldChange(leaf.path, MISSING, told(leaf.field, leaf.value))


def _update(
    match: Match,
    live: LiveObject,
    found: Difference,
    *,
    base: Resource | None,
    rotate: bool,
    around: Around,
) -> Iterator[Change]:
    resource = match.resource
    kind = around.kinds[resource.address.kind]
    secrets = secrets_of_update(kind, resource, found.changes, base=base, rotate=rotate)
    if not found.changes and not sends_anything(secrets):
        return
    fields = (*found.changes, *_secret_fields(secrets))
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
            changes=found.changes,
            secrets=secrets,
            dialect=around.live.dialect,
        ),
        secrets=secrets,
        reasons=_reasons(found.changes, secrets),
        consequences=_consequences(Action.UPDATE, kind, resource, live, fields, around),
        seen=_seen_of_update(kind, resource, live, found.changes),
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
    found = {Reason.REMOVED_KEY if each.reset else by_origin[each.origin] for each in changes}
    found |= {Reason.RENAMED for each in changes if each.path == ("name",)}
    uses = {note.use for note in secrets}
    if SecretUse.ROTATE in uses:
        found.add(Reason.SECRET_ROTATED)
    if uses & {SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED}:
        found.add(Reason.SECRET_CHANGED)
    return tuple(reason for reason in Reason if reason in found)


def _toggles(
    match: Match, live: LiveObject, *, base: Resource | None, around: Around
) -> Iterator[Change]:
    resource = match.resource
    kind = around.kinds[resource.address.kind]
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
            consequences=_consequences(action, kind, resource, live, fields, around),
            seen=_seen(kind, live, frozenset({(toggled_field.name,)})),
        )


def _fixed(kind: Kind, changes: Sequence[FieldChange], around: Around) -> bool:
    """Whether a field differs that this dialect's servers can't change in place."""
    known = [kind.field_at(change.path, {}) for change in changes]
    return any(field is not None and field.is_fixed(around.live.dialect) for field in known)


def _replacement(
    match: Match,
    live: LiveObject,
    found: Difference,
    reasons: tuple[Reason, ...],
    around: Around,
) -> Change:
    resource = match.resource
    kind = around.kinds[resource.address.kind]
    bodies = create_bodies(kind, resource, around.live.dialect)
    fields = (*_move(kind, match, live), *found.changes)
    return Change(
        resource.address,
        Action.REPLACE,
        resource.name,
        live_id=live.id,
        parent=resource.parent,
        parent_id=match.parent_id if match.moved else live.parent_id,
        old_parent_id=live.parent_id,
        fields=fields,
        body={**_carried(kind, resource, live, around), **bodies.create},
        after_create=bodies.after or None,
        secrets=secrets_of_create(resource),
        reasons=reasons,
        consequences=_consequences(Action.REPLACE, kind, resource, live, fields, around),
        seen=_seen(kind, live, None),
    )


def _move(kind: Kind, match: Match, live: LiveObject) -> Iterator[FieldChange]:
    """Where it comes from and where it goes, by the live ids, or the key of what is yet to be."""
    if match.moved and kind.parent_key is not None:
        target = match.parent_id or str(match.resource.parent)
        yield FieldChange((kind.parent_key,), live.parent_id, target)


def _carried(kind: Kind, resource: Resource, live: LiveObject, around: Around) -> dict[str, JSON]:
    """Settings that the files leave to the server go along.

    So a replacement changes no more than it says: a paused export does not come back running.
    """
    carried: dict[str, JSON] = {}
    for leaf in leaves(kind.fields, live.body, live=True):
        undeclared = len(leaf.path) == 1 and leaf.field.name not in resource.spec
        value = comparable(leaf.field, leaf.value) if undeclared else None
        if value is not None and value != comparable(leaf.field, None):
            for name in leaf.field.sent_as(around.live.dialect):
                carried[name] = told(leaf.field, leaf.value)
    return carried


def deletion_of(match: Match, reason: Reason, around: Around) -> Change:
    """The deletion of a live object, with everything that could be brought back by hand."""
    live = match.live
    if live is None:
        raise ValueError(f"{match.resource.address} is not live")
    kind = around.kinds[live.kind]
    fields = tuple(
        FieldChange(leaf.path, told(leaf.field, leaf.value), MISSING)
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
        consequences=_consequences(Action.DELETE, kind, None, live, fields, around),
        seen=_seen(kind, live, None),
    )


def _consequences(
    action: Action,
    kind: Kind,
    resource: Resource | None,
    live: LiveObject | None,
    fields: tuple[FieldChange, ...],
    around: Around,
) -> tuple[Consequence, ...]:
    """What follows, worst first."""
    address = resource.address if resource else Address.of_unmanaged(kind.name, _id_of(live))
    situation = Situation(
        action=action,
        address=address,
        desired=resource,
        live=live,
        fields=fields,
        now=around.now,
        dialect=around.live.dialect,
        children=around.children(live) if live is not None and action is Action.DELETE else (),
    )
    found = [consequence for rule in kind.rules if (consequence := rule(situation)) is not None]
    # Values of the live side stand in them.
    told = [replace(each, message=printable(each.message)) for each in found]
    return tuple(sorted(told, key=lambda each: (each.severity.rank, each.rule)))


def _id_of(live: LiveObject | None) -> str:
    return live.id if live is not None else ""


def _seen_of_update(
    kind: Kind, resource: Resource, live: LiveObject, changes: Sequence[FieldChange]
) -> Seen:
    """The managed fields, but not those with calls of their own: those changes see them."""
    declared = {
        leaf.path
        for leaf in leaves(kind.fields, resource.spec, live=False)
        if not leaf.field.secret and leaf.field.toggle is None
    }
    return _seen(kind, live, frozenset(declared | {change.path for change in changes}))


def _seen(kind: Kind, live: LiveObject, paths: frozenset[Path] | None) -> Seen:
    updated = live.body.get(kind.last_changed) if kind.last_changed else None
    return Seen(
        updated_at=str(updated) if updated is not None else None,
        fields=seen_fields(kind, live.body, paths),
    )


def _unreset_notes(resource: Resource, found: Difference) -> Iterator[Note]:
    for path in found.unreset:
        yield Note(
            "stays-as-it-is",
            f"{resource.address}: {printable(path_text(path))} was removed from the files, and the "
            "API can't reset it: it keeps its live value and is no longer managed",
        )
