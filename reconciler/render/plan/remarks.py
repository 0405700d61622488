"""The consequences of changes, equal ones said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.change import Change, Consequence, Severity
from reconciler.model.wording import printable
from reconciler.render.plan.words import first_of, nouns

_ANY = "<address>"
_MOST_NAMES = 20


class Remark(Consequence, frozen=True):
    """A consequence of one or several changes. `whom` has their addresses if that is not clear."""

    whom: str = ""

    @property
    def full(self) -> str:
        """The message with the addresses."""
        return f"{self.message} ({self.whom})" if self.whom else self.message


def remarks_of(
    changes: Sequence[Change], *, unless: frozenset[tuple[str, str]] = frozenset()
) -> tuple[Remark, ...]:
    """Return the consequences of changes that are shown as one, by rule, the worst first.

    Messages that differ only in the address are one; of others the first is shown. `unless` are
    rules and messages that are shown elsewhere. A danger names its objects; those of deletions are
    listed anyway.
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
    return tuple(_merged(rules[key], of=len(changes)) for key in ranked)


def _merged(members: Sequence[tuple[Change, Consequence]], *, of: int) -> Remark:
    first, shown = members[0]
    rule, severity, message, effect = shown.rule, shown.severity, shown.message, shown.effect
    if of == 1:
        return Remark(rule, severity, message.replace(_ANY, str(first.address)), effect)
    others = sum(other.message != message for _, other in members)
    if others:
        message = message.replace(_ANY, str(first.address))
        message += f" ({first.address}; {others:,} more differ in detail: --verbose)"
    if len(members) == of and first.action is Action.DELETE:
        return Remark(rule, severity, message, effect, f"all {of:,}")
    whom = ""
    if len(members) < of or severity is Severity.DANGER:
        whom = first_of((str(change.address) for change, _ in members), _MOST_NAMES)
    if len(members) < of:
        whom = f"{len(members):,} of {of:,}: {whom}"
    return Remark(rule, severity, message, effect, whom)


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
