"""The forms of a plan in public JSON, with descriptions and fields derived from others."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, UnsetType, field

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.codec.base import AddressText, Form, PlaceForm, copied, optional
from reconciler.model.codec.change import ChangeForm, Digest
from reconciler.model.identity import plan_id_of
from reconciler.model.kind import Dialect
from reconciler.model.plan import Note, Plan, PlanSource, Refusal, Unmanaged
from reconciler.model.plan_options import Selection
from reconciler.model.public import Count

FORMAT_VERSION: Final = 1
# Fields of a source that are absent if they have these values.
_IF_GIVEN: Final = {
    "head_ref": None,
    "base_remarks": (),
    "uncommitted": False,
    "organization_name": None,
}


class SourceForm(Form, frozen=True, kw_only=True):
    """What a plan was computed from."""

    environment: str
    """Name of the environment."""
    organization: str
    """Id of the organization."""
    base_url: str
    """Base URL of the service."""
    tool_version: str
    """Version of reconciler that made it."""
    dialect: Dialect | None
    """Dialect of the server, null if unknown."""
    base: str | None
    """Commit of the git base, null without one."""
    base_ref: str | None
    """Short name of the git reference of the base, null without one."""
    base_commits: Count
    """Commits since the base that touch the workspace."""
    base_time: str | None
    """Time of the base commit, ISO 8601, null without one."""
    head: str | None
    """Commit that is checked out, null outside of git."""
    head_ref: str | UnsetType = UNSET
    """Branch of that commit, as git or the CI job names it. Absent if unknown."""
    undoes: str | None
    """Id of the plan that this one undoes, null for any other plan."""
    base_remarks: tuple[str, ...] | UnsetType = UNSET
    """What a reader should know about the choice of the base. Absent if nothing."""
    uncommitted: bool | UnsetType = UNSET
    """Whether the files that were planned differ from those of `head`. Absent if they do not."""
    organization_name: str | UnsetType = UNSET
    """Name of the organization. Absent if the key may not read it."""

    @classmethod
    def of(cls, source: PlanSource) -> SourceForm:
        """Return the form of a source."""
        given = {name: getattr(source, name) or UNSET for name in _IF_GIVEN}
        return copied(cls, source, **given)

    def value(self) -> PlanSource:
        """Return the source."""
        given = {name: getattr(self, name) or absent for name, absent in _IF_GIVEN.items()}
        return copied(PlanSource, self, **given)


class SummaryForm(Form, frozen=True, kw_only=True):
    """Counts by action."""

    create: Count
    """Changes whose action is `create`."""
    update: Count
    """Changes whose action is `update`."""
    replace: Count
    """Changes whose action is `replace`."""
    pause: Count
    """Changes whose action is `pause`."""
    unpause: Count
    """Changes whose action is `unpause`."""
    delete: Count
    """Changes whose action is `delete`."""
    no_op: Count = field(name="no-op")
    """Changes whose action is `no-op`."""
    unmanaged: Count
    """Unmanaged objects: live objects that no resource claims."""
    empty: bool
    """Whether applying the plan sends nothing."""

    @classmethod
    def of(cls, plan: Plan) -> SummaryForm:
        """Return the summary of a plan."""
        counts = {action.name.lower(): count for action, count in plan.counts.items()}
        return cls(**counts, unmanaged=len(plan.unmanaged), empty=plan.empty)


class ObjectForm(Form, frozen=True, kw_only=True):
    """A live object."""

    address: AddressText
    name: str
    """Its name."""
    parent_id: str | None
    """Id of its parent."""
    parent_name: str | None
    """Name of its parent."""

    @classmethod
    def of(cls, unmanaged: Unmanaged) -> ObjectForm:
        """Return the form of an unmanaged object."""
        return copied(cls, unmanaged, address=str(unmanaged.address))

    def value(self) -> Unmanaged:
        """Return the object. Raises ValueError."""
        return copied(Unmanaged, self, address=Address.parse(self.address))


class NoteForm(Form, frozen=True, kw_only=True):
    """A note on the plan as a whole, or about a resource."""

    code: str
    """Stable id of the note."""
    message: str
    """Message."""
    about: AddressText | None
    """The resource that it is about, null for the plan as a whole."""

    @classmethod
    def of(cls, note: Note) -> NoteForm:
        """Return the form of a note."""
        return copied(cls, note, about=str(note.about) if note.about is not None else None)

    def value(self) -> Note:
        """Return the note. Raises ValueError."""
        return copied(Note, self, about=Address.parse(self.about) if self.about else None)


class RefusalForm(Form, frozen=True, kw_only=True):
    """A violation of the policy."""

    rule: str
    """Stable id of the rule."""
    message: str
    """What violates it."""
    addresses: tuple[AddressText, ...]
    """The resources that violate it."""
    at: PlaceForm | None
    """Place of the rule, null for a default."""
    allow: str | None
    """How to allow it."""
    after_merge: bool = False
    """Whether only the policy of the trusted branch is violated, and the files lift it."""
    objects: tuple[ObjectForm, ...] = ()
    """The live objects that are the reason, such as one that a create would double."""

    @classmethod
    def of(cls, refusal: Refusal) -> RefusalForm:
        """Return the form of a refusal."""
        return copied(
            cls,
            refusal,
            addresses=tuple(map(str, refusal.addresses)),
            at=optional(PlaceForm, refusal.at),
            objects=tuple(map(ObjectForm.of, refusal.objects)),
        )

    def value(self) -> Refusal:
        """Return the refusal. Raises ValueError."""
        return copied(
            Refusal,
            self,
            addresses=tuple(map(Address.parse, self.addresses)),
            at=optional(Mark, self.at),
            objects=tuple(form.value() for form in self.objects),
        )


class SelectionForm(Form, frozen=True, kw_only=True):
    """The options that narrow the plan."""

    targets: tuple[str, ...]
    """Globs of --target."""
    excludes: tuple[str, ...]
    """Globs of --exclude."""
    kinds: tuple[str, ...]
    """Globs of --kind."""
    parents: tuple[str, ...]
    """Globs of --project."""
    partial: bool
    """Whether something may be excluded."""


class PlanForm(Form, frozen=True, kw_only=True):
    """The plan that `plan --out FILE` saves and `plan --format json` prints."""

    format_version: Literal[1]
    """Version of this format."""
    created_at: str
    """When the plan was made, ISO 8601."""
    plan_id: Digest
    """SHA-256 of the digests of all changes: plans with equal ids do the same."""
    source: SourceForm
    """What the plan was computed from."""
    summary: SummaryForm
    """Counts."""
    changes: tuple[ChangeForm, ...]
    """One change per resource, in the order of execution; `no-op` last."""
    unmanaged: tuple[ObjectForm, ...]
    """Unmanaged objects: live objects that no resource claims."""
    ignored: tuple[ObjectForm, ...]
    """Live objects that `policy.ignore` excludes."""
    notes: tuple[NoteForm, ...]
    """Notes on the plan as a whole."""
    refusals: tuple[RefusalForm, ...]
    """Policy violations. A plan with violations is not applied."""
    selection: SelectionForm
    """The options that narrow the plan."""

    @classmethod
    def of(cls, plan: Plan) -> PlanForm:
        """Return the form of a plan."""
        changes = tuple(ChangeForm.of(change, plan.source) for change in plan.changes)
        return cls(
            format_version=FORMAT_VERSION,
            created_at=plan.created_at,
            plan_id=plan_id_of(form.digest for form in changes if form.digest is not None),
            source=SourceForm.of(plan.source),
            summary=SummaryForm.of(plan),
            changes=changes,
            unmanaged=tuple(map(ObjectForm.of, plan.unmanaged)),
            ignored=tuple(map(ObjectForm.of, plan.ignored)),
            notes=tuple(map(NoteForm.of, plan.notes)),
            refusals=tuple(map(RefusalForm.of, plan.refusals)),
            selection=copied(SelectionForm, plan.selection),
        )

    def value(self) -> Plan:
        """Return the plan. Raises ValueError."""
        return Plan(
            source=self.source.value(),
            changes=tuple(form.value() for form in self.changes),
            unmanaged=tuple(form.value() for form in self.unmanaged),
            ignored=tuple(form.value() for form in self.ignored),
            notes=tuple(form.value() for form in self.notes),
            refusals=tuple(form.value() for form in self.refusals),
            selection=copied(Selection, self.selection),
            created_at=self.created_at,
        )
