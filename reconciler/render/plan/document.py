"""A plan as a document: content and order, shared by all formats.

A writer of a format decides signs, colours, widths and what is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model.change import Action, Change, Severity
from reconciler.model.plan import Plan, Refusal
from reconciler.model.wording import printable, several
from reconciler.render.plan.fields import FieldLine, field_lines
from reconciler.render.plan.words import base_as_text, shortened, summary, title

_IDENTIFYING = ("name", "interval", "destination.type")


@dataclass(frozen=True, slots=True)
class Entry:
    """A change with its title, its reasons as text, and all its fields."""

    change: Change
    title: str
    reason: str
    lines: tuple[FieldLine, ...]

    @property
    def brief(self) -> tuple[FieldLine, ...]:
        """The fields to show on a terminal. A deletion shows only what identifies the object."""
        if self.change.action is not Action.DELETE:
            return self.lines
        return tuple(line for line in self.lines if line.name in _IDENTIFYING)


@dataclass(frozen=True, slots=True)
class Document:
    """The sections of a plan. A section without content is empty.

    `entries` are the changes in the order in which they are applied. `unmanaged` is the number of
    unmanaged objects in words, `unmanaged_objects` has a line for each of them.
    """

    environment: str
    base: str
    summary: str
    no_changes: str
    entries: tuple[Entry, ...]
    violations: tuple[Refusal, ...]
    notes: tuple[str, ...]
    unmanaged: str
    unmanaged_objects: tuple[str, ...]

    @property
    def worst_first(self) -> tuple[Entry, ...]:
        """The entries for a reviewer: deletions and replacements first, then by severity."""

        def key(entry: Entry) -> tuple[bool, int]:
            severity = entry.change.severity
            rank = severity.rank if severity is not None else len(Severity)
            return (not entry.change.action.destructive, rank)

        return tuple(sorted(self.entries, key=key))


def document_of(plan: Plan) -> Document:
    """Return the document of a plan."""
    source = plan.source
    environment = f"{source.environment} ({source.base_url}, organization {source.organization})"
    return Document(
        environment=printable(environment),
        base=base_as_text(plan),
        summary=summary(plan),
        no_changes="No changes. Live state matches the configuration." if plan.empty else "",
        entries=tuple(_entry(change) for change in plan.effective),
        violations=plan.refusals,
        notes=tuple(note.message for note in plan.notes),
        unmanaged=several(len(plan.unmanaged), "unmanaged object") if plan.unmanaged else "",
        unmanaged_objects=tuple(_unmanaged_objects(plan)),
    )


def _entry(change: Change) -> Entry:
    reason = "; ".join(dict.fromkeys(reason.meaning for reason in change.reasons))
    return Entry(change, title(change), reason, tuple(field_lines(change)))


def _unmanaged_objects(plan: Plan) -> Iterator[str]:
    for unmanaged in plan.unmanaged:
        parent = unmanaged.parent_name
        place = f" in {shortened(printable(parent))}" if parent else ""
        yield printable(f'{unmanaged.address} "{shortened(unmanaged.name)}"') + place
