"""What a reader should know: notes on a plan, and what its files loosen since the base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.live import OTHER_TOOL, other_tool_of, plain_name
from reconciler.model.plan import Note, Plan, SecretUse
from reconciler.model.policy import Prune
from reconciler.model.resource import Desired, Resource
from reconciler.model.text import listed, printable, quoted, several
from reconciler.model.values import value_at
from reconciler.planning.base import Base
from reconciler.planning.changes import interrupted_notes
from reconciler.planning.draft import Draft
from reconciler.planning.duplicates import LookAlikes, collision_notes
from reconciler.planning.matcher import Matching
from reconciler.planning.rules import rule_notes

_MOST = 20
_SINCE_BASE = {SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED}
_MOST_NAMED = 10
_ITEM = attrgetter("sort", "text")
_SETTINGS = attrgetter("lifecycle", "pinned_id")
_OF_NEW = "`lifecycle.beside"
"""What loosens also a resource that the base does not have."""


def notes_of(draft: Draft) -> Iterator[Note]:
    """Yield the notes on the plan as a whole."""
    if draft.matching.base is None:
        yield Note(
            "no-git-base",
            "no git base: removed resources and changed secret references are not detected",
        )
    else:
        yield from draft.matching.base.notes
        yield from _of_removed(draft, draft.matching.base)
        yield from _sent_again(draft, draft.matching.base)
        yield from _never_live(draft)
    yield from _of_other_tools(draft)
    yield from _look_alikes(draft)
    yield from interrupted_notes(draft.unmanaged)
    yield from collision_notes(draft)
    yield from rule_notes(draft.policy, draft.changes, draft.matching.kinds.values(), draft.names)
    yield from _not_read(draft)


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


def _of_removed(draft: Draft, base: Base) -> Iterator[Note]:
    """Yield which removed resources are not deleted, and why."""
    matching, policy, deleted = draft.matching, draft.policy, draft.deleted
    kept = sorted(
        address
        for address, match in matching.removed.items()
        if address in base.kept and match.live is not None and match.live.identity not in deleted
    )
    if kept:
        reasons = [f"{address} ({base.kept[address]})" for address in kept]
        yield Note("kept", f"no longer managed, and not deleted: {listed(reasons, _MOST)}")
    left = [
        address
        for address in sorted(matching.removed)
        if policy.prune_of(address.kind) is Prune.NEVER and address not in base.kept
        if (live := matching.removed[address].live) and live.identity not in deleted
    ]
    if left:
        yield Note(
            "removed-but-kept",
            f"removed from the configuration but still live: {listed(left, _MOST)}; "
            "`policy: {prune: git}` deletes them",
        )
    for removed in matching.unclear:
        objects = [item for item in removed.objects if item.identity not in deleted]
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


def _of_other_tools(draft: Draft) -> Iterator[Note]:
    """Yield a note on the objects that another as-code tool manages, too."""
    matches = draft.matching.matches.items()
    managed = [(str(address), match.live) for address, match in matches if match.live is not None]
    unmanaged = [(quoted(plain_name(item.name)), item) for item in draft.unmanaged]
    objects = [
        f"{shown} (key {printable(other.key)})"
        for shown, item in (*managed, *unmanaged)
        if (other := other_tool_of(item.name)) is not None
    ]
    if objects:
        yield Note(
            OTHER_TOOL,
            f"managed by {OTHER_TOOL}, so neither renamed nor pruned: {listed(objects, _MOST)}",
        )


def _sent_again(draft: Draft, base: Base) -> Iterator[Note]:
    """Yield a note if secrets are sent only because the base is before the newest commit."""
    newest = base.later[-1].resources if base.later else {}
    again = []
    for change in draft.changes:
        sent = [note for note in change.secrets if note.use in _SINCE_BASE]
        match, version = draft.matching.matches.get(change.address), newest.get(change.address)
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


def _never_live(draft: Draft) -> Iterator[Note]:
    """Yield what is new to the service, and not to the git base: the worst of each change."""
    known = replace(draft.known, only_live=True)
    users: dict[str, list[Address]] = {}
    for change in draft.changes if not known.is_first else ():
        match, at_base = draft.matching.matches.get(change.address), {*map(_ITEM, change.new)}
        if match is not None and change.address not in draft.refused:
            _, new = known.reached(change, match, None)
            for item in [item for item in new if _ITEM(item) not in at_base][:1]:
                users.setdefault(item.text, []).append(change.address)
    if users:
        new_texts = [f"{printable(text)} ({listed(by, _MOST_NAMED)})" for text, by in users.items()]
        yield Note(
            "base-not-live",
            "in the git base and not live, so it was changed in the service, or the apply of the "
            f"base failed: {listed(new_texts, _MOST_NAMED)}",
        )


def _look_alikes(draft: Draft) -> Iterator[Note]:
    """Yield notes on planned creates that look like unmanaged objects, removed ones included."""
    if not any(change.action is Action.CREATE for change in draft.changes):
        return
    matching = draft.matching
    removed = (match.live for match in matching.removed.values() if match.live is not None)
    unclaimed = (*matching.unmanaged, *removed)
    objects = [item for item in unclaimed if item.identity not in draft.context.elsewhere]
    yield from LookAlikes(objects, draft).notes()


def notes_since_base(desired: Desired, matching: Matching) -> Iterator[Note]:
    """Yield a note on each setting that is looser, and on each object that the base lacks."""
    base = matching.base
    former = (base.desired, *base.later) if base is not None else ()
    loosened: dict[str, list[Address]] = {}
    for was in former:
        loosened |= {text: [] for text in _of_workspace(desired, was)}
    adopted: list[Address] = []
    for address, match in matching.matches.items() if former else ():
        declared = matching.former.declared(address, match.live)
        if declared.adopted:
            adopted.append(address)
        for text in _of_resource(match.resource, declared.versions):
            loosened.setdefault(text, []).append(address)
    # Removed protection comes first: other texts begin with a backtick.
    for text, addresses in sorted(loosened.items(), key=lambda item: item[0].startswith("`")):
        users = listed(sorted(addresses), _MOST_NAMED)
        yield Note("loosened", f"{text}: {users}" if users else text)
    if adopted:
        objects = several(len(adopted), "live object")
        yield Note("adopted", f"{objects} managed now and not at the git base (list: --verbose)")
    for address in sorted(adopted):
        yield Note("adopted", "not managed at the git base", address)


def _of_resource(resource: Resource, versions: Sequence[Resource]) -> list[str]:
    """Return what a resource permits now and did not permit at any of its versions."""
    changed = [was for was in versions if _SETTINGS(was) != _SETTINGS(resource)]
    own = _permissions(resource) if changed or not versions else []
    if not versions:
        return [text for text in own if text.startswith(_OF_NEW)]
    return [text for text in own if any(text not in _permissions(was) for was in changed)]


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
