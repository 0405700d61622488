"""What an environment applied: the inventory, and how its objects were declared then. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.event import Report
from reconciler.model.kind import Kind
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Entry, Resource, State
from reconciler.model.text import quoted
from reconciler.model.values import Address, SecretSource, path_text, secret_refs


class Declared(Struct, frozen=True):
    """How an object was applied: the declaration, None if that is not known.

    `resend`: its secrets may be others than those of the files.
    """

    applied: Resource | None = None
    resend: bool = False


class Applied(Entry, frozen=True):
    """One entry, with what git and the files at its commit say of it.

    was, above
        How these files declare the resource, and the project that it names by key.
    contents
        The ids of the contents of tracked files that its secrets come from, by reference.
    time
        The time of the commit.
    behind
        Whether HEAD lacks the commit, and the entry is not current.
    elsewhere
        Why its removed address may be declared by other files, "" if it is not.
    uncounted
        Why it does not count, "" if it does.
    """

    was: Resource | None = None
    above: Resource | None = None
    contents: Mapping[str, str] = {}
    time: datetime | None = None
    behind: bool = False
    elsewhere: str = ""
    uncounted: str = ""


# With a dict, since cached properties need one.
class Inventory(Struct, frozen=True, dict=True):
    """What was applied.

    every
        All recorded entries, also those that do not count.
    hashes, contents
        The hashes of the secrets of today's resources, and the ids of the contents of the tracked
        files that they come from, by reference.
    trusted
        The resources of the trusted branch, none if it is unknown.
    former
        The configuration of the newest applied commit.
    """

    every: Mapping[Address, Applied] = {}
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

    def counted(self, live: Live, kinds: Mapping[str, Kind]) -> Inventory:
        """Return it without entries that the files at their commit do not declare."""
        every = dict(self.every)
        for address, entry in self.entries.items():
            was, why = entry.was, ""
            if was is None or was.name != entry.name.strip():
                why = "do not declare it so"
            elif not self._is_placed(was, entry, kinds[address.kind].parent or "", live):
                why = "have it in another project"
            if why and entry.commit is not None:
                why = f"the files at {entry.commit[:7]} {why}"
                every[address] = replace(entry, uncounted=why)
        return replace(self, every=every)

    def _is_placed(self, was: Resource, entry: Applied, parent_kind: str, live: Live) -> bool:
        """Return whether a declaration is in the recorded project."""
        recorded = self.entries.get(entry.above.address) if entry.above is not None else None
        parent = live.by_identity.get((parent_kind, entry.parent or ""))
        name = parent.name.strip() if parent is not None else None
        is_recorded = recorded is not None and recorded.id == entry.parent
        return is_recorded or was.parent is None or _is_inside(was, entry.above, entry.parent, name)

    def declared(self, address: Address, live: LiveObject | None) -> Declared:
        """Return how the object of a resource was applied, under any address."""
        at = self.by_object.get(live.identity) if live is not None else None
        if at is None:
            return Declared(resend=address in self.entries)
        entry = self.entries[at]
        return Declared(entry.was, resend=entry.secrets != self.hashes.get(address))

    def was(self, address: Address, live: LiveObject | None) -> Resource | None:
        """Return how a resource was declared: as applied, or else on the trusted branch."""
        return self.declared(address, live).applied or self.trusted.get(address)

    def is_protected(self, address: Address, live: LiveObject, parent: LiveObject | None) -> bool:
        """Return whether an object was protected when it was applied, or is on the trusted branch.

        There it is found by the address of now, by the recorded one, by its id, and by its names.
        """
        applied = self.declared(address, live).applied
        own = {address, self.by_object.get(live.identity)}

        def is_same(item: Resource) -> bool:
            if item.address in own or (item.address.kind, item.pinned_id) == live.identity:
                return True
            is_named = item.address.kind == live.kind and item.name == live.name.strip()
            if not is_named or parent is None or item.parent is None:
                return is_named
            above = self.trusted.get(Address(parent.kind, item.parent.key or ""))
            return _is_inside(item, above, parent.id, parent.name.strip())

        protected = (item for item in self.trusted.values() if item.lifecycle.protect)
        was_protected = applied is not None and applied.lifecycle.protect
        return was_protected or any(map(is_same, protected))

    def problem_of(self, address: Address, live: LiveObject, parent: LiveObject | None) -> str:
        """Return why the object of a removed entry is not deleted, "" if it may be."""
        entry = self.entries[address]
        if entry.elsewhere:
            return entry.elsewhere
        if (was := entry.was) is None:
            return "it was applied from files that were not committed"
        above = _name_of_parent(was, entry.above)
        problems = {
            f"HEAD lacks the applied commit {(entry.commit or '')[:7]}": entry.behind,
            f"its live name is not {quoted(was.name)}": live.name.strip() != was.name,
            "it is in another project": live.parent_id != entry.parent,
            f"the live name of its project is not {quoted(above or '')}": (
                above is not None and parent is not None and parent.name.strip() != above
            ),
        }
        return next((text for text, applies in problems.items() if applies), "")


def ids_of(source: SecretSource, contents: Mapping[str, str]) -> Sequence[SecretSource | str]:
    """Return what a secret is known by: its reference, and the content of a tracked file."""
    return (source, contents[source.origin]) if source.origin in contents else (source,)


def _is_inside(
    was: Resource, above: Resource | None, parent_id: str | None, name: str | None
) -> bool:
    """Return whether a declaration with a parent names one. `above` is what its key declares."""
    ids = {above.pinned_id if above is not None else None, was.parent.id if was.parent else None}
    return parent_id in ids - {None} or (name is not None and name == _name_of_parent(was, above))


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
    (report, left), (head, at_head) = ended, committed
    done = {end.change.id for end in report.done}
    tried = done | {end.change.id for end in report.failed if end.unknown}
    ids = {end.change.address: end.live_id for end in report.done if end.live_id}
    undone = {item.address for item in plan.effective if item.id not in done}
    undone |= {item.address for item in left.effective} if left is not None else set()
    sending = (item for item in plan.effective if any(note.use.sent for note in item.secrets))
    sent = {item.address for item in sending if item.id in tried}
    written: dict[Address, Entry | None] = {}
    for change in plan.changes:
        address, resource = change.address, desired.get(change.address)
        live_id = ids.get(address) or change.live_id
        if address in undone:
            if address in sent and (entry := inventory.entries.get(address)) is not None:
                written[address] = Entry(entry.id, entry.name, entry.parent, entry.commit)
        elif resource is not None and live_id is None:
            written[address] = None
        elif resource is not None and live_id is not None and resource.state is State.PRESENT:
            former = inventory.by_object.get((address.kind, live_id))
            secrets = inventory.hashes.get(address)
            if former is not None and address not in sent:
                secrets = inventory.entries[former].secrets
            key = resource.parent.key if resource.parent is not None else None
            new = (i for at, i in ids.items() if at.key == key and at.kind != address.kind)
            commit = head if resource.declares_as(at_head.get(address)) else None
            parent = change.parent_id or next(new, None)
            written[address] = Entry(live_id, resource.name, parent, commit, secrets)
    settled = [change for change in plan.changes if change.address not in undone]
    held = {(item.address.kind, ids.get(item.address) or item.live_id) for item in settled}
    leaving = {item.address for item in plan.leaving if not item.stays}
    for address, entry in inventory.every.items():
        if address not in written and (address in leaving or (address.kind, entry.id) in held):
            written[address] = None
    return written
