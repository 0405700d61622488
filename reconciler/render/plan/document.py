"""A plan as a document: content and order, shared by all formats.

A writer of a format decides colours, widths and what is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.kind import Action, containers
from reconciler.model.plan import Change, Plan, PlanSource, Reason, Refusal, Severity
from reconciler.model.text import printable, several, shortened
from reconciler.render.plan.alerts import NewLine, new_lines
from reconciler.render.plan.entries import Entry, Remark, entries_of
from reconciler.render.plan.words import counted_nouns, parent_of, summary

_SHORT_COMMIT = 7
SHORT_ID = 8
_LONGEST_BRANCH = 80
_LONGEST_NAME = 40
_AGES = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_NOT_USED = "not used: the plan has only what the command requests"
_NO_BASE = "none: removals, drift and changed secrets are not detected (--base REF)"
_FEWEST_OBJECTS = 10
_IN_HEADER = "no-git-base"
"""The note that the line of the base replaces."""
_LOOSENED = ("loosened", "kept")


def environment_as_text(source: PlanSource, *, full: bool = False) -> str:
    """Return `production "Acme EU" · https://eu.posthog.com`, without a name the organization's id.

    Unless it is shown in full, an organization id that is a UUID is shortened.
    """
    name, where = source.environment, source.base_url
    if source.organization_name:
        name += f' "{shortened(source.organization_name, _LONGEST_NAME)}"'
    if full or not source.organization_name:
        where += f" · organization {source.organization if full else _short(source.organization)}"
    return printable(f"{name} · {where}")


def base_as_text(plan: Plan) -> str:
    """Return `origin/main@1a2b3c4 (3 commits, 2 hours)`, or what is missing without a base."""
    source = plan.source
    if source.base is None:
        requested = any(Reason.REQUESTED in change.reasons for change in plan.effective)
        return _NOT_USED if requested else _NO_BASE
    name = base_name(source)
    if source.base == source.head:
        return f"{name} (HEAD)"
    age = _age(source.base_time or "", plan.created_at)
    distance = several(source.base_commits, "commit")
    return f"{name} ({distance}, {age})" if age else f"{name} ({distance})"


def versions_as_text(plan: Plan) -> str:
    """Return `origin/main@1a2b3c4 (3 commits) → feature@9f8e7d6`, `base …` without a HEAD."""
    base, head = base_as_text(plan), _named(plan.source.head_ref, plan.source.head)
    uncommitted = " + uncommitted" if plan.source.uncommitted else ""
    return f"{base} → {head}{uncommitted}" if head else f"base {base}"


def base_name(source: PlanSource) -> str:
    """Return `origin/main@1a2b3c4`, the commit alone without a reference."""
    return _named(source.head_ref if source.base_ref == "HEAD" else source.base_ref, source.base)


def _named(ref: str | None, commit: str | None) -> str:
    short = printable((commit or "")[:_SHORT_COMMIT])
    branch = shortened(printable(ref or ""), _LONGEST_BRANCH)
    return f"{branch}@{short}" if branch and short else short


def plan_as_id(plan: Plan) -> str:
    """Return `plan 3c9a41f0`."""
    return f"plan {plan.plan_id[:SHORT_ID]}"


def undone_as_text(plan: Plan) -> str:
    """Return what a plan undoes, "" if nothing."""
    undone = plan.source.undoes
    if undone is not None:
        return f"plan {printable(undone[:SHORT_ID])}"
    undoes = any(Reason.UNDO in change.reasons for change in plan.effective)
    return "applied changes" if undoes else ""


def _short(organization: str) -> str:
    try:
        UUID(organization)
    except ValueError:
        return organization
    # Ids that were made in the same minute begin alike.
    return f"{organization[:SHORT_ID]}…{organization[-4:]}"


def _age(start: str, end: str) -> str:
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        # A saved plan may contain any text.
        return ""
    ages = (several(int(passed // size), unit) for size, unit in _AGES if passed >= size)
    return next(ages, "")


class ProjectRow(Struct, frozen=True):
    """A project, with the number of its changes by action."""

    name: str
    counts: Mapping[Action, int]


def rows_of(plan: Plan, *, always: bool = False) -> tuple[ProjectRow, ...]:
    """Return the projects, those with most changes first.

    Return none for a small plan, one project, or one change in each, unless `always`.
    """
    counts: dict[str, Counter[Action]] = {}
    # The changes in a project that is renamed have its live name.
    parents = containers(all_kinds())
    renamed = {
        change.live_id: project_of(change)
        for change in plan.effective
        if change.live_id and change.address.kind in parents
    }
    for change in plan.effective:
        name = renamed.get(change.parent_id or "") or project_of(change)
        counts.setdefault(name, Counter())[change.action] += 1
    objects = len({change.address for change in plan.effective})
    # The entries already show a plan with one change in each project.
    most = max((count.total() for count in counts.values()), default=0)
    if not always and (len(counts) < 2 or most < 2 or objects <= _FEWEST_OBJECTS):
        return ()
    ranked = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    return tuple(ProjectRow(name, count) for name, count in ranked)


def project_of(change: Change) -> str:
    """Return the name of the project of a change, or of the changed object if it is one."""
    if change.address.kind in containers(all_kinds()):
        return printable(change.name)
    return parent_of(change) or "(organization)"


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
