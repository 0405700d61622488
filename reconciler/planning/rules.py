"""Evaluate `policy.rules`, and compare a plan with that of the trusted policy.

Only what a saved plan contains is read, so that a plan and its file give the same violations. Only
the keys of parents that a selection leaves out are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.address import Address, fits_any
from reconciler.model.kind import Action, Kind
from reconciler.model.plan import Change, Note, Plan, Refusal
from reconciler.model.policy import RULE_PREFIX, Policy, PolicyRule
from reconciler.model.text import printable, several
from reconciler.model.values import JSON, MISSING, JSONObject, path_text, value_at


class RuleBreach(Struct, frozen=True):
    """A rule, and the changes of a plan that match it: more of them than it permits."""

    rule: PolicyRule
    changes: tuple[Change, ...]


class _Objects(Struct, frozen=True):
    """What the changes of a plan are about.

    owners
        The addresses of live objects by kind and id.
    names
        The names that an update or a replacement changes, before and after, by address.
    """

    owners: Mapping[tuple[str, str], Address]
    names: Mapping[Address, tuple[str, ...]]

    @classmethod
    def of(cls, changes: Sequence[Change], owners: Mapping[tuple[str, str], Address]) -> _Objects:
        """Return what some changes are about. `owners` are the objects of the other resources."""
        own = {(it.address.kind, it.live_id): it.address for it in changes if it.live_id}
        names = {
            change.address: (str(name.before).strip(), str(name.after).strip())
            for change in changes
            for name in change.fields
            if name.path == ("name",) and change.action in (Action.UPDATE, Action.REPLACE)
        }
        return cls({**owners, **own}, names)


def breaches(
    rules: Iterable[PolicyRule],
    changes: Iterable[Change],
    kinds: Iterable[Kind],
    owners: Mapping[tuple[str, str], Address] | None = None,
) -> Iterator[RuleBreach]:
    """Yield the rules that more changes match than they permit, in their order.

    `owners` are the addresses of live objects by kind and id that no change is about.
    """
    rules, changes = tuple(rules), tuple(changes)
    if not rules:
        return
    by_name = {kind.name: kind for kind in kinds}
    objects = _Objects.of(changes, owners or {})
    subjects = [
        _Subject(change, by_name[change.address.kind], by_name, objects)
        for change in changes
        if change.action is not Action.NO_OP and change.address.kind in by_name
    ]
    for rule in rules:
        matching = tuple(item.change for item in subjects if item.fits(rule.match))
        if len(matching) > rule.more_than:
            yield RuleBreach(rule, matching)


def message_of(breach: RuleBreach) -> str:
    """Return the message of a rule, with the number of changes if it limits that."""
    rule, message = breach.rule, printable(breach.rule.message)
    if not rule.more_than:
        return message
    return f"{message}: {several(len(breach.changes), 'change')}, the limit is {rule.more_than}"


def rule_refusals(
    policy: Policy,
    changes: Iterable[Change],
    kinds: Iterable[Kind],
    owners: Mapping[tuple[str, str], Address] | None = None,
) -> Iterator[Refusal]:
    """Yield a violation for every broken rule that denies changes."""
    for breach in breaches((rule for rule in policy.rules if rule.denies), changes, kinds, owners):
        rule = breach.rule
        fix = rule.hint or f"omit the change with --exclude, or edit `policy.{rule.code}`"
        yield Refusal(
            rule.code,
            message_of(breach),
            tuple(change.address for change in breach.changes),
            policy.marks.get(rule.code),
            printable(fix),
        )


def rule_notes(
    policy: Policy,
    changes: Iterable[Change],
    kinds: Iterable[Kind],
    owners: Mapping[tuple[str, str], Address] | None = None,
) -> Iterator[Note]:
    """Yield notes of every broken rule that warns: on its changes, or on their number."""
    warning = (rule for rule in policy.rules if not rule.denies)
    for breach in breaches(warning, changes, kinds, owners):
        rule = breach.rule
        hint = f" ({printable(rule.hint)})" if rule.hint else ""
        message = f"{message_of(breach)}{hint}"
        addresses = [None] if rule.more_than else [change.address for change in breach.changes]
        for address in addresses:
            yield Note(rule.code, message, about=address)


class _Subject(Struct, frozen=True):
    """A change, its kind, all kinds by name, and what all changes are about."""

    change: Change
    kind: Kind
    kinds: Mapping[str, Kind]
    objects: _Objects

    def fits(self, match: JSON) -> bool:
        """Return whether an expression is true: all of its tests are."""
        return isinstance(match, Mapping) and all(
            self._holds(str(name), wanted) for name, wanted in match.items()
        )

    def _holds(self, name: str, wanted: JSON) -> bool:
        match name:
            case "all":
                return all(map(self.fits, _listed(wanted)))
            case "any":
                return any(map(self.fits, _listed(wanted)))
            case "not":
                return not self.fits(wanted)
            case "field":
                return isinstance(wanted, Mapping) and self._has_field(wanted)
        globs = _globs(wanted)
        return any(fits_any(text, globs) for text in self._texts(name))

    def _texts(self, name: str) -> Iterator[str]:
        """Yield the texts of a test. Unknown names are those of kinds and of variants."""
        change = self.change
        match name:
            case "kind":
                yield change.address.kind
            case "action":
                yield from self._actions()
            case "address":
                yield str(change.address)
            case "name":
                yield from self._names()
            case "consequence":
                yield from (item.rule for item in change.consequences)
            case "severity":
                yield from {item.severity.value for item in change.consequences}
            case "new":
                yield from (text for item in change.new for text in (item.sort.value, item.text))
            case _ if name == change.address.kind:
                yield from filter(None, (change.address.key, change.live_id))
                yield from self._names()
            case _ if name in self.kinds:
                yield from self._parent_texts() if name == self.kind.parent else ()
            case _:
                yield from self._tags(name)

    def _actions(self) -> Iterator[str]:
        """Yield its action, and those that a replacement contains."""
        yield self.change.action.value
        for item in self.change.fields if self.change.action is Action.REPLACE else ():
            yield from self.kind.toggled_to(item.path, item.after)

    def _parent_texts(self) -> Iterator[str]:
        """Yield the keys, names and ids of its parents: also of the one that a move leaves.

        A parent has a key also if the resource names it by id or name, or if there is no resource.
        """
        change, parent = self.change, self.change.parent
        written = (parent.key, parent.name, parent.id) if parent is not None else ()
        live = (change.parent_name, change.parent_id)
        former = (change.old_parent_name, change.old_parent_id)
        yield from filter(None, (*written, *live, *former))
        for parent_id in filter(None, (change.parent_id, change.old_parent_id)):
            owner = self.objects.owners.get((self.kind.parent or "", parent_id))
            if owner is not None:
                yield from (owner.key, *self.objects.names.get(owner, ()))

    def _names(self) -> Iterator[str]:
        """Yield its name, before and after a change of that."""
        yield self.change.name.strip()
        yield from self.objects.names.get(self.change.address, ())

    def _tags(self, name: str) -> Iterator[str]:
        """Yield the tags of a field with variants, such as the type of a destination."""
        for field, variant in self.kind.variants:
            if field.name != name:
                continue
            path = (name, variant.tag)
            values = [value_at(self.change.body or {}, path)]
            values.append((self.change.seen or {}).get(path_text(path), MISSING))
            for changed in self.change.fields:
                values += (changed.before, changed.after) if changed.path == path else ()
            yield from (value for value in values if isinstance(value, str))

    def _has_field(self, wanted: JSONObject) -> bool:
        """Return whether a field changes as wanted. Secrets are sent, and have no values."""
        globs = _globs(wanted.get("path"))
        tests = [wanted[side] for side in ("before", "after") if side in wanted]
        for field in self.change.fields:
            if not fits_any(path_text(field.path), globs):
                continue
            if not tests:
                return True
            if not field.secret and all(
                _fits_value(getattr(field, side), wanted[side])
                for side in ("before", "after")
                if side in wanted
            ):
                return True
        sent = (note.path for note in self.change.secrets if note.use.sent)
        return not tests and any(fits_any(path_text(path), globs) for path in sent)


def _fits_value(value: JSON, test: JSON) -> bool:
    """Return whether a value passes a test. An absent value is null, as in comparisons."""
    plain = None if value is MISSING else value
    if not isinstance(test, Mapping):
        return False
    if "equals" in test and not _same(plain, test["equals"]):
        return False
    if "in" in test and not any(_same(plain, item) for item in _listed(test["in"])):
        return False
    if "matches" not in test:
        return True
    is_scalar = isinstance(plain, (str, int, float)) and not isinstance(plain, bool)
    return is_scalar and fits_any(str(plain), _globs(test["matches"]))


def _same(value: JSON, other: JSON) -> bool:
    """Return whether two values are equal. True is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _listed(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, (list, tuple)) else ()


