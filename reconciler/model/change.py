"""One planned action on one address: its fields, reasons and consequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field

from reconciler.diagnostics import Mark
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.public import Digest, Public, Term, derived
from reconciler.model.resource import ParentRef
from reconciler.model.values import JSON, MISSING, JSONObject, Path, SecretRef

_NO_VALUES = {
    "if": {"properties": {"secret": {"const": True}}},
    "then": {"properties": {"before": False, "after": False}},
}


class Reason(Term):
    """Why a change is planned, for readers. Without a git base a difference is `fields_differ`."""

    NOT_LIVE = "not_live", "does not exist yet"
    FIELDS_DIFFER = "fields_differ", "live state differs from the configuration"
    CHANGED_IN_FILES = "changed_in_files", "changed in the configuration"
    DRIFTED = "drifted", "drift: live state changed, the configuration did not"
    CONFLICT = "conflict", "conflict: live state and the configuration both changed"
    REMOVED_KEY = "removed_key", "a field was removed from the configuration"
    RENAMED = "renamed", "renamed"
    STATE_ABSENT = "state_absent", "the configuration sets `state: absent`"
    REMOVED_FROM_FILES = "removed_from_files", "removed from the configuration since the git base"
    PRUNED = "pruned", "unmanaged, and policy.prune includes it"
    MOVED = "moved", "moved to another project"
    FIXED_FIELD = "fixed_field", "a field can't be changed in place"
    SECRET_ROTATED = "secret_rotated", "secrets are sent again (--rotate-secrets)"
    SECRET_CHANGED = "secret_changed", "a secret changed in the configuration"
    INTERRUPTED = "interrupted", "continues a replacement that was interrupted"
    UNDO = "undo", "undoes an applied change"
    REQUESTED = "requested", "requested by a command, not by the configuration"


class Origin(Term):
    """The side that changed since the git base."""

    FILES = "files", "The files changed."
    LIVE = "live", "Live state changed."
    BOTH = "both", "Both changed: a conflict."
    UNKNOWN = "unknown", "There is no git base to compare with."


class FieldChange(Public, frozen=True):
    """One field that differs. An absent side has no key; a null side is null."""

    with_secrets = frozenset({"before", "after"})
    recent = frozenset({"written"})

    path: Path
    before: JSON = MISSING
    """The live value in canonical form; a query as the service returns it. Absent without a
    value, and for a secret."""
    after: JSON = MISSING
    """The desired value in canonical form; a query as configured. Absent without a value, and
    for a secret."""
    secret: bool = False
    """Whether it is a secret, which has no values here."""
    reset: bool = False
    """Whether the key was removed from the files: the field returns to its default."""
    origin: Origin = Origin.UNKNOWN
    """The side that changed."""
    written: Annotated[Path, Meta(min_length=0)] = ()
    """The path as the file writes it, empty if it is `path`."""


class SecretUse(Term):
    """Whether and why a secret is sent. The server returns none. Changes are since the git base."""

    CREATE = "create", "sent (new object)"
    ROTATE = "rotate", "sent (--rotate-secrets)"
    REFERENCE_CHANGED = "reference_changed", "sent (reference changed)"
    VERSION_CHANGED = "version_changed", "sent (secret_version changed)"
    NEEDED = "needed", "sent (required by this change)"
    UNREADABLE = "unreadable", "not sent (no change detected)"

    @property
    def sent(self) -> bool:
        """Whether the secret is sent."""
        return self is not SecretUse.UNREADABLE


class SecretNote(Public, frozen=True):
    """A secret field: its reference, and whether and why it is sent."""

    recent = frozenset({"former"})

    path: Path
    ref: SecretRef = field(name="parts")
    """The text and the references of the value, in order."""
    use: SecretUse
    """Why it is or is not sent."""
    former: str = ""
    """The reference at the git base, empty if it is the same or unknown."""

    @derived
    def reference(self) -> str:
        """The reference as text, such as ${secret:env:NAME}."""
        return str(self.ref)

    @derived
    def sent(self) -> bool:
        """Whether it is sent."""
        return self.use.sent


class Severity(Term):
    """The severity of a consequence."""

    INFO = "info", "Good to know."
    WARNING = "warning", "Read it before you apply."
    DANGER = "danger", "Data, history or access may be lost."

    @property
    def rank(self) -> int:
        """0 for the most dangerous."""
        return (Severity.DANGER, Severity.WARNING, Severity.INFO).index(self)


class Effect(Term):
    """What a consequence does to data, the worst first."""

    ELSEWHERE = "elsewhere", "Data goes elsewhere, or more is collected or visible."
    LOST = "lost", "Data, runs or history are lost, or no longer exported."
    FORM = "form", "Data has another form, or another place at the same destination."
    DELAYED = "delayed", "Data arrives later."
    OTHER = "other", "Anything else."


class Consequence(Public, frozen=True):
    """A consequence. docs/consequences.md describes the rules."""

    rule: str
    """Stable id of the rule."""
    severity: Severity
    """Severity."""
    message: str
    """Message."""
    effect: Effect = Effect.OTHER
    """What it does to data."""

    @property
    def rank(self) -> tuple[int, int]:
        """The order of consequences: by severity, then by effect, the worst first."""
        return self.severity.rank, self.effect.rank


class Novelty(Term):
    """What is new in a place or in what is exported, the worst first. `policy.rules` name it."""

    SECRET = "secret", "A known secret, or stored credentials, go to another address."
    HOST = "host", "A host with its port, an account, a URL, or the endpoint of a bucket."
    INTEGRATION = "integration", "An integration, which may hold an address."
    BUCKET = "bucket", "A bucket, a container, a catalog or a project of a warehouse."
    QUERY = "query", "Another query, model or selection of events for a place."
    REFERENCE = "reference", "Another reference of a secret."


class NewPlace(Public, frozen=True):
    """Something that a change reaches or collects, and neither the git base nor the object does."""

    sort: Novelty
    """What is new."""
    text: str
    """What it is: an address, a bucket, a query, or secrets with the address."""
    host: str
    """The address that gets it: a host, an integration, or a type of destination."""
    before: str = ""
    """What it was before, empty if nothing."""
    inside: tuple[str, ...] = ()
    """What is in the place, each with a word, such as `prefix web/`."""
    again: bool = False
    """Whether the object does not run now, and begins to run again."""

    @property
    def full(self) -> str:
        """The text with what was before."""
        return f"{self.text} (before: {self.before})" if self.before else self.text


class RecentRun(Public, frozen=True):
    """A run of the live object."""

    status: str
    """Status, in the words of the service."""
    end: str
    """End of its interval, ISO 8601, empty if unknown."""


class Change(Public, frozen=True):
    """One planned action on one address."""

    with_secrets = frozenset({"body", "after_create", "seen"})
    optional = frozenset({"runs", "reach", "new", "integrations"})

    address: Address
    action: Action
    """Action."""
    name: str
    """Its name in the service."""
    live_id: str | None = None
    """Id of the live object, null for a create."""
    parent: ParentRef | None = None
    """The parent as configured, null without one."""
    parent_id: str | None = None
    """Live id of the parent, null if it does not exist yet."""
    parent_name: str | None = None
    """Name of the parent, null without one."""
    old_parent_id: str | None = None
    """For a replace: live id of the parent of the object to delete."""
    old_parent_name: str | None = None
    """For a replace: name of that parent."""
    new_id: str | None = None
    """For the rest of a replacement that was cut short: live id of the new object. The old object
    is deleted, then `body` is sent to the new one."""
    fields: tuple[Annotated[FieldChange, Meta(extra_json_schema=_NO_VALUES)], ...] = ()
    """The fields that differ."""
    body: JSONObject | None = None
    """The body of the request, null without one."""
    after_create: JSONObject | None = None
    """The body of the PATCH after a create, null without one."""
    secrets: tuple[SecretNote, ...] = ()
    """The secret fields."""
    reasons: tuple[Reason, ...] = ()
    """Why the change is planned."""
    consequences: tuple[Consequence, ...] = ()
    """The consequences."""
    depends_on: tuple[str, ...] = ()
    """Ids of changes that must be made before."""
    seen: JSONObject | None = None
    """The live values that the change depends on, by path text: it is stale if they change.
    Null if there are none."""
    inside: tuple[str, ...] = ()
    """For a delete: live ids of the objects that are deleted with it."""
    at: Mark | None = None
    """Place of the resource, null without one."""
    runs: tuple[RecentRun, ...] = ()
    """The latest runs of the live object, newest first, for readers. Absent if there are none."""
    reach: tuple[str, ...] = ()
    """Where the object writes after the change, and what. Absent if that can't be new."""
    new: tuple[NewPlace, ...] = ()
    """New places and queries, the worst first. Absent if there are none."""
    integrations: Mapping[str, str] = {}
    """Names of integrations by id, for readers. Absent if the configuration names none."""

    @derived
    def id(self) -> str:
        """ADDRESS:ACTION, unique in the plan."""
        return f"{self.address}:{self.action}"

    @derived
    def kind(self) -> str:
        """Kind of the resource."""
        return self.address.kind

    @derived
    def key(self) -> str:
        """Its key in the configuration."""
        return self.address.key

    @derived
    def destructive(self) -> bool:
        """Whether data or history is lost: `delete` and `replace`."""
        return self.action.destructive

    @property
    def severity(self) -> Severity | None:
        """The highest severity of its consequences."""
        severities = [consequence.severity for consequence in self.consequences]
        return min(severities, key=lambda severity: severity.rank) if severities else None


class PlannedChange(Change, frozen=True, kw_only=True):
    """One planned action on one address."""

    digest: Digest | None
    """SHA-256 of what the change does and of the live state it depends on, null for a no-op."""
