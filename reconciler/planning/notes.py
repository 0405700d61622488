"""The notes of a plan: what it does not do, and what a reader of it should know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.change import Change, SecretUse
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import State
from reconciler.model.values import value_at
from reconciler.model.wording import listed, printable, quoted
from reconciler.planning.base import Base, Declared
from reconciler.planning.changes import interrupted_note
from reconciler.planning.collisions import collision_notes
from reconciler.planning.differ import difference
from reconciler.planning.matcher import Match, Matching
from reconciler.planning.rules import rule_notes

_MOST = 20
_SINCE_BASE = {SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED}


class NoteContext(Struct, frozen=True):
    """What the notes are about.

    `unmanaged` are the objects that stay unmanaged, `parent_names` the names of live objects that
    may contain others, by kind and id.
    """

    matching: Matching
    changes: Sequence[Change]
    unmanaged: Sequence[LiveObject]
    policy: Policy
    base: Base | None
    kinds: Mapping[str, Kind]
    parent_names: Mapping[tuple[str, str], str]


def notes_of(context: NoteContext) -> Iterator[Note]:
    """Yield the notes on the plan as a whole."""
    if context.base is None:
        yield Note(
            "no-git-base",
            "no git base: removed resources and changed secret references are not detected",
        )
    else:
        yield from context.base.notes
        yield from _of_removed(context, context.base)
        yield from _sent_again(context, context.base)
    yield from _look_alikes(context)
    yield from filter(None, map(interrupted_note, context.unmanaged))
    yield from _same_targets(context)
    yield from collision_notes(context.matching, context.unmanaged, context.kinds)
    yield from rule_notes(context.policy, context.changes, context.kinds.values())


def _of_removed(context: NoteContext, base: Base) -> Iterator[Note]:
    """Yield which removed resources are not deleted, and why."""
    matching, policy = context.matching, context.policy
    deleted = {
        (change.address.kind, change.live_id)
        for change in context.changes
        if change.action is Action.DELETE
    }
    kept = sorted(
        address
        for address, match in matching.removed.items()
        if address in base.kept
        and match.live is not None
        and (match.live.kind, match.live.id) not in deleted
    )
    if kept:
        reasons = [f"{address} ({base.kept[address]})" for address in kept]
        yield Note("kept", f"no longer managed, and not deleted: {listed(reasons, _MOST)}")
    left = [
        address
        for address in sorted(matching.removed)
        if policy.prune_of(address.kind) is Prune.NEVER and address not in base.kept
    ]
    if left:
        yield Note(
            "removed-but-kept",
            f"removed from the configuration but still live: {listed(left, _MOST)}; "
            "`policy: {prune: git}` deletes them",
        )
    for removed in matching.unclear:
        objects = [item for item in removed.objects if (item.kind, item.id) not in deleted]
        if not objects:
            continue
        ids = listed([printable(item.id) for item in objects], _MOST)
        is_single = len(objects) == 1
        certain = f"it is not certain that it is id {ids}"
        why = certain if is_single else f"it may be any of: id {ids}"
        yield Note(
            "removed-unclear" if removed.is_placed else "removed-elsewhere",
            f"removed from the configuration but not deleted, since {why}",
            about=removed.resource.address,
        )


def _sent_again(context: NoteContext, base: Base) -> Iterator[Note]:
    """Yield a note if secrets are sent only because the base is before the newest commit."""
    newest = base.later[-1].resources if base.later else {}
    again = []
    for change in context.changes:
        sent = [note for note in change.secrets if note.use in _SINCE_BASE]
        match, version = context.matching.matches.get(change.address), newest.get(change.address)
        if (
            sent
            and match is not None
            and version is not None
            and version.secret_version == match.resource.secret_version
            and all(value_at(version.spec, note.path) == note.ref for note in sent)
        ):
            again.append(change.address)
    if again:
        yield Note(
            "secrets-sent-again",
            f"every apply with this git base sends the secrets of "
            f"{listed(sorted(set(again)), _MOST)} again; `apply --mark` advances the base",
        )


def _look_alikes(context: NoteContext) -> Iterator[Note]:
    """Yield notes on planned creates that look like unmanaged objects, removed ones included."""
    if not any(change.action is Action.CREATE for change in context.changes):
        return
    # Only creates need it.
    from reconciler.planning.lookalikes import LookAlikes

    matching = context.matching
    removed = (match.live for match in matching.removed.values() if match.live is not None)
    objects = (*matching.unmanaged, *removed)
    resources = {address: match.resource for address, match in matching.matches.items()}
    index = LookAlikes.of(objects, context.kinds, context.parent_names)
    yield from index.notes(context.changes, resources)


def _same_targets(context: NoteContext) -> Iterator[Note]:
    """Yield a note on each unmanaged object that has the name and the target of a managed one."""
    by_name: dict[tuple[str, str], list[LiveObject]] = {}
    for item in context.unmanaged:
        by_name.setdefault((item.kind, item.name.strip()), []).append(item)
    for address, match in sorted(context.matching.matches.items()) if by_name else ():
        if match.live is None or match.resource.state is State.ABSENT:
            continue
        for item in by_name.get((address.kind, match.resource.name), ()):
            if _has_target_of(match, item):
                parent = (match.kind.parent or "", item.parent_id or "")
                name = context.parent_names.get(parent)
                place = f" in {match.kind.parent} {quoted(name)}" if name is not None else ""
                yield Note(
                    "same-name-and-target",
                    f"unmanaged {item.kind}{place} (id {printable(item.id)}) has the same name and "
                    "target: both write to the same place",
                    about=address,
                )


def _has_target_of(match: Match, other: LiveObject) -> bool:
    """Return whether all declared fields with variants, such as a destination, are equal."""
    variants = {field.name for field, _ in match.kind.variants}
    differs = difference(match.kind, match.resource, other, Declared())
    return bool(variants & match.resource.spec.keys()) and not any(
        change.path[0] in variants for change in differs.changes
    )
