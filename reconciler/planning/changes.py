"""Decide the changes of resources and live objects, and the live values that they depend on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec.structs import replace

from reconciler.kinds import behaviour_of
from reconciler.kinds.behaviour import RuleContext
from reconciler.model.kind import Action, Kind
from reconciler.model.live import LiveObject
from reconciler.model.plan import (
    Change,
    FieldChange,
    NewPlace,
    Note,
    Novelty,
    Origin,
    Reason,
    RecentRun,
    SecretNote,
    SecretUse,
)
from reconciler.model.resource import Lifecycle, Resource, State
from reconciler.model.run import InvalidRun, moment_at
from reconciler.model.schemas import canonical_text, time_text
from reconciler.model.text import printable, shortened
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    mapping_of,
    path_text,
    put_at,
    secret_refs,
    value_at,
)
from reconciler.planning.compare import (
    Difference,
    create_body,
    difference,
    display_value,
    field_leaves,
    is_default,
    is_identical,
    is_ignored,
    live_fields,
    live_leaves,
    live_values,
    other_variants,
    secret_notes,
    stamp_of,
    update_body,
)
from reconciler.planning.draft import Draft
from reconciler.planning.integrations import resolved
from reconciler.planning.inventory import Declared
from reconciler.planning.match import Match, Matching

_MOST_RUNS = 10
_LONGEST_STATUS = 40
_REASON_OF = {
    Origin.UNKNOWN: Reason.FIELDS_DIFFER,
    Origin.FILES: Reason.CHANGED_IN_FILES,
    Origin.LIVE: Reason.DRIFTED,
    Origin.BOTH: Reason.CONFLICT,
}


ChangesAndNotes: TypeAlias = tuple[tuple[Change, ...], tuple[Note, ...]]


def resource_changes(match: Match, draft: Draft) -> ChangesAndNotes:
    """Return every change of one resource, with notes for the reader of the plan."""
    if match.live is None:
        absent = match.resource.state is State.ABSENT
        return (_unchanged(match, draft) if absent else _creation(match, draft),), ()
    if match.resource.state is State.ABSENT:
        return (deletion_of(match, match.live, Reason.STATE_ABSENT, draft),), ()
    return _changes_of_pair(match, match.live, draft)


def _changes_of_pair(match: Match, live: LiveObject, draft: Draft) -> ChangesAndNotes:
    kind, resource = match.kind, match.resource
    declared = _applied(match, live, draft.matching)
    rotate = resource.address in draft.selected.rotated
    was = declared.applied
    is_same = was is None or was is resource or was == resource
    is_literal = is_same and is_identical(kind, resource.spec, live.body)
    if is_literal and not (rotate or match.moved or declared.resend):
        return (_unchanged(match, draft),), ()
    differs = difference(kind, resource, live, declared)
    notes = tuple(_no_longer_managed(match, live, was, differs)) if was is not None else ()
    reasons = tuple(_reasons_to_replace(match, differs, draft))
    if reasons:
        return (_replacement(match, live, differs, reasons, draft),), notes
    return (*_updates(match, live, differs, draft),) or (_unchanged(match, draft),), notes


def _applied(match: Match, live: LiveObject, matching: Matching) -> Declared:
    """Return how an object was applied, with ids in place of the names of integrations."""
    declared = matching.declared(match.resource, live)
    if not matching.live.integrations or declared.applied is None:
        return declared
    former = replace(match, parent_id=live.parent_id)
    return replace(declared, applied=resolved(former, declared.applied, matching.live))


def _no_longer_managed(
    match: Match, live: LiveObject, was: Resource, differs: Difference
) -> Iterator[Note]:
    """Yield a note on each field that keeps its live value, and was managed."""
    kind, resource, fields = match.kind, match.resource, live_fields(match.kind, live.body)
    left = {
        path: "unmanaged-field"
        for path in resource.unset
        if value_at(was.spec, path) is not MISSING and value_at(resource.spec, path) is MISSING
    }
    for path, code in {**left, **dict.fromkeys(differs.unreset, "stays-as-it-is")}.items():
        field, applied = kind.field_at(path, was.spec), value_at(was.spec, path)
        shown = canonical_text(_with_keys_of(applied, value_at(fields, path)))
        if any(secret_refs({"": applied})) or (field and field.secret):
            shown = "its live value"
        why = "was removed from the configuration, but is not reset"
        why = "is no longer managed (`${unset}`)" if path in left else why
        fix = "; write null to clear it" if field and field.secret and field.clearable else ""
        text = f"{path_text(path)} {why}: it keeps {shortened(shown)}"
        yield Note(code, f"{printable(text)}{fix}", about=resource.address)


def _with_keys_of(applied: JSON, live: JSON) -> JSON:
    """Return a live value without keys that were not applied: those may hold a token."""
    if isinstance(applied, Mapping):
        values = mapping_of(live)
        return {key: _with_keys_of(value, values.get(key)) for key, value in applied.items()}
    return None if live is MISSING or isinstance(live, Mapping) else live


def _updates(match: Match, live: LiveObject, differs: Difference, draft: Draft) -> Iterator[Change]:
    """Yield the changes in place."""
    secrets = _secrets(match, differs.changes, draft)
    if differs.changes or any(note.use.sent for note in secrets):
        yield _update(match, live, differs, secrets, draft)
    for change in differs.toggles:
        yield _toggle(match, live, change, draft)


def _secrets(
    match: Match, changes: Sequence[FieldChange], draft: Draft, always: SecretUse | None = None
) -> tuple[SecretNote, ...]:
    address, live = match.resource.address, match.live
    if always is None and address in draft.selected.rotated:
        always = SecretUse.ROTATE
    declared = draft.matching.declared(match.resource, live)
    return secret_notes(
        match.kind, match.resource, changes, declared=declared, always=always, live=live
    )


def _unchanged(match: Match, draft: Draft) -> Change:
    live = match.live
    parent_id = live.parent_id if live is not None else match.parent_id
    return Change(
        match.resource.address,
        Action.NO_OP,
        match.resource.name,
        live_id=live.id if live is not None else None,
        parent=match.resource.parent,
        parent_id=parent_id,
        parent_name=draft.matching.parent_of(match, parent_id),
    )


def _change(
    match: Match, action: Action, fields: tuple[FieldChange, ...], draft: Draft, **parts: Any
) -> Change:
    """Return a change of some fields, with its consequences, worst first."""
    written = _as_written(fields, match.resource.written)
    live = match.live
    runs = latest_runs(match.kind, live.body) if live is not None else ()
    parts |= {"action": action, "fields": written, "runs": runs, "at": match.resource.mark}
    change = replace(_unchanged(match, draft), **parts)
    applied = draft.matching.declared(match.resource, live).applied
    reach, new = draft.known.reached(change, match, applied)
    change = replace(change, reach=reach, new=(*new, *_objects(change, match, draft.matching)))
    deleted = live if action is Action.DELETE else None
    rule_context = RuleContext(
        change=change,
        kind=match.kind,
        desired=match.resource if deleted is None else None,
        live=live,
        now=draft.known.now,
        dialect=draft.matching.live.dialect,
        children=draft.matching.children(deleted) if deleted is not None else (),
        environment=draft.selected.desired.environment,
    )
    items = fields if action is Action.REPLACE else ()
    toggled = (act for item in items for act in match.kind.toggled_to(item.path, item.after))
    actions = {action, *toggled}
    consequences = [
        # Messages contain live values.
        replace(consequence, message=printable(consequence.message))
        for rule in behaviour_of(match.kind).rules
        if not actions.isdisjoint(rule.actions)
        if not (rule.of and rule.of.isdisjoint(rule_context.fields))
        if (consequence := rule(rule_context)) is not None
    ]
    consequences.sort(key=lambda item: (item.rank, item.rule))
    return replace(change, consequences=tuple(consequences))


def _objects(change: Change, match: Match, matching: Matching) -> Iterator[NewPlace]:
    """Yield the recorded object that gets another name, or the one in place of it."""
    live, entry = match.live, matching.inventory.entries.get(change.address)
    is_pinned = match.resource.pinned_id is not None
    if entry is None or live is None or is_pinned or change.action is Action.DELETE:
        return
    now, was = (f"{_in_quotes(item.name)} (id {item.id})" for item in (live, entry))
    host = f"{live.kind} {live.id}"
    if live.id == entry.id and any(item.path == ("name",) for item in change.fields):
        yield NewPlace(Novelty.OBJECT, _in_quotes(change.name), host, now)
    elif (live.kind, entry.id) not in matching.live.by_identity:
        yield NewPlace(Novelty.OBJECT, now, host, was)


def _in_quotes(name: str) -> str:
    """Return a name in quotes that it does not contain, if there are such. Writers escape it."""
    mark = '"' if "'" in name else "'"
    return f"{mark}{name}{mark}"


def latest_runs(kind: Kind, live: JSONObject) -> tuple[RecentRun, ...]:
    """Return the latest runs in a live body, newest first, without those that cannot be read.

    Errors of runs are left out, since they may contain anything.
    """
    runs: list[RecentRun] = []
    bodies = value_at(live, kind.activity[:1]) if kind.activity else ()
    for body in bodies[:_MOST_RUNS] if isinstance(bodies, list) else ():
        if isinstance(body, Mapping) and isinstance(status := body.get("status"), str):
            with suppress(InvalidRun):
                end = moment_at(body, "data_interval_end")
                text = time_text(end.replace(microsecond=0)) if end is not None else ""
                runs.append(RecentRun(shortened(printable(status), _LONGEST_STATUS), text))
    return tuple(runs)


def _as_written(
    fields: tuple[FieldChange, ...], written: Mapping[str, str]
) -> tuple[FieldChange, ...]:
    """Return changes of fields with the names that the files use."""
    if not written:
        return fields
    return tuple(
        replace(change, written=(written[str(change.path[0])], *change.path[1:]))
        if change.path[0] in written
        else change
        for change in fields
    )


def _creation(match: Match, draft: Draft) -> Change:
    fields = tuple(
        _secret_change(leaf.path)
        if leaf.field.secret
        else FieldChange(leaf.path, MISSING, display_value(leaf.field, leaf.value))
        for leaf in field_leaves(match.kind.fields, match.resource.spec, live=False)
        if leaf.value is not None
    )
    sent = _sent_by_create(match, draft)
    return _change(match, Action.CREATE, fields, draft, reasons=(Reason.NOT_LIVE,), **sent)


def _sent_by_create(match: Match, draft: Draft) -> dict[str, Any]:
    """Return the parts of a change that creates the object: its bodies and secrets."""
    kind, resource, dialect = match.kind, match.resource, draft.matching.live.dialect
    return {
        "body": create_body(kind, resource, dialect),
        "after_create": create_body(kind, resource, dialect, after=True) or None,
        "secrets": _secrets(match, (), draft, always=SecretUse.CREATE),
    }


def _secret_change(path: Path) -> FieldChange:
    return FieldChange(path, MISSING, MISSING, secret=True)


def _update(
    match: Match,
    live: LiveObject,
    differs: Difference,
    secrets: tuple[SecretNote, ...],
    draft: Draft,
) -> Change:
    kind, resource, dialect = match.kind, match.resource, draft.matching.live.dialect
    changes = differs.changes
    sent = {note.path: note.ref for note in secrets if note.use.sent}
    body = update_body(kind, resource, live, changes=changes, secrets=sent, dialect=dialect)
    return _change(
        match,
        Action.UPDATE,
        (*changes, *map(_secret_change, sent)),
        draft,
        body=body,
        secrets=secrets,
        reasons=_reasons(changes, secrets),
        seen=_seen_of_update(match, live, differs, body),
    )


def _reasons(
    changes: Sequence[FieldChange], secrets: Sequence[SecretNote] = ()
) -> tuple[Reason, ...]:
    reasons = {
        Reason.REMOVED_KEY if change.reset else _REASON_OF[change.origin] for change in changes
    }
    if [change.path for change in changes] == [("name",)]:
        # The change of the name says the rest, unless live state changed.
        reasons -= {Reason.CHANGED_IN_FILES, Reason.FIELDS_DIFFER}
        reasons.add(Reason.RENAMED)
    uses = {note.use for note in secrets}
    if SecretUse.ROTATE in uses:
        reasons.add(Reason.SECRET_ROTATED)
    if uses & {SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED}:
        reasons.add(Reason.SECRET_CHANGED)
    return tuple(sorted(reasons, key=lambda reason: reason.rank))


def _toggle(match: Match, live: LiveObject, change: FieldChange, draft: Draft) -> Change:
    (action,) = match.kind.toggled_to(change.path, change.after)
    seen = _seen(match.kind, live, [change.path])
    return _change(match, action, (change,), draft, reasons=_reasons([change]), seen=seen)


def _reasons_to_replace(match: Match, differs: Difference, draft: Draft) -> Iterator[Reason]:
    if match.moved:
        yield Reason.MOVED
    # What is inside the body of a variant changes in place.
    paths = [change.path for change in differs.changes if len(change.path) < 3]
    changed = [match.kind.field_at(path, {}) for path in paths]
    if any(item is not None and item.is_fixed(draft.matching.live.dialect) for item in changed):
        yield Reason.FIXED_FIELD


def _replacement(
    match: Match, live: LiveObject, differs: Difference, reasons: tuple[Reason, ...], draft: Draft
) -> Change:
    match = replace(match, resource=_keeping(match, live, differs))
    declared = _applied(match, live, draft.matching)
    differs = difference(match.kind, match.resource, live, declared)
    parent_id = match.parent_id if match.moved else live.parent_id
    return _change(
        match,
        Action.REPLACE,
        (*_move(match, live), *differs.changes, *differs.toggles),
        draft,
        parent_id=parent_id,
        parent_name=draft.matching.parent_of(match, parent_id),
        old_parent_id=live.parent_id,
        old_parent_name=draft.matching.parent_of(match, live.parent_id),
        reasons=reasons,
        seen=seen_of_object(match.kind, live, match.resource.lifecycle),
        **_sent_by_create(match, draft),
    )


def _move(match: Match, live: LiveObject) -> Iterator[FieldChange]:
    """Yield the change of parent, by live ids, or the key of a parent that does not exist yet."""
    if match.moved and match.kind.parent_key is not None:
        target = match.parent_id or str(match.resource.parent)
        # A service does not move objects: the files declare another project.
        key = (match.kind.parent_key,)
        yield FieldChange(key, live.parent_id, target, origin=Origin.FILES)


def _keeping(match: Match, live: LiveObject, differs: Difference) -> Resource:
    """Return the resource of a new object, with live values where the files manage none.

    Without these live values a replacement would change more than it shows: a paused export would
    run again. What is reset is left out: the new object gets the default. What cannot be kept is
    that of the files: the name, settings of another type, and the integration of another parent.
    """
    kind, resource, lifecycle = match.kind, match.resource, match.resource.lifecycle
    left = {item.path for item in differs.changes if item.reset}
    left |= {("name",), *(kind.integration_paths if match.moved else ())}
    wanted = {leaf.path: leaf for leaf in field_leaves(kind.fields, resource.spec, live=False)}
    current = live_leaves(kind, live.body)
    values = {path: leaf.value for path, leaf in wanted.items()}
    others = other_variants(kind, resource, live.body)
    for path, leaf in {**wanted, **current}.items():
        is_managed = path in wanted and not is_ignored(path, lifecycle)
        is_secret = leaf.field.secret or isinstance(values.get(path), SecretRef)
        is_other = path[0] in others or kind.is_stale(path, live.body)
        if is_managed or is_secret or is_other or path in left:
            continue
        if path not in current or is_default(leaf.field, leaf.value):
            values.pop(path, None)
        else:
            values[path] = display_value(leaf.field, leaf.value)
    spec: dict[str, JSON] = {}
    for path, value in values.items():
        put_at(spec, path, value)
    return replace(resource, spec=spec, lifecycle=replace(lifecycle, ignore_changes=()))


def deletion_of(match: Match, live: LiveObject, reason: Reason, draft: Draft) -> Change:
    """Return the deletion of a live object, with every value that goes."""
    fields = tuple(
        FieldChange(leaf.path, display_value(leaf.field, leaf.value), MISSING)
        for leaf in field_leaves(match.kind.fields, live.body, live=True)
        if leaf.value is not None
    )
    return _change(
        match,
        Action.DELETE,
        fields,
        draft,
        name=live.name,
        reasons=(reason,),
        seen=seen_of_object(match.kind, live, match.resource.lifecycle),
        inside=tuple(sorted(child.id for child in draft.matching.children(live))),
    )


def _seen_of_update(
    match: Match, live: LiveObject, differs: Difference, body: JSONObject
) -> dict[str, JSON]:
    """Return the managed fields, without toggles (other changes) and without `ignore_changes`.

    What is sent although no file manages it, or although it is ignored, was seen, too.
    """
    kind, resource = match.kind, match.resource
    declared = {
        path
        for path, leaf in differs.wanted.items()
        if not (leaf.field.secret or leaf.field.toggle or is_ignored(path, resource.lifecycle))
    }
    sent = {(field.name,) for field in kind.fields if field.name in body and field.variant is None}
    return _seen(kind, live, declared | sent | {change.path for change in differs.changes})


def seen_of_object(kind: Kind, live: LiveObject, lifecycle: Lifecycle) -> dict[str, JSON]:
    """Return every live value, without `ignore_changes`, by API name, in a body."""
    ignored = {
        path_text(path) for path in live_leaves(kind, live.body) if is_ignored(path, lifecycle)
    }
    values = live_values(kind, live.body)
    return {p: value for p, value in values.items() if p not in ignored} | stamp_of(kind, live.body)


def _seen(kind: Kind, live: LiveObject, paths: Collection[Path]) -> dict[str, JSON]:
    """Return the live values of some paths, None for one that is absent or equals its default."""
    values = live_values(kind, live.body)
    texts = sorted(map(path_text, paths))
    return {text: values.get(text) for text in texts} | stamp_of(kind, live.body)
