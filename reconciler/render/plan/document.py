"""A plan as a document: the content and the order that all formats share.

A writer of a format decides only typography: signs, colours, widths, what is cut to a budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.errors import Mark
from reconciler.model.change import Action, Change, Consequence, Danger
from reconciler.model.plan import Plan, Refusal, Unmanaged
from reconciler.model.wording import printable
from reconciler.render.plan.fields import FieldLine, field_lines
from reconciler.render.plan.words import NO_CHANGES, REASONS, SIGNS, shortened, summary, title

_IDENTIFYING = ("name", "interval", "destination.type")
_MOST_ADDRESSES = 5
_SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. `at` is its place in the files, None where it has none.

    `lines` are all its fields, `brief` those that a reader on a terminal needs: of a deletion only
    what identifies the object.
    """

    action: Action
    sign: str
    title: str
    reason: str
    lines: tuple[FieldLine, ...]
    consequences: tuple[Consequence, ...]
    severity: Danger | None
    at: Mark | None

    @property
    def brief(self) -> tuple[FieldLine, ...]:
        """The fields to show where the plan file has the rest."""
        if self.action is not Action.DELETE:
            return self.lines
        return tuple(line for line in self.lines if line.name in _IDENTIFYING)


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of the policy that the plan breaks. `at` is the place of the rule."""

    rule: str
    message: str
    at: Mark | None
    addresses: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class UnmanagedSection:
    """Live objects that no resource claims: a sentence with their number, and a line for each."""

    sentence: str
    objects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The sections of a plan.

    `entries` are the changes in the order in which they are applied. `no_changes` and `unmanaged`
    are None where there is nothing to say, `base` where the plan was compared with no commit.
    """

    environment: str
    base: str | None
    summary: str
    counts: Mapping[Action, int]
    entries: tuple[Entry, ...]
    violations: tuple[Violation, ...]
    notes: tuple[str, ...]
    unmanaged: UnmanagedSection | None
    no_changes: str | None

    @property
    def worst_first(self) -> tuple[Entry, ...]:
        """The entries for a reviewer: deletions and replacements, then by severity."""

        def key(entry: Entry) -> tuple[bool, int]:
            rank = entry.severity.rank if entry.severity is not None else len(Danger)
            return (not entry.action.destructive, rank)

        return tuple(sorted(self.entries, key=key))


def document_of(plan: Plan) -> Document:
    """Return the document of a plan."""
    source = plan.source
    environment = f"{source.environment} ({source.base_url}, organization {source.organization})"
    return Document(
        environment=printable(environment),
        base=source.base[:_SHORT_COMMIT] if source.base is not None else None,
        summary=summary(plan),
        counts=plan.counts,
        entries=tuple(_entry(change) for change in plan.effective),
        violations=tuple(_violation(refusal) for refusal in plan.refusals),
        notes=tuple(note.message for note in plan.notes),
        unmanaged=_unmanaged(plan),
        no_changes=NO_CHANGES if plan.empty else None,
    )


def _entry(change: Change) -> Entry:
    return Entry(
        action=change.action,
        sign=SIGNS[change.action],
        title=title(change),
        reason="; ".join(dict.fromkeys(REASONS[reason] for reason in change.reasons)),
        lines=tuple(field_lines(change)),
        consequences=change.consequences,
        severity=change.danger,
        at=change.at,
    )


def _violation(refusal: Refusal) -> Violation:
    named = ", ".join(str(address) for address in refusal.addresses[:_MOST_ADDRESSES])
    rest = len(refusal.addresses) - _MOST_ADDRESSES
    return Violation(
        rule=refusal.rule,
        message=refusal.message,
        at=refusal.at,
        addresses=f"{named} and {rest} more" if rest > 0 else named,
        hint=refusal.allow,
    )


def _unmanaged(plan: Plan) -> UnmanagedSection | None:
    count = len(plan.unmanaged)
    if not count:
        return None
    things = "object is" if count == 1 else "objects are"
    sentence = f"{count} live {things} not in the files and left alone"
    return UnmanagedSection(sentence, tuple(_unmanaged_lines(plan.unmanaged)))


def _unmanaged_lines(objects: tuple[Unmanaged, ...]) -> Iterator[str]:
    for unmanaged in objects:
        parent = unmanaged.parent_name
        place = f" in {shortened(printable(parent))}" if parent else ""
        yield printable(f'{unmanaged.address} "{shortened(unmanaged.name)}"') + place
