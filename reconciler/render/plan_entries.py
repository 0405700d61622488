"""Changes as entries: titles, signs, counts, consequences. Those that look the same are one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.kinds import kinds_by_name
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Consequence, Plan, Reason, Severity
from reconciler.model.text import counted_nouns, listed, printable, several, shortened
from reconciler.model.values import JSON, Address
from reconciler.render.options import Colour
from reconciler.render.plan_fields import (
    FieldLine,
    created_lines,
    json_line,
    lines_to_show,
    reach_line,
    variants_of,
    with_names,
)

ANY = "ADDRESS"
"""The word in messages in place of the address of a change, so that equal ones are equal."""
_Remarked: TypeAlias = Sequence[tuple[Change, Consequence]]
"""Changes with the same consequence, each with it as it is shown."""
_Positioned: TypeAlias = tuple[int, Change, tuple[FieldLine, ...]]
"""The position of a change in the plan, the change and its lines."""
_FEWEST: Mapping[Action, int] = {Action.CREATE: 4, Action.DELETE: 2}
"""Changes that are shown as one if there are so many."""
_FEWEST_EQUAL, _FEWEST_ALIKE = 3, 4
"""The same for other changes, with the same values and with others."""
_INSIDE = "destination.config."
_NUMBER = re.compile(r"\d+")
_OWN = frozenset({"name", "prefix", "table_name", "table_id", "dataset_id"})
"""What new objects of a group have of their own. All else is equal."""
_MOST_NAMED = 20
_MOST_LINES, _MOST_DELETED = 40, 100
"""Deletions of a group with lines of their own, and those that are named."""
_MOST_KEYS = 6
_MOST_NEW_NAMES = 40
_MOST_COMPARED = 40
_LONGEST_NAME = 80
_ALWAYS_COUNTED = (Action.CREATE, Action.UPDATE, Action.DELETE)
_TOTALS = (
    (Action.CREATE, Action.REPLACE),
    (Action.UPDATE, Action.PAUSE, Action.UNPAUSE),
    (Action.DELETE, Action.REPLACE),
)
_SHOWN_REASONS = (Reason.CONFLICT, Reason.FIXED_FIELD)
"""Reasons that neither the action nor the fields of a change show."""


class Label(Struct, frozen=True):
    """A sign or word, and its colour on a terminal."""

    text: str
    colour: Colour


SIGNS: Mapping[Action, Label] = {
    Action.CREATE: Label("+", Colour.GREEN),
    Action.UPDATE: Label("~", Colour.YELLOW),
    Action.REPLACE: Label("-/+", Colour.MAGENTA),
    Action.PAUSE: Label("‖", Colour.CYAN),
    Action.UNPAUSE: Label("▶", Colour.CYAN),
    Action.DELETE: Label("-", Colour.RED),
    Action.NO_OP: Label(" ", Colour.DIM),
}
SEVERITIES: Mapping[Severity, Label] = {
    Severity.DANGER: Label("!!", Colour.BOLD_RED),
    Severity.WARNING: Label("!", Colour.YELLOW),
    Severity.INFO: Label("i", Colour.DIM),
}


class Remark(Consequence, frozen=True):
    """A consequence of one or several changes. `whom` has their addresses if that is not clear.

    `of_all`: all changes of a group have it.
    """

    whom: str = ""
    of_all: bool = True

    @property
    def full(self) -> str:
        """The message with the addresses."""
        return f"{self.message} ({self.whom})" if self.whom else self.message


def remarks_of(
    changes: Sequence[Change], *, unless: frozenset[tuple[str, str]]
) -> tuple[Remark, ...]:
    """Return the consequences of changes that are shown as one, by rule, the worst first.

    Messages that differ only in the address are one. Of others the first is shown, and of dangers
    each, unless they are many. A danger names its objects. `unless` are rules and messages that
    are shown elsewhere.
    """
    rules: dict[tuple[str, tuple[int, int]], list[tuple[Change, Consequence]]] = {}
    for change in changes:
        for consequence in change.consequences:
            message = general(change, consequence)
            if (consequence.rule, message) not in unless:
                key = (consequence.rule, consequence.rank)
                shown = replace(consequence, message=message)
                rules.setdefault(key, []).append((change, shown))
    ranked = sorted(rules, key=lambda key: key[1])
    return tuple(_merged(part, of=len(changes)) for key in ranked for part in _parts(rules[key]))


def _parts(members: _Remarked) -> Iterable[_Remarked]:
    """Return what is shown as one: of dangers, the changes with the same message."""
    parts: dict[str, list[tuple[Change, Consequence]]] = {}
    for member in members:
        parts.setdefault(member[1].message, []).append(member)
    is_apart = members[0][1].severity is Severity.DANGER and len(parts) <= _MOST_NAMED
    return parts.values() if is_apart else (members,)


def _merged(members: _Remarked, *, of: int) -> Remark:
    first, shown = members[0]
    rule, severity, message, effect = shown.rule, shown.severity, shown.message, shown.effect
    if of == 1:
        return Remark(rule, severity, message.replace(ANY, str(first.address)), effect)
    others = sum(other.message != message for _, other in members)
    if others:
        message = message.replace(ANY, str(first.address))
        message += f" ({others:,} more differ: --verbose)"
    of_all, whom = len(members) == of, ""
    if not of_all or severity is Severity.DANGER:
        whom = listed((str(change.address) for change, _ in members), _MOST_NAMED)
    if not of_all and len(members) > 1:
        whom = f"{len(members):,} of {of:,}: {whom}"
    return Remark(rule, severity, message, effect, whom, of_all)


def general(change: Change, consequence: Consequence) -> str:
    """Return the message of a consequence without the address of its change."""
    message = printable(with_names(consequence.message, change))
    return message.replace(str(change.address), ANY)


def shared_notes(changes: Sequence[Change]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield rule and message of the notes that several changes have, and the text for all."""
    counts = Counter(
        (consequence.rule, general(change, consequence), change.address.kind)
        for change in changes
        for consequence in change.consequences
        if consequence.severity is Severity.INFO
    )
    for (rule, message, kind), count in counts.items():
        if count > 1:
            yield (rule, message), f"{nouns(kind, count)}: {message} [{rule}]"


