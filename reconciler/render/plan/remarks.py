"""The consequences of changes, equal ones said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from reconciler.model.change import Change, Consequence, Severity
from reconciler.model.text import printable
from reconciler.render.plan.words import first_of, nouns

_ANY = "ADDRESS"
_MOST_NAMES = 20
_Members: TypeAlias = Sequence[tuple[Change, Consequence]]
"""Changes with the same consequence, each with it as it is shown."""


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
    changes: Sequence[Change], *, unless: frozenset[tuple[str, str]] = frozenset()
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


def _parts(members: _Members) -> Iterable[_Members]:
    """Return what is shown as one: of dangers, the changes with the same message."""
    parts: dict[str, list[tuple[Change, Consequence]]] = {}
    for member in members:
        parts.setdefault(member[1].message, []).append(member)
    is_apart = members[0][1].severity is Severity.DANGER and len(parts) <= _MOST_NAMES
    return parts.values() if is_apart else (members,)


def _merged(members: _Members, *, of: int) -> Remark:
    first, shown = members[0]
    rule, severity, message, effect = shown.rule, shown.severity, shown.message, shown.effect
    if of == 1:
        return Remark(rule, severity, message.replace(_ANY, str(first.address)), effect)
    others = sum(other.message != message for _, other in members)
    if others:
        message = message.replace(_ANY, str(first.address))
        message += f" ({first.address}; {others:,} more differ in detail: --verbose)"
    of_all, whom = len(members) == of, ""
    if not of_all or severity is Severity.DANGER:
        whom = first_of((str(change.address) for change, _ in members), _MOST_NAMES)
    if not of_all and len(members) > 1:
        whom = f"{len(members):,} of {of:,}: {whom}"
    return Remark(rule, severity, message, effect, whom, of_all)


def general(change: Change, consequence: Consequence) -> str:
    """Return the message of a consequence without the address of its change."""
    return printable(consequence.message).replace(str(change.address), _ANY)


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
