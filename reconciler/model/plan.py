"""A plan: an ordered list of changes with their source, and the digests that identify them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

import orjson
from msgspec import field
from msgspec.structs import asdict

from reconciler.diagnostics import Mark
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, PlannedChange, Severity
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan_options import Selection
from reconciler.model.public import Count, Digest, Public, as_json, derived
from reconciler.model.text import listed, printable
from reconciler.model.values import JSON, MISSING, SecretRef

DIGEST_VERSION: Final = 2
"""A part of every digest, so that digests of different definitions are never equal."""
_MOST_DANGERS = 8


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


class Refusal(Public, frozen=True):
    """A violation of the policy."""

    recent = frozenset({"after_merge", "objects"})

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

    optional = frozenset({"head_ref", "base_remarks", "uncommitted", "organization_name"})

    environment: str
    """Name of the environment."""
    organization: str
    """Id of the organization."""
    base_url: str
    """Base URL of the service."""
    tool_version: str
    """Version of reconciler that made it."""
    dialect: Dialect | None = None
    """Dialect of the server, null if unknown."""
    base: str | None = None
    """Commit of the git base, null without one."""
    base_ref: str | None = None
    """Short name of the git reference of the base, null without one."""
    base_commits: Count = 0
    """Commits since the base that touch the workspace."""
    base_time: str | None = None
    """Time of the base commit, ISO 8601, null without one."""
    head: str | None = None
    """Commit that is checked out, null outside of git."""
    head_ref: str | None = None
    """Branch of that commit, as git or the CI job names it: untrusted text. Absent if unknown."""
    undoes: str | None = None
    """Id of the plan that this one undoes, null for any other plan."""
    base_remarks: tuple[str, ...] = ()
    """What a reader should know about the choice of the base. Absent if nothing."""
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
    no_op: Count = field(name="no-op")
    """Changes whose action is `no-op`."""
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
    """One change per resource, in the order of execution; `no-op` last, by address."""
    unmanaged: tuple[Unmanaged, ...] = ()
    """Unmanaged objects: live objects that no resource claims."""
    ignored: tuple[Unmanaged, ...] = ()
    """Live objects that `policy.ignore` excludes."""
    notes: tuple[Note, ...] = ()
    """Notes on the plan as a whole."""
    refusals: tuple[Refusal, ...] = ()
    """Policy violations. A plan with violations is not applied."""
    selection: Selection = field(default_factory=Selection)
    """The options that narrow the plan."""
    created_at: str = ""
    """When the plan was made, ISO 8601."""

    @derived
    def plan_id(self) -> Digest:
        """SHA-256 of the digests of all changes: plans with equal ids do the same."""
        return plan_id_of(digest for digest in self._digests if digest is not None)

    @derived
    def summary(self) -> Summary:
        """Counts."""
        counts = {action.name.lower(): count for action, count in self.counts.items()}
        return Summary(**counts, unmanaged=len(self.unmanaged), empty=self.empty)

    @derived
    def changes_(self) -> tuple[PlannedChange, ...]:
        """One change per resource, in the order of execution; `no-op` last."""
        pairs = zip(self.changes, self._digests, strict=True)
        return tuple(PlannedChange(**asdict(change), digest=digest) for change, digest in pairs)

    @cached_property
    def _digests(self) -> tuple[str | None, ...]:
        return tuple(
            None if change.action is Action.NO_OP else digest_of(change, self.source)
            for change in self.changes
        )

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
    def objects(self) -> Mapping[Address, str | None]:
        """The live ids of all changes by address, no-ops included."""
        return {change.address: change.live_id for change in self.changes}

    @property
    def empty(self) -> bool:
        """Whether applying it sends nothing."""
        return not self.effective

    @cached_property
    def dangers(self) -> Mapping[str, Sequence[Address]]:
        """The objects with dangers, by the rule."""
        dangers: dict[str, list[Address]] = {}
        for change in self.effective:
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
        counts = Counter(change.action for change in self.changes)
        return {action: counts[action] for action in Action}


def encode(plan: Plan) -> bytes:
    """Return canonical public JSON: equal plans give equal bytes."""
    return as_json(plan, sort=True).encode()


def identity_of(change: Change, source: PlanSource) -> dict[str, Any]:
    """Return what a change acts on: the place, the action, the object and its name.

    The object is the live one; for a create it is its parent, by id, or by key if that does not
    exist yet.
    """
    identity: dict[str, Any] = {
        "environment": source.environment,
        "organization": source.organization,
        "base_url": source.base_url,
        "kind": change.address.kind,
        "action": change.action.value,
        "name": change.name.strip(),
    }
    if change.action is not Action.CREATE:
        return identity | {"id": change.live_id}
    waits_for = str(change.parent) if change.parent_id is None and change.parent else None
    return identity | {"parent_id": change.parent_id, "waits_for": waits_for}


def digest_of(change: Change, source: PlanSource) -> str:
    """Return the SHA-256 (hex) of all that a change does, and of the live state it depends on.

    Equal digests mean the same requests under the same conditions, and the same names and values
    to a reader. Messages, reasons, places, the names of parents, the order of the plan and the git
    base are not in it: a plan that renames a parent continues.
    """
    return _sha256(
        {
            "version": DIGEST_VERSION,
            "identity": identity_of(change, source),
            "address": str(change.address),
            "fields": _in_order(
                [list(field.path), _side(field.before), _side(field.after), field.secret]
                for field in change.fields
            ),
            "seen": _exact(change.seen),
            "inside": sorted(change.inside),
            "new_id": change.new_id,
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


def plan_id_of(digests: Iterable[str]) -> str:
    """Return the id of the plan whose changes have these digests, in any order."""
    return _sha256([DIGEST_VERSION, sorted(digests)])


def _side(value: JSON) -> list[Any]:
    """Return a value as a list, which is empty for an absent one."""
    return [] if value is MISSING else [_exact(value)]


def _exact(value: JSON) -> Any:
    """Return JSON in which no text is equal to a secret reference."""
    if isinstance(value, SecretRef):
        return {"$secret": [[str(part), isinstance(part, str)] for part in value.parts]}
    if isinstance(value, Mapping):
        return {
            f"${name}" if str(name).startswith("$") else str(name): _exact(item)
            for name, item in value.items()
        }
    return [_exact(item) for item in value] if isinstance(value, (list, tuple)) else value


def _in_order(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=_canonical)


def _sha256(content: Any) -> str:
    return sha256(_canonical(content)).hexdigest()


def _canonical(content: Any) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
