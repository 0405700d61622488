"""The forms of a plan in public JSON, with descriptions and fields derived from others."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, field

from reconciler.errors import Mark
from reconciler.model.address import Address
from reconciler.model.change import (
    Action,
    Change,
    Consequence,
    FieldChange,
    Origin,
    Reason,
    SecretNote,
    SecretUse,
    Severity,
)
from reconciler.model.codec.base import (
    AddressText,
    Body,
    Count,
    Form,
    PathForm,
    PlaceForm,
    copied,
    optional,
)
from reconciler.model.codec.values import (
    Parts,
    decode_secret,
    decode_value,
    encode_secret,
    encode_value,
)
from reconciler.model.live import Dialect
from reconciler.model.plan import Note, Plan, PlanSource, Refusal, Selection, Unmanaged
from reconciler.model.resource import ParentRef

FORMAT_VERSION: Final = 1
_NO_VALUES = {
    "if": {"properties": {"secret": {"const": True}}},
    "then": {"properties": {"before": False, "after": False}},
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
    config_digest: str
    """Digest of the resolved configuration."""
    dialect: Dialect | None
    """Dialect of the server, null if unknown."""
    base: str | None
    """Commit of the git base, null without one."""
    undoes: str | None
    """Digest of the plan that this one undoes, null for any other plan."""


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


class ParentForm(Form, frozen=True, kw_only=True):
    """The parent as configured: one of key, id and name."""

    key: str | None
    """Key of a declared resource."""
    id: str | None
    """Id of a live object."""
    name: str | None
    """Name of a live object."""


class FieldForm(Form, frozen=True, kw_only=True):
    """One field that differs. An absent side has no key; a null side is null."""

    path: PathForm
    before: Any = UNSET
    """The live value in canonical form; a query as the service returns it. Absent without a
    value, and for a secret."""
    after: Any = UNSET
    """The desired value in canonical form; a query as configured. Absent without a value, and
    for a secret."""
    secret: bool
    """Whether it is a secret, which has no values here."""
    reset: bool
    """Whether the key was removed from the files: the field returns to its default."""
    origin: Origin
    """The side that changed."""

    @classmethod
    def of(cls, change: FieldChange) -> FieldForm:
        """Return the form of a field change."""
        before, after = encode_value(change.before), encode_value(change.after)
        return copied(cls, change, before=before, after=after)

    def value(self) -> FieldChange:
        """Return the field change."""
        before, after = decode_value(self.before), decode_value(self.after)
        return copied(FieldChange, self, before=before, after=after)


class SecretForm(Form, frozen=True, kw_only=True):
    """A secret field: its reference, and whether and why it is sent."""

    path: PathForm
    reference: str
    """The reference as text, such as ${secret:env:NAME}."""
    parts: Parts
    """The text and the references of the value, in order."""
    use: SecretUse
    """Why it is or is not sent."""
    sent: bool
    """Whether it is sent."""

    @classmethod
    def of(cls, note: SecretNote) -> SecretForm:
        """Return the form of a note on a secret."""
        parts = encode_secret(note.ref)
        return copied(cls, note, reference=str(note.ref), parts=parts, sent=note.use.sent)

    def value(self) -> SecretNote:
        """Return the note."""
        return copied(SecretNote, self, ref=decode_secret(self.parts))


class ConsequenceForm(Form, frozen=True, kw_only=True):
    """A consequence. docs/consequences.md describes the rules."""

    rule: str
    """Stable id of the rule."""
    severity: Severity
    """Severity."""
    message: str
    """Message."""


class ChangeForm(Form, frozen=True, kw_only=True):
    """One planned action on one address."""

    id: str
    """ADDRESS:ACTION, unique in the plan."""
    address: AddressText
    kind: str
    """Kind of the resource."""
    key: str
    """Its key in the configuration."""
    action: Action
    """Action."""
    destructive: bool
    """Whether data or history is lost: `delete` and `replace`."""
    name: str
    """Its name in the service."""
    live_id: str | None
    """Id of the live object, null for a create."""
    parent: ParentForm | None
    """The parent as configured, null if there is none."""
    parent_id: str | None
    """Live id of the parent, null if it does not exist yet."""
    old_parent_id: str | None
    """For a replace: live id of the parent of the object to delete."""
    fields: tuple[Annotated[FieldForm, Meta(extra_json_schema=_NO_VALUES)], ...]
    """The fields that differ."""
    body: Body
    """The body of the request, null without one."""
    after_create: Body
    """The body of the PATCH after a create, null without one."""
    secrets: tuple[SecretForm, ...]
    """The secret fields."""
    reasons: tuple[Reason, ...]
    """Why the change is planned."""
    consequences: tuple[ConsequenceForm, ...]
    """The consequences."""
    depends_on: tuple[str, ...]
    """Ids of changes that must be made before."""
    seen: dict[str, Any] | None
    """The live values that the change depends on, by path text: it is stale if they change.
    Null if there are none."""
    at: PlaceForm | None
    """Place of the resource, null without one."""

    @classmethod
    def of(cls, change: Change) -> ChangeForm:
        """Return the form of a change."""
        return copied(
            cls,
            change,
            address=str(change.address),
            kind=change.address.kind,
            key=change.address.key,
            destructive=change.action.destructive,
            parent=optional(ParentForm, change.parent),
            fields=tuple(map(FieldForm.of, change.fields)),
            body=encode_value(change.body),
            after_create=encode_value(change.after_create),
            secrets=tuple(map(SecretForm.of, change.secrets)),
            consequences=tuple(copied(ConsequenceForm, item) for item in change.consequences),
            seen=encode_value(change.seen),
            at=optional(PlaceForm, change.at),
        )

    def value(self) -> Change:
        """Return the change. Raises ValueError."""
        return copied(
            Change,
            self,
            address=Address(self.kind, self.key),
            parent=optional(ParentRef, self.parent),
            fields=tuple(form.value() for form in self.fields),
            body=decode_value(self.body),
            after_create=decode_value(self.after_create),
            secrets=tuple(form.value() for form in self.secrets),
            consequences=tuple(copied(Consequence, form) for form in self.consequences),
            seen=decode_value(self.seen),
            at=optional(Mark, self.at),
        )


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
    """A note on the plan as a whole."""

    code: str
    """Stable id of the note."""
    message: str
    """Message."""


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

    @classmethod
    def of(cls, refusal: Refusal) -> RefusalForm:
        """Return the form of a refusal."""
        return copied(
            cls,
            refusal,
            addresses=tuple(map(str, refusal.addresses)),
            at=optional(PlaceForm, refusal.at),
        )

    def value(self) -> Refusal:
        """Return the refusal. Raises ValueError."""
        return copied(
            Refusal,
            self,
            addresses=tuple(map(Address.parse, self.addresses)),
            at=optional(Mark, self.at),
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
    """When the plan was made, ISO 8601. Not in the digest."""
    digest: Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
    """SHA-256 of all but `created_at` and itself; an edited plan is refused."""
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
        """Return the form of a plan, without a digest."""
        return cls(
            format_version=FORMAT_VERSION,
            created_at=plan.created_at,
            digest="",
            source=copied(SourceForm, plan.source),
            summary=SummaryForm.of(plan),
            changes=tuple(map(ChangeForm.of, plan.changes)),
            unmanaged=tuple(map(ObjectForm.of, plan.unmanaged)),
            ignored=tuple(map(ObjectForm.of, plan.ignored)),
            notes=tuple(copied(NoteForm, note) for note in plan.notes),
            refusals=tuple(map(RefusalForm.of, plan.refusals)),
            selection=copied(SelectionForm, plan.selection),
        )

    def value(self) -> Plan:
        """Return the plan. Raises ValueError."""
        return Plan(
            source=copied(PlanSource, self.source),
            changes=tuple(form.value() for form in self.changes),
            unmanaged=tuple(form.value() for form in self.unmanaged),
            ignored=tuple(form.value() for form in self.ignored),
            notes=tuple(copied(Note, form) for form in self.notes),
            refusals=tuple(form.value() for form in self.refusals),
            selection=copied(Selection, self.selection),
            created_at=self.created_at,
        )
