"""One planned action on one address: its fields, reasons and consequences."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.public import Term
from reconciler.model.resource import ParentRef
from reconciler.model.values import JSON, JSONObject, Path, SecretRef


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


class FieldChange(Struct, frozen=True):
    """One field that differs.

    `before` is the live value and `after` the desired one, MISSING if absent. Both are in canonical
    form, or, for a verbatim field, as the service returns it and as configured. A secret has no
    values. `reset`: the key was removed from the files, and the field returns to its default.
    `written` is the path as the file writes it, with aliases of names, () if it is `path`.
    """

    path: Path
    before: JSON
    after: JSON
    secret: bool = False
    reset: bool = False
    origin: Origin = Origin.UNKNOWN
    written: Path = ()


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


class SecretNote(Struct, frozen=True):
    """A secret field of a change: its reference, and whether and why it is sent.

    `former` is the reference at the git base as text, empty if it is the same or unknown.
    """

    path: Path
    ref: SecretRef
    use: SecretUse
    former: str = ""


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


class Consequence(Struct, frozen=True):
    """A consequence of a change. `rule` is a stable kebab-case id."""

    rule: str
    severity: Severity
    message: str
    effect: Effect = Effect.OTHER

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


class NewPlace(Struct, frozen=True):
    """Something that a change reaches or collects, and neither the git base nor the object does.

    `text` says what, without escapes, `before` what it was, "" if nothing. `host` is the address
    that gets it. `inside` is what is in the place, such as `prefix web/`. `again`: the object does
    not run now, and begins to run again.
    """

    sort: Novelty
    text: str
    host: str
    before: str = ""
    inside: tuple[str, ...] = ()
    again: bool = False

    @property
    def full(self) -> str:
        """The text with what was before."""
        return f"{self.text} (before: {self.before})" if self.before else self.text


class RecentRun(Struct, frozen=True):
    """A run of a live object: its status, in the words of the service, and the end of its interval.

    `end` is ISO 8601 in UTC, "" if unknown.
    """

    status: str
    end: str


class Change(Struct, frozen=True):
    """One planned action on one address.

    body
        What a create, update or replace sends, secrets as references; empty for the rest.
    after_create
        What is sent by PATCH after a create, since the server ignores it in the create.
    parent, parent_id
        The parent as declared, and its live id, None if it does not exist yet.
    live_id
        The object acted on; None for a create.
    parent_name
        The name of the parent, live or declared, for readers.
    old_parent_id, old_parent_name
        For a replacement: the parent of the object that is deleted.
    new_id
        For the rest of a replacement that was cut short: the new object, which exists already. The
        old object is deleted, then `body` is sent to the new one.
    depends_on
        Ids of changes that come before.
    seen
        The live values that the change depends on: it is stale if they change. By path text, in
        the form in which values are compared, without secrets and without `ignore_changes`.
    inside
        For a deletion: ids of the live objects that are deleted with it.
    at
        The place of the resource in the files, None where the change comes from elsewhere.
    runs
        The latest runs of the live object, newest first, for readers.
    reach
        Where the object writes after the change, and what, as texts: only if it may be new.
    new
        What of it is new, the worst first.
    integrations
        The names of integrations in it by id, as far as they were read, for readers.
    """

    address: Address
    action: Action
    name: str
    live_id: str | None = None
    parent: ParentRef | None = None
    parent_id: str | None = None
    parent_name: str | None = None
    old_parent_id: str | None = None
    old_parent_name: str | None = None
    new_id: str | None = None
    fields: tuple[FieldChange, ...] = ()
    body: JSONObject | None = None
    after_create: JSONObject | None = None
    secrets: tuple[SecretNote, ...] = ()
    reasons: tuple[Reason, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    depends_on: tuple[str, ...] = ()
    seen: JSONObject | None = None
    inside: tuple[str, ...] = ()
    at: Mark | None = None
    runs: tuple[RecentRun, ...] = ()
    reach: tuple[str, ...] = ()
    new: tuple[NewPlace, ...] = ()
    integrations: Mapping[str, str] = {}

    @property
    def id(self) -> str:
        """The address and the action: unique in a plan, since each pair occurs once."""
        return f"{self.address}:{self.action}"

    @property
    def severity(self) -> Severity | None:
        """The highest severity of its consequences."""
        severities = [consequence.severity for consequence in self.consequences]
        return min(severities, key=lambda severity: severity.rank) if severities else None
