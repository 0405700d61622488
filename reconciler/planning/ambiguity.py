"""Collect what makes identities ambiguous: reported together, with ids and the lines to paste."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from reconciler.errors import AmbiguousIdentity
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.text import printable, quoted
from reconciler.model.values import MISSING, value_at


class Ambiguities(Struct):
    """The problems of one matching, with their hints and the objects to look at."""

    problems: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    candidates: set[tuple[str, str]] = field(default_factory=set)

    def add(self, problem: str, hint: str, candidates: Sequence[LiveObject] = ()) -> None:
        """Add a problem. `candidates` are the objects of which one may be the right one."""
        self.problems.append(problem)
        self.hints.append(hint)
        self.candidates |= {(item.kind, item.id) for item in candidates}

    def add_choice(
        self,
        kind: Kind,
        address: Address,
        problem: str,
        objects: Sequence[LiveObject],
        former_names: Sequence[str] = (),
    ) -> None:
        """Add a choice between objects, which are listed by age. The oldest is in the hint.

        With a single object, the choice is between it and none. `former_names` are those that
        the resource lists.
        """
        by_age = sorted(objects, key=_age)
        collection = kind.collection
        pin = f"{collection}: {{{address.key}: {{id: {printable(by_age[0].id)}}}}}"
        names, places = {item.name.strip() for item in by_age}, {item.parent_id for item in by_age}
        listed = [
            f"  {printable(_shown(kind, item))}"
            + (f"   name {quoted(item.name)}" if len(names) > 1 else "")
            + (f"   {kind.parent} {item.parent_id}" if len(places) > 1 else "")
            for item in by_age
        ]
        hint = f"pin the intended one: {pin}, and declare or delete the other"
        if len(names) > 1 and names <= set(map(str.strip, former_names)):
            hint = f"keep only the intended name in `lifecycle.renamed_from`, or pin it: {pin}"
        if len(by_age) == 1:
            hint = f"pin it: {pin}, or declare it by another key or delete it"
        self.add("\n".join([f"{address}: {problem}", *listed]), hint, by_age)

    def raise_any(self) -> None:
        """Raise AmbiguousIdentity for all problems, if there are any."""
        if self.problems:
            raise self.error()

    def error(self) -> AmbiguousIdentity:
        """Return the exception for all problems."""
        return AmbiguousIdentity(
            "\n".join(self.problems),
            hint="\n".join(self.hints),
            candidates=tuple(sorted(self.candidates)),
        )


def interrupted(
    kind: Kind, address: Address, old: LiveObject, new: LiveObject, reason: str
) -> AmbiguousIdentity:
    """Return the error for a replacement that was interrupted and can't be continued."""
    problems = Ambiguities()
    problem = f"a replacement of it was interrupted and can't be continued: {reason}"
    problems.add_choice(kind, address, problem, [old, new])
    return problems.error()


def _age(live: LiveObject) -> tuple[str, str]:
    return (str(live.body.get("created_at")), live.id)


def _shown(kind: Kind, live: LiveObject) -> str:
    last = value_at(live.body, kind.activity) if kind.activity else MISSING
    run = "" if last in (MISSING, None) else f", last run {last}"
    return f"id: {live.id}   created {live.body.get('created_at')}{run}"