def counted(plan: Plan, *, always: Collection[Action] = ()) -> dict[Action, str]:
    """Return `3 to create` for every action of the plan, and for those that `always` count."""
    counts = plan.counts
    return {
        action: f"{counts[action]:,} to {action.value}"
        for action in counts
        if counts[action] or action in always
    }


def summary(plan: Plan) -> str:
    """Return `Plan: 3 to create, 1 to update, 0 to delete, 7 unchanged (11 resources).`.

    Changes are counted by action. A resource that is updated and paused is one resource.
    """
    parts = [*counted(plan, always=_ALWAYS_COUNTED).values()]
    parts += [f"{plan.unchanged:,} unchanged"] if plan.unchanged else []
    return f"Plan: {', '.join(parts)} ({resources(plan)})."


def resources(plan: Plan) -> str:
    """Return the number of resources of a plan: `1 resource`, `1,204 resources`."""
    count = len({change.address for change in plan.effective}) + plan.unchanged
    word = "selected resource" if plan.selection.partial else "resource"
    return several(count, word)


def totals_of(plan: Plan) -> tuple[int, ...]:
    """Return how many resources a plan creates, changes and destroys. A replacement is both."""
    return tuple(
        len({change.address for change in plan.effective if change.action in actions})
        for actions in _TOTALS
    )


def nouns(kind: str, count: int) -> str:
    """Return a number of objects of a kind: `1 batch export`, `297 batch exports`."""
    known = kinds_by_name().get(kind)
    one, more = printable(kind), printable(known.collection if known is not None else f"{kind}s")
    return counted_nouns(count, one.replace("_", " "), more.replace("_", " "))


def title(change: Change) -> str:
    """Return the address, the name where it differs from the key, and the place of a deletion."""
    name, place = printable(change.name), deleted_in(change)
    # A long name, or one with many spaces, must not move away what follows.
    short = shortened(" ".join(name.split()), _LONGEST_NAME)
    named = "" if name == change.address.key else f' "{short}"'
    return f"{change.address}{named}{place}"


def deleted_in(change: Change) -> str:
    """Return ` in Web` for a deletion, "" for other actions."""
    parent = parent_of(change) if change.action is Action.DELETE else ""
    return f" in {parent}" if parent else ""


def shown_reasons(change: Change) -> tuple[str, ...]:
    """Return the reasons of a change that it does not show otherwise."""
    return tuple(reason.meaning for reason in change.reasons if reason in _SHOWN_REASONS)


def parent_of(change: Change) -> str:
    """Return the key, name or id of the parent, "" without one."""
    if change.parent_name is not None:
        return printable(change.parent_name)
    if change.parent is not None:
        return printable(str(change.parent))
    return printable(change.parent_id or "")


