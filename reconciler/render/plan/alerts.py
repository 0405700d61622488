"""What a reviewer sees first: new places and queries, and policy violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.model.plan import Change, NewPlace, Novelty, Plan, Refusal
from reconciler.model.text import listed, printable, shortened
from reconciler.planning.places import INSIDE, PARENT
from reconciler.render.plan.words import nouns, with_names

HEADING = "New places and queries"
_TO = " -> "
_LONGEST_TEXT = 200
_LONGEST_PLACE = 300
"""As long as a name of a host can be, which what comes before it must not hide."""
_LONGEST_BEFORE = 80
_MOST_NAMES, _MOST_IN_DANGER = 3, 20
_MOST_HOSTS = 6
_PLURALS = {"prefix": "prefixes", "query": "queries"}


class NewLine(Struct, frozen=True):
    """Something new, and the changes that reach it, also as text."""

    sort: Novelty
    text: str
    users: str
    host: str
    changes: tuple[Change, ...]

    @property
    def at(self) -> Mark | None:
        """The place of a single change."""
        return self.changes[0].at if len(self.changes) == 1 else None

    @property
    def is_danger(self) -> bool:
        """Whether it is a known secret that goes to another address."""
        return self.sort is Novelty.SECRET


def new_lines(plan: Plan) -> tuple[NewLine, ...]:
    """Return what is new, the worst first."""
    groups: dict[tuple[Novelty, str], list[tuple[Change, NewPlace]]] = {}
    for change in plan.effective:
        receivers = {item.host for item in change.new if item.sort is Novelty.SECRET}
        for item in change.new:
            # An address that gets a secret is in the line of the secret.
            if item.text not in receivers:
                shown = replace(item, text=with_names(item.text, change))
                groups.setdefault((item.sort, shown.text), []).append((change, shown))
    ranked = sorted(groups.items(), key=lambda group: group[0][0].rank)
    return tuple(_line(members) for _, members in ranked)


def within_budget(lines: Sequence[NewLine], most: int) -> tuple[Sequence[NewLine], str]:
    """Return the first lines, with every danger, and a text that counts the others by host."""
    most = max(most, sum(line.is_danger for line in lines))
    counts = Counter(line.host for line in lines[most:])
    hosts = (
        f"{count:,} at {shortened(printable(host), _LONGEST_BEFORE)}"
        for host, count in counts.most_common()
    )
    rest = f"… {counts.total():,} more: {listed(hosts, _MOST_HOSTS)}" if counts else ""
    return lines[:most], rest


def _line(members: Sequence[tuple[Change, NewPlace]]) -> NewLine:
    """Return the line of equal items."""
    first, item = members[0]
    changes = list({change.address: change for change, _ in members}.values())
    before = listed(dict.fromkeys(other.before for _, other in members if other.before), 2)
    what, sign, where = printable(item.text).rpartition(_TO)
    text = f"{shortened(what, _LONGEST_TEXT)}{sign}{shortened(where, _LONGEST_PLACE)}"
    text += f" (before: {shortened(printable(before), _LONGEST_BEFORE)})" if before else ""
    users = shortened(str(first.address), _LONGEST_BEFORE)
    if len(changes) > 1:
        names = (printable(change.address.key) for change in changes)
        most = _MOST_IN_DANGER if item.sort is Novelty.SECRET else _MOST_NAMES
        keys = listed((shortened(name, _LONGEST_BEFORE) for name in names), most)
        users = f"{nouns(first.address.kind, len(changes))}: {keys}"
    details = [*_counts([part for _, other in members for part in other.inside])]
    details += ["begins to run again" if len(changes) == 1 else "begin to run again"] * item.again
    return NewLine(item.sort, text, "; ".join([users, *details]), item.host, tuple(changes))


def _counts(inside: Sequence[str]) -> Iterator[str]:
    """Yield how many parts of each sort are inside a place, if there are several, and queries."""
    words: dict[str, list[str]] = {}
    for part in dict.fromkeys(inside):
        word = part.partition(" ")[0]
        words.setdefault(word if word in (*INSIDE, PARENT) else "query", []).append(part)
    for word, parts in words.items():
        if len(parts) > 1:
            yield f"{len(parts):,} {_PLURALS.get(word, f'{word}s')}"
        elif word not in INSIDE:
            yield shortened(printable(parts[0]), _LONGEST_BEFORE)


def violations_of(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return an error for every violation, and a warning for one that takes effect later."""
    return tuple(map(_diagnostic, plan.refusals))


def new_places_of(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return a warning for each new place and query."""
    return tuple(
        Diagnostic(f"new-{line.sort}", Level.WARNING, f"{line.text}: {line.users}", line.at)
        for line in new_lines(plan)
    )


def unnamed_in(violation: Refusal) -> str:
    """Return the first addresses of a violation, "" if its message has them all."""
    addresses = [str(address) for address in violation.addresses]
    if all(address in violation.message for address in addresses):
        return ""
    return listed(addresses, _MOST_IN_DANGER)


def _diagnostic(violation: Refusal) -> Diagnostic:
    message = violation.message
    if violation.after_merge:
        message = f"takes effect after the merge: {message}"
    if names := unnamed_in(violation):
        message += f" ({names})"
    level = Level.WARNING if violation.after_merge else Level.ERROR
    return Diagnostic(violation.rule, level, message, violation.at, violation.allow)
