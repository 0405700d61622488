"""Named refusals (design, section 6): each guard looks at the whole plan and says what breaches it.

All refusals are told at once, each with the line of the policy and the exact way to allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.kind import Kind
from reconciler.model.plan import Refusal
from reconciler.model.policy import Limit, Policy
from reconciler.model.resource import Resource
from reconciler.model.wording import printable, quoted, several

_GONE = (Action.DELETE, Action.REPLACE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a guard looks at: the changes in order, and what they are measured against.

    `resources` are the declared ones, and those of the git base that are gone. `managed` is the
    number of objects that percentages refer to.
    """

    changes: Sequence[Change]
    policy: Policy
    kinds: Sequence[Kind]
    resources: Mapping[Address, Resource]
    managed: int
    allow_replace: bool
    untouchable: Sequence[Address]
    circles: Sequence[Sequence[Address]]


Guard: TypeAlias = Callable[[Proposal], Iterable[Refusal]]


def nothing_protected(proposal: Proposal) -> Iterator[Refusal]:
    """`lifecycle.protect` forbids deletion and replacement, removal of the file included."""
    for change in proposal.changes:
        resource = proposal.resources.get(change.address)
        if change.action not in _GONE or resource is None or not resource.lifecycle.protect:
            continue
        mark = resource.marks.get(("lifecycle", "protect"), resource.mark)
        yield Refusal(
            "protect",
            f"{change.address} is protected and would be {_past(change.action)}",
            (change.address,),
            mark,
            "set `lifecycle: {protect: false}` on it and apply that first; then remove it",
        )


def _past(action: Action) -> str:
    return "deleted" if action is Action.DELETE else "replaced"


def deletes_within_limit(proposal: Proposal) -> Iterator[Refusal]:
    """`max_deletes`: deletions and replacements together."""
    gone = [each for each in proposal.changes if each.action in _GONE]
    yield from _over(proposal, "max_deletes", proposal.policy.max_deletes, gone, "deletion")


def changes_within_limit(proposal: Proposal) -> Iterator[Refusal]:
    """`max_changes`: everything that is not a no-op."""
    made = [each for each in proposal.changes if each.action is not Action.NO_OP]
    yield from _over(proposal, "max_changes", proposal.policy.max_changes, made, "change")


def _over(
    proposal: Proposal, rule: str, limit: Limit | None, changes: Sequence[Change], word: str
) -> Iterator[Refusal]:
    if limit is None or limit.allows(len(changes), total=proposal.managed):
        return
    of = f" of {proposal.managed} managed objects" if limit.percent else ""
    yield Refusal(
        rule,
        f"{several(len(changes), word)}, and the policy allows {limit}{of}",
        tuple(each.address for each in changes),
        proposal.policy.marks.get(rule),
        f"raise `policy: {{{rule}: {len(changes)}}}`, or narrow the plan with --target",
    )


def kinds_may_be_deleted(proposal: Proposal) -> Iterator[Refusal]:
    """Kinds whose deletion destroys data ask for a second switch."""
    for kind in proposal.kinds:
        gone = [
            each
            for each in proposal.changes
            if each.address.kind == kind.name and each.action in _GONE
        ]
        if not gone or kind.deletion_switch is None or kind.name in proposal.policy.deletable:
            continue
        yield Refusal(
            kind.deletion_switch,
            f"{several(len(gone), kind.name)} would be deleted, and its data destroyed",
            tuple(each.address for each in gone),
            proposal.policy.marks.get(kind.deletion_switch),
            f"set `policy: {{{kind.deletion_switch}: true}}` for this environment",
        )


def replacements_allowed(proposal: Proposal) -> Iterator[Refusal]:
    """A replacement loses id and history: never without a word from the resource or the caller."""
    if proposal.allow_replace or proposal.policy.allow_replace:
        return
    for change in proposal.changes:
        if change.action is not Action.REPLACE:
            continue
        resource = proposal.resources.get(change.address)
        if resource is not None and resource.lifecycle.allow_replace:
            continue
        mark = resource.mark if resource is not None else None
        yield Refusal(
            "allow_replace",
            f"{change.address} can only be replaced: its id and history would be lost",
            (change.address,),
            mark,
            "set `lifecycle: {allow_replace: true}` on it, or pass --allow-replace",
        )


def no_denied_consequence(proposal: Proposal) -> Iterator[Refusal]:
    """`deny`: consequences that the policy does not accept."""
    for rule in sorted(set(proposal.policy.deny)):
        hit = [
            each
            for each in proposal.changes
            if any(consequence.rule == rule for consequence in each.consequences)
        ]
        if hit:
            yield Refusal(
                "deny",
                f"the policy denies {quoted(rule)}, which follows from "
                f"{several(len(hit), 'change')}",
                tuple(each.address for each in hit),
                proposal.policy.marks.get("deny"),
                f"take {quoted(rule)} out of `policy.deny`, or leave the change out with --exclude",
            )


def nothing_untouchable(proposal: Proposal) -> Iterator[Refusal]:
    """A resource that declares a name which the policy says never to touch."""
    for address in proposal.untouchable:
        resource = proposal.resources.get(address)
        mark = resource.mark if resource is not None else None
        yield Refusal(
            "ignore",
            f"{address} declares a name that the policy says never to touch",
            (address,),
            proposal.policy.marks.get("ignore", mark),
            "remove the resource, or narrow the glob in `policy.ignore`",
        )


def no_names_in_a_circle(proposal: Proposal) -> Iterator[Refusal]:
    """Two objects that swap names: the server refuses whichever comes first."""
    for circle in proposal.circles:
        listed = " and ".join(str(each) for each in circle)
        yield Refusal(
            "name-circle",
            f"{listed} take each other's names, and the server refuses a name that is taken",
            tuple(circle),
            None,
            "rename one of them to a temporary name, apply, and then give it its new name",
        )


def nothing_that_no_list_shows(proposal: Proposal) -> Iterator[Refusal]:
    """A created object that no list shows would be created again by every later plan."""
    tagged = {
        (kind.name, field.name): variant
        for kind in proposal.kinds
        for field, variant in kind.variants
        if variant.unlisted
    }
    for change in proposal.changes:
        if change.action not in (Action.CREATE, Action.REPLACE):
            continue
        for name, value in (change.body or {}).items():
            variant = tagged.get((change.address.kind, name))
            if variant is None or value.get(variant.tag) not in variant.unlisted:
                continue
            yield Refusal(
                "unlisted-type",
                f"{change.address}: objects of type {printable(str(value[variant.tag]))} are in no "
                "list of the service, so one that is created here could not be found again",
                (change.address,),
                None,
                "create it once in the service, and pin it here with `id:`",
            )


GUARDS: tuple[Guard, ...] = (
    nothing_protected,
    deletes_within_limit,
    changes_within_limit,
    kinds_may_be_deleted,
    replacements_allowed,
    no_denied_consequence,
    nothing_untouchable,
    no_names_in_a_circle,
    nothing_that_no_list_shows,
)


def refusals(proposal: Proposal) -> tuple[Refusal, ...]:
    """Every breach, in the order of the guards."""
    return tuple(refusal for guard in GUARDS for refusal in guard(proposal))
