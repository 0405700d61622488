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
    doc,
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

    environment: Annotated[str, doc("Name of the environment.")]
    organization: Annotated[str, doc("Id of the organization.")]
    base_url: Annotated[str, doc("Base URL of the service.")]
    tool_version: Annotated[str, doc("Version of reconciler that made it.")]
    config_digest: Annotated[str, doc("Digest of the resolved configuration.")]
    dialect: Annotated[Dialect | None, doc("Dialect of the server, null if unknown.")]
    base: Annotated[str | None, doc("Commit of the git base, null without one.")]
    undoes: Annotated[
        str | None, doc("Digest of the plan that this one undoes, null for any other plan.")
    ]


class SummaryForm(Form, frozen=True, kw_only=True):
    """Counts by action."""

    create: Annotated[Count, doc("Changes whose action is `create`.")]
    update: Annotated[Count, doc("Changes whose action is `update`.")]
    replace: Annotated[Count, doc("Changes whose action is `replace`.")]
    pause: Annotated[Count, doc("Changes whose action is `pause`.")]
    unpause: Annotated[Count, doc("Changes whose action is `unpause`.")]
    delete: Annotated[Count, doc("Changes whose action is `delete`.")]
    no_op: Annotated[Count, doc("Changes whose action is `no-op`.")] = field(name="no-op")
    unmanaged: Annotated[Count, doc("Unmanaged objects: live objects that no resource claims.")]
    empty: Annotated[bool, doc("Whether applying the plan sends nothing.")]

    @classmethod
    def of(cls, plan: Plan) -> SummaryForm:
        """Return the summary of a plan."""
        counts = {action.name.lower(): count for action, count in plan.counts.items()}
        return cls(**counts, unmanaged=len(plan.unmanaged), empty=plan.empty)


class ParentForm(Form, frozen=True, kw_only=True):
    """The parent as configured: one of key, id and name."""

    key: Annotated[str | None, doc("Key of a declared resource.")]
    id: Annotated[str | None, doc("Id of a live object.")]
    name: Annotated[str | None, doc("Name of a live object.")]


class FieldForm(Form, frozen=True, kw_only=True):
    """One field that differs. An absent side has no key; a null side is null."""

    path: PathForm
    before: Annotated[
        Any,
        doc(
            "The live value in canonical form; a query as the service returns it. Absent "
            "without a value, and for a secret."
        ),
    ] = UNSET
    after: Annotated[
        Any,
        doc(
            "The desired value in canonical form; a query as configured. Absent without a value, "
            "and for a secret."
        ),
    ] = UNSET
    secret: Annotated[bool, doc("Whether it is a secret, which has no values here.")]
    reset: Annotated[
        bool, doc("Whether the key was removed from the files: the field returns to its default.")
    ]
    origin: Annotated[Origin, doc("The side that changed.")]

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
    reference: Annotated[str, doc("The reference as text, such as ${secret:env:NAME}.")]
    parts: Annotated[Parts, doc("The text and the references of the value, in order.")]
    use: Annotated[SecretUse, doc("Why it is or is not sent.")]
    sent: Annotated[bool, doc("Whether it is sent.")]

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

    rule: Annotated[str, doc("Stable id of the rule.")]
    severity: Annotated[Severity, doc("Severity.")]
    message: Annotated[str, doc("Message.")]


