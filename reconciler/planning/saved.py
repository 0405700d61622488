"""Compare a saved plan with the plan that is made now: what both contain, and what differs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.comparison import Leaf, is_equal, live_leaves, unknown_field
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Live, LiveObject, parse_marked_name
from reconciler.model.plan import Change, FieldChange, Plan, SecretUse, digest_of, redact_plan
from reconciler.model.redaction import Mask, redact_value
from reconciler.model.resource import Desired
from reconciler.model.text import printable, shortened
from reconciler.model.values import JSON, MISSING, JSONObject, Path, path_text, value_at

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How much the clock of the service may be behind that of the machine that made the plan."""
_SENT_AGAIN = (SecretUse.ROTATE, SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED)
"""Secrets that a plan sends until its base or its options change: reading never settles them."""
_IN_PLACE = (Action.UPDATE, Action.PAUSE, Action.UNPAUSE)
_LONGEST_VALUE: Final = 60
_ABSENT = "(not set)"


class Comparison(Struct, frozen=True):
    """The common part of both plans, and one line of text for each difference.

    `plan` is the new plan without the changes that the saved one does not contain, and without
    those that depend on one of them.
    """

    plan: Plan
    differences: tuple[str, ...] = ()


def compare(
    saved: Plan, new: Plan, *, live: Live, desired: Desired, kinds: Sequence[Kind], mask: Mask
) -> Comparison:
    """Compare a saved plan with the plan of the same selection, base and options.

    Changes are equal by digest, which includes identity. A saved change that is not in the new plan
    must be done; what an incomplete run of the saved plan did is taken into account. `live` and
    `desired` are those of the new plan. `mask` masks known secrets in both plans.
    """
    saved, masked = redact_plan(saved, mask), redact_plan(new, mask)
    by_name = {kind.name: kind for kind in kinds}
    comparer = _Comparer(saved, masked, live, desired, by_name, mask)
    for change in saved.effective:
        if change.address.kind in by_name:
            comparer.account_for(change)
        else:
            comparer.differences += omission(change)
    comparer.report_additions()
    return Comparison(
        replace(new, changes=tuple(_closed(new.changes, comparer.contained))),
        tuple(comparer.differences),
    )


def _closed(changes: Iterable[Change], contained: Collection[str]) -> Iterable[Change]:
    """Yield the contained changes whose dependencies are all contained, and no-ops."""
    kept: set[str] = set()
    for change in changes:
        if change.action is Action.NO_OP:
            yield change
        elif change.id in contained and kept.issuperset(change.depends_on):
            kept.add(change.id)
            yield change


