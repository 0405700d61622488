"""A plan as a document: content and order, shared by all formats.

A writer of a format decides colours, widths and what is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.change import Severity
from reconciler.model.plan import Plan, Refusal
from reconciler.model.text import printable, shortened
from reconciler.render.plan.entries import Entry, entries_of
from reconciler.render.plan.header import (
    base_as_text,
    environment_as_text,
    plan_as_id,
    undone_as_text,
    versions_as_text,
)
from reconciler.render.plan.new_places import NewLine, new_lines
from reconciler.render.plan.projects import ProjectRow, rows_of
from reconciler.render.plan.remarks import Remark
from reconciler.render.plan.words import counted_nouns, summary

_IN_HEADER = "no-git-base"
"""The note that the line of the base replaces."""
_LOOSENED = ("loosened", "kept")


class Document(Struct, frozen=True):
    """The sections of a plan. A section without content is empty.

    `new` are the new places and queries. `entries` are the changes, the worst first, `drift` those
    that only set back what changed outside of the configuration. `versions` are the base and what
    is planned, `remarks` those on the base. `loosened` is what the files permit now and did not at
    the git base, or no longer manage. `unmanaged` is the number of unmanaged objects,
    `unmanaged_objects` has a line for each of them.
    """

    plan: Plan
    environment: str
    base: str
    versions: str
    remarks: tuple[str, ...]
    id: str
    undoes: str
    summary: str
    new: tuple[NewLine, ...]
    entries: tuple[Entry, ...]
    drift: tuple[Entry, ...]
    projects: tuple[ProjectRow, ...]
    violations: tuple[Refusal, ...]
    loosened: tuple[str, ...]
    notes: tuple[str, ...]
    unmanaged: int
    unmanaged_objects: tuple[str, ...]

    @property
    def worst_first(self) -> tuple[Entry, ...]:
        """All entries for a reviewer, those with drift in between."""
        return _ordered((*self.entries, *self.drift))

    @property
    def dangerous(self) -> Iterator[tuple[Entry, Remark]]:
        """The dangers with their entries, for a reviewer, except those that `new` says."""
        for entry in self.worst_first:
            for remark in entry.remarks:
                if remark.severity is Severity.DANGER and not entry.has_as_new(remark):
                    yield entry, remark

    @property
    def dangers(self) -> int:
        """The number of dangers."""
        return sum(map(len, self.plan.dangers.values()))


def document_of(plan: Plan, *, verbose: bool = False, brief: bool = False) -> Document:
    """Return the document of a plan. `verbose` has all fields, `brief` the counts by project."""
    changed = {change.address for change in plan.effective}
    about: dict[Address, list[str]] = {}
    notes = []
    for note in plan.notes:
        if note.about is not None and note.about in changed:
            about.setdefault(note.about, []).append(note.message)
        elif note.code == "adopted" and note.about is not None and not verbose:
            continue  # Another note counts them.
        elif note.code not in (_IN_HEADER, *_LOOSENED):
            notes.append(f"{note.about}: {note.message}" if note.about else note.message)
    entries = entries_of(plan.effective, about, verbose=verbose)
    ordered = _ordered(entries.listed)
    return Document(
        plan=plan,
        environment=environment_as_text(plan.source, full=verbose),
        base=base_as_text(plan),
        versions=versions_as_text(plan),
        remarks=tuple(map(printable, plan.source.base_remarks)),
        id=plan_as_id(plan),
        undoes=undone_as_text(plan),
        summary=summary(plan),
        new=new_lines(plan),
        entries=tuple(entry for entry in ordered if not entry.drifted),
        drift=tuple(entry for entry in ordered if entry.drifted),
        projects=rows_of(plan, always=brief),
        violations=plan.refusals,
        loosened=tuple(note.message for note in plan.notes if note.code in _LOOSENED),
        notes=(*entries.shared, *notes),
        unmanaged=len(plan.unmanaged),
        unmanaged_objects=tuple(_unmanaged_objects(plan)),
    )


def _ordered(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries, the worst first; without a difference in the order of the plan."""
    return tuple(sorted(entries, key=lambda entry: entry.order))


def unmanaged_count(document: Document) -> str:
    """Return `1 unmanaged object`."""
    return counted_nouns(document.unmanaged, "unmanaged object", "unmanaged objects")


def _unmanaged_objects(plan: Plan) -> Iterator[str]:
    for unmanaged in plan.unmanaged:
        parent = unmanaged.parent_name
        place = f" in {shortened(printable(parent))}" if parent else ""
        yield printable(f'{unmanaged.address} "{shortened(unmanaged.name)}"') + place