class Entry(Struct, frozen=True):
    """A change, or several that differ only in what they concern.

    `lines` are the fields to show, `members` the objects of a group as text. `notes` are those of
    the plan that concern one of its resources. `inside` are the deletions that a deletion makes.
    """

    changes: tuple[Change, ...]
    title: str
    lines: tuple[FieldLine, ...]
    remarks: tuple[Remark, ...]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    members: str = ""
    inside: Mapping[str, Sequence[Change]] = {}

    def title_of(self, change: Change) -> str:
        """Return the title of one of its changes, with the number of what is deleted with it."""
        return _title(change, self.inside)

    @property
    def change(self) -> Change:
        """The first of its changes."""
        return self.changes[0]

    def has_lines(self, *, verbose: bool) -> bool:
        """Return whether each of its changes has a line of its own: deletions, unless many."""
        is_few = verbose or len(self.changes) <= _MOST_LINES
        return self.change.action is Action.DELETE and is_few

    @property
    def grouped(self) -> bool:
        """Whether it has several changes."""
        return len(self.changes) > 1

    @property
    def rank(self) -> tuple[int, int]:
        """The rank of its worst consequence: without one, that after the last one."""
        return min((remark.rank for remark in self.remarks), default=(len(Severity), 0))

    @property
    def order(self) -> tuple[bool, bool, tuple[int, int], bool, bool]:
        """The order for a reviewer: dangers, what is new, by rank, what is lost, single ones."""
        is_danger = self.rank[0] == Severity.DANGER.rank
        is_new = any(change.new for change in self.changes)
        is_lost = self.change.action.destructive
        return not is_danger, not is_new, self.rank, not is_lost, self.grouped

    @property
    def drifted(self) -> bool:
        """Whether the only reason is that live state changed."""
        return set(self.change.reasons) == {Reason.DRIFTED}