class _Comparer(Struct):
    """The comparison so far: the saved changes that are done, and how the others continue.

    `saved` and `new` have known secrets masked. `created` are the live ids of new objects by
    address, `gone` those of deleted ones, `settled` the ids of changes that need nothing any more.
    `contained` are the ids of the new changes that the saved plan contains, `reported` of those
    whose differences are listed.
    """

    saved: Plan
    new: Plan
    live: Live
    desired: Desired
    kinds: Mapping[str, Kind]
    mask: Mask
    settled: set[str] = field(default_factory=set)
    created: dict[Address, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    contained: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    current: Mapping[str, Change] = field(default_factory=dict)
    """The changes of the new plan by id."""
    _named: dict[tuple[str, str], list[LiveObject]] = field(default_factory=dict)
    _live_ids: dict[Address, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index live objects by name, and their ids by address."""
        for item in self.live.by_identity.values():
            self._named.setdefault((item.kind, self._name(item)), []).append(item)
        self.current = {change.id: change for change in self.new.effective}
        self._live_ids = {
            change.address: change.live_id for change in self.new.changes if change.live_id
        }

    def account_for(self, change: Change) -> None:
        """Compare a saved change; those that it depends on come before it."""
        expected = self.expected(change)
        now = self.current.get(change.id)
        if now is not None:
            self._compare(expected, now)
        elif rest := self._rest_of(expected):
            self.contained |= rest
            self.settle(expected)
        elif self.is_done(expected):
            self.settle(expected)
        else:
            self.differences += omission(expected)

    def report_additions(self) -> None:
        """List the changes of the new plan that the saved one does not contain."""
        accounted = self.contained | self.reported
        for change in self.current.values():
            if change.id not in accounted:
                self.differences += addition(change)

    def _compare(self, expected: Change, now: Change) -> None:
        source = self.new.source
        current = self.in_own_names(now)
        is_equal = digest_of(expected, source) == digest_of(current, source)
        if is_equal or self.is_half_done(expected, now):
            self.contained.add(now.id)
        else:
            self.reported.add(now.id)
            self.differences += deviations(expected, now)

    def _rest_of(self, expected: Change) -> set[str]:
        """Return the ids of changes that finish what a saved change of another action began."""
        saved_ids = {change.id for change in self.saved.effective}
        return {
            change.id
            for action in Action
            if (change := self.current.get(f"{expected.address}:{action}")) is not None
            if change.id not in saved_ids and self.is_half_done(expected, change)
        }

    def expected(self, change: Change) -> Change:
        """Return a saved change as the new plan has it, now that the settled changes are done."""
        kind = self.kinds[change.address.kind]
        parent_id, fields = change.parent_id, change.fields
        if parent_id is None and change.parent and change.parent.key and kind.parent:
            parent_id = self.created.get(Address(kind.parent, change.parent.key))
        if parent_id != change.parent_id:
            fields = tuple(
                replace(item, after=parent_id) if item.path == (kind.parent_key,) else item
                for item in fields
            )
        return replace(
            self.in_own_names(change),
            parent_id=parent_id,
            fields=fields,
            depends_on=tuple(sorted(set(change.depends_on) - self.settled)),
            inside=tuple(sorted(set(change.inside) - self.gone)),
        )

    def in_own_names(self, change: Change) -> Change:
        """Return a change whose bodies name fields as the kind does.

        A plan for a server whose dialect is unknown sends some fields under two names. The dialect
        is known as soon as the first change is made.
        """
        kind = self.kinds[change.address.kind]
        return replace(
            change,
            body=_in_own_names(kind, change.body),
            after_create=_in_own_names(kind, change.after_create),
        )

    def settle(self, change: Change) -> None:
        """Record that nothing is left of a saved change, or only changes of its new object."""
        self.settled.add(change.id)
        if change.action.destructive and change.live_id is not None:
            self.gone.add(change.live_id)
        item = self._object_of(change)
        if change.action is not Action.DELETE and item is not None:
            self.created[change.address] = item.id

    def is_done(self, change: Change) -> bool:
        """Return whether live state is as a saved change leaves it; the new plan has none for it.

        A secret that was to be sent because it changed is never done: that can't be read.
        """
        if change.action is Action.DELETE:
            return self._is_gone(change)
        item = self._object_of(change)
        return (
            item is not None
            and not any(note.use in _SENT_AGAIN for note in change.secrets)
            and self._has_references(change)
            and all(self._has(item, change, entry) for entry in change.fields)
        )

    def is_half_done(self, change: Change, now: Change) -> bool:
        """Return whether a change of the new plan is the rest of a saved one of its address."""
        match change.action, now.action:
            case Action.UPDATE, Action.UPDATE:
                return self._is_rest_of_update(change, now)
            case Action.CREATE, _ if now.action in _IN_PLACE:
                item = self._object_of(change)
                made = item is not None and item.id == now.live_id
                return made and self._continues(change, now, now.live_id)
            case Action.REPLACE, Action.REPLACE:
                unchanged = (change.live_id, change.seen) == (now.live_id, now.seen)
                is_rest = unchanged and change.new_id is None and now.new_id is not None
                return is_rest and self._continues(change, now, now.new_id)
            case Action.REPLACE, _ if now.action in _IN_PLACE:
                return self._is_gone(change) and self._continues(change, now, now.live_id)
        return False

    def _continues(self, change: Change, now: Change, new_id: str | None) -> bool:
        """Return whether a change finishes the object that a saved create or replacement made.

        The object was made after the plan, in its place and under its name, and is given only
        values and secrets of the saved change.
        """
        kind = self.kinds[change.address.kind]
        item = self.live.by_identity.get((kind.name, new_id or ""))
        if item is None or item.parent_id != change.parent_id:
            return False
        name, live_name = change.name.strip(), self._name(item)
        is_named = live_name == name or parse_marked_name(live_name) == (name, change.live_id)
        is_new = item.id == change.new_id or self._was_made_since(item)
        return (
            is_named
            and is_new
            and _references(now) <= _references(change)
            and _gives_only_values_of(kind, change, now)
        )

    def _is_rest_of_update(self, change: Change, now: Change) -> bool:
        """Return whether some fields of a saved update are done, and the new one has the others.

        Secrets that changed are sent again.
        """
        kind = self.kinds[change.address.kind]
        item = self.live.by_identity.get((kind.name, change.live_id or ""))
        done = [entry for entry in change.fields if entry.path not in _by_path(now)]
        if item is None or change.live_id != now.live_id or not done:
            return False
        before = {**(change.seen or {}), **dict.fromkeys(path_text(entry.path) for entry in done)}
        after = {**(now.seen or {}), **dict.fromkeys(path_text(entry.path) for entry in done)}
        saved, wanted = _by_path(change), _sent(kind, change)
        return (
            (change.name, before) == (now.name, after)
            and all(self._has(item, change, entry) for entry in done)
            and all(_sides(saved.get(path)) == _sides(it) for path, it in _by_path(now).items())
            and all(
                path in wanted and is_equal(leaf.field, leaf.value, wanted[path].value)
                for path, leaf in _sent(kind, now).items()
            )
            and _references(change, *_SENT_AGAIN) <= _references(now) <= _references(change)
            and _rules(now) <= _rules(change)
            and set(now.depends_on) <= set(change.depends_on)
        )

    def _object_of(self, change: Change) -> LiveObject | None:
        """Return the object that has the values of a saved change after it is made, if it is."""
        kind = self.kinds[change.address.kind]
        if change.action in _IN_PLACE:
            return self.live.by_identity.get((kind.name, change.live_id or ""))
        if change.action is Action.REPLACE and not self._is_gone(change):
            return None
        live_id = self._live_ids.get(change.address)
        candidates = [
            item
            for item in self._named.get((kind.name, change.name.strip()), ())
            if live_id in (None, item.id)
            if change.parent is None or item.parent_id == change.parent_id
        ]
        return candidates[0] if len(candidates) == 1 else None

    def _name(self, item: LiveObject) -> str:
        """Return the name of a live object as plans show it."""
        return self.mask(item.name.strip())

    def _is_gone(self, change: Change) -> bool:
        return (change.address.kind, change.live_id) not in self.live.by_identity

    def _was_made_since(self, item: LiveObject) -> bool:
        """Return whether an object was made after the saved plan."""
        try:
            made = datetime.fromisoformat(str(item.body.get("created_at")))
            return made >= datetime.fromisoformat(self.saved.created_at) - CLOCK_SKEW
        except (ValueError, TypeError, OverflowError):
            return False

    def _has(self, item: LiveObject, change: Change, entry: FieldChange) -> bool:
        """Return whether an object has the value that a saved change gives it."""
        kind = self.kinds[item.kind]
        if entry.secret or entry.path == (kind.parent_key,):
            return True
        leaf = live_leaves(kind, item.body).get(entry.path)
        resource = self.desired.resources.get(change.address)
        if leaf is None and not item.complete and resource is not None:
            # The planner compared the field, or it would have been read.
            leaf = live_leaves(kind, resource.spec).get(entry.path)
        known = leaf.field if leaf is not None else kind.field_at(entry.path, item.body)
        value = redact_value(leaf.value, self.mask) if leaf is not None else MISSING
        return is_equal(known or unknown_field(str(entry.path[-1])), entry.after, value)

    def _has_references(self, change: Change) -> bool:
        """Return whether the configuration still has the references of the secrets to send."""
        resource = self.desired.resources.get(change.address)
        return resource is None or all(
            value_at(resource.spec, note.path) == note.ref
            for note in change.secrets
            if note.use.sent
        )


def _in_own_names(kind: Kind, body: JSONObject | None) -> JSONObject | None:
    if body is None:
        return None
    return {kind.names_sent.get(name, name): value for name, value in body.items()}


def _sent(kind: Kind, change: Change) -> dict[Path, Leaf]:
    """Return the values of the bodies of a change, without secrets."""
    return live_leaves(kind, {**(change.body or {}), **(change.after_create or {})})


def _gives_only_values_of(kind: Kind, change: Change, now: Change) -> bool:
    """Return whether a change sets fields only as a saved change does, by body or by fields."""
    shown, sent = _by_path(change), _sent(kind, change)

    def has(path: Path, value: JSON) -> bool:
        is_sent = path in sent and is_equal(sent[path].field, value, sent[path].value)
        return is_sent or (path in shown and shown[path].after == value)

    given = [(entry.path, entry.after) for entry in now.fields if not entry.secret]
    given += [(path, leaf.value) for path, leaf in _sent(kind, now).items()]
    return all(has(path, value) for path, value in given)


def _by_path(change: Change) -> dict[Path, FieldChange]:
    return {entry.path: entry for entry in change.fields}


def _sides(entry: FieldChange | None) -> tuple[object, ...] | None:
    return (entry.before, entry.after, entry.secret) if entry is not None else None


def _references(change: Change, *uses: SecretUse) -> set[tuple[Path, str]]:
    """Return the secrets that a change sends, of all uses or some."""
    return {
        (note.path, str(note.ref))
        for note in change.secrets
        if (note.use in uses if uses else note.use.sent)
    }


def _rules(change: Change) -> set[tuple[str, str]]:
    return {(item.rule, item.severity.value) for item in change.consequences}


def addition(change: Change) -> Iterator[str]:
    """Yield what a change of the new plan does that the saved plan does not contain."""
    yield from (f"{text} is not in the saved plan" for text in _acts(change))


def omission(change: Change) -> Iterator[str]:
    """Yield what a saved change does that is neither planned now nor done."""
    missing = "is in the saved plan, but is neither planned now nor done"
    yield from (f"{text} {missing}" for text in _acts(change))


def _acts(change: Change) -> Iterator[str]:
    shows_fields = change.action is Action.UPDATE and bool(change.fields)
    for text in map(_field, change.fields) if shows_fields else [change.action.value]:
        yield f"{change.address}: {text}"


def deviations(saved: Change, now: Change) -> Iterator[str]:
    """Yield every difference between a saved change and the new one of the same id."""
    texts = [
        *_targets(saved, now),
        # The fields of a deletion are live values.
        *(_fields(saved, now) if now.action is not Action.DELETE else ()),
        *_live_values(saved, now),
        *_sets(saved, now),
    ]
    for text in texts or ["a value or the request differs from the saved plan"]:
        yield f"{now.address}: {text}"


def _targets(saved: Change, now: Change) -> Iterator[str]:
    for noun, before, after in (
        ("id", saved.live_id, now.live_id),
        ("name", saved.name, now.name),
        ("id of the parent", saved.parent_id, now.parent_id),
        ("id of the new object", saved.new_id, now.new_id),
    ):
        if before != after:
            yield f"{noun} is {_shown(after)}, the saved plan has {_shown(before)}"


def _fields(saved: Change, now: Change) -> Iterator[str]:
    before, after = _by_path(saved), _by_path(now)
    for path in sorted({*before, *after}, key=path_text):
        if path not in before:
            yield f"{_field(after[path])} is not in the saved plan"
        elif path not in after:
            yield f"{_field(before[path])} is in the saved plan, but not planned now"
        elif _values(before[path]) != _values(after[path]):
            was = _values(before[path])
            yield f"{_field(after[path])} is planned now, the saved plan has {was}"


def _live_values(saved: Change, now: Change) -> Iterator[str]:
    """Yield live values that differ from those at the time of the saved plan."""
    before, after = saved.seen or {}, now.seen or {}
    entries = (*saved.fields, *now.fields) if now.action is not Action.DELETE else ()
    for path in sorted({*before, *after} - {path_text(entry.path) for entry in entries}):
        was, value = before.get(path, MISSING), after.get(path, MISSING)
        if was != value:
            name = printable(path)
            yield f"live value of {name} is {_shown(value)}, the saved plan expects {_shown(was)}"


def _sets(saved: Change, now: Change) -> Iterator[str]:
    """Yield secrets, consequences, order and contained objects that only one of both has."""
    for before, after in zip(_parts(saved), _parts(now), strict=True):
        for text in sorted(after - before):
            yield f"{printable(text)} is not in the saved plan"
        for text in sorted(before - after):
            yield f"{printable(text)} is in the saved plan, but not planned now"


def _parts(change: Change) -> tuple[set[str], ...]:
    return (
        {f"secret {path_text(it.path)} {it.use.meaning}" for it in change.secrets if it.use.sent},
        {f"{item.severity.value} {item.rule}" for item in change.consequences},
        {f"after {change_id}" for change_id in change.depends_on},
        {f"object inside with id {live_id}" for live_id in change.inside},
    )


def _field(entry: FieldChange) -> str:
    """Return `interval "hour" -> "day"`, or the name alone for a secret."""
    name = printable(path_text(entry.path))
    return f"{name} (secret)" if entry.secret else f"{name} {_values(entry)}"


def _values(entry: FieldChange) -> str:
    return f"{_shown(entry.before)} -> {_shown(entry.after)}"


def _shown(value: JSON) -> str:
    text = _ABSENT if value is MISSING else printable(canonical_text(value))
    return shortened(text, _LONGEST_VALUE)
