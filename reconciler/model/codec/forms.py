"""The forms of a plan in public JSON, with their descriptions.

A form has the fields of its value, and some that a reader would else derive from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, field

from reconciler.errors import Mark
from reconciler.model.address import Address
from reconciler.model.change import (
    Action,
    Change,
    Consequence,
    Danger,
    FieldChange,
    Origin,
    Reason,
    SecretNote,
    SecretUse,
    Seen,
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
    live_digest: Annotated[str, doc("Digest of the live objects that were read.")]
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
    unmanaged: Annotated[Count, doc("Live objects that no resource claims.")]
    empty: Annotated[bool, doc("Whether applying the plan would send nothing.")]

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
    """One field that differs. A side that is absent has no key; one that is null has null."""

    path: PathForm
    before: Annotated[
        Any,
        doc(
            "The live value, in the form in which values are compared; a query as the service "
            "returns it. Absent where there is none, and for a secret."
        ),
    ] = UNSET
    after: Annotated[
        Any,
        doc(
            "The wanted value, in the form in which values are compared; a query as configured. "
            "Absent where there is none, and for a secret."
        ),
    ] = UNSET
    secret: Annotated[bool, doc("Whether it is a secret: then it has no values.")]
    reset: Annotated[
        bool, doc("Whether the key was removed from the files: back to null or its default.")
    ]
    origin: Annotated[Origin, doc("Which side the difference comes from.")]

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
    """A secret field: where its value comes from, and whether and why it is sent."""

    path: PathForm
    reference: Annotated[str, doc("The reference as text, such as ${secret:env:NAME}.")]
    parts: Annotated[Parts, doc("Text and references in turn.")]
    use: Annotated[SecretUse, doc("Why it is or isn't sent.")]
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
    severity: Annotated[Danger, doc("How much it matters.")]
    message: Annotated[str, doc("What follows, in a sentence.")]


class SeenForm(Form, frozen=True, kw_only=True):
    """The part of the live object that the plan depends on, from which staleness is decided."""

    updated_at: Annotated[str | None, doc("The server's own mark of the last change.")]
    fields: Annotated[dict[str, Any], doc("Values of managed fields by path, without secrets.")]


class ChangeForm(Form, frozen=True, kw_only=True):
    """One planned action on one address."""

    id: Annotated[str, doc("ADDRESS:ACTION, unique in the plan.")]
    address: AddressText
    kind: Annotated[str, doc("Kind of the resource.")]
    key: Annotated[str, doc("Its key in the configuration.")]
    action: Annotated[Action, doc("What is done.")]
    destructive: Annotated[bool, doc("Whether data or history is lost: `delete` and `replace`.")]
    name: Annotated[str, doc("Its name in the service.")]
    live_id: Annotated[str | None, doc("Id of the object acted on, null for a create.")]
    parent: Annotated[ParentForm | None, doc("The parent as configured, null if there is none.")]
    parent_id: Annotated[str | None, doc("Live id of the parent, null if it does not exist yet.")]
    old_parent_id: Annotated[str | None, doc("For a replace: parent of the object to delete.")]
    fields: Annotated[
        tuple[Annotated[FieldForm, Meta(extra_json_schema=_NO_VALUES)], ...],
        doc("What differs, field by field."),
    ]
    body: Annotated[Body, doc("What is sent, null if nothing is.")]
    after_create: Annotated[Body, doc("What is sent by PATCH after a create, null if nothing is.")]
    secrets: Annotated[tuple[SecretForm, ...], doc("Every secret field of the change.")]
    reasons: Annotated[tuple[Reason, ...], doc("Why the change is planned, for readers.")]
    consequences: Annotated[tuple[ConsequenceForm, ...], doc("What follows from it, by rule.")]
    depends_on: Annotated[tuple[str, ...], doc("Ids of changes that come before.")]
    seen: Annotated[
        SeenForm | None,
        doc("The live values that staleness is decided from, null if there are none."),
    ]
    at: Annotated[
        PlaceForm | None,
        doc("Place of the resource, null for a change that no resource asks for."),
    ]

    @classmethod
    def of(cls, change: Change) -> ChangeForm:
        """Return the form of a change."""
        seen = change.seen
        return copied(
            cls,
            change,
            address=str(change.address),
            kind=change.address.kind,
            key=change.address.key,
            destructive=change.action.destructive,
            parent=optional(ParentForm, change.parent),
            fields=tuple(map(FieldForm.of, change.fields)),
            body=_encoded_body(change.body),
            after_create=_encoded_body(change.after_create),
            secrets=tuple(map(SecretForm.of, change.secrets)),
            consequences=tuple(copied(ConsequenceForm, item) for item in change.consequences),
            seen=optional(SeenForm, seen, fields=encode_value(seen.fields) if seen else None),
            at=optional(PlaceForm, change.at),
        )

    def value(self) -> Change:
        """Return the change. Raises ValueError."""
        seen = self.seen
        return copied(
            Change,
            self,
            address=Address(self.kind, self.key),
            parent=optional(ParentRef, self.parent),
            fields=tuple(form.value() for form in self.fields),
            body=_decoded_body(self.body),
            after_create=_decoded_body(self.after_create),
            secrets=tuple(form.value() for form in self.secrets),
            consequences=tuple(copied(Consequence, form) for form in self.consequences),
            seen=optional(Seen, seen, fields=decode_value(seen.fields) if seen else None),
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

    code: Annotated[str, doc("Stable word for the note.")]
    message: Annotated[str, doc("The note in a sentence.")]


class RefusalForm(Form, frozen=True, kw_only=True):
    """A violation of the policy."""

    rule: Annotated[str, doc("Stable word for the rule.")]
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
    """The options that narrowed the plan."""

    targets: Annotated[tuple[str, ...], doc("Globs of --target.")]
    excludes: Annotated[tuple[str, ...], doc("Globs of --exclude.")]
    kinds: Annotated[tuple[str, ...], doc("Globs of --kind.")]
    parents: Annotated[tuple[str, ...], doc("Globs of --project.")]
    partial: Annotated[bool, doc("Whether anything is left out.")]


class PlanForm(Form, frozen=True, kw_only=True):
    """What `plan --out FILE` saves, `plan --format json` prints and `apply FILE` applies."""

    format_version: Annotated[Literal[1], doc("Version of this format.")]
    created_at: Annotated[str, doc("When the plan was made, ISO 8601. Not in the digest.")]
    digest: Annotated[
        str,
        Meta(
            description="SHA-256 of all but `created_at` and itself: an edited plan is refused.",
            extra_json_schema={"pattern": "^[0-9a-f]{64}$"},
        ),
    ]
    source: Annotated[SourceForm, doc("What the plan was computed from. `apply` compares it.")]
    summary: Annotated[SummaryForm, doc("Counts.")]
    changes: Annotated[
        tuple[ChangeForm, ...],
        doc("Every planned resource, in the order in which changes can be made; `no-op` last."),
    ]
    unmanaged: Annotated[tuple[ObjectForm, ...], doc("Live objects that no resource claims.")]
    ignored: Annotated[tuple[ObjectForm, ...], doc("Live objects that `policy.ignore` names.")]
    notes: Annotated[tuple[NoteForm, ...], doc("Notes on the plan as a whole.")]
    refusals: Annotated[
        tuple[RefusalForm, ...], doc("Violations of the policy. With one, nothing is applied.")
    ]
    selection: Annotated[SelectionForm, doc("What narrowed the plan.")]

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


def _encoded_body(body: Mapping[str, Any] | None) -> Any:
    return None if body is None else encode_value(body)


def _decoded_body(body: dict[str, Any] | None) -> Any:
    return None if body is None else decode_value(body)