def _globs(value: JSON) -> tuple[str, ...]:
    """Return the patterns of one text or a list."""
    return tuple(map(str, value if isinstance(value, (list, tuple)) else (value,)))


def with_violations(plan: Plan, trusted: Plan, others: Sequence[Refusal], *, hint: str) -> Plan:
    """Return a plan with the violations of the trusted policy that its own policy allows.

    Warnings of trusted rules are added, too.

    `trusted` is the plan of the trusted policy. `others` were known before. `hint` says how to let
    the own policy apply.
    """
    own = {(refusal.rule, refusal.addresses) for refusal in plan.refusals}
    lifted = [
        replace(refusal, allow=hint, after_merge=True)
        for refusal in trusted.refusals
        if (refusal.rule, refusal.addresses) not in own
    ]
    planned = {(change.address, change.action) for change in trusted.changes}
    pruned = tuple(
        change.address
        for change in plan.changes
        if change.action.destructive and (change.address, change.action) not in planned
    )
    if pruned:
        message = f"{several(len(pruned), 'object')} would be pruned"
        lifted.append(Refusal("prune", message, pruned, allow=hint, after_merge=True))
    warnings = tuple(
        note
        for note in trusted.notes
        if note.code.startswith(RULE_PREFIX) and note not in plan.notes
    )
    return replace(
        plan,
        notes=(*plan.notes, *warnings),
        refusals=(*plan.refusals, *others, *lifted),
    )
