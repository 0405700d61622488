"""One planned action on one address, with what it changes, why, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.errors import Mark
from reconciler.model.address import Address
from reconciler.model.resource import ParentRef
from reconciler.model.values import JSON, JSONObject, Path, SecretRef


class Action(StrEnum):
    """What is done to an object (design, section 5). The value is the word in the public JSON."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    DELETE = "delete"
    NO_OP = "no-op"

    @property
    def destructive(self) -> bool:
        """Whether data or history is lost."""
        return self in (Action.DELETE, Action.REPLACE)


class Reason(StrEnum):
    """Why a change is planned. A reason explains and never steers; the words are in `render`."""

    NOT_LIVE = "not_live"
    """Declared, and no live object has its id or name."""
    FIELDS_DIFFER = "fields_differ"
    CHANGED_IN_FILES = "changed_in_files"
    """The files changed since the git base; the live side is as the base says."""
    DRIFTED = "drifted"
    """The live side moved although the files did not."""
    CONFLICT = "conflict"
    """The files and the live side changed, to different values."""
    REMOVED_KEY = "removed_key"
    """The key stood in the files at the git base and is gone: the field is reset."""
    RENAMED = "renamed"
    STATE_ABSENT = "state_absent"
    REMOVED_FROM_FILES = "removed_from_files"
    PRUNED = "pruned"
    """Live, claimed by no resource, and the policy prunes its scope."""
    MOVED = "moved"
    """Its parent changes, which the API can't do in place."""
    FIXED_FIELD = "fixed_field"
    """A field differs that the server's dialect can't change in place."""
    SECRET_ROTATED = "secret_rotated"  # noqa: S105 - a word of the plan
    SECRET_CHANGED = "secret_changed"  # noqa: S105 - a word of the plan
    UNDO = "undo"


class Origin(StrEnum):
    """Which side a field's difference comes from, told with the help of a git base."""

    FILES = "files"
    LIVE = "live"
    BOTH = "both"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs.

    `before` is the live value and `after` the wanted one, MISSING where there is none. Both are in
    the canonical form in which they were compared; where the field is verbatim they are as the
    service shows it and as the files have it. A secret has `secret=True` and no values on either
    side. `reset` says that the key was removed from the files and goes back to null or its default.
    """

    path: Path
    before: JSON
    after: JSON
    secret: bool = False
    reset: bool = False
    origin: Origin = Origin.UNKNOWN


class SecretUse(StrEnum):
    """Whether a secret is sent, and why or why not."""

    CREATE = "create"
    ROTATE = "rotate"
    REFERENCE_CHANGED = "reference_changed"
    VERSION_CHANGED = "version_changed"
    NEEDED = "needed"
    """The patch needs it, as a change of destination type does."""
    UNREADABLE = "unreadable"
    """Not sent: the server hides it, and nothing says that it changed."""

    @property
    def sent(self) -> bool:
        """Whether this use sends the secret."""
        return self is not SecretUse.UNREADABLE


@dataclass(frozen=True, slots=True)
class SecretNote:
    """A secret field of a change: where it comes from, and whether and why it is sent."""

    path: Path
    ref: SecretRef
    use: SecretUse


class Danger(StrEnum):
    """How much a consequence matters."""

    INFO = "info"
    WARNING = "warning"
    DANGER = "danger"

    @property
    def rank(self) -> int:
        """0 for the most dangerous."""
        return (Danger.DANGER, Danger.WARNING, Danger.INFO).index(self)


@dataclass(frozen=True, slots=True)
class Consequence:
    """What follows from a change, in plain words. `rule` is a stable kebab-case id."""

    rule: str
    severity: Danger
    message: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the plan saw of the live object, so that staleness can be told by object.

    `fields` are the canonical values of the fields that the resource manages or that the
    deletion destroys, by path text, without secrets. `updated_at` is the server's own mark.
    """

    updated_at: str | None
    fields: JSONObject


@dataclass(frozen=True, slots=True)
class Change:
    """One planned action on one address.

    body
        What a create, update or replace sends, secrets as references; empty for the rest.
    after_create
        What is PATCHed right after a create, since the server does not take it there.
    parent, parent_id
        The parent as declared, and its live id, None while it is still to be created.
    live_id
        The object acted on; None for a create.
    old_parent_id
        For a replacement: where the object that goes away lives.
    depends_on
        Ids of changes that must have been done before.
    at
        The place of the resource in the files, None where the change comes from elsewhere.
    """

    address: Address
    action: Action
    name: str
    live_id: str | None = None
    parent: ParentRef | None = None
    parent_id: str | None = None
    old_parent_id: str | None = None
    fields: tuple[FieldChange, ...] = ()
    body: JSONObject | None = None
    after_create: JSONObject | None = None
    secrets: tuple[SecretNote, ...] = ()
    reasons: tuple[Reason, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    depends_on: tuple[str, ...] = ()
    seen: Seen | None = None
    at: Mark | None = None

    @property
    def id(self) -> str:
        """The address and the action: unique in a plan, since each pair occurs once."""
        return f"{self.address}:{self.action}"

    @property
    def danger(self) -> Danger | None:
        """The worst severity among its consequences."""
        severities = [each.severity for each in self.consequences]
        return min(severities, key=lambda each: each.rank) if severities else None
