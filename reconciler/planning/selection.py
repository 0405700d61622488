"""Select the resources of a plan: `--target`, `--exclude`, `--kind` and `--project`.

Matching always sees everything, so that a selection never changes which object is which resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.address import Address
from reconciler.model.globs import fits_any
from reconciler.model.plan import Note, Selection
from reconciler.planning.matcher import Match


@dataclass(frozen=True, slots=True)
class Selector:
    """The test for a selection. `parent_kinds` make `--project web` select the project too."""

    selection: Selection
    parent_kinds: frozenset[str]

    def selects(self, address: Address, parent: str | None) -> bool:
        """Return whether an address is selected itself. `parent` is a key, an id or a name."""
        selection = self.selection
        if selection.targets and not address.matches(selection.targets):
            return False
        if address.matches(selection.excludes):
            return False
        if selection.kinds and not fits_any(address.kind, selection.kinds):
            return False
        if not selection.parents:
            return True
        name = address.key if address.kind in self.parent_kinds else parent
        return name is not None and fits_any(name, selection.parents)


def selected_addresses(
    matches: Mapping[Address, Match], selector: Selector
) -> tuple[frozenset[Address], tuple[Note, ...]]:
    """Return the resources of a plan, with the parents that must be created for them."""
    if not selector.selection.partial:
        return frozenset(matches), ()
    selected = {
        address
        for address, match in matches.items()
        if selector.selects(address, _parent_name(match))
    }
    needed = (matches[address].parent_address for address in selected if not matches[address].live)
    parents = {
        address
        for address in needed
        if address is not None and address in matches and not matches[address].live
    }
    notes = [
        Note(
            "partial",
            "partial plan: what --target, --exclude, --kind or --project leave out is not compared",
        )
    ]
    if added := parents - selected:
        listed = ", ".join(map(str, sorted(added)))
        notes.append(Note("dependencies-follow", f"included because others need it: {listed}"))
    if not selected:
        notes.append(Note("nothing-selected", "the selection matches no resource"))
    return frozenset(selected | parents), tuple(notes)


def _parent_name(match: Match) -> str | None:
    ref = match.resource.parent
    return None if ref is None else ref.key or ref.id or ref.name