class ChangeForm(Form, frozen=True, kw_only=True):
    """One planned action on one address."""

    id: Annotated[str, doc("ADDRESS:ACTION, unique in the plan.")]
    address: AddressText
    kind: Annotated[str, doc("Kind of the resource.")]
    key: Annotated[str, doc("Its key in the configuration.")]
    action: Annotated[Action, doc("Action.")]
    destructive: Annotated[bool, doc("Whether data or history is lost: `delete` and `replace`.")]
    name: Annotated[str, doc("Its name in the service.")]
    live_id: Annotated[str | None, doc("Id of the live object, null for a create.")]
    parent: Annotated[ParentForm | None, doc("The parent as configured, null if there is none.")]
    parent_id: Annotated[str | None, doc("Live id of the parent, null if it does not exist yet.")]
    old_parent_id: Annotated[
        str | None, doc("For a replace: live id of the parent of the object to delete.")
    ]
    fields: Annotated[
        tuple[Annotated[FieldForm, Meta(extra_json_schema=_NO_VALUES)], ...],
        doc("The fields that differ."),
    ]
    body: Annotated[Body, doc("The body of the request, null without one.")]
    after_create: Annotated[Body, doc("The body of the PATCH after a create, null without one.")]
    secrets: Annotated[tuple[SecretForm, ...], doc("The secret fields.")]
    reasons: Annotated[tuple[Reason, ...], doc("Why the change is planned.")]
    consequences: Annotated[tuple[ConsequenceForm, ...], doc("The consequences.")]
    depends_on: Annotated[tuple[str, ...], doc("Ids of changes that must be made before.")]
    seen: Annotated[
        dict[str, Any] | None,
        doc(
            "The live values that the change depends on, by path text: it is stale if they change. "
            "Null if there are none."
        ),
    ]
    at: Annotated[
        PlaceForm | None,
        doc("Place of the resource, null without one."),
    ]

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
    name: Annotated[str, doc("Its name.")]
    parent_id: Annotated[str | None, doc("Id of its parent.")]
    parent_name: Annotated[str | None, doc("Name of its parent.")]

    @classmethod
    def of(cls, unmanaged: Unmanaged) -> ObjectForm:
        """Return the form of an unmanaged object."""
        return copied(cls, unmanaged, address=str(unmanaged.address))

    def value(self) -> Unmanaged:
        """Return the object. Raises ValueError."""
        return copied(Unmanaged, self, address=Address.parse(self.address))


class NoteForm(Form, frozen=True, kw_only=True):
    """A note on the plan as a whole."""

    code: Annotated[str, doc("Stable id of the note.")]
    message: Annotated[str, doc("Message.")]


class RefusalForm(Form, frozen=True, kw_only=True):
    """A violation of the policy."""

    rule: Annotated[str, doc("Stable id of the rule.")]
    message: Annotated[str, doc("What violates it.")]
    addresses: Annotated[tuple[AddressText, ...], doc("The resources that violate it.")]
    at: Annotated[PlaceForm | None, doc("Place of the rule, null for a default.")]
    allow: Annotated[str | None, doc("How to allow it.")]

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

    targets: Annotated[tuple[str, ...], doc("Globs of --target.")]
    excludes: Annotated[tuple[str, ...], doc("Globs of --exclude.")]
    kinds: Annotated[tuple[str, ...], doc("Globs of --kind.")]
    parents: Annotated[tuple[str, ...], doc("Globs of --project.")]
    partial: Annotated[bool, doc("Whether something may be excluded.")]


class PlanForm(Form, frozen=True, kw_only=True):
    """The plan that `plan --out FILE` saves and `plan --format json` prints."""

    format_version: Annotated[Literal[1], doc("Version of this format.")]
    created_at: Annotated[str, doc("When the plan was made, ISO 8601. Not in the digest.")]
    digest: Annotated[
        str,
        Meta(
            description="SHA-256 of all but `created_at` and itself; an edited plan is refused.",
            extra_json_schema={"pattern": "^[0-9a-f]{64}$"},
        ),
    ]
    source: Annotated[SourceForm, doc("What the plan was computed from.")]
    summary: Annotated[SummaryForm, doc("Counts.")]
    changes: Annotated[
        tuple[ChangeForm, ...],
        doc("One change per resource, in the order of execution; `no-op` last."),
    ]
    unmanaged: Annotated[
        tuple[ObjectForm, ...], doc("Unmanaged objects: live objects that no resource claims.")
    ]
    ignored: Annotated[tuple[ObjectForm, ...], doc("Live objects that `policy.ignore` excludes.")]
    notes: Annotated[tuple[NoteForm, ...], doc("Notes on the plan as a whole.")]
    refusals: Annotated[
        tuple[RefusalForm, ...], doc("Policy violations. A plan with violations is not applied.")
    ]
    selection: Annotated[SelectionForm, doc("The options that narrow the plan.")]

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
