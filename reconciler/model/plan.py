"""A plan: its source and its changes, each after those that it depends on, and their digests.

Changes with equal digests do the same. Masking and public JSON of plans are here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Final

import orjson
from msgspec import Meta, field
from msgspec.structs import asdict

from reconciler.diagnostics import Mark
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import LiveObject
from reconciler.model.public import Count, Digest, FieldPath, Public, Term, as_json, derived
from reconciler.model.resource import ParentRef
from reconciler.model.settings import Selection
from reconciler.model.text import listed, printable
from reconciler.model.values import (
    JSON,
    MISSING,
    PLAIN,
    Address,
    JSONObject,
    Path,
    SecretRef,
    form_of,
)

_NO_VALUES = {
    "if": {"properties": {"secret": {"const": True}}},
    "then": {"properties": {"before": False, "after": False}},
}
DIGEST_VERSION: Final = 2
"""A part of every digest, so that digests of different definitions are never equal."""
_MOST_DANGERS = 8
IDENTITY = AMBIGUOUS, UNRESOLVED = "ambiguous", "unresolved"
"""The rules that refuse resources whose object, project or integration is not known."""


class Reason(Term):
    """Why a change is planned. What was not recorded as applied is `fields_differ`."""

    NOT_LIVE = "not_live", "does not exist yet"
    FIELDS_DIFFER = "fields_differ", "live state differs from the configuration"
    CHANGED_IN_FILES = "changed_in_files", "changed in the configuration"
    DRIFTED = "drifted", "drift: live state changed, the configuration did not"
    CONFLICT = "conflict", "conflict: live state and the configuration both changed"
    REMOVED_KEY = "removed_key", "a field was removed from the configuration"
    RENAMED = "renamed", "renamed"
    STATE_ABSENT = "state_absent", "the configuration sets `state: absent`"
    REMOVED_FROM_FILES = "removed_from_files", "removed from the configuration"
    MOVED = "moved", "moved to another project"
    FIXED_FIELD = "fixed_field", "a field can't be changed in place"
    SECRET_ROTATED = "secret_rotated", "secrets are sent again (--rotate-secrets)"
    SECRET_CHANGED = "secret_changed", "a secret changed in the configuration"
    REQUESTED = "requested", "requested by a command, not by the configuration"


class Origin(Term):
    """The side that changed since the apply."""

    FILES = "files", "The files changed."
    LIVE = "live", "Live state changed."
    BOTH = "both", "Both changed: a conflict."
    UNKNOWN = "unknown", "It is not recorded what was applied."


class FieldChange(Public, frozen=True):
    """One field that differs. An absent side has no key; a null side is null."""

    with_secrets = frozenset({"before", "after"})

    path: FieldPath
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
    written: Path = ()
    """The path as the file writes it, empty if it is `path`."""


class SecretUse(Term):
    """Whether and why a secret is sent. The server returns none. Changes are since the apply."""

    CREATE = "create", "sent (new object)"
    ROTATE = "rotate", "sent (--rotate-secrets)"
    REFERENCE_CHANGED = "reference_changed", "sent (reference changed)"
    VERSION_CHANGED = "version_changed", "sent (secret_version changed)"
    RESENT = "resent", "sent (secrets of this resource changed, or were not recorded)"
    NEEDED = "needed", "sent (required by this change)"
    UNREADABLE = "unreadable", "not sent (no change detected)"

    @property
    def sent(self) -> bool:
        """Whether the secret is sent."""
        return self is not SecretUse.UNREADABLE


class SecretNote(Public, frozen=True):
    """A secret field: its reference, and whether and why it is sent."""

    path: FieldPath
    ref: SecretRef
    """The value."""
    use: SecretUse
    """Why it is or is not sent."""
    former: str = ""
    """The applied reference, empty if it is the same or unknown."""

    @derived
    def reference(self) -> str:
        """The reference as text, such as ${secret:env:NAME}."""
        return str(self.ref)

    @derived
    def sent(self) -> bool:
        """Whether it is sent."""
        return self.use.sent


class Severity(Term):
    """The severity of a consequence, the worst first."""

    DANGER = "danger", "Data, history or access may be lost."
    WARNING = "warning", "Read it before you apply."
    INFO = "info", "Good to know."


class Effect(Term):
    """What a consequence does to data, the worst first."""

    LOST = "lost", "Data, runs or history are lost, or no longer exported."
    ELSEWHERE = "elsewhere", "Data goes elsewhere, or more is collected or visible."
    DELAYED = "delayed", "Exports stop, or data arrives later."
    FORM = "form", "Data has another form, or another place at the same destination."
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
    OBJECT = "object", "Another name of a recorded object, or an object in place of a deleted one."


class NewPlace(Public, frozen=True):
    """Something that a change reaches or collects, and that is new."""

    optional = frozenset({"what"})

    sort: Novelty
    """What is new."""
    text: str
    """The place: an address, a bucket, or the new name of an object."""
    host: str
    """The address that gets it: a host, an integration, or a type of destination."""
    what: str = ""
    """What goes there that did not: a query, secrets, or an object. Absent if the place is new."""
    before: str = ""
    """What it was before, empty if nothing."""
    inside: tuple[str, ...] = ()
    """What is in the place, each with a word, such as `prefix web/`."""
    again: bool = False
    """Whether the object does not run now, and begins to run again."""

    @property
    def shown(self) -> str:
        """What goes where, as one text."""
        return f"{self.what} -> {self.text}" if self.what else self.text


class RecentRun(Public, frozen=True):
    """A run of the live object."""

    status: str
    """Status, in the words of the service."""
    end: str
    """End of its interval, ISO 8601, empty if unknown."""


class Change(Public, frozen=True, gc=False):
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

    digest: Digest
    """SHA-256 of what the change does and of the live state it depends on."""


class Unmanaged(Public, frozen=True):
    """A live object."""

    address: Address
    name: str
    """Its name."""
    parent_id: str | None = None
    """Id of its parent."""
    parent_name: str | None = None
    """Name of its parent."""

    @classmethod
    def of(cls, live: LiveObject, parent_name: str | None) -> Unmanaged:
        """Return an object with the name of its parent."""
        address = Address.of_unmanaged(live.kind, live.id)
        return cls(address, live.name, live.parent_id, parent_name)


class Note(Public, frozen=True):
    """A note on the plan as a whole, or about a resource."""

    code: str
    """Stable id of the note."""
    message: str
    """Message."""
    about: Address | None = None
    """The resource that it is about, null for the plan as a whole."""


class Leaving(Public, frozen=True):
    """A removed resource whose object is not deleted, or is gone."""

    internal = frozenset({"stays"})

    address: Address
    """The removed resource."""
    live_id: str = field(name="id")
    """Id of its object."""
    name: str
    """Name of its object."""
    reason: str
    """Why it is not deleted."""
    protected: bool = False
    """Whether the applied declaration has `lifecycle.protect`."""
    stays: bool = False
    """Whether it stays in the inventory, so that a later plan may delete it."""


class Refusal(Public, frozen=True):
    """A violation of the policy."""

    rule: str
    """Stable id of the rule."""
    message: str
    """What violates it."""
    addresses: tuple[Address, ...] = ()
    """The resources that violate it."""
    at: Mark | None = None
    """Place of the rule, null for a default."""
    allow: str | None = None
    """How to allow it."""
    after_merge: bool = False
    """Whether only the policy of the trusted branch is violated, and the files lift it."""
    objects: tuple[Unmanaged, ...] = ()
    """The live objects that are the reason, such as one that a create would double."""


class PlanSource(Public, frozen=True):
    """What a plan was computed from."""

    optional = frozenset({"head_ref", "uncommitted", "organization_name"})

    environment: str
    """Name of the environment."""
    organization: str
    """Id of the organization."""
    base_url: str
    """Address of the service."""
    tool_version: str
    """Version of reconciler that made it."""
    dialect: Dialect | None = None
    """Dialect of the server, null if unknown."""
    inventory: str | None = None
    """Git reference of the inventory, null without one."""
    applied: str | None = None
    """Newest applied commit, null without an inventory."""
    applied_commits: Count = 0
    """Commits since then that touch the workspace."""
    applied_time: str | None = None
    """Time of that commit, ISO 8601, null without one."""
    recorded: Count = 0
    """Declared resources that the inventory has."""
    declared: Count = 0
    """Declared resources."""
    head: str | None = None
    """Commit that is checked out, null outside of git."""
    head_ref: str | None = None
    """Branch of that commit, as git or the CI job names it: untrusted text. Absent if unknown."""
    uncommitted: bool = False
    """Whether the files that were planned differ from those of `head`. Absent if they do not."""
    organization_name: str | None = None
    """Name of the organization. Absent if the key may not read it."""


class Summary(Public, frozen=True):
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
    unmanaged: Count
    """Unmanaged objects: live objects that no resource claims."""
    empty: bool
    """Whether applying the plan sends nothing."""


# With a dict, since cached properties need one.
class Plan(Public, frozen=True, dict=True):
    """The plan that `plan --out FILE` saves and `plan --format json` prints."""

    version = 1
    schema = "plan"

    source: PlanSource
    """What the plan was computed from."""
    changes: tuple[Change, ...]
    """The changes, each after those that it depends on. Applying makes deletions after all other
    changes, except those that another change needs. A plan that was just made has a `no-op` for
    each unchanged resource last, by address; public JSON has none."""
    unchanged: Count = 0
    """Resources that match their live objects."""
    unmanaged: tuple[Unmanaged, ...] = ()
    """Unmanaged objects: live objects that no resource claims."""
    ignored: tuple[Unmanaged, ...] = ()
    """Live objects that `policy.ignore` excludes."""
    leaving: tuple[Leaving, ...] = ()
    """Removed resources that are not deleted. They are unmanaged after the next apply."""
    notes: tuple[Note, ...] = ()
    """Notes on the plan as a whole."""
    refusals: tuple[Refusal, ...] = ()
    """Policy violations. A plan with violations is not applied."""
    selection: Selection = field(default_factory=Selection)
    """The options that narrow the plan."""
    created_at: str = ""
    """When the plan was made, ISO 8601."""

    @property
    def is_refused(self) -> bool:
        """Whether a rule refuses it now. What is refused after the merge does not count."""
        return any(not refusal.after_merge for refusal in self.refusals)

    @derived
    def plan_id(self) -> Digest:
        """SHA-256 of the digests of all changes: plans with equal ids do the same."""
        return _sha256([DIGEST_VERSION, sorted(self._digests)])

    @derived
    def summary(self) -> Summary:
        """Counts."""
        counts = {action.value: count for action, count in self.counts.items()}
        return Summary(**counts, unmanaged=len(self.unmanaged), empty=self.empty)

    @derived
    def changes_(self) -> tuple[PlannedChange, ...]:
        """The changes, each after those that it depends on."""
        pairs = zip(self.effective, self._digests, strict=True)
        return tuple(PlannedChange(**asdict(change), digest=digest) for change, digest in pairs)

    @property
    def unclear(self) -> Mapping[Address, Refusal]:
        """The resources whose object, project or integration is not known: they have no change."""
        unclear = [refusal for refusal in self.refusals if refusal.rule in IDENTITY]
        return {address: refusal for refusal in unclear for address in refusal.addresses}

    @cached_property
    def _digests(self) -> tuple[str, ...]:
        return tuple(digest_of(change, self.source) for change in self.effective)

    @cached_property
    def effective(self) -> tuple[Change, ...]:
        """The changes that do something, in order."""
        return tuple(change for change in self.changes if change.action is not Action.NO_OP)

    @cached_property
    def deleted_inside(self) -> Mapping[str, tuple[Change, ...]]:
        """The deletions that another deletion makes, by the id of that: they send nothing."""
        deletions = {item.id: item for item in self.changes if item.action is Action.DELETE}
        return {
            change.id: tuple(
                deletions[needed] for needed in change.depends_on if needed in deletions
            )
            for change in deletions.values()
        }

    @property
    def sending(self) -> tuple[Change, ...]:
        """The changes that send requests of their own, in order."""
        inside = {change.id for made in self.deleted_inside.values() for change in made}
        return tuple(change for change in self.effective if change.id not in inside)

    @property
    def addresses(self) -> frozenset[Address]:
        """The addresses of all changes, and of no-ops if there are any."""
        return frozenset(change.address for change in self.changes)

    @property
    def empty(self) -> bool:
        """Whether applying it sends nothing."""
        return not self.effective

    @cached_property
    def dangers(self) -> Mapping[str, Sequence[Address]]:
        """The objects with dangers, by the rule, without what is deleted with its parent."""
        dangers: dict[str, list[Address]] = {}
        for change in self.sending:
            for consequence in change.consequences:
                if consequence.severity is Severity.DANGER:
                    dangers.setdefault(consequence.rule, []).append(change.address)
        return dangers

    @property
    def named_dangers(self) -> str:
        """The objects with dangers, the first of many: `batch_export.a, batch_export.b (rule)`."""
        most = max(1, _MOST_DANGERS // max(1, len(self.dangers)))
        parts = (f"{listed(names, most)} ({rule})" for rule, names in self.dangers.items())
        return printable("; ".join(parts))

    @property
    def counts(self) -> Mapping[Action, int]:
        """The number of changes by action, zeros included."""
        counts = Counter(change.action for change in self.effective)
        return {action: counts[action] for action in Action if action is not Action.NO_OP}


def encode(plan: Plan) -> bytes:
    """Return canonical public JSON: equal plans give equal bytes."""
    return as_json(plan, sort=True).encode()


def digest_of(change: Change, source: PlanSource) -> str:
    """Return the SHA-256 (hex) of all that a change does, and of the live state it depends on.

    Equal digests mean the same requests under the same conditions, and the same names and values
    to a reader. Messages, reasons, places, the names of parents, the order of the plan and the
    inventory are not in it: a plan that renames a parent continues. The object is the live one; for
    a create it is its parent, by id, or by key if that does not exist yet.
    """
    waits_for = str(change.parent) if change.parent_id is None and change.parent else None
    is_create = change.action is Action.CREATE
    parent = {"parent_id": change.parent_id, "waits_for": waits_for}
    return _sha256(
        {
            "version": DIGEST_VERSION,
            "identity": {
                "environment": source.environment,
                "organization": source.organization,
                "base_url": source.base_url,
                "kind": change.address.kind,
                "action": change.action.value,
                "name": change.name.strip(),
                **(parent if is_create else {"id": change.live_id}),
            },
            "address": str(change.address),
            "fields": _in_order(
                [list(field.path), _side(field.before), _side(field.after), field.secret]
                for field in change.fields
            ),
            "seen": _exact(change.seen),
            "inside": sorted(change.inside),
            "body": _exact(change.body),
            "after_create": _exact(change.after_create),
            "secrets": _in_order(
                [list(note.path), _exact(note.ref), note.use.value]
                for note in change.secrets
                if note.use.sent
            ),
            "depends_on": sorted(change.depends_on),
            "rules": sorted({(item.rule, item.severity.value) for item in change.consequences}),
        }
    )


def _side(value: JSON) -> list[Any]:
    """Return a value as a list, which is empty for an absent one."""
    return [] if value is MISSING else [_exact(value)]


def _exact(value: JSON) -> Any:
    """Return JSON in which no text is equal to a secret reference."""
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, SecretRef):
        return {"$secret": [[str(part), isinstance(part, str)] for part in value.parts]}
    form = form_of(value.__class__)
    if form is dict:
        return {
            f"${name}" if str(name).startswith("$") else str(name): _exact(item)
            for name, item in value.items()
        }
    return value if form is None else [_exact(item) for item in value]


def _in_order(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=_canonical)


def _sha256(content: Any) -> str:
    return sha256(_canonical(content)).hexdigest()


def _canonical(content: Any) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
