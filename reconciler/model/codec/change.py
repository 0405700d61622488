"""The forms of a change in public JSON, with descriptions and fields derived from others."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from reconciler.diagnostics import Mark
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import (
    Change,
    Consequence,
    Effect,
    FieldChange,
    NewPlace,
    Novelty,
    Origin,
    Reason,
    RecentRun,
    SecretNote,
    SecretUse,
    Severity,
)
from reconciler.model.codec.base import (
    AddressText,
    Body,
    Form,
    Parts,
    PathForm,
    PlaceForm,
    copied,
    decode_secret,
    decode_value,
    encode_secret,
    encode_value,
    optional,
)
from reconciler.model.identity import digest_of
from reconciler.model.plan import PlanSource
from reconciler.model.resource import ParentRef

Digest: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
_NO_VALUES = {
    "if": {"properties": {"secret": {"const": True}}},
    "then": {"properties": {"before": False, "after": False}},
}


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
    written: tuple[str | int, ...] = ()
    """The path as the file writes it, empty if it is `path`."""

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
    former: str = ""
    """The reference at the git base, empty if it is the same or unknown."""
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
    effect: Effect
    """What it does to data."""
    message: str
    """Message."""


class NewPlaceForm(Form, frozen=True, kw_only=True):
    """Something that a change reaches or collects, and neither the git base nor the object does."""

    sort: Novelty
    """What is new."""
    text: str
    """What it is: an address, a bucket, a query, or secrets with the address."""
    host: str
    """The address that gets it: a host, an integration, or a type of destination."""
    before: str
    """What it was before, empty if nothing."""
    inside: tuple[str, ...]
    """What is in the place, each with a word, such as `prefix web/`."""
    again: bool
    """Whether the object does not run now, and begins to run again."""


class RecentRunForm(Form, frozen=True, kw_only=True):
    """A run of the live object."""

    status: str
    """Status, in the words of the service."""
    end: str
    """End of its interval, ISO 8601, empty if unknown."""


class ChangeForm(Form, frozen=True, kw_only=True):
    """One planned action on one address."""

    id: str
    """ADDRESS:ACTION, unique in the plan."""
    digest: Digest | None
    """SHA-256 of what the change does and of the live state it depends on, null for a no-op."""
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
    """The parent as configured, null without one."""
    parent_id: str | None
    """Live id of the parent, null if it does not exist yet."""
    parent_name: str | None
    """Name of the parent, null without one."""
    old_parent_id: str | None
    """For a replace: live id of the parent of the object to delete."""
    old_parent_name: str | None
    """For a replace: name of that parent."""
    new_id: str | None
    """For the rest of a replacement that was cut short: live id of the new object."""
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
    inside: tuple[str, ...]
    """For a delete: live ids of the objects that are deleted with it."""
    at: PlaceForm | None
    """Place of the resource, null without one."""
    runs: tuple[RecentRunForm, ...] | UnsetType = UNSET
    """The latest runs of the live object, newest first, for readers. Absent if there are none."""
    reach: tuple[str, ...] | UnsetType = UNSET
    """Where the object writes after the change, and what. Absent if that can't be new."""
    new: tuple[NewPlaceForm, ...] | UnsetType = UNSET
    """New places and queries, the worst first. Absent if there are none."""
    integrations: dict[str, str] | UnsetType = UNSET
    """Names of integrations by id, for readers. Absent if the configuration names none."""

    @classmethod
    def of(cls, change: Change, source: PlanSource) -> ChangeForm:
        """Return the form of a change."""
        is_effective = change.action is not Action.NO_OP
        return copied(
            cls,
            change,
            digest=digest_of(change, source) if is_effective else None,
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
            runs=tuple(copied(RecentRunForm, run) for run in change.runs) or UNSET,
            reach=change.reach or UNSET,
            new=tuple(copied(NewPlaceForm, item) for item in change.new) or UNSET,
            integrations=dict(change.integrations) or UNSET,
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
            runs=tuple(copied(RecentRun, form) for form in self.runs or ()),
            reach=self.reach or (),
            new=tuple(copied(NewPlace, form) for form in self.new or ()),
            integrations=self.integrations or {},
        )
