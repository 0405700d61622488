"""Approve a plan: what a person types, and whether a saved plan is still the plan of now.

Only what both a saved plan and the one that is made now contain is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, Kind, containers
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import (
    Change,
    FieldChange,
    Plan,
    PlanSource,
    SecretUse,
    Severity,
    digest_of,
)
from reconciler.model.redaction import Mask, masked_in
from reconciler.model.schemas import canonical_text
from reconciler.model.text import printable, quoted, shortened
from reconciler.model.values import JSON, MISSING, Address, path_text
from reconciler.planning.compare import is_equal, live_leaves, unknown_field


class Approval(Struct, frozen=True):
    """A question, and the answers that approve."""

    question: str
    answers: tuple[str, ...]

    def is_given_by(self, line: str) -> bool:
        """Return whether a line that was typed approves."""
        return line.strip() in self.answers


def approval_of(plan: Plan) -> Approval:
    """Return the question for a plan.

    A plan with a dangerous change asks for the name of its object, so that a habitual `y` deletes
    nothing; one with several asks for the environment, and for a project if it deletes one.
    """
    dangerous = [change for change in plan.sending if change.severity is Severity.DANGER]
    named = list({(change.address, change.name): None for change in dangerous})
    parents = containers(all_kinds())
    lost = [
        item for item in dangerous if item.action is Action.DELETE and item.address.kind in parents
    ]
    if len(lost) == 1 < len(named):
        (first,) = lost
        question = f"Danger for {len(named)} objects: {plan.named_dangers}\nTo apply this plan,"
        question += f" type the name of the {first.address.kind} that it deletes"
        return typed(f"{question}, {quoted(first.name)}: ", first.name, str(first.address))
    if len(named) > 1:
        environment = plan.source.environment
        question = f"Danger for {len(named)} objects: {plan.named_dangers}\nTo apply this plan,"
        return typed(f"{question} type the environment, {quoted(environment)}: ", environment)
    for address, name in named:
        question = f"Danger for {plan.named_dangers}: to apply this plan, type its name"
        return typed(f"{question}, {quoted(name)}: ", name, str(address))
    return confirmed("Apply this plan?")


def typed(question: str, name: str, *others: str) -> Approval:
    """Return a question for a name."""
    return Approval(question, (printable(name).strip(), *others))


def confirmed(question: str) -> Approval:
    """Return a question for a yes."""
    return Approval(f"{question} [y/N]: ", ("y", "Y", "yes", "Yes", "YES"))


_WITH_OTHERS = SecretUse.CREATE, SecretUse.NEEDED, SecretUse.UNREADABLE
"""Secrets that did not change. Of the others, no live value shows whether they were sent."""
_LONGEST_VALUE = 60


def differences(
    saved: Plan, new: Plan, *, live: Live, kinds: Sequence[Kind], mask: Mask
) -> tuple[str, ...]:
    """Return how a saved plan differs from the plan of the same selection, base and options.

    Without differences, the new plan has the changes of the saved one by digest, or fewer: what it
    lacks is done. `live` is what it was made from. `mask` masks known secrets in both plans.
    """
    saved, new = masked_in(saved, mask), masked_in(new, mask)
    now = {change.id: change for change in new.effective}
    ids = {change.address: change.live_id for change in new.changes}
    comparer = _Comparer(new.source, now, ids, live, {kind.name: kind for kind in kinds}, mask)
    lines = [line for change in saved.effective for line in comparer.differences(change)]
    more = now.keys() - {change.id for change in saved.effective}
    added = (text for change_id in now if change_id in more for text in _acts(now[change_id]))
    return (*lines, *(f"{text} is not in the saved plan" for text in added))


class _Comparer(Struct):
    """The comparison so far, change by change in the order of the saved plan.

    `now` are the changes of the new plan by id, `ids` the live ids of its resources. `done` are the
    ids of the saved changes of which nothing is left, `gone` the live ids that those deleted.
    """

    source: PlanSource
    now: Mapping[str, Change]
    ids: Mapping[Address, str | None]
    live: Live
    kinds: Mapping[str, Kind]
    mask: Mask
    done: set[str] = field(default_factory=set)
    gone: set[str | None] = field(default_factory=set)

    def differences(self, saved: Change) -> Iterator[str]:
        """Yield how a saved change differs from the new plan. Those before it were compared."""
        kind, now = self.kinds.get(saved.address.kind), self.now.get(saved.id)
        expected = self._expected(saved, kind) if kind is not None else saved
        if now is not None:
            if digest_of(expected, self.source) != digest_of(now, self.source):
                yield from _deviations(expected, now)
        elif kind is not None and self._is_done(expected, kind):
            self.done.add(saved.id)
            self.gone |= {saved.live_id} if saved.action.destructive else set()
        else:
            missing = "is in the saved plan, but is neither planned now nor done"
            yield from (f"{text} {missing}" for text in _acts(expected))

    def _expected(self, change: Change, kind: Kind) -> Change:
        """Return a saved change as the new plan has it, now that others before it are done."""
        depends_on = tuple(sorted(set(change.depends_on) - self.done))
        inside = tuple(sorted(set(change.inside) - self.gone))
        change = replace(change, depends_on=depends_on, inside=inside)
        parent = Address(kind.parent or "", (change.parent and change.parent.key) or "")
        if change.parent_id is not None or f"{parent}:{Action.CREATE}" not in self.done:
            return change
        parent_id = self.ids.get(parent)
        fields = (
            replace(item, after=parent_id) if item.path == (kind.parent_key,) else item
            for item in change.fields
        )
        return replace(change, parent_id=parent_id, fields=tuple(fields))

    def _is_done(self, change: Change, kind: Kind) -> bool:
        """Return whether a change that is not planned now needs nothing any more.

        What it deletes is not live, and its object has exactly the values of the file.
        """
        if change.action.destructive and (kind.name, change.live_id) in self.live.by_identity:
            return False
        if change.action is Action.DELETE:
            return True
        is_new = change.action in (Action.CREATE, Action.REPLACE)
        live_id = self.ids.get(change.address) if is_new else change.live_id
        item = self.live.by_identity.get((kind.name, live_id or ""))
        return (
            item is not None
            and self.mask(item.name.strip()) == change.name.strip()
            and (change.parent is None or item.parent_id == change.parent_id)
            and all(note.use in _WITH_OTHERS for note in change.secrets)
            and all(self._has(item, kind, entry) for entry in change.fields)
        )

    def _has(self, item: LiveObject, kind: Kind, entry: FieldChange) -> bool:
        """Return whether an object has the value that a saved change gives it."""
        if entry.secret or entry.path == (kind.parent_key,):
            return True
        leaf = live_leaves(kind, item.body).get(entry.path)
        known = leaf.field if leaf is not None else kind.field_at(entry.path, item.body)
        value = masked_in(leaf.value, self.mask) if leaf is not None else MISSING
        return is_equal(known or unknown_field(str(entry.path[-1])), entry.after, value)


def _acts(change: Change) -> Iterator[str]:
    """Yield what a change does: the fields of an update, or the action."""
    is_update = change.action is Action.UPDATE and change.fields
    facts = map(_fact, change.fields) if is_update else ((change.action.value, ""),)
    yield from (f"{change.address}: {name} {sides}".rstrip() for name, sides in facts)


def _deviations(saved: Change, now: Change) -> Iterator[str]:
    """Yield every difference between a saved change and the new one of the same id."""
    before, after = dict(_facts(saved)), dict(_facts(now))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    for name in names:
        text, was, value = f"{now.address}: {name}", before.get(name), after.get(name)
        if was is None or value is None:
            where = "is not in the saved plan" if was is None else "is in the saved plan only"
            yield " ".join(filter(None, (text, was, value, where)))
        else:
            yield f"{text} is {value} now, the saved plan has {was}"
    if not names:
        yield f"{now.address}: a value or the request differs from the saved plan"


def _facts(change: Change) -> Iterator[tuple[str, str]]:
    """Yield what a change relies on and does: the name of each fact, and its value, if any."""
    yield from (("id", _shown(change.live_id)), ("name", _shown(change.name)))
    yield "id of the parent", _shown(change.parent_id)
    # The fields of a deletion are live values.
    fields = change.fields if change.action is not Action.DELETE else ()
    yield from map(_fact, fields)
    shown = {path_text(entry.path) for entry in fields}
    for path, value in (change.seen or {}).items():
        if path not in shown:
            yield f"live value of {printable(path)}", _shown(value)
    sent = [note for note in change.secrets if note.use.sent]
    yield from ((f"secret {printable(path_text(it.path))} {it.use.meaning}", "") for it in sent)
    yield from ((f"{item.severity} {item.rule}", "") for item in change.consequences)
    yield from ((f"after {needed}", "") for needed in change.depends_on)
    yield from ((f"object inside with id {printable(item)}", "") for item in change.inside)


def _fact(entry: FieldChange) -> tuple[str, str]:
    """Return a field and `"hour" -> "day"`, or the name alone for a secret."""
    name = printable(path_text(entry.path))
    sides = f"{_shown(entry.before)} -> {_shown(entry.after)}"
    return (f"{name} (secret)", "") if entry.secret else (name, sides)


def _shown(value: JSON) -> str:
    text = "(not set)" if value is MISSING else printable(canonical_text(value))
    return shortened(text, _LONGEST_VALUE)
