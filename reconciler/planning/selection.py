"""What of the workspace a plan is about: `--target`, `--exclude`, `--kind` and `--project`.

Matching always sees everything, so that narrowing never changes who is who.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.plan import Note, Selection
from reconciler.planning.matcher import Match


def is_selected(
    address: Address, selection: Selection, *, parent: str | None, roots: frozenset[str]
) -> bool:
    """Whether an address is asked for by itself, without looking at what it depends on.

    `parent` is the key (or id, or name) of its parent; `roots` are the kinds that are parents, so
    that `--project web` takes the project itself as well as what is in it.
    """
    if selection.targets and not address.matches(selection.targets):
        return False
    if address.matches(selection.excludes):
        return False
    if selection.kinds and not any(fnmatchcase(address.kind, glob) for glob in selection.kinds):
        return False
    if not selection.parents:
        return True
    place = address.key if address.kind in roots else parent
    return place is not None and any(fnmatchcase(place, glob) for glob in selection.parents)


def parent_word(match: Match) -> str | None:
    """How `--project` may name the parent of a resource: by key, id or name."""
    ref = match.resource.parent
    return None if ref is None else ref.key or ref.id or ref.name


def selected_addresses(
    matches: Mapping[Address, Match], selection: Selection, kinds: Sequence[Kind]
) -> tuple[frozenset[Address], tuple[Note, ...]]:
    """The resources a plan is about, with the parents that must be created for them."""
    if not selection.partial:
        return frozenset(matches), ()
    roots = frozenset(kind.parent for kind in kinds if kind.parent is not None)
    chosen = {
        address
        for address, match in matches.items()
        if is_selected(address, selection, parent=parent_word(match), roots=roots)
    }
    followed = {
        match.parent_address
        for address, match in matches.items()
        if address in chosen
        and match.parent_address is not None
        and match.parent_address in matches
        and matches[match.parent_address].live is None
        and match.live is None
    }
    notes = [
        Note(
            "partial",
            "this plan is partial: what --target, --exclude, --kind or --project leave out is "
            "not looked at",
        )
    ]
    added = followed - chosen
    if added:
        listed = ", ".join(str(each) for each in sorted(added))
        notes.append(Note("dependencies-follow", f"included since others need it: {listed}"))
    if not chosen:
        notes.append(Note("nothing-selected", "no resource of this workspace is selected"))
    return frozenset(chosen | added), tuple(notes)
