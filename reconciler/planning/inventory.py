"""What an environment applied: the inventory, and how its objects were declared then. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from reconciler.kinds import kinds_by_name
from reconciler.model.event import Report
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Entry, ParentRef, Resource, State
from reconciler.model.text import quoted
from reconciler.model.values import Address, path_text, secret_refs


class Declared(Struct, frozen=True):
    """How an object was applied: the declaration, None if that is not known.

    `resend`: its secrets may be others than those of the files.
    """

    applied: Resource | None = None
    resend: bool = False


class Applied(Entry, frozen=True):
    """One entry, with what git and the files at its commit say of it.

    was, above
        How these files declare the resource, and its parent with the id and name that they have.
    contents
        The ids of the contents of the tracked files that secrets come from there, by reference.
    time
        The time of the commit.
    behind
        Whether HEAD lacks the commit, and the entry is not current.
    uncounted
        Why it does not count, "" if it does.
    """

    was: Resource | None = None
    above: ParentRef = ParentRef()
    contents: Mapping[str, str] = {}
    time: datetime | None = None
    behind: bool = False
    uncounted: str = ""


# With a dict, since cached properties need one.
class Inventory(Struct, frozen=True, dict=True):
    """What was applied.

    every
        All recorded entries, also those that do not count.
    elsewhere
        Why other files may declare a removed address, by address.
    hashes, contents
        The hashes of the secrets of today's resources, and the ids of the contents of the tracked
        files that they come from, by reference.
    trusted
        The resources of the trusted branch, or else of the newest applied commit.
    former
        The configuration of the newest applied commit.
    """

    every: Mapping[Address, Applied] = {}
    elsewhere: Mapping[Address, str] = {}
    hashes: Mapping[Address, str | None] = {}
    contents: Mapping[str, str] = {}
    trusted: Mapping[Address, Resource] = {}
    former: Desired | None = None
    record: Record | None = None

    @cached_property
    def entries(self) -> Mapping[Address, Applied]:
        """The entries that count."""
        return {at: entry for at, entry in self.every.items() if not entry.uncounted}

    @cached_property
    def behind(self) -> Mapping[Address, str]:
        """The commits of the entries that are not current."""
        return {at: entry.commit or "" for at, entry in self.entries.items() if entry.behind}

    @cached_property
    def by_object(self) -> Mapping[Identity, Address]:
        """The address of each recorded object."""
        return {(address.kind, entry.id): address for address, entry in self.entries.items()}

    def counted(self, live: Live) -> Inventory:
        """Return it without entries that the files at their commit do not declare."""
        every = dict(self.every)
        for address, entry in self.entries.items():
            if entry.commit is not None and not self._is_declared(entry, live):
                why = f"the files at {entry.commit[:7]} do not declare it so, in this project"
                every[address] = replace(entry, uncounted=why)
        return replace(self, every=every)

    def _is_declared(self, entry: Applied, live: Live) -> bool:
        """Return whether the files at its commit declare an entry by its name, in its project.

        That is the recorded one of the key that they name, or one with the id or name that they
        have.
        """
        was = entry.was
        if was is None or was.state is State.ABSENT or was.name != entry.name:
            return False
        above = _address_above(was)
        recorded = self.entries.get(above)
        is_recorded = recorded is not None and recorded.id == entry.parent
        parent = live.by_identity.get((above.kind, entry.parent or ""))
        return is_recorded or _is_inside(entry.above, entry.parent, parent)

    def declared(self, address: Address, live: LiveObject | None) -> Declared:
        """Return how the object of a resource was applied, under any address."""
        at = self.by_object.get(live.identity) if live is not None else None
        if at is None:
            return Declared(resend=address in self.entries)
        entry = self.entries[at]
        return Declared(entry.was, resend=entry.secrets != self.hashes.get(address))

    def was(self, address: Address, live: LiveObject | None) -> Resource | None:
        """Return how a resource was declared: as applied, or else in a trusted commit."""
        return self.declared(address, live).applied or self.trusted.get(address)

    def is_protected(self, address: Address, live: LiveObject, parent: LiveObject | None) -> bool:
        """Return whether an object was protected when it was applied, or is in a trusted commit.

        There it is found by the address of now, by the recorded one, by its id, and by its names.
        """
        own = {address, self.by_object.get(live.identity)}

        def is_same(item: Resource) -> bool:
            if item.address in own or (item.address.kind, item.pinned_id) == live.identity:
                return True
            is_named = item.address.kind == live.kind and item.name == live.name.strip()
            above = parent_in(self.trusted, item)
            return is_named and (parent is None or _is_inside(above, parent.id, parent))

        applied = filter(None, [self.declared(address, live).applied])
        protected = (item for item in (*self.trusted.values(), *applied) if item.lifecycle.protect)
        return any(map(is_same, protected))

    def reason_to_keep(self, address: Address, live: LiveObject, parent: LiveObject | None) -> str:
        """Return why the object of a removed entry is not deleted, "" if it may be."""
        entry, elsewhere = self.entries[address], self.elsewhere.get(address, "")
        if elsewhere or (was := entry.was) is None:
            return elsewhere or "applied from files that were not committed"
        above = entry.above.name
        reasons = {
            f"HEAD lacks the applied commit {(entry.commit or '')[:7]}": entry.behind,
            f"the live name is not {quoted(was.name)}": live.name.strip() != was.name,
            "found in another project": live.parent_id != entry.parent,
            f"the live name of the project is not {quoted(above or '')}": (
                above is not None and parent is not None and parent.name.strip() != above
            ),
        }
        return next((text for text, applies in reasons.items() if applies), "")

    def after(
        self, plan: Plan, ended: tuple[Report, Plan | None], now: Desired, head: tuple[str, Desired]
    ) -> dict[Address, Entry | None]:
        """Return what a run writes: entries of resources that are as declared now, None for others.

        `ended` are the report of the run and the plan that verified it, `head` the commit of
        HEAD and its configuration. Addresses that the run did not look at are not in the result.
        """
        (report, left), (tip, committed) = ended, head
        done = {end.change.id for end in report.done}
        tried = done | {end.change.id for end in report.failed if end.unknown}
        ids = {end.change.address: end.live_id for end in report.done if end.live_id}
        undone = {item.address for item in plan.effective if item.id not in done}
        undone |= {item.address for item in left.effective} if left is not None else set()
        sending = (item for item in plan.effective if any(note.use.sent for note in item.secrets))
        sent = {item.address for item in sending if item.id in tried}
        settled = {item.address: item for item in plan.changes if item.address not in undone}
        held = {(at.kind, ids.get(at) or item.live_id) for at, item in settled.items()}
        leaving = {item.address for item in plan.leaving if not item.stays}
        written: dict[Address, Entry | None] = {
            at: None
            for at, entry in self.every.items()
            if at in leaving or (at.kind, entry.id) in held
        }
        for at in self.entries.keys() & undone & sent:
            entry = self.entries[at]
            written[at] = Entry(entry.id, entry.name, entry.parent, entry.commit)
        for at, change in settled.items():
            resource, live_id = now.resources.get(at), ids.get(at) or change.live_id
            if resource is None or live_id is None or resource.state is State.ABSENT:
                written[at] = None
                continue
            former, secrets = self.by_object.get((at.kind, live_id)), self.hashes.get(at)
            if former is not None and at not in sent:
                secrets = self.entries[former].secrets
            parent = change.parent_id or ids.get(_address_above(resource))
            commit = tip if resource.declares_as(committed.resources.get(at)) else None
            written[at] = Entry(live_id, resource.name, parent, commit, secrets)
        return written


def _address_above(resource: Resource) -> Address:
    """Return the address of the parent of a declaration, one of no resource without a key."""
    key = resource.parent.key if resource.parent is not None else None
    return Address(kinds_by_name()[resource.address.kind].parent or "", key or "")


def parent_in(resources: Mapping[Address, Resource], resource: Resource) -> ParentRef:
    """Return the parent of a declaration, with the id and the name that its key declares."""
    ref, above = resource.parent or ParentRef(), resources.get(_address_above(resource))
    if above is not None:
        return ParentRef(ref.key, above.pinned_id, above.name)
    return replace(ref, name=ref.name.strip()) if ref.name is not None else ref


def _is_inside(ref: ParentRef, parent_id: str | None, parent: LiveObject | None) -> bool:
    """Return whether a parent, which may not exist, has the id or the name of a reference."""
    is_named = parent is not None and parent.name.strip() == ref.name
    return ref == ParentRef() or is_named or (ref.id is not None and ref.id == parent_id)


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
