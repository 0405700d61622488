"""What a reader should know: notes on a plan, and what its files loosen since the apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter

from reconciler.diagnostics import Diagnostic
from reconciler.kinds import behaviour_of
from reconciler.model.kind import Action
from reconciler.model.live import LiveObject
from reconciler.model.plan import Leaving, Note, Plan
from reconciler.model.resource import Desired, Entry, Resource, State
from reconciler.model.run import Cause, cause_of_pause
from reconciler.model.text import (
    IMPLICIT_ENVIRONMENT,
    command_text,
    listed,
    printable,
    quoted,
    several,
)
from reconciler.model.values import Address, secret_refs
from reconciler.planning.draft import Draft
from reconciler.planning.duplicates import collision_notes, look_alike_notes, to_rename
from reconciler.planning.guards import READS_VARIABLE, rule_notes
from reconciler.planning.inventory import Applied, Inventory

NO_INVENTORY = "no-inventory"
"""The note that says why nothing is known of what was applied."""
PAUSED_BY_SERVICE = "paused-by-service"
"""The note, and the consequence of an unpause, that the service paused an export."""
_MOST = 20
_MOST_NAMED, _MOST_SECRETS = 10, 3
_SETTINGS = attrgetter("lifecycle", "pinned_id")
_OF_NEW = "`lifecycle.beside"
"""What loosens also a new resource."""


def notes_of(draft: Draft) -> Iterator[Note]:
    """Yield the notes on the plan as a whole."""
    if draft.matching.inventory.record is None:
        yield from _without_inventory(draft)
    else:
        yield from _of_inventory(draft, draft.matching.inventory)
    yield from look_alike_notes(draft)
    yield from collision_notes(draft)
    kinds, judged = draft.matching.kinds.values(), filter(None, (draft, draft.after_merge))
    warnings = (rule_notes(judge.policy, judge.changes, kinds, judge.names) for judge in judged)
    yield from dict.fromkeys(chain.from_iterable(warnings))
    yield from _not_read(draft)
    yield from _paused_by_service(draft)


def _without_inventory(draft: Draft) -> Iterator[Note]:
    """Yield what a plan does not detect without an inventory."""
    yield Note(NO_INVENTORY, f"no inventory ({draft.context.no_inventory})")
    sending = {
        change.address for change in draft.changes if any(n.use.sent for n in change.secrets)
    }
    kept = draft.selected.addresses - sending if draft.changes else ()
    names = [
        address
        for address, match in sorted(draft.matching.matches.items() if kept else ())
        if match.live is not None and address in kept
        if any(True for _ in secret_refs(match.resource.spec))
    ]
    if names:
        yield Note(
            "secrets-not-compared",
            f"secrets not sent: {listed(names, _MOST_SECRETS)} (--rotate-secrets sends them)",
        )


def _of_inventory(draft: Draft, inventory: Inventory) -> Iterator[Note]:
    """Yield what of the inventory does not count, is gone, or lacks HEAD."""
    lacking, record = {*inventory.behind.values()}, inventory.record
    if record is not None and record.is_newer:
        lacking.add(record.applied)
    if lacking:
        count = len(lacking)
        yield Note(
            "behind",
            f"HEAD lacks {several(count, 'applied commit')}: merge "
            f"{'it' if count == 1 else 'them'}, or use --rollback if "
            f"{'it was' if count == 1 else 'they were'} squashed",
        )
    items = [
        f"{address} ({_uncounted(draft, address, entry)})"
        for address, entry in sorted(inventory.every.items())
        if entry.uncounted
    ]
    if items:
        yield Note(
            "not-counted", f"entries of the inventory that do not count: {listed(items, _MOST)}"
        )
    for address, live in sorted(draft.matching.replaced.items()):
        if live.identity not in draft.deleted and address not in draft.matching.left_by_moves:
            yield Note(
                "former-object",
                f"the inventory has id {printable(live.id)} for it, which is unmanaged now; to "
                f"delete it, declare it with `id: {printable(live.id)}` and `state: absent`",
                about=address,
            )
    for address, entry in sorted(draft.matching.gone.items()):
        named = [item for item in _beside(draft, address, entry) if item.name.strip() == entry.name]
        has = f"; its name has {listed(map(_with_id, named), _MOST)}" if named else ""
        yield Note("gone", f"deleted in the service, id {printable(entry.id)}{has}", about=address)
    yield from _deleted_in_service(draft, inventory)


def _uncounted(draft: Draft, address: Address, entry: Applied) -> str:
    """Return why an entry does not count, and what renames an object that only a variable left."""
    name = draft.matching.name_before(address)
    rename = f"its {READS_VARIABLE}; to rename it, {to_rename(name)}" if name else ""
    return rename or entry.uncounted


def _beside(draft: Draft, address: Address, entry: Entry) -> list[LiveObject]:
    """Return the unmanaged objects in the recorded project of an entry."""
    place = (address.kind, entry.parent)
    return [item for item in draft.matching.unmanaged if (item.kind, item.parent_id) == place]


def _with_id(live: LiveObject) -> str:
    return f"{quoted(live.name)} (id {printable(live.id)})"


def _deleted_in_service(draft: Draft, inventory: Inventory) -> Iterator[Note]:
    """Yield which resources lost their recorded object, with what repairs the data."""
    for address, match in sorted(draft.matching.matches.items()):
        entry = inventory.entries.get(address)
        if entry is None or (address.kind, entry.id) in draft.matching.live.by_identity:
            continue
        if address not in draft.selected.addresses or match.resource.state is State.ABSENT:
            continue
        text = f"deleted in the service (id {printable(entry.id)}"
        time = entry.time
        text += f", applied {time:%Y-%m-%d})" if time is not None else ")"
        beside = _beside(draft, address, entry) if match.kind.parent else []
        operations = {operation.name for operation in behaviour_of(match.kind).operations}
        if match.live is not None:
            text += f"; id {printable(match.live.id)} has its name and takes its place"
        elif beside:
            text += f"; unmanaged there: {listed(map(_with_id, beside), 3)}"
        if match.live is None and time is not None and "backfill" in operations:
            words = ("backfill", address.key, "--from", f"{time:%Y-%m-%d}")
            environment = draft.environment or IMPLICIT_ENVIRONMENT
            command = command_text(*words, environment=environment)
            text += f"; after the apply, `{command}` exports what is missing"
        yield Note("deleted-in-service", text, about=address)


def _not_read(draft: Draft) -> Iterator[Note]:
    """Yield a note on each kind of which not every object was read."""
    for kind in draft.matching.kinds.values():
        count = sum(parent == kind.parent for parent, _ in draft.matching.live.unread)
        if count:
            yield Note(
                "not-read",
                f"{kind.collection} of {several(count, kind.parent or '')} not read: none are "
                "declared there, and the server has no list for the organization",
            )


def _paused_by_service(draft: Draft) -> Iterator[Note]:
    """Yield a note on the objects that the service paused and the plan does not unpause."""
    unpaused = {change.address for change in draft.changes if change.action is Action.UNPAUSE}
    others = draft.selected.addresses - unpaused
    paused = [
        address
        for address, match in sorted(draft.matching.matches.items())
        if match.live is not None and address in others
        if cause_of_pause(match.live.body, declared=match.resource.spec.get("paused") is True)
        is Cause.SERVICE
    ]
    if paused:
        yield Note(
            PAUSED_BY_SERVICE,
            f"paused by the service after failures: {listed(paused, _MOST_NAMED)} (`status` says "
            "why; fix the cause, then `unpause`)",
        )


def about_changes(diagnostics: Iterable[Diagnostic], plan: Plan) -> tuple[Diagnostic, ...]:
    """Return diagnostics without those on values that the plan does not change: they are live."""
    changed = {
        (str(change.address), *field.path) for change in plan.effective for field in change.fields
    }
    return tuple(
        item
        for item in diagnostics
        if not item.about
        or any(item.about[:end] in changed for end in range(2, len(item.about) + 1))
    )


def leaving(draft: Draft) -> Iterator[Leaving]:
    """Yield the removed resources that are not deleted, with the reason, protected ones first."""
    matching, behind = draft.matching, draft.matching.inventory.behind
    items = []
    for address, match in matching.removed.items():
        live = match.live
        if (
            live is None
            or live.identity in draft.deleted
            or address not in draft.selected.addresses
        ):
            continue
        reason = matching.left.get(address, "deleted only with `policy: {prune: true}`")
        protected = match.resource.lifecycle.protect
        stays = address in behind
        items.append(Leaving(address, live.id, live.name, reason, protected, stays=stays))
    for address, entry in (
        matching.gone.items() if not draft.context.options.selection.partial else ()
    ):
        stays, reason = address in behind, "deleted in the service"
        items.append(Leaving(address, entry.id, entry.name, reason, stays=stays))
    yield from sorted(items, key=lambda item: (not item.protected, item.address))


def loosened(draft: Draft) -> Iterator[Note]:
    """Yield a note on each setting that is looser than what was applied."""
    inventory = draft.matching.inventory
    former = inventory.former
    texts = (
        {text: list[Address]() for text in _of_workspace(draft.selected.desired, former)}
        if former
        else {}
    )
    is_known = draft.context.inventory is not None
    for address, match in draft.matching.matches.items() if is_known else ():
        was = inventory.was(address, match.live)
        identity = match.live.identity if match.live is not None else None
        is_new = was is None or identity not in inventory.by_object
        for text in _of_resource(match.resource, was, is_new=is_new):
            texts.setdefault(text, []).append(address)
    # Removed protection comes first: other texts begin with a backtick.
    for text, addresses in sorted(texts.items(), key=lambda item: item[0].startswith("`")):
        users = listed(sorted(addresses), _MOST_NAMED)
        yield Note("loosened", f"{text}: {users}" if users else text)


def _of_resource(resource: Resource, was: Resource | None, *, is_new: bool) -> list[str]:
    """Return what a resource permits, and did not when it was applied, or merged if it is new."""
    if was is not None and _SETTINGS(was) == _SETTINGS(resource):
        return []
    before = _permissions(was) if was is not None else []
    texts = [text for text in _permissions(resource) if text not in before]
    return [text for text in texts if text.startswith(_OF_NEW)] if is_new else texts


def _permissions(resource: Resource) -> list[str]:
    """Return each setting that permits more than another value of it, as text."""
    texts = [] if resource.lifecycle.protect else ["protection is removed"]
    texts += [f"`id: {printable(resource.pinned_id)}` is new"] if resource.pinned_id else []
    for name, value in resource.lifecycle.as_json().items():
        if isinstance(value, list):
            texts += [f"`lifecycle.{name}: {quoted(str(item))}` is new" for item in value]
        elif value and name != "protect":
            texts.append(f"`lifecycle.{name}` is new")
    return texts


def _of_workspace(now: Desired, was: Desired) -> Iterator[str]:
    """Yield what the workspace file permits and lists, and did not."""
    if now.policy is None or was.policy is None:
        return
    for key in now.policy.looser_than(was.policy):
        yield f"`policy` is looser: {key}"
    for name in ("env", "secrets", "secret_files"):
        new = sorted(set(getattr(now.readable, name)) - set(getattr(was.readable, name)))
        yield from (f"`{name}: [{quoted(item)}]` is new" for item in new)