def entries_of(
    changes: Sequence[Change],
    notes: Mapping[Address, Sequence[str]],
    *,
    inside: Mapping[str, Sequence[Change]],
    verbose: bool,
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the entries of changes in their order, and the notes that several changes have.

    What is deleted with its parent, as `inside` says by the id of that change, is in its entry.
    `verbose` shows every field and groups only equal ones.
    """
    shared = {} if verbose else dict(shared_notes(changes))
    unless = frozenset(shared)
    groups: dict[Hashable, list[_Positioned]] = {}
    included = {change.id for made in inside.values() for change in made}
    for position, change in enumerate(item for item in changes if item.id not in included):
        # The lines of new objects do not decide whether they are grouped.
        is_new = change.action is Action.CREATE
        lines = () if is_new else lines_to_show(change, verbose=verbose)
        key = _key(change, lines, tuple(notes.get(change.address, ())), verbose=verbose)
        groups.setdefault(key, []).append((position, change, lines))
    positioned = []
    for members in groups.values():
        position, first, _ = members[0]
        every = [lines for _, _, lines in members]
        fewest = _FEWEST_EQUAL if all(lines == every[0] for lines in every) else _FEWEST_ALIKE
        if len(members) >= _FEWEST.get(first.action, fewest):
            changes_of_group = [change for _, change, _ in members]
            entry = _entry(changes_of_group, _joined(every), notes, unless, inside)
            positioned.append((position, entry))
            continue
        for position, change, lines in members:
            shown = lines or lines_to_show(change, verbose=verbose)
            positioned.append((position, _entry((change,), shown, notes, unless, inside)))
    positioned.sort(key=lambda item: item[0])
    return tuple(entry for _, entry in positioned), tuple(shared.values())


def _title(change: Change, inside: Mapping[str, Sequence[Change]]) -> str:
    kinds = Counter(item.address.kind for item in inside.get(change.id, ()))
    return " and ".join([title(change), *(nouns(*item) for item in kinds.items())])


def _key(
    change: Change, lines: tuple[FieldLine, ...], notes: tuple[str, ...], *, verbose: bool
) -> Hashable:
    """Return what changes have in common that are shown as one."""
    kind, action, reasons = change.address.kind, change.action, change.reasons
    if (verbose and action in _FEWEST) or len(lines) > _MOST_COMPARED:
        return change.id
    if action is Action.CREATE:
        parent = change.parent_id or str(change.parent)
        warned = frozenset(
            item.rule for item in change.consequences if item.severity is not Severity.INFO
        )
        return action, kind, parent, reasons, notes, warned, _reach(change)
    sends = any(note.use.sent for note in change.secrets) or action is Action.UNPAUSE
    # The prefixes inside of one new place differ.
    new = tuple(replace(item, inside=()) for item in change.new)
    reach = (change.reach if sends else (), new)
    # `verbose` is where a reader is sent for messages that differ.
    rules = frozenset(
        (item.rule, item.severity, general(change, item) if verbose else "")
        for item in change.consequences
    )
    # Values that differ are one only inside of a destination that stays, if all change alike.
    is_own = verbose or change.severity is Severity.DANGER or change.new
    shown = tuple(
        line
        if is_own or line.hunk or not line.name.startswith(_INSIDE)
        else (line.name, line.kind, _edit(line))
        for line in lines
    )
    return action, kind, reasons, rules, shown, notes, reach


def _edit(line: FieldLine) -> tuple[str, str]:
    """Return what changes, numbers aside: `"web/1/" -> "v2/web/1/"` adds `v0/`."""
    before, after = _NUMBER.sub("0", line.before), _NUMBER.sub("0", line.after)
    same = _common(reversed(before), reversed(after))
    before, after = before[: len(before) - same], after[: len(after) - same]
    same = _common(before, after)
    return before[same:], after[same:]


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    """Return with how many equal characters two texts begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _joined(every: Sequence[tuple[FieldLine, ...]]) -> tuple[FieldLine, ...]:
    """Return the lines of changes of the same fields, each with how many values it has."""
    return tuple(map(_join, zip(*every, strict=True)))


def _join(lines: Sequence[FieldLine]) -> FieldLine:
    """Return the line of a field in several changes: `150 values, such as "a/" -> "v2/a/"`."""
    first = lines[0]
    count = len({(line.before, line.after) for line in lines})
    if count == 1:
        return first
    few = f"{count:,} values, such as "
    comment = first.comment if len({line.comment for line in lines}) == 1 else ""
    if first.before:
        return replace(first, before=f"{few}{first.before}", comment=comment)
    return replace(first, after=f"{few}{first.after}", comment=comment)


def _reach(change: Change) -> Hashable:
    """Return what a new object reaches, collects and sends: a group shows only what is equal."""
    if not any(variants_of(change.address.kind)):
        # All that a container without a place does is what it collects.
        return tuple(
            (field.path, json_line(field.after))
            for field in change.fields
            if field.path != ("name",)
        )
    secrets = tuple((note.path, str(note.ref)) for note in change.secrets)
    return change.reach, secrets, repr(_without(change.body or {}, _OWN))


def _without(value: JSON, names: Collection[str]) -> JSON:
    """Return a value without some names, at any depth."""
    if not isinstance(value, Mapping):
        return value
    return {name: _without(item, names) for name, item in value.items() if name not in names}


def _entry(
    changes: Sequence[Change],
    lines: tuple[FieldLine, ...],
    notes: Mapping[Address, Sequence[str]],
    unless: frozenset[tuple[str, str]],
    inside: Mapping[str, Sequence[Change]],
) -> Entry:
    """Return the entry of a change, or of a group."""
    first, name, members = changes[0], _title(changes[0], inside), ""
    if len(changes) > 1:
        name, members = nouns(first.address.kind, len(changes)), _members(changes)
        if first.action is Action.DELETE and len(changes) > _MOST_LINES:
            members = _listed(changes, _MOST_DELETED)
        if first.action is Action.CREATE:
            name += f" in {parent_of(first)}" if parent_of(first) else ""
            lines = _of_all(first)
            members = _listed(changes, _MOST_NEW_NAMES)
    remarks = remarks_of(changes, unless=unless)
    about = tuple(notes.get(first.address, ()))
    reasons = shown_reasons(first)
    return Entry(tuple(changes), name, lines, remarks, reasons, about, members, inside)


def _members(changes: Sequence[Change]) -> str:
    """Return the keys, or how many there are in each project."""
    parents = Counter(parent_of(change) for change in changes)
    if len(changes) <= _MOST_KEYS or list(parents) == [""]:
        return _listed(changes, _MOST_KEYS)
    counts = [f"{parent or '(organization)'} {count:,}" for parent, count in parents.items()]
    return f"{listed(counts, _MOST_NEW_NAMES)} (list: --verbose)"


def _listed(changes: Sequence[Change], most: int) -> str:
    more = " (list: --verbose)" if len(changes) > most else ""
    return listed((printable(change.address.key) for change in changes), most) + more


def _of_all(change: Change) -> tuple[FieldLine, ...]:
    """Return the lines that all new objects of a group have."""
    fields = tuple(item for item in change.fields if item.path[-1] not in _OWN)
    shared = replace(change, fields=fields, body=_without(change.body, _OWN), parent=None)
    return (*created_lines(replace(shared, parent_name=None)), *reach_line(change))
