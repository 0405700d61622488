"""What an environment applied: the inventory, and how its objects were declared then. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.event import Report
from reconciler.model.inventory import Entry
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.plan import Change, Plan
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.text import quoted
from reconciler.model.values import SecretSource, path_text, secret_refs


class Declared(Struct, frozen=True):
    """How an object was applied: the declaration, None if that is not known.

    `resend`: its secrets may be others than those of the files.
    """

    applied: Resource | None = None
    resend: bool = False


# With a dict, since cached properties need one.
class Inventory(Struct, frozen=True, dict=True):
    """What was applied, as far as it counts.

    entries
        The entries by address.
    applied
        How the files at the commits of entries declare their resources.
    parents
        The projects that these declarations name by key, by the address of the entry.
    hashes
        The hashes of the secrets of today's resources.
    uncounted
        Entries that do not count, with the reason.
    behind
        Entries whose commit HEAD lacks, with that commit, if they are not current.
    elsewhere
        Removed addresses that other files may declare, with the reason.
    trusted
        The resources of the trusted branch, none if it is unknown.
    contents
        The ids of the contents of tracked files that secrets come from, by commit and reference,
        those of today's files without a commit.
    former, times
        The configuration of the newest applied commit, and the times of the commits of entries.
    every
        All recorded entries, also those that do not count.
    """

    entries: Mapping[Address, Entry] = field(default_factory=dict)
    applied: Mapping[Address, Resource] = field(default_factory=dict)
    parents: Mapping[Address, Resource] = field(default_factory=dict)
    hashes: Mapping[Address, str] = field(default_factory=dict)
    uncounted: Mapping[Address, str] = field(default_factory=dict)
    behind: Mapping[Address, str] = field(default_factory=dict)
    elsewhere: Mapping[Address, str] = field(default_factory=dict)
    trusted: Mapping[Address, Resource] = field(default_factory=dict)
    contents: Mapping[tuple[str | None, str], str] = field(default_factory=dict)
    former: Desired | None = None
    times: Mapping[str, datetime] = field(default_factory=dict)
    record: Record | None = None
    every: Mapping[Address, Entry] = field(default_factory=dict)

    @cached_property
    def by_object(self) -> Mapping[Identity, Address]:
        """The address of each recorded object."""
        return {(address.kind, entry.id): address for address, entry in self.entries.items()}

    def ids_of(self, source: SecretSource, at: str | None = None) -> tuple[SecretSource | str, ...]:
        """Return what a secret is known by: its reference, and the content of a tracked file."""
        content = self.contents.get((at, source.origin))
        return (source, content) if content is not None else (source,)

    def counted(self, live: Live, kinds: Mapping[str, Kind]) -> Inventory:
        """Return it without entries that the files at their commit do not declare."""
        uncounted = dict(self.uncounted)
        for address, entry in self.entries.items():
            was = self.applied.get(address)
            if entry.commit is None:
                continue
            if was is None or was.name != entry.name.strip():
                uncounted[address] = f"the files at {entry.commit[:7]} do not declare it so"
            elif not self._is_placed(was, entry, kinds[address.kind].parent or "", live):
                uncounted[address] = f"the files at {entry.commit[:7]} have it in another project"
        entries, applied, behind = (
            {at: item for at, item in items.items() if at not in uncounted}
            for items in (self.entries, self.applied, self.behind)
        )
        return replace(self, entries=entries, applied=applied, uncounted=uncounted, behind=behind)

    def _is_placed(self, was: Resource, entry: Entry, parent_kind: str, live: Live) -> bool:
        """Return whether a declaration is in the recorded project."""
        ref, above = was.parent, self.parents.get(was.address)
        if ref is None or ref.id is not None:
            return ref is None or ref.id == entry.parent
        if ref.key is not None:
            if above is None:
                return False
            # The key of a project may have changed since: then another key has its id.
            recorded = self.entries.get(above.address)
            if entry.parent in (recorded.id if recorded else None, above.pinned_id):
                return True
            if recorded is None and (parent_kind, entry.parent or "") in self.by_object:
                return True
        parent = live.by_identity.get((parent_kind, entry.parent or ""))
        return parent is not None and parent.name.strip() == _name_of_parent(was, above)

    def declared(self, address: Address, live: LiveObject | None) -> Declared:
        """Return how the object of a resource was applied, under any address."""
        own = self.entries.get(address)
        at = self.by_object.get(live.identity) if live is not None else None
        if at is None:
            return Declared(resend=own is not None)
        return Declared(
            self.applied.get(at), resend=self.entries[at].secrets != self.hashes.get(address)
        )

    def was(self, address: Address, live: LiveObject | None) -> Resource | None:
        """Return how a resource was declared: as applied, or else on the trusted branch."""
        return self.declared(address, live).applied or self.trusted.get(address)

    def is_protected(self, address: Address, live: LiveObject, parent: LiveObject | None) -> bool:
        """Return whether an object was protected when it was applied, or is on the trusted branch.

        There it is found by the address of now, by the recorded one, by its id, and by its names.
        """
        applied = self.declared(address, live).applied
        if applied is not None and applied.lifecycle.protect:
            return True
        own = {address, self.by_object.get(live.identity)}
        return any(
            item.address in own
            or (item.address.kind == live.kind and self._is_on_trusted(item, live, parent))
            for item in self.trusted.values()
            if item.lifecycle.protect
        )

    def _is_on_trusted(self, item: Resource, live: LiveObject, parent: LiveObject | None) -> bool:
        is_pinned, is_named = item.pinned_id == live.id, item.name == live.name.strip()
        if is_pinned or parent is None or item.parent is None:
            return is_pinned or is_named
        above = self.trusted.get(Address(parent.kind, item.parent.key or ""))
        ids = (item.parent.id, above.pinned_id if above is not None else None)
        is_inside = parent.id in ids or parent.name.strip() == _name_of_parent(item, above)
        return is_inside and is_named

    def problem_of(self, address: Address, live: LiveObject, parent: LiveObject | None) -> str:
        """Return why the object of a removed entry is not deleted, "" if it may be."""
        entry, was = self.entries[address], self.applied.get(address)
        if address in self.elsewhere:
            return self.elsewhere[address]
        if was is None:
            return "it was applied from files that were not committed"
        above = _name_of_parent(was, self.parents.get(address))
        problems = {
            f"HEAD lacks the applied commit {(entry.commit or '')[:7]}": address in self.behind,
            f"its live name is not {quoted(was.name)}": live.name.strip() != was.name,
            "it is in another project": live.parent_id != entry.parent,
            f"the live name of its project is not {quoted(above or '')}": (
                above is not None and parent is not None and parent.name.strip() != above
            ),
        }
        return next((text for text, applies in problems.items() if applies), "")


def _name_of_parent(was: Resource, above: Resource | None) -> str | None:
    """Return the name of the project of a declaration. `above` is what its key declares."""
    if above is not None:
        return above.name
    return was.parent.name.strip() if was.parent is not None and was.parent.name else None


class Record(Struct, frozen=True):
    """The reference of an inventory, its commit, and the newest applied commit with its time.

    `commits` are those since then that touch the workspace. `is_newer`: HEAD is an ancestor of it,
    and the files of the workspace differ there.
    """

    ref: str
    tip: str
    applied: str
    time: datetime
    commits: int = 0
    is_newer: bool = False


def hash_of_secrets(resource: Resource, contents: Mapping[str, str]) -> str | None:
    """Return the hash of what decides the secrets of a resource, None if it has none.

    `contents` are the ids of the contents of tracked files that references name.
    """
    texts = sorted(
        "=".join((path_text(path), str(ref), *(contents.get(s.origin, "") for s in ref.sources)))
        for path, ref in secret_refs(resource.spec)
    )
    if not texts:
        return None
    return sha256("\n".join([resource.secret_version or "", *texts]).encode()).hexdigest()[:12]


def entries_after(
    inventory: Inventory,
    plan: Plan,
    ended: tuple[Report, Plan | None],
    desired: Mapping[Address, Resource],
    committed: tuple[str, Mapping[Address, Resource]],
) -> dict[Address, Entry | None]:
    """Return what a run writes: the entries of resources that are now as declared, None for others.

    `ended` are the report of the run and the plan that verified it, `committed` HEAD and its
    resources. Addresses that the run did not look at are not in the result.
    """
    report, left = ended
    ran = _Ran.of(plan, report, left)
    head, at_head = committed
    written: dict[Address, Entry | None] = {}
    for change in plan.changes:
        address, resource = change.address, desired.get(change.address)
        live_id = ran.ids.get(address) or change.live_id
        if resource is None or resource.state is State.ABSENT or live_id is None:
            if resource is not None and live_id is None and address not in ran.open:
                written[address] = None
            continue
        if address in ran.open:
            if address in ran.sending and (entry := inventory.entries.get(address)) is not None:
                written[address] = replace(entry, secrets=None)
            continue
        is_committed = resource.declares_as(at_head.get(address))
        former = inventory.by_object.get((address.kind, live_id))
        secrets = inventory.hashes.get(address)
        if former is not None and address not in ran.sending:
            secrets = inventory.entries[former].secrets
        parent = ran.parent_of(change, resource)
        commit = head if is_committed else None
        written[address] = Entry(live_id, resource.name, parent, commit, secrets)
    held = {(address.kind, entry.id) for address, entry in written.items() if entry is not None}
    leaving = {item.address for item in plan.leaving if not item.stays}
    for address, entry in inventory.every.items():
        identity = address.kind, entry.id
        is_gone = identity in ran.deleted or address in leaving
        if address not in written and (is_gone or identity in held):
            written[address] = None
    return written


class _Ran(Struct, frozen=True):
    """What a run did.

    `ids` are those of created objects, `open` the addresses that are not as declared, `sending`
    those whose secrets were sent, or may have been, and `deleted` the objects that are gone.
    """

    ids: Mapping[Address, str]
    open: Collection[Address]
    sending: Collection[Address]
    deleted: Collection[Identity]

    @classmethod
    def of(cls, plan: Plan, report: Report, left: Plan | None) -> _Ran:
        """Return what a report says of a plan."""
        done = {end.change.id for end in report.done}
        unknown = {end.change.id for end in report.failed if end.unknown}
        undone = {item.address for item in plan.effective if item.id not in done}
        differing = {item.address for item in left.effective} if left is not None else set()
        return cls(
            ids={end.change.address: end.live_id for end in report.done if end.live_id},
            open=undone | differing,
            sending={
                item.address
                for item in plan.effective
                if item.id in done | unknown and any(note.use.sent for note in item.secrets)
            },
            deleted={
                (item.address.kind, item.live_id or "")
                for item in plan.effective
                if item.id in done and item.action is Action.DELETE
            },
        )

    def parent_of(self, change: Change, resource: Resource) -> str | None:
        """Return the id of the parent of a resource, which the run may have created."""
        if resource.parent is None or resource.parent.key is None:
            return change.parent_id
        kind, key = resource.address.kind, resource.parent.key
        created = (item for at, item in self.ids.items() if at.key == key and at.kind != kind)
        return change.parent_id or next(created, None)
