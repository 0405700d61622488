"""Undo: the state before an applied plan as `Desired`, from which the planner makes a plan.

An object is recognized only by its id, the name that the plan left and its stamp together. A field
is restored only while it has the value that the plan gave it. What was modified since, or can't be
restored, becomes a note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.comparison import (
    comparable,
    field_leaves,
    is_default,
    is_equal,
    live_values,
    unknown_field,
)
from reconciler.model.field_types import MergedObject
from reconciler.model.kind import Action, Dialect, Field, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, FieldChange, Note, Plan, Reason
from reconciler.model.policy import Policy
from reconciler.model.redaction import is_redacted
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.text import listed, printable, quoted
from reconciler.model.values import JSON, MISSING, JSONObject, Path, path_text, put_at, value_at
from reconciler.planning.differ import is_ignored
from reconciler.planning.draft import PlanContext
from reconciler.planning.places import Places
from reconciler.planning.planner import make_plan


# Without slots, since cached properties need a dict.
class DeclaredObjects(Struct, frozen=True, dict=True):
    """The declared resources and the live objects, by what connects them."""

    desired: Desired
    live: Live
    kinds: Mapping[str, Kind]

    @cached_property
    def _pinned(self) -> Mapping[tuple[str, str], Resource]:
        resources = self.desired.resources.values()
        return {(item.address.kind, item.pinned_id): item for item in resources if item.pinned_id}

    @cached_property
    def _named(self) -> Mapping[tuple[str, str], list[Resource]]:
        named: dict[tuple[str, str], list[Resource]] = {}
        for resource in self.desired.resources.values():
            if resource.pinned_id is None:
                place = (resource.address.kind, resource.name.strip())
                named.setdefault(place, []).append(resource)
        return named

    def declaring(self, address: Address, live_id: str | None) -> Resource | None:
        """Return the resource of an object, or that of an address if no other has the object."""
        live = self.live.by_identity.get((address.kind, live_id or ""))
        own = self.desired.resources.get(address)
        if live is None:
            return own
        candidates = self._of(live)
        return own if own in candidates or not candidates else candidates[0]

    def _of(self, live: LiveObject) -> list[Resource]:
        """Return the resources with the id, or the name and place, of an object."""
        if (pinned := self._pinned.get(live.identity)) is not None:
            return [pinned]
        named = self._named.get((live.kind, live.name.strip()), ())
        return [resource for resource in named if self._is_in_place(resource, live)]

    def _is_in_place(self, resource: Resource, live: LiveObject) -> bool:
        ref, kind = resource.parent, self.kinds[live.kind].parent
        if ref is None or kind is None:
            return True
        if ref.id is not None:
            return ref.id == live.parent_id
        parent = self.live.by_identity.get((kind, live.parent_id or ""))
        if parent is None:
            return False
        if ref.name is not None:
            return ref.name.strip() == parent.name.strip()
        declared = self.desired.resources.get(Address(kind, ref.key or ""))
        return declared is not None and declared in self._of(parent)


class AppliedPlan(Struct, frozen=True):
    """A plan and how much of it was applied.

    done
        Ids of the changes that were made, None if not recorded: then all of them.
    uncertain
        Ids of the changes that may have been made, such as those of a run that was killed.
    adopted
        Ids of the creates whose object another client may have created.
    created, stamps
        Ids and stamps of created objects by address, as far as recorded.
    """

    plan: Plan
    done: frozenset[str] | None = None
    uncertain: frozenset[str] = frozenset()
    adopted: frozenset[str] = frozenset()
    created: Mapping[Address, str] = field(default_factory=dict)
    stamps: Mapping[Address, str] = field(default_factory=dict)

    def changes(self, *actions: Action) -> Iterator[Change]:
        """Yield the changes that were or may have been made with one of the actions, in order."""
        for change in self.plan.effective:
            made = self.done is None or change.id in self.done or change.id in self.uncertain
            if change.action in actions and made:
                yield change


def undo_plan(
    applied: AppliedPlan,
    desired: Desired,
    live: Live,
    policy: Policy,
    kinds: Sequence[Kind],
    *,
    context: PlanContext,
) -> Plan:
    """Return the plan that undoes an applied one: `make_plan` of the former state. Pure.

    The rest of the workspace takes part in matching and in the limits of the policy, not in the
    plan. Raises AmbiguousIdentity like `make_plan`.
    """
    by_name = {kind.name: kind for kind in kinds}
    # It shows in objects, which may all be deleted.
    live = replace(live, dialect=live.dialect or applied.plan.source.dialect)
    declared = DeclaredObjects(desired, live, by_name)
    former = _FormerState(applied, declared, by_name, _left_by(applied, by_name))
    former.collect()
    options = replace(context.options, only=frozenset(former.resources), is_undo=True)
    plan = make_plan(
        former.as_desired(),
        live,
        policy.without_pruning(),
        kinds,
        context=replace(context, base=None, options=options),
    )
    return replace(
        plan,
        source=replace(plan.source, undoes=applied.plan.plan_id),
        changes=tuple(replace(change, reasons=_reasons(change)) for change in plan.effective),
        unmanaged=(),
        ignored=(),
        notes=(*former.notes, *_revert_note(applied, plan)),
    )


def _revert_note(applied: AppliedPlan, plan: Plan) -> Iterator[Note]:
    """Yield the note that the files have to be reverted, too, if they caused what is undone."""
    undone = {change.address for change in plan.effective}
    files = {
        change.at.file
        for change in applied.plan.effective
        if change.address in undone and change.at is not None
    }
    if not files:
        return
    base, head = applied.plan.source.base, applied.plan.source.head
    command = ""
    if base is not None and head is not None and base != head:
        command = f", for example with `git revert {base[:12]}..{head[:12]}`"
    yield Note(
        "revert-files",
        "the configuration still contains what is undone, and the next plan makes it again: "
        f"revert {listed(sorted(files), 5)}{command}",
    )


def _reasons(change: Change) -> tuple[Reason, ...]:
    """Return UNDO and the reasons. `state: absent` is not in the configuration, so it is none."""
    rest = (reason for reason in change.reasons if reason is not Reason.STATE_ABSENT)
    return (Reason.UNDO, *rest)


class _Left(Struct):
    """How a plan left an object: its possible names, and its stamp, None if unknown."""

    names: set[str] = field(default_factory=set)
    stamp: JSON = None

    def fits(self, kind: Kind, live: LiveObject) -> bool:
        """Return whether an object with the id is that of the plan."""
        stamp = live.body.get(kind.stamp)
        return live.name.strip() in self.names and (
            None in (stamp, self.stamp) or stamp == self.stamp
        )


def _left_by(applied: AppliedPlan, kinds: Mapping[str, Kind]) -> Mapping[tuple[str, str], _Left]:
    """Return how a plan left the objects that it names, by kind and id.

    An object may have its former name: its change was not made, or is undone already.
    """
    objects: defaultdict[tuple[str, str], _Left] = defaultdict(_Left)
    for change in applied.plan.effective:
        kind = kinds[change.address.kind]
        live_id = change.live_id or applied.created.get(change.address)
        if live_id is not None:
            left = objects[kind.name, live_id]
            renamed = (entry.before for entry in change.fields if entry.path == ("name",))
            left.names |= {change.name.strip(), *(str(name).strip() for name in renamed)}
            left.stamp = (change.seen or {}).get(kind.stamp, applied.stamps.get(change.address))
        if kind.parent is not None and change.parent_id is not None:
            objects[kind.parent, change.parent_id].names.add((change.parent_name or "").strip())
    return objects


class _FormerState(Struct):
    """The resources that restore the state before a plan, and notes on what they can't."""

    applied: AppliedPlan
    declared: DeclaredObjects
    kinds: Mapping[str, Kind]
    left: Mapping[tuple[str, str], _Left]
    resources: dict[Address, Resource] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def collect(self) -> None:
        """Fill `resources` and `notes` from every change that was made."""
        for change in self.applied.changes(Action.CREATE):
            self._remove_created(change)
        levels = list(self.kinds)  # Parents first: their children refer to them.
        deleted = self.applied.changes(Action.DELETE)
        for change in sorted(deleted, key=lambda change: levels.index(change.address.kind)):
            self._restore_deleted(change)
        for change in self.applied.changes(Action.REPLACE):
            self._note(
                change,
                "its replacement may have been cut short: the next plan does the rest"
                if change.id in self.applied.uncertain
                else "a replacement can't be undone: the old id and history are lost",
            )
        for change in self.applied.plan.effective:
            if change.id in self.applied.adopted:
                self._note(change, "another client may have created it: nothing is deleted")
        in_place: dict[Address, list[Change]] = {}
        for change in self.applied.changes(Action.UPDATE, Action.PAUSE, Action.UNPAUSE):
            in_place.setdefault(change.address, []).append(change)
        for changes in in_place.values():
            self._restore_fields(changes)

    def as_desired(self) -> Desired:
        """Return the workspace with these resources in place of those for the same objects."""
        pinned = {(address.kind, item.pinned_id) for address, item in self.resources.items()}
        others = {
            address: resource
            for address, resource in self.declared.desired.resources.items()
            if resource.pinned_id is None or (address.kind, resource.pinned_id) not in pinned
        }
        return replace(self.declared.desired, resources={**others, **self.resources})

    def _remove_created(self, change: Change) -> None:
        kind, created_id = change.address.kind, self.applied.created.get(change.address)
        candidates = [
            live
            for live in self.declared.live.of(kind)
            if live is self._recognized(kind, created_id)
            or (created_id is None and self._is_named_in_parent(live, change))
        ]
        if len(candidates) != 1:
            absence = self._absence(kind, created_id)
            cause = "several live objects have its name" if candidates else absence
            if change.id in self.applied.uncertain and not candidates:
                cause = "it was not created"
            self._note(change, f"{cause}: nothing is deleted")
            return
        (live,) = candidates
        if created_id is None and change.id in self.applied.uncertain:
            if not self._is_as_sent(change, live):
                self._note(change, f"id {live.id} differs from what was sent: nothing is deleted")
                return
            self._note(change, f"its create has no recorded end; id {live.id} is what was sent")
        self._add(change, {"name": live.name}, pinned_id=live.id, state=State.ABSENT)

    def _is_named_in_parent(self, live: LiveObject, change: Change) -> bool:
        """Return whether an object has the name and the parent of a created one.

        The same run may have created the parent, too.
        """
        if live.name.strip() != change.name.strip():
            return False
        kind, parent_id = self.kinds[change.address.kind].parent, change.parent_id
        if kind is None or change.parent is None:
            return True
        if parent_id is None:
            address = Address(kind, change.parent.key or "")
            if (made := self.resources.get(address)) is not None:
                return live.parent_id == made.pinned_id
            parent_id = self.applied.created.get(address)
        is_inside = live.parent_id == parent_id
        return is_inside and self._recognized(kind, parent_id) is not None

    def _is_as_sent(self, change: Change, live: LiveObject) -> bool:
        """Return whether a live object has every comparable value that a create sent."""
        kind = self.kinds[change.address.kind]
        return all(
            _has(kind, live, entry.path, entry.after)
            for entry in change.fields
            if not entry.secret and not is_redacted(entry.after)
        )

    def _restore_deleted(self, change: Change) -> None:
        """Create the object again: with a new id and without history."""
        kind = self.kinds[change.address.kind]
        if change.id in self.applied.uncertain and self._recognized(kind.name, change.live_id):
            return
        if any(
            live.name.strip() == change.name.strip() and live.parent_id == change.parent_id
            for live in self.declared.live.of(kind.name)
        ):
            self._note(change, "an object with this name exists: nothing is created")
            return
        parent = self._parent(kind, change)
        if parent is None and change.parent_id is not None:
            self._note(change, f"its {kind.parent} no longer exists: nothing is created")
            return
        former: dict[str, JSON] = {}
        for entry in change.fields:
            put_at(former, entry.path, entry.before)
        spec: dict[str, JSON] = {field.name: None for field in kind.fields if field.null_in_create}
        for entry in change.fields:
            if reason := self._not_creatable(kind, former, entry):
                self._note(change, f"{path_text(entry.path)} is not restored: {reason}")
            elif not self._is_needless(kind.field_at(entry.path, former), entry.before):
                put_at(spec, entry.path, entry.before)
        self._take_secrets(kind, change.address, spec)
        self._add(change, spec, parent=parent)
        lost = "it is created again with a new id and without history"
        deleted = {item.live_id for item in self.applied.plan.changes if item.action.destructive}
        if inside := sorted(set(change.inside) - deleted):
            self._note(change, f"what else was in it is not restored: id {listed(inside, 5)}")
        if _lacks_secrets(kind, spec, self.declared.live.dialect):
            lost += "; its secrets are not in this plan and must be set again"
        self._note(change, lost)

    def _not_creatable(self, kind: Kind, former: JSONObject, entry: FieldChange) -> str | None:
        """Return why a create can't set a field of a deleted object, None if it can."""
        known, dialect = kind.field_at(entry.path, former), self.declared.live.dialect
        if is_redacted(entry.before):
            return "it contained a secret"
        if kind.is_stale(entry.path, former):
            return "it is of another type"
        if known and known.until and dialect and not known.until.is_since(dialect):
            return f"the server (dialect {dialect}) does not accept it"
        return known.not_restored if known and not is_default(known, entry.before) else None

    def _is_needless(self, known: Field | None, value: JSON) -> bool:
        """Return whether a new object has a value anyway, and an unknown server may refuse it."""
        is_risky = known is not None and known.until is not None and not self.declared.live.dialect
        return value is None or (is_risky and not value)

    def _take_secrets(self, kind: Kind, address: Address, spec: dict[str, JSON]) -> None:
        """Add the secrets of the configuration, if it sends them to the place of the object."""
        declared, places = self._declared(address, None).spec, Places.of(kind)
        if not {*places.of_body(declared)} & {*places.of_body(spec)}:
            return
        for leaf in field_leaves(kind.fields, declared, live=False):
            # Equal values may contain secrets.
            if leaf.field.secret or comparable(leaf.field, leaf.value) == value_at(spec, leaf.path):
                put_at(spec, leaf.path, leaf.value)

    def _parent(self, kind: Kind, change: Change) -> ParentRef | None:
        """Return the live parent, or the one that this undo creates again, or None."""
        if kind.parent is None or change.parent_id is None:
            return None
        if self._recognized(kind.parent, change.parent_id) is not None:
            return ParentRef(id=change.parent_id)
        for deleted in self.applied.changes(Action.DELETE):
            same = (deleted.address.kind, deleted.live_id) == (kind.parent, change.parent_id)
            if same and deleted.address in self.resources:
                return ParentRef(key=deleted.address.key)
        return None

    def _restore_fields(self, changes: Sequence[Change]) -> None:
        """Restore fields and toggles of one object that still are as the plan set them."""
        first = changes[0]
        kind = self.kinds[first.address.kind]
        live = self._recognized(kind.name, first.live_id)
        if live is None:
            self._note(first, f"{self._absence(kind.name, first.live_id)}: nothing is restored")
            return
        former: list[FieldChange] = []
        for change in changes:
            for entry in change.fields:
                may_be_unmade = change.id in self.applied.uncertain and not entry.secret
                if may_be_unmade and _has(kind, live, entry.path, entry.before):
                    continue
                if reason := self._not_restorable(kind, change, entry, live):
                    self._note(change, f"{path_text(entry.path)} is not restored: {reason}")
                else:
                    former.append(entry)
        if former:
            spec = {"name": live.name, **_former_spec(kind, former, live)}
            parent = ParentRef(id=live.parent_id) if live.parent_id is not None else None
            self._add(first, spec, parent=parent, pinned_id=live.id)

    def _not_restorable(
        self, kind: Kind, change: Change, entry: FieldChange, live: LiveObject
    ) -> str | None:
        """Return why a field is not restored, None if it can be."""
        tag = _tag_path(kind, entry.path)
        if entry.secret:
            return "the former secret is not known"
        if is_redacted(entry.before) or is_redacted(entry.after):
            return "it contained a secret"
        if tag is not None and any(other.path == tag for other in change.fields):
            return f"{path_text(tag)} changed, and the former settings are not known"
        if is_ignored(entry.path, self._declared(change.address, live.id).lifecycle):
            return "it is in ignore_changes"
        return None if _has(kind, live, entry.path, entry.after) else "modified since"

    def _recognized(self, kind: str, live_id: str | None) -> LiveObject | None:
        """Return the object that a change left with an id, None if another one has it, or none."""
        place = (kind, live_id or "")
        live, left = self.declared.live.by_identity.get(place), self.left.get(place)
        fits = live is not None and left is not None and left.fits(self.kinds[kind], live)
        return live if fits else None

    def _absence(self, kind: str, live_id: str | None) -> str:
        """Return why no object is recognized."""
        place = (kind, live_id or "")
        live, left = self.declared.live.by_identity.get(place), self.left.get(place)
        if live is None or left is None:
            return "already deleted"
        if live.name.strip() in left.names:
            return f"id {live.id} has another {self.kinds[kind].stamp} now"
        return f"id {live.id} is named {quoted(live.name)} now"

    def _declared(self, address: Address, live_id: str | None) -> Resource:
        return self.declared.declaring(address, live_id) or Resource(address, {})

    def _add(self, change: Change, spec: Mapping[str, JSON], **parts: Any) -> None:
        """Add a resource, with the lifecycle and the position of the declared one."""
        declared = self._declared(change.address, parts.get("pinned_id"))
        lifecycle = replace(declared.lifecycle, renamed_from=())
        self.resources[change.address] = Resource(
            change.address,
            spec,
            lifecycle=lifecycle,
            mark=declared.mark,
            marks=declared.marks,
            written=declared.written,
            **parts,
        )

    def _note(self, change: Change, message: str) -> None:
        self.notes.append(Note("not-undone", printable(f"{change.address}: {message}")))


