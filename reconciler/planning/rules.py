"""Evaluate `policy.rules`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec import field as default

from reconciler.model.address import Address, fits_any
from reconciler.model.kind import Action, Kind
from reconciler.model.plan import Change, Note, Refusal
from reconciler.model.policy import Policy, PolicyRule
from reconciler.model.text import printable
from reconciler.model.values import JSON, MISSING, path_text, value_at

Identity = tuple[str, str]
_NAMES = frozenset({"address", "name"})
"""The keys of a rule about what a change is called. So are the kinds of parents."""


class RuleBreach(Struct, frozen=True):
    """A rule, and the changes of a plan that match it."""

    rule: PolicyRule
    changes: tuple[Change, ...]


class Names(Struct, frozen=True):
    """The keys and names of one object: as configured, as applied and as live."""

    keys: set[str] = default(default_factory=set)
    names: set[str] = default(default_factory=set)

    def add(self, address: Address | None, *names: str) -> None:
        """Add a key and names."""
        if address is not None:
            self.keys.add(address.key)
        self.names.update(name.strip() for name in names)


def _names_of(
    changes: Iterable[Change], known: Mapping[Identity, Names]
) -> Mapping[Identity, Names]:
    """Return the names of objects by kind and id, those in the changes included."""
    names: dict[Identity, Names] = defaultdict(Names)
    for identity, item in known.items():
        names[identity] = Names(set(item.keys), set(item.names))
    for change in changes:
        if change.live_id:
            names[change.address.kind, change.live_id].add(change.address, *own_names(change))
    return names


def own_names(change: Change) -> Iterator[str]:
    """Yield the name of a change, before and after it."""
    yield change.name
    for item in change.fields:
        if item.path == ("name",):
            yield from (text for text in (item.before, item.after) if isinstance(text, str))


def breaches(
    rules: Iterable[PolicyRule],
    changes: Iterable[Change],
    kinds: Iterable[Kind],
    known: Mapping[Identity, Names] | None = None,
) -> Iterator[RuleBreach]:
    """Yield the rules that changes match, in their order.

    `known` are names of objects, by kind and id, that the changes do not contain.
    """
    rules, changes = tuple(rules), tuple(changes)
    if not rules:
        return
    by_name = {kind.name: kind for kind in kinds}
    names = _names_of(changes, known or {})
    subjects = [
        _Subject(change, by_name[change.address.kind], by_name, names)
        for change in changes
        if change.action is not Action.NO_OP and change.address.kind in by_name
    ]
    for rule in rules:
        matching = tuple(item.change for item in subjects if item.fits(rule.match))
        if matching:
            yield RuleBreach(rule, matching)


def rule_refusals(
    policy: Policy,
    changes: Iterable[Change],
    kinds: Iterable[Kind],
    known: Mapping[Identity, Names] | None = None,
) -> Iterator[Refusal]:
    """Yield a violation for every broken rule that denies changes."""
    for breach in breaches((rule for rule in policy.rules if rule.denies), changes, kinds, known):
        rule = breach.rule
        fix = rule.hint or f"omit the change with --exclude, or edit `policy.{rule.code}`"
        yield Refusal(
            rule.code,
            printable(rule.message),
            tuple(change.address for change in breach.changes),
            policy.marks.get(rule.code),
            printable(fix),
        )


def rule_notes(
    policy: Policy,
    changes: Iterable[Change],
    kinds: Iterable[Kind],
    known: Mapping[Identity, Names] | None = None,
) -> Iterator[Note]:
    """Yield a note on each change that breaks a rule that warns."""
    warning = (rule for rule in policy.rules if not rule.denies)
    for breach in breaches(warning, changes, kinds, known):
        rule = breach.rule
        hint = f" ({printable(rule.hint)})" if rule.hint else ""
        for change in breach.changes:
            yield Note(rule.code, f"{printable(rule.message)}{hint}", about=change.address)


class _Subject(Struct, frozen=True):
    """A change, its kind, all kinds by name, and the names of objects by kind and id."""

    change: Change
    kind: Kind
    kinds: Mapping[str, Kind]
    names: Mapping[Identity, Names]

    def fits(self, match: Mapping[str, JSON]) -> bool:
        """Return whether every key of a match fits."""
        return all(self._fits(str(key), _globs(wanted)) for key, wanted in match.items())

    def _fits(self, key: str, globs: Sequence[str]) -> bool:
        """Return whether a value fits a glob, and no `!GLOB` excludes it.

        What has several names is excluded only by all of them: one of them may be new.
        """
        excluded = [glob[1:] for glob in globs if glob.startswith("!")]
        wanted = [glob for glob in globs if not glob.startswith("!")] or ["*"][: len(excluded)]
        values = tuple(self._values(key))
        kept = [value for value in values if not any(fits_any(text, excluded) for text in value)]
        if kept and (key in _NAMES or key in self.kinds):
            kept = list(values)
        return any(fits_any(text, wanted) for value in kept for text in value)

    def _values(self, key: str) -> Iterator[tuple[str, ...]]:
        """Yield the values of a key, each with its synonyms. Other keys are those of variants."""
        change = self.change
        match key:
            case "address":
                yield from ((f"{change.address.kind}.{key}",) for key in self._own().keys)
            case "name":
                yield from ((name,) for name in self._own().names)
            case _ if key == change.address.kind:
                yield from _called(self._own(), change.live_id)
            case _ if key in self.kinds:
                yield from self._parents() if key == self.kind.parent else ()
            case "new":
                yield from ((item.sort.value, item.shown) for item in change.new)
            case _:
                yield from ((text,) for text in self._texts(key))

    def _texts(self, key: str) -> Iterator[str]:
        """Yield the values of a key that have no synonyms."""
        change = self.change
        match key:
            case "kind":
                yield change.address.kind
            case "action":
                yield from self._actions()
            case "consequence":
                yield from (item.rule for item in change.consequences)
            case "severity":
                yield from (item.severity.value for item in change.consequences)
            case "field":
                yield from self._paths()
            case _:
                yield from self._tags(key)

    def _own(self) -> Names:
        """Return the keys and names of the resource and its object."""
        change, own = self.change, Names()
        own.add(change.address, *own_names(change))
        known = self.names.get((change.address.kind, change.live_id or ""), Names())
        return Names(own.keys | known.keys, own.names | known.names)

    def _actions(self) -> Iterator[str]:
        """Yield its action, and those that a replacement contains."""
        yield self.change.action.value
        for item in self.change.fields if self.change.action is Action.REPLACE else ():
            yield from self.kind.toggled_to(item.path, item.after)

    def _parents(self) -> Iterator[tuple[str, ...]]:
        """Yield the keys, names and ids of its parents: also of the one that a move leaves."""
        change, parent = self.change, self.change.parent
        written = (parent.key, parent.name) if parent is not None else ()
        for parent_id, texts in (
            (change.parent_id, (*written, change.parent_name)),
            (change.old_parent_id, (change.old_parent_name,)),
        ):
            known = self.names.get((self.kind.parent or "", parent_id or ""), Names())
            own = {text.strip() for text in texts if text}
            yield from _called(Names(known.keys, known.names | own), parent_id)

    def _paths(self) -> Iterator[str]:
        """Yield the paths of the fields that change, and of the secrets that are sent."""
        yield from (path_text(item.path) for item in self.change.fields)
        yield from (path_text(note.path) for note in self.change.secrets if note.use.sent)

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


def _called(names: Names, identity: str | None) -> Iterator[tuple[str, ...]]:
    """Yield the keys and names of an object. Its id is another word for each of them."""
    ids = (identity,) if identity else ()
    yield from ((text, *ids) for text in sorted(names.keys | names.names) or ids)


def _globs(value: JSON) -> tuple[str, ...]:
    """Return the patterns of one text or a list."""
    return tuple(map(str, value if isinstance(value, (list, tuple)) else (value,)))
