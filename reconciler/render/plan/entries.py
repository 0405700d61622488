"""Changes that look the same, as one entry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, Reason, SecretNote, Severity
from reconciler.model.json_tree import leaves
from reconciler.model.secret_names import looks_like_address
from reconciler.model.values import MISSING, SecretRef, path_text, value_at
from reconciler.model.wording import printable
from reconciler.render.plan.brief import lines_to_show, variants_of
from reconciler.render.plan.fields import FieldLine, LineKind, named_secrets_line, origin_of
from reconciler.render.plan.remarks import Remark, general, remarks_of, shared_notes
from reconciler.render.plan.words import (
    bare,
    first_of,
    nouns,
    parent_of,
    shown_reasons,
    title,
)

_FEWEST: Mapping[Action, int] = {Action.CREATE: 21, Action.DELETE: 2}
"""Changes that are shown as one if there are so many."""
_FEWEST_EQUAL = 3
_MOST_NAMES = 6
_MOST_NEW_NAMES = 40
_MOST_COMPARED = 40
_FIELD = re.compile(r"\{(\w+)\}")

_Member: TypeAlias = tuple[int, Change, tuple[FieldLine, ...]]
"""The position of a change in the plan, the change and its lines."""


class Entry(Struct, frozen=True):
    """A change, or several that differ only in what they concern.

    `lines` are the fields to show, `members` the objects of a group as text. `notes` are those of
    the plan that concern one of its resources.
    """

    changes: tuple[Change, ...]
    title: str
    lines: tuple[FieldLine, ...]
    remarks: tuple[Remark, ...]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    members: str = ""

    @property
    def change(self) -> Change:
        """The first of its changes."""
        return self.changes[0]

    @property
    def grouped(self) -> bool:
        """Whether it has several changes."""
        return len(self.changes) > 1

    @property
    def rank(self) -> int:
        """The rank of its worst severity: without a consequence, that after the last one."""
        return min((remark.severity.rank for remark in self.remarks), default=len(Severity))

    @property
    def order(self) -> tuple[bool, bool, bool, int]:
        """The order for a reviewer: dangers, what is new, what is lost, then by severity."""
        is_danger = any(remark.severity is Severity.DANGER for remark in self.remarks)
        is_new = any(change.new for change in self.changes)
        return not is_danger, not is_new, not self.change.action.destructive, self.rank

    @property
    def drifted(self) -> bool:
        """Whether the only reason is that live state changed."""
        return set(self.change.reasons) == {Reason.DRIFTED}


class Entries(Struct, frozen=True):
    """The entries of a plan in its order, and the notes that several of its changes have."""

    listed: tuple[Entry, ...]
    shared: tuple[str, ...] = ()


def entries_of(
    changes: Sequence[Change],
    notes: Mapping[Address, Sequence[str]],
    *,
    verbose: bool = False,
) -> Entries:
    """Return the entries of changes. `verbose` shows every field and groups only equal ones."""
    shared = {} if verbose else dict(shared_notes(changes))
    unless = frozenset(shared)
    groups: dict[Hashable, list[_Member]] = {}
    for position, change in enumerate(changes):
        # The lines of new objects do not decide whether they are grouped.
        is_new = change.action is Action.CREATE
        lines = () if is_new else lines_to_show(change, verbose=verbose)
        key = _key(change, lines, tuple(notes.get(change.address, ())), verbose=verbose)
        groups.setdefault(key, []).append((position, change, lines))
    positioned = []
    joined = groups.values() if verbose else _joined(groups.values(), notes)
    for members in joined:
        position, first, lines = members[0]
        if len(members) >= _FEWEST.get(first.action, _FEWEST_EQUAL):
            every = [change for _, change, _ in members]
            positioned.append((position, _group(every, lines, notes, unless)))
            continue
        for position, change, lines in members:
            shown = lines or lines_to_show(change, verbose=verbose)
            positioned.append((position, _single(change, shown, notes, unless)))
    positioned.sort(key=lambda item: item[0])
    return Entries(tuple(entry for _, entry in positioned), tuple(shared.values()))


def _joined(
    groups: Iterable[list[_Member]], notes: Mapping[Address, Sequence[str]]
) -> Iterator[list[_Member]]:
    """Yield groups. Those of new objects that are too small are joined by their shape."""
    small: dict[Hashable, list[list[_Member]]] = {}
    for members in groups:
        _, change, _ = members[0]
        if change.action is Action.CREATE and len(members) < _FEWEST[Action.CREATE]:
            about = tuple(notes.get(change.address, ()))
            small.setdefault((*_alike(change, about), _shape(change)), []).append(members)
        else:
            yield members
    for parts in small.values():
        together = sorted((member for part in parts for member in part), key=lambda item: item[0])
        if len(together) >= _FEWEST[Action.CREATE]:
            yield together
        else:
            yield from parts


def _key(
    change: Change, lines: tuple[FieldLine, ...], notes: tuple[str, ...], *, verbose: bool
) -> Hashable:
    """Return what changes have in common that are shown as one."""
    kind, action, reasons = change.address.kind, change.action, change.reasons
    if verbose and action in _FEWEST:
        return change.id
    if action is Action.CREATE:
        # A group shows its addresses and secrets, so none of them can hide in it.
        return *_alike(change, notes), _reach(change)
    if len(lines) > _MOST_COMPARED:
        return change.id
    # `verbose` is where a reader is sent for messages that differ.
    rules = frozenset(
        (item.rule, item.severity, general(change, item) if verbose else "")
        for item in change.consequences
    )
    return action, kind, reasons, rules, lines, notes


def _alike(change: Change, notes: tuple[str, ...]) -> tuple[Hashable, ...]:
    """Return what new objects of one group have in common, besides what they reach."""
    parent = change.parent_id or str(change.parent)
    warned = frozenset(
        item.rule for item in change.consequences if item.severity is not Severity.INFO
    )
    return change.action, change.address.kind, parent, change.reasons, notes, warned


def _shape(change: Change) -> Hashable:
    """Return which addresses and secrets a new object has, without their values."""
    tags = tuple(
        str(value_at(change.body, (name, variant.tag)))
        for name, variant in variants_of(change.address.kind)
    )
    addresses = tuple(line.name for line in _addresses(change))
    return tags, addresses, tuple(note.path for note in _sent(change))


def _reach(change: Change) -> Hashable:
    """Return the addresses and the secrets of a new object."""
    return *_addresses(change), *((note.path, str(note.ref)) for note in _sent(change))


def _single(
    change: Change,
    lines: tuple[FieldLine, ...],
    notes: Mapping[Address, Sequence[str]],
    unless: frozenset[tuple[str, str]],
) -> Entry:
    return Entry(
        (change,),
        title(change),
        lines,
        remarks_of((change,), unless=unless),
        shown_reasons(change),
        tuple(notes.get(change.address, ())),
    )


def _group(
    changes: Sequence[Change],
    lines: tuple[FieldLine, ...],
    notes: Mapping[Address, Sequence[str]],
    unless: frozenset[tuple[str, str]],
) -> Entry:
    first = changes[0]
    name, members = nouns(first.address.kind, len(changes)), _members(changes)
    if first.action is Action.CREATE:
        name += f" in {parent_of(first)}" if parent_of(first) else ""
        reached: dict[Hashable, list[Change]] = {}
        for change in changes:
            reached.setdefault(_reach(change), []).append(change)
        alone = len(reached) == 1
        lines = (*_types(changes), *(_reached(first) if alone else _rows([*reached.values()])))
        members = _listed(changes, _MOST_NEW_NAMES) if alone else ""
    return Entry(
        tuple(changes),
        name,
        lines,
        remarks_of(changes, unless=unless),
        shown_reasons(first),
        tuple(notes.get(first.address, ())),
        members,
    )


def _members(changes: Sequence[Change]) -> str:
    """Return the keys, or how many there are in each project."""
    if len(changes) <= _MOST_NAMES:
        return _listed(changes, _MOST_NAMES)
    parents = Counter(parent_of(change) for change in changes)
    if list(parents) == [""]:
        return _listed(changes, _MOST_NAMES)
    counts = [f"{parent or '(organization)'} {count:,}" for parent, count in parents.items()]
    return f"{first_of(counts, _MOST_NEW_NAMES)} (list: --verbose)"


def _listed(changes: Sequence[Change], most: int) -> str:
    more = " (list: --verbose)" if len(changes) > most else ""
    return first_of((printable(change.address.key) for change in changes), most) + more


def _reached(change: Change) -> Iterator[FieldLine]:
    """Yield where a new object connects to or writes, and the secrets that it sends."""
    yield from _addresses(change)
    yield from named_secrets_line(_sent(change))


def _addresses(change: Change) -> Iterator[FieldLine]:
    outermost = {
        name
        for field, variant in variants_of(change.address.kind)
        for part in variant.summaries.get(str(value_at(change.body, (field, variant.tag))), ())[:1]
        for name in _FIELD.findall(part)
    }
    for path, value in leaves(change.body or {}):
        name = next(part for part in reversed(path) if isinstance(part, str))
        is_address = name in outermost or looks_like_address(name)
        if len(path) > 1 and is_address and not isinstance(value, SecretRef):
            yield FieldLine(printable(path_text(path[2:] or path)), LineKind.SET, after=bare(value))


def _rows(parts: Sequence[Sequence[Change]]) -> Iterator[FieldLine]:
    """Yield the names of the secrets, then a line for each combination of addresses and secrets.

    A line names the address, the origins of the secrets in their order, and the objects:
    `bucket_name lake-1  env:ID, env:KEY for orders, carts`.
    """
    if sent := _sent(parts[0][0]):
        names = ", ".join(path_text(note.path[2:] or note.path) for note in sent)
        yield FieldLine("secrets", LineKind.SET, after=printable(names))
    for changes in parts:
        first = changes[0]
        addresses = ", ".join(f"{line.name} {line.after}" for line in _addresses(first))
        origins = printable(", ".join(origin_of(note.ref) for note in _sent(first)))
        keys = ", ".join(printable(change.address.key) for change in changes)
        row = f"{origins} for {keys}" if origins else f"for {keys}"
        yield FieldLine(addresses or "no address", LineKind.SET, after=row)


def _sent(change: Change) -> list[SecretNote]:
    return [note for note in change.secrets if note.use.sent]


def _types(changes: Sequence[Change]) -> Iterator[FieldLine]:
    """Yield how many new objects have which variant: `destination  S3 280, Postgres 20`."""
    for name, variant in variants_of(changes[0].address.kind):
        tags = Counter(value_at(change.body, (name, variant.tag)) for change in changes)
        counts = [
            f"{printable(str(tag))} {count:,}"
            for tag, count in tags.most_common()
            if tag is not MISSING
        ]
        if counts:
            yield FieldLine(name, LineKind.SET, after=first_of(counts, _MOST_NAMES))