def _tag_path(kind: Kind, path: Path) -> Path | None:
    """Return the path of the tag that decides what a path means, None outside of variants."""
    top = kind.field_named(str(path[0]))
    return (top.name, top.variant.tag) if top is not None and top.variant is not None else None


def _field(kind: Kind, path: Path, live: LiveObject) -> Field:
    return kind.field_at(path, live.body) or unknown_field(str(path[-1]))


def _has(kind: Kind, live: LiveObject, path: Path, value: JSON) -> bool:
    """Return whether a field of a live object has a value."""
    current = live_values(kind, live.body).get(path_text(path))
    return is_equal(_field(kind, path, live), value, current)


def _former_spec(kind: Kind, former: Sequence[FieldChange], live: LiveObject) -> dict[str, JSON]:
    """Return former values as the fields of a resource, with the tag that they need."""
    spec: dict[str, JSON] = {}
    for entry in former:
        put_at(spec, entry.path, _former_value(_field(kind, entry.path, live), entry))
        tag = _tag_path(kind, entry.path)
        if tag is not None:
            put_at(spec, tag, value_at(live.body, tag))
    return spec


def _former_value(restored: Field, entry: FieldChange) -> JSON:
    """Return what a resource declares to get the former value."""
    if entry.before is MISSING or entry.before is None:
        has_default = not restored.clearable and restored.default is not MISSING
        return restored.default if has_default else None
    if isinstance(restored.type, MergedObject):
        return _with_nulls(entry.before, entry.after, levels=restored.type.depth)
    return entry.before


def _with_nulls(before: JSON, after: JSON, *, levels: int) -> JSON:
    """Return a merged object with null for keys that were added to it."""
    if levels == 0 or not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return before
    former = {
        key: _with_nulls(value, after.get(key), levels=levels - 1) for key, value in before.items()
    }
    return {**dict.fromkeys(after), **former}


def _lacks_secrets(kind: Kind, spec: Mapping[str, JSON], dialect: Dialect | None) -> bool:
    """Return whether a resource has no secret, but its type has some."""
    has_secrets = any(leaf.field.secret for leaf in field_leaves(kind.fields, spec, live=False))
    return not has_secrets and any(
        inner.secret and (dialect is None or dialect in Dialect.between(inner.since, inner.until))
        for top, variant in kind.variants
        for inner in variant.fields_of(spec.get(top.name))
    )
