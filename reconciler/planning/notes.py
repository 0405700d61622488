"""The notes of a plan: what it does not do, and what a reader of it should know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.model.change import Change, SecretUse
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import State
from reconciler.model.values import value_at
from reconciler.model.wording import listed, printable, quoted
from reconciler.planning.base import Base
from reconciler.planning.changes import interrupted_note
from reconciler.planning.differ import difference
from reconciler.planning.matcher import Match, Matching

_MOST = 20
_SINCE_BASE = {SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED}


@dataclass(frozen=True, slots=True)
class NoteContext:
    """What the notes are about. `unmanaged` are the objects that stay unmanaged."""

    matching: Matching
    changes: Sequence[Change]
    unmanaged: Sequence[LiveObject]
    policy: Policy
    base: Base | None


def notes_of(context: NoteContext) -> Iterator[Note]:
    """Yield the notes on the plan as a whole."""
    if context.base is None:
        yield Note(
            "no-git-base",
            "no git base. Removed resources, the origin of differences and changed secret "
            "references are not detected. Use --base REF.",
        )
    else:
        yield from context.base.notes
        yield from _of_removed(context.matching, context.policy, context.base)
        yield from _sent_again(context, context.base)
    for address, near in context.matching.near_names:
        yield Note(
            "near-name",
            f"{address} is created although {quoted(near.name)} (id {printable(near.id)}) differs "
            "from its name in case only; newer servers refuse that",
        )
    yield from filter(None, map(interrupted_note, context.unmanaged))
    yield from _same_targets(context)


def _of_removed(matching: Matching, policy: Policy, base: Base) -> Iterator[Note]:
    """Yield which removed resources are not deleted, and why."""
    kept = sorted(address for address in matching.removed if address in base.kept)
    if kept:
        reasons = [f"{address} ({base.kept[address]})" for address in kept]
        yield Note("kept", f"not deleted by `prune: git`: {listed(reasons, _MOST)}")
    left = [
        address
        for address in sorted(matching.removed)
        if policy.prune_of(address.kind) is Prune.NEVER and address not in base.kept
    ]
    if left:
        yield Note(
            "removed-but-kept",
            f"removed from the configuration but still live: {', '.join(map(str, left))}; to "
            "delete, use `prune: git`, `prune: true` or `state: absent`",
        )
    for address, objects in matching.unclear:
        ids = listed([printable(item.id) for item in objects], _MOST)
        yield Note(
            "removed-unclear",
            f"{address} was removed from the configuration, but its object can't be identified; "
            f"not deleted: id {ids}",
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
            f"secrets of {listed(sorted(set(again)), _MOST)} changed before the latest commit but "
            f"after the git base; every apply with this base sends them again. `apply --mark` "
            "records what is applied and so advances the base.",
        )


def _same_targets(context: NoteContext) -> Iterator[Note]:
    """Yield a note on each unmanaged object that has the name and the target of a managed one."""
    by_name: dict[tuple[str, str], list[LiveObject]] = {}
    for item in context.unmanaged:
        by_name.setdefault((item.kind, item.name.strip()), []).append(item)
    for address, match in sorted(context.matching.matches.items()) if by_name else ():
        if match.resource.state is State.ABSENT:
            continue
        for item in by_name.get((address.kind, match.resource.name), ()):
            if _has_target_of(match, item):
                place = f" in {match.kind.parent} {item.parent_id}" if item.parent_id else ""
                yield Note(
                    "same-name-and-target",
                    f"an unmanaged {item.kind} (id {printable(item.id)}{place}) has the name and "
                    f"the target of {address}: both write to the same place",
                )


def _has_target_of(match: Match, other: LiveObject) -> bool:
    """Return whether all declared fields with variants, such as a destination, are equal."""
    variants = {field.name for field, _ in match.kind.variants}
    differs = difference(match.kind, match.resource, other)
    return bool(variants & match.resource.spec.keys()) and not any(
        change.path[0] in variants for change in differs.changes
    )
