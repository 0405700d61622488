"""Refuse plans that violate the policy. Each guard checks the whole plan for one rule.

Those of users are in `policy.rules`. All violations are reported at once, each with the place of
the rule and the way to allow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.kinds import behaviour_of
from reconciler.kinds.behaviour import RuleContext
from reconciler.model.kind import Action, Kind
from reconciler.model.live import OTHER_TOOL, Identity, LiveObject, is_of_other_tool
from reconciler.model.plan import AMBIGUOUS, Change, Note, Refusal, Unmanaged
from reconciler.model.resource import Resource, State
from reconciler.model.schemas import known_schema, listed_values
from reconciler.model.settings import (
    DEFAULT_DELETES,
    UNKNOWN_VALUE,
    Policy,
    PolicyRule,
    to_send_anyway,
)
from reconciler.model.text import fits_any, joined, listed, near_miss, printable, quoted, several
from reconciler.model.values import JSON, MISSING, Address, Path, path_text, value_at
from reconciler.planning.draft import Draft, Synonyms
from reconciler.planning.duplicates import refusal_of, to_rename
from reconciler.planning.match import Match, Matching
from reconciler.planning.select import PrunedObject, Trusted

Obstacle: TypeAlias = tuple[str, str, str]
"""A rule, why an object prevents the deletion of what contains it, and the fix."""
_ABSENT = "to delete unmanaged objects, too, declare what contains them with `state: absent`"
_ALLOW_REPLACE = "set `lifecycle: {allow_replace: true}` on it, or pass --allow-replace"
READS_VARIABLE = "name reads a variable that has another value now"
_UNPROTECT = "set `lifecycle: {protect: false}` on it, merge and apply that; then remove it"
UNMANAGED: Obstacle = ("unmanaged-inside", "which no resource declares", _ABSENT)
_NOT_SELECTED: Obstacle = (
    "not-selected",
    "whose own deletion is not selected",
    "select it, too, for example with --project",
)


def obstacles(
    matching: Matching, pruned: Iterable[PrunedObject], kept: Mapping[Address, str]
) -> Iterator[tuple[tuple[str, str], Obstacle]]:
    """Yield by kind and id which objects are no unmanaged ones, the strongest reason last."""
    known = [(item.live, _NOT_SELECTED) for item in pruned]
    known += [
        (match.live, obstacle)
        for match in matching.removed.values()
        if match.live is not None and (obstacle := _of_removed(match.resource, kept)) is not None
    ]
    for match in matching.matches.values():
        known += [(match.live, of_declared(match))] if match.live is not None else []
    known += [
        (matching.live.by_identity[identity], _of_undecided(addresses))
        for identity, addresses in matching.undecided.items()
    ]
    ignored = ("ignore", "which matches `policy.ignore`", "narrow the glob in `policy.ignore`")
    known += [(live, ignored) for live in matching.ignored]
    return ((live.identity, obstacle) for live, obstacle in known)


def of_declared(match: Match) -> Obstacle:
    """Return why the object of a resource prevents it."""
    if match.resource.state is State.ABSENT:
        return _NOT_SELECTED
    fix = "move it to another place in the same plan, or remove it, too"
    return "declared-inside", f"but the configuration has {match.resource.address}", fix


def _of_undecided(addresses: Iterable[Address]) -> Obstacle:
    """Return why an object prevents it that may be that of one of some resources."""
    text = f"which may be {listed(sorted(addresses), 3)}"
    return AMBIGUOUS, text, "pin the resource by `id`, or delete the object in the service"


def _of_removed(resource: Resource, kept: Mapping[Address, str]) -> Obstacle | None:
    """Return why the object of a removed resource must stay, None if it need not."""
    address = resource.address
    if resource.lifecycle.protect:
        return "protect", f"and {address} is protected", _UNPROTECT
    if address in kept:
        return "kept", f"and {address} is kept: {kept[address]}", "declare it as `state: absent`"
    return None


Guard: TypeAlias = Callable[[Draft], Iterable[Refusal]]


def _refusal(
    draft: Draft, rule: str, address: Address, text: str, fix: str, path: Path = ()
) -> Refusal:
    """Return a violation of one resource, at its place or that of a field."""
    return Refusal(rule, text, (address,), draft.mark_of(address, path), fix)


def unclear(draft: Draft) -> Iterator[Refusal]:
    """Refuse resources whose object, project or integration is ambiguous or does not exist."""
    for refusal in draft.matching.unclear:
        if not draft.selected.addresses.isdisjoint(refusal.addresses):
            yield refusal


def protected(draft: Draft) -> Iterator[Refusal]:
    """Refuse to delete or replace what has `lifecycle.protect`, removed resources included.

    It holds in the files, in what was applied, and in a trusted commit: two changes lift it.
    """
    by_identity = draft.matching.live.by_identity
    inventory = draft.matching.inventory
    for change in draft.destructive:
        kind, address = draft.matching.kinds[change.address.kind], change.address
        live = by_identity.get((kind.name, change.live_id or ""))
        # The old object of a move is that of its resource.
        at = inventory.by_object.get((kind.name, change.live_id or ""), address)
        resource = draft.resources.get(address) or draft.resources.get(at)
        parent = by_identity.get((kind.parent or "", live.parent_id or "")) if live else None
        if not (resource is not None and resource.lifecycle.protect) and not (
            live is not None and inventory.is_protected(address, live, parent)
        ):
            continue
        fate = "deleted" if change.action is Action.DELETE else "replaced"
        yield Refusal(
            "protect",
            f"{address} is protected and would be {fate}",
            (address,),
            resource.near(("lifecycle", "protect")) if resource is not None else None,
            _UNPROTECT,
        )


def lost_with_parent(draft: Draft) -> Iterator[Refusal]:
    """Refuse to delete what contains an object that is not accounted for: it would be lost."""
    lost: dict[tuple[Address, Obstacle], list[str]] = {}
    for parent, obstacle, name in _staying(draft):
        lost.setdefault((parent.address, obstacle or UNMANAGED), []).append(name)
    for (address, (rule, text, fix)), names in lost.items():
        message = f"{address} would be deleted with {listed(names, 20)} in it, {text}"
        yield Refusal(rule, message, (address,), draft.mark_of(address), fix)


def _staying(draft: Draft) -> Iterator[tuple[Change, Obstacle | None, str]]:
    """Yield what does not leave an object to delete, or is put into it, with its name."""
    deletions = [change for change in draft.changes if change.action is Action.DELETE]
    parents = {(change.address.kind, change.live_id or ""): change for change in deletions}
    moved = [item for item in draft.changes if item.old_parent_id not in (None, item.parent_id)]
    leaving = {(change.address.kind, change.live_id) for change in (*deletions, *moved)}
    kept = draft.matching.left
    known = dict(obstacles(draft.matching, draft.selected.pruned, kept)) if parents else {}
    for kind in draft.matching.kinds.values() if parents else ():
        for item in draft.matching.live.of(kind.name):
            parent = parents.get((kind.parent or "", item.parent_id or ""))
            if parent is not None and (kind.name, item.id) not in leaving:
                name = f"{kind.name} {quoted(item.name)} (id {printable(item.id)})"
                yield parent, known.get((kind.name, item.id)), name
    created = [change for change in draft.changes if change.action is Action.CREATE]
    for match in (draft.matching.matches[change.address] for change in (*created, *moved)):
        parent = parents.get((match.kind.parent or "", match.parent_id or ""))
        if parent is not None:
            yield parent, of_declared(match), f"{match.kind.name} {quoted(match.resource.name)}"


def nothing_declared(draft: Draft) -> Iterator[Refusal]:
    """Refuse deletions by an environment without resources: its files may be missing."""
    if draft.destructive and not draft.matching.resources:
        yield Refusal(
            "nothing-declared",
            f"{several(len(draft.destructive), 'deletion')} in an environment without resources",
            _addresses(draft.destructive),
            allow="to delete the last ones, declare them with `state: absent`",
        )


def over_limit(draft: Draft) -> Iterator[Refusal]:
    """Refuse more than `max_deletes`, replacements included, and more than `max_changes`.

    Without `max_deletes`, only the deletions of what was removed from the files are limited.
    """
    policy, lost = draft.policy, draft.destructive
    deletes, counted = policy.max_deletes, lost
    if deletes is None:
        deletes, counted = DEFAULT_DELETES, draft.removed
    managed = sum(match.live is not None for match in draft.matching.matches.values())
    # A written limit counts all deletions, so the line to write allows all.
    for rule, limit, changes, allowed, word in (
        ("max_deletes", deletes, counted, lost, "deletion"),
        ("max_changes", policy.max_changes, draft.changes, draft.changes, "change"),
    ):
        if limit is None or limit.allows(len(changes), total=managed):
            continue
        of = f" of {several(managed, 'managed object')}" if limit.percent else ""
        yield Refusal(
            rule,
            f"{several(len(changes), word)} planned, the limit is {limit}{of}",
            _addresses(changes),
            policy.marks.get(rule),
            f"set `policy: {{{rule}: {len(allowed)}}}`, or narrow the plan with --target",
        )


def _addresses(changes: Iterable[Change]) -> tuple[Address, ...]:
    return tuple(change.address for change in changes)


def deletion_switched_off(draft: Draft) -> Iterator[Refusal]:
    """Refuse to delete objects of kinds whose deletion needs a second policy key."""
    for kind in draft.matching.kinds.values():
        switch = kind.deletion_switch
        deleted = [change for change in draft.destructive if change.address.kind == kind.name]
        if deleted and switch is not None and kind.name not in draft.policy.deletable:
            yield Refusal(
                switch,
                f"{several(len(deleted), kind.name)} would be deleted with all data",
                _addresses(deleted),
                draft.policy.marks.get(switch),
                f"set `policy: {{{switch}: true}}` for this environment",
            )


def replacement_not_allowed(draft: Draft) -> Iterator[Refusal]:
    """Refuse replacements, which lose id and history, unless they are allowed."""
    if draft.context.options.allow_replace:
        return
    for change in draft.changes:
        resource = draft.resources.get(change.address)
        allowed = resource is not None and resource.lifecycle.allow_replace
        if change.action is Action.REPLACE and not allowed:
            text = f"{change.address} must be replaced, which loses its id and history"
            fix = _to_replace(draft.matching, change)
            yield _refusal(draft, "allow_replace", change.address, text, fix)


def _to_replace(matching: Matching, change: Change) -> str:
    """Return what allows a replacement, or avoids it: to rename what a variable renamed."""
    above = matching.matches[change.address].parent_address
    name = matching.name_before(above) if above is not None else None
    if above is None or name is None or matching.inventory.every[above].id != change.old_parent_id:
        return _ALLOW_REPLACE
    return f"{to_rename(name)} on {above}, whose {READS_VARIABLE}"


def left_by_move(draft: Draft) -> Iterator[Refusal]:
    """Refuse a move that was cut short, unless the deletion of its old object is allowed."""
    deleted = draft.deleted
    for address, live in sorted(draft.matching.left_by_moves.items()):
        new = draft.matching.matches[address].live
        if address in draft.selected.addresses and live.identity not in deleted and new is not None:
            text = f"{address} was moved and has two objects: id {printable(new.id)}, and id "
            text += f"{printable(live.id)} in the former {draft.matching.kinds[live.kind].parent}"
            fix = f"{_ALLOW_REPLACE}, to delete the former one"
            yield _refusal(draft, "left-by-move", address, text, fix)


def replaced_id(draft: Draft) -> Iterator[Refusal]:
    """Refuse to replace what has an `id`: the new object has another."""
    for change in draft.changes:
        resource = draft.resources.get(change.address)
        if change.action is Action.REPLACE and resource is not None and resource.pinned_id:
            text = f"{change.address} has an `id` and must be replaced: the new one gets another id"
            fix = "remove `id:`: the inventory and the name identify the object"
            yield _refusal(draft, "replaced-id", change.address, text, fix, ("id",))


def denied_consequence(draft: Draft) -> Iterator[Refusal]:
    """Refuse changes that have a consequence of `deny`."""
    for rule in sorted(set(draft.policy.deny)):
        changes = [
            change
            for change in draft.changes
            if any(consequence.rule == rule for consequence in change.consequences)
        ]
        if changes:
            yield Refusal(
                "deny",
                f"denied consequence {quoted(rule)} of {several(len(changes), 'change')}",
                _addresses(changes),
                draft.policy.marks.get("deny"),
                f"remove {quoted(rule)} from `policy.deny`, or do not select what it denies",
            )


def pruned(draft: Draft) -> Iterator[Refusal]:
    """Refuse what the policy of the files prunes and this one does not."""
    addresses = _addresses(draft.removed)
    if addresses and not draft.policy.prune:
        yield Refusal("prune", f"{several(len(addresses), 'object')} would be pruned", addresses)


def ignored_name(draft: Draft) -> Iterator[Refusal]:
    """Refuse resources whose name, or that of their object, is in `ignore`."""
    named = {
        change.address
        for change in draft.changes
        for name in own_names(change)
        if fits_any(name.strip(), draft.policy.ignore)
    }
    for address in (*draft.matching.untouchable, *sorted(named)):
        if address in draft.selected.addresses:
            fix = "narrow the glob in `policy.ignore`"
            yield Refusal(
                "ignore",
                f"{address} matches `policy.ignore`",
                (address,),
                draft.policy.marks.get("ignore", draft.mark_of(address)),
                fix if address.is_unmanaged else f"remove the resource, or {fix}",
            )


def name_cycle(draft: Draft) -> Iterator[Refusal]:
    """Refuse changes that free a name for each other: the server refuses whichever comes first."""
    for cycle in draft.name_cycles:
        yield Refusal(
            "name-circle",
            f"{' and '.join(map(str, cycle))} wait for each other: names must be unique",
            tuple(cycle),
            allow="give one of them a temporary name, apply, then set its final name",
        )


def name_of_another_tool(draft: Draft) -> Iterator[Refusal]:
    """Refuse to rename what another tool finds by its name: it would create a second object."""
    for change in draft.changes:
        match, fields = draft.matching.matches.get(change.address), change.fields
        if change.action in (Action.CREATE, Action.DELETE) or match is None or match.live is None:
            continue
        is_renamed = change.action is Action.REPLACE or any(f.path == ("name",) for f in fields)
        if is_renamed and is_of_other_tool(match.live.name):
            text = f"{change.address} would lose the name by which {OTHER_TOOL} finds it"
            fix = "set `name` to the whole live name, or `lifecycle: {ignore_changes: [name]}`"
            yield _refusal(draft, OTHER_TOOL, change.address, text, fix)


def unlisted_type(draft: Draft) -> Iterator[Refusal]:
    """Refuse to create objects that no list has: later plans would create them again."""
    variants = {
        (kind.name, field.name): variant
        for kind in draft.matching.kinds.values()
        for field, variant in kind.variants
    }
    for change in draft.changes:
        if change.action not in (Action.CREATE, Action.REPLACE):
            continue
        for name, value in (change.body or {}).items():
            variant = variants.get((change.address.kind, name))
            if variant is not None and value.get(variant.tag) in variant.unlisted:
                yield Refusal(
                    "unlisted-type",
                    f"{change.address}: the API does not list objects of type "
                    f"{printable(str(value[variant.tag]))}, so a created one cannot be found again",
                    (change.address,),
                    allow="create it in the service, and pin it here with `id:`",
                )


def known_refusal(draft: Draft) -> Iterator[Refusal]:
    """Refuse changes that the server is known to refuse, except those of `attempt`."""
    kinds = draft.matching.kinds
    for rule_context in _rule_contexts(draft):
        address = rule_context.change.address
        for known in behaviour_of(kinds[address.kind]).refusals:
            if rule_context.action not in known.actions or known.id in draft.policy.attempt:
                continue
            objection = known.judge(rule_context)
            if objection is None:
                continue
            text = printable(f"{address}: {objection.message}")
            fix = f"{objection.fix}; {to_send_anyway(known.id)}"
            refusal = _refusal(draft, known.id, address, text, fix, objection.path)
            cause = objection.because_of
            yield replace(refusal, objects=(Unmanaged.of(cause, None),)) if cause else refusal


def _rule_contexts(draft: Draft) -> Iterator[RuleContext]:
    """Yield every change with the live objects that known refusals depend on."""
    names = {
        (change.address.kind, change.live_id): "" if change.action is Action.DELETE else change.name
        for change in draft.changes
    }
    parents = {(change.address.kind, change.parent_id) for change in draft.changes}
    objects: dict[tuple[str, str | None], LiveObject] = {}
    siblings: dict[tuple[str, str | None], list[LiveObject]] = defaultdict(list)
    for item in draft.matching.live.by_identity.values() if parents else ():
        at, of = item.identity, (item.kind, item.parent_id)
        if at in names:
            objects[at] = item
        if of in parents:
            name = names.get(at, item.name)
            siblings[of].append(replace(item, name=name) if name != item.name else item)
    created: dict[tuple[str, str | None], list[Change]] = defaultdict(list)
    for change in draft.changes:
        kind, is_deletion = change.address.kind, change.action is Action.DELETE
        yield RuleContext(
            change,
            draft.matching.kinds[kind],
            desired=None if is_deletion else draft.resources.get(change.address),
            live=objects.get((kind, change.live_id)),
            now=draft.context.now,
            dialect=draft.matching.live.dialect,
            siblings=siblings[kind, change.parent_id],
            created=created[kind, change.parent_id],
            integrations=draft.matching.live.integrations.get(change.parent_id or ""),
        )
        if change.action is Action.CREATE:
            created[kind, change.parent_id].append(change)


def misspelt_value(draft: Draft) -> Iterator[Refusal]:
    """Refuse to set a value that is probably a misspelt known one, except by `attempt`."""
    for change in draft.changes if UNKNOWN_VALUE not in draft.policy.attempt else ():
        resource = draft.resources.get(change.address)
        spec = resource.spec if resource is not None else {}
        values = (
            (*item, field.before, field.path)
            for field in change.fields
            for item in listed_values(known_schema(change.address.kind), spec, field.path)
        )
        for path, value, known, before, at in values:
            close = near_miss(value, known)
            if close is not None and value_at(before, path[len(at) :]) != value:
                text = f"unknown value {quoted(str(value))} for {path_text(path)} of "
                fix = joined(f"did you mean {quoted(close)}?", to_send_anyway(UNKNOWN_VALUE))
                address = change.address
                yield _refusal(draft, UNKNOWN_VALUE, address, f"{text}{address}", fix, path)


def possible_duplicate(draft: Draft) -> Iterator[Refusal]:
    """Refuse creates that would double what an object does."""
    for duplicate in draft.duplicates:
        yield refusal_of(duplicate, draft.matching)


def own_rule(draft: Draft) -> Iterable[Refusal]:
    """Refuse what a rule of the user denies."""
    return rule_refusals(draft.policy, draft.changes, draft.matching.kinds.values(), draft.names)


_Known: TypeAlias = Mapping[Identity, Synonyms]
_NAMES = frozenset({"address", "name"})
"""The keys of a rule about what a change is called. So are the kinds of parents."""


def _names_of(changes: Iterable[Change], known: _Known) -> _Known:
    """Return the names of objects by kind and id, those in the changes included."""
    names = defaultdict[Identity, Synonyms](Synonyms)
    for identity, item in known.items():
        names[identity] = Synonyms(set(item.keys), set(item.names))
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
    policy: Policy, changes: Iterable[Change], kinds: Iterable[Kind], known: _Known | None = None
) -> Iterator[tuple[PolicyRule, Sequence[Change]]]:
    """Yield the rules that changes match, in their order, with these changes.

    `known` are names of objects, by kind and id, that the changes do not contain.
    """
    if not policy.rules:
        return
    changes, by_name = tuple(changes), {kind.name: kind for kind in kinds}
    names = _names_of(changes, known or {})
    subjects = [
        _Subject(change, by_name[change.address.kind], by_name, names)
        for change in changes
        if change.action is not Action.NO_OP and change.address.kind in by_name
    ]
    for rule in policy.rules:
        if matching := [item.change for item in subjects if item.fits(rule.match)]:
            yield rule, matching


def rule_refusals(
    policy: Policy, changes: Iterable[Change], kinds: Iterable[Kind], known: _Known | None = None
) -> Iterator[Refusal]:
    """Yield a violation for every broken rule that denies changes."""
    for rule, broken in breaches(policy, changes, kinds, known):
        fix = rule.hint or f"do not select what it denies, or edit `policy.{rule.code}`"
        mark, text = policy.marks.get(rule.code), printable(rule.message)
        if rule.denies:
            yield Refusal(rule.code, text, _addresses(broken), mark, printable(fix))


def rule_notes(
    policy: Policy, changes: Iterable[Change], kinds: Iterable[Kind], known: _Known | None = None
) -> Iterator[Note]:
    """Yield a note on each change that breaks a rule that warns."""
    for rule, broken in breaches(policy, changes, kinds, known):
        hint = f" ({printable(rule.hint)})" if rule.hint else ""
        for change in broken if not rule.denies else ():
            yield Note(rule.code, f"{printable(rule.message)}{hint}", about=change.address)


class _Subject(Struct, frozen=True):
    """A change, its kind, all kinds by name, and the names of objects by kind and id."""

    change: Change
    kind: Kind
    kinds: Mapping[str, Kind]
    names: _Known

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

    def _own(self) -> Synonyms:
        """Return the keys and names of the resource and its object."""
        change, own = self.change, Synonyms()
        own.add(change.address, *own_names(change))
        known = self.names.get((change.address.kind, change.live_id or ""), Synonyms())
        return Synonyms(own.keys | known.keys, own.names | known.names)

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
            known = self.names.get((self.kind.parent or "", parent_id or ""), Synonyms())
            own = {text.strip() for text in texts if text}
            yield from _called(Synonyms(known.keys, known.names | own), parent_id)

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


def _called(names: Synonyms, identity: str | None) -> Iterator[tuple[str, ...]]:
    """Yield the keys and names of an object. Its id is another word for each of them."""
    ids = (identity,) if identity else ()
    yield from ((text, *ids) for text in sorted(names.keys | names.names) or ids)


def _globs(value: JSON) -> tuple[str, ...]:
    """Return the patterns of one text or a list."""
    return tuple(map(str, value if isinstance(value, (list, tuple)) else (value,)))


GUARDS: tuple[Guard, ...] = (
    unclear,
    protected,
    lost_with_parent,
    nothing_declared,
    over_limit,
    deletion_switched_off,
    replacement_not_allowed,
    left_by_move,
    replaced_id,
    denied_consequence,
    ignored_name,
    name_cycle,
    name_of_another_tool,
    unlisted_type,
    known_refusal,
    misspelt_value,
    possible_duplicate,
    own_rule,
    pruned,
)


def refusals(draft: Draft) -> tuple[Refusal, ...]:
    """Return every violation, in the order of the guards, then those that the files lift."""
    own = [refusal for guard in GUARDS for refusal in guard(draft)]
    later = draft.after_merge
    known = {(refusal.rule, refusal.addresses) for refusal in own}
    lifted = (
        refusal
        for guard in (GUARDS if later is not None else ())
        for refusal in guard(later or draft)
        if (refusal.rule, refusal.addresses) not in known
    )
    trusted = draft.context.trusted or Trusted(draft.policy)
    merged = (replace(item, allow=trusted.hint, after_merge=True) for item in lifted)
    return (*own, *trusted.others, *merged)
