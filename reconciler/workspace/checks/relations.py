"""Checks of resources against each other: parents that are missing, and names and ids used twice.

Needs one environment and no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.errors import DiagnosticCollector, Mark
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.suggestion import nearest
from reconciler.model.values import Path
from reconciler.workspace.declarations import Declaration, Doubts
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Places, Unknown, is_misread

_MOST_COMPARED = 1000
"""Keys among which a close one is looked for: a comparison takes long, and there may be many."""
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class ResolvedWorkspace:
    """A workspace as one environment has it, its resources in the order of their addresses."""

    workspace: Workspace
    kinds: Mapping[str, Kind]
    declared: Mapping[Address, Declaration]
    desired: Desired
    places: Mapping[Address, Places]
    doubts: Doubts

    def mark(self, resource: Resource, *path: str | int) -> Mark:
        """Return the place of a field of a resource."""
        return self.places[resource.address].near(path)


Claim: TypeAlias = tuple[object, Resource, Path]
"""What a resource claims for itself, and the field that says so."""


def check_relations(here: ResolvedWorkspace, problems: DiagnosticCollector) -> None:
    """Report what contradicts between resources."""
    hints = _ParentHints(here.desired)
    for resource in here.desired.resources.values():
        _check_parent(resource, here, hints, problems)
        if resource.lifecycle.protect and resource.state is State.ABSENT:
            problems.error(
                "protected-and-absent",
                f"{resource.address} is protected and shall be absent",
                at=here.mark(resource, "state"),
            )
    _check_names(here, problems)
    _check_pins(here, problems)
    _check_former_names(here, problems)
    _check_similar_names(here, problems)


def _duplicates(claims: Iterable[Claim]) -> Iterator[tuple[Resource, Resource, Path]]:
    """Yield each resource that claims what another has claimed before, with that one."""
    seen: dict[object, Resource] = {}
    for claim, resource, path in claims:
        other = seen.setdefault(claim, resource)
        if other is not resource:
            yield resource, other, path


class _ParentHints:
    """The hint for a parent that is not declared, made once: all its children ask for it."""

    def __init__(self, desired: Desired) -> None:
        self._keys: dict[str, list[str]] = {}
        for address in sorted(desired.resources, key=lambda address: address.key):
            self._keys.setdefault(address.kind, []).append(address.key)
        self._hints: dict[Address, str] = {}

    def hint(self, parent: Address) -> str:
        """Return the closest declared key, or all of them."""
        if parent not in self._hints:
            keys = self._keys.get(parent.kind, [])
            close = nearest(parent.key, keys) if len(keys) <= _MOST_COMPARED else None
            more = f" and {len(keys) - _MOST_LISTED} more" if len(keys) > _MOST_LISTED else ""
            listed = f"declared here: {', '.join(keys[:_MOST_LISTED]) or 'none'}{more}"
            self._hints[parent] = f"did you mean '{close}'?" if close else listed
        return self._hints[parent]


def _check_parent(
    resource: Resource, here: ResolvedWorkspace, hints: _ParentHints, problems: DiagnosticCollector
) -> None:
    kind, ref = here.kinds[resource.address.kind], resource.parent
    if ref is None or ref.key is None or kind.parent is None or kind.parent_key is None:
        return
    address = Address(kind.parent, ref.key)
    parent = here.desired.resources.get(address)
    if parent is None:
        if not isinstance(ref.key, Unknown) and not here.doubts.about(address):
            problems.error(
                "unknown-parent",
                f"{resource.address} belongs to {kind.parent} '{ref.key}', which is not declared "
                "in this environment",
                at=here.mark(resource, kind.parent_key),
                hint=f"{hints.hint(address)}; for one that is not declared write {{id: …}} or "
                "{name: …}",
            )
    elif _shall_be_there(resource, here) and parent.state is State.ABSENT:
        problems.error(
            "absent-parent",
            f"{resource.address} shall be in {parent.address}, which shall be absent",
            at=here.mark(resource, kind.parent_key),
            related=((here.mark(parent, "state"), "it shall be absent"),),
        )


def _shall_be_there(resource: Resource, here: ResolvedWorkspace) -> bool:
    return resource.state is not State.ABSENT and resource.address not in here.doubts.states


def _place_is_known(resource: Resource, here: ResolvedWorkspace) -> bool:
    """Return whether its name, its parent and that it shall be there are known."""
    ref = resource.parent
    parts = (ref.key, ref.id, ref.name) if ref is not None else ()
    known = not isinstance(resource.spec.get("name"), Unknown) and not any(map(is_misread, parts))
    return known and resource.address not in here.doubts.states


def _check_names(here: ResolvedWorkspace, problems: DiagnosticCollector) -> None:
    """Two resources of one name in one parent, however each of them names the parent."""
    declared = _declared(here)
    claims = (
        ((resource.address.kind, _parent_of(resource, here, declared), resource.name), resource, ())
        for resource in here.desired.resources.values()
        if resource.pinned_id is None
        and resource.state is State.PRESENT
        and _place_is_known(resource, here)
    )
    for resource, other, _ in _duplicates(claims):
        kind = here.kinds[resource.address.kind]
        parent = _parent_of(resource, here, declared)
        same = other.parent == resource.parent
        place = ", in the same place" if same else f", and both are in {kind.parent}.{parent}"
        problems.error(
            "same-name",
            f"{resource.address} and {other.address} have the same name, '{resource.name}'{place}",
            at=here.mark(resource, "name"),
            related=((here.mark(other, "name"), "the other one"),),
        )


_Declared: TypeAlias = Mapping[tuple[str | None, str, str | None], str]
"""Keys of resources by kind and by name or pinned id."""


def _declared(here: ResolvedWorkspace) -> _Declared:
    keys: dict[tuple[str | None, str, str | None], str] = {}
    for resource in here.desired.resources.values():
        kind, key = resource.address.kind, resource.address.key
        if not isinstance(resource.spec.get("name"), Unknown):
            keys[(kind, "name", resource.name)] = key
        if resource.pinned_id is not None and not is_misread(resource.pinned_id):
            keys[(kind, "id", resource.pinned_id)] = key
    return keys


def _parent_of(
    resource: Resource, here: ResolvedWorkspace, declared: _Declared
) -> str | ParentRef | None:
    """Return the key of a parent that is declared, else the reference to it."""
    ref, parent = resource.parent, here.kinds[resource.address.kind].parent
    if ref is None or ref.key:
        return ref.key if ref is not None else None
    return declared.get((parent, "id", ref.id)) or declared.get((parent, "name", ref.name)) or ref


def _check_pins(here: ResolvedWorkspace, problems: DiagnosticCollector) -> None:
    """One live object can't be two resources."""
    claims = (
        ((resource.address.kind, resource.pinned_id), resource, ())
        for resource in here.desired.resources.values()
        if resource.pinned_id is not None and not is_misread(resource.pinned_id)
    )
    for resource, other, _ in _duplicates(claims):
        problems.error(
            "same-id",
            f"{resource.address} and {other.address} are pinned to the same id",
            at=here.mark(resource, "id"),
            related=((here.mark(other, "id"), "the other one"),),
        )


def _check_former_names(here: ResolvedWorkspace, problems: DiagnosticCollector) -> None:
    """One live object can't have become two resources: which one would be a guess."""
    claims = (
        (
            (resource.address.kind, str(resource.parent), name),
            resource,
            ("lifecycle", "renamed_from", position),
        )
        for resource in here.desired.resources.values()
        for position, name in enumerate(resource.lifecycle.renamed_from)
        if name
    )
    for resource, other, path in _duplicates(claims):
        name = resource.lifecycle.renamed_from[int(path[-1])]
        problems.error(
            "same-former-name",
            f"{resource.address} and {other.address} both were '{name}' before",
            at=here.mark(resource, *path),
            related=((other.mark, "the other one"),) if other.mark is not None else (),
        )


def _check_similar_names(here: ResolvedWorkspace, problems: DiagnosticCollector) -> None:
    """Names that differ in case only, where newer servers want them to differ in more."""
    claims = (
        (
            (resource.address.kind, str(resource.parent), resource.name.casefold()),
            resource,
            ("name",),
        )
        for resource in here.desired.resources.values()
        if resource.state is not State.ABSENT
        and resource.pinned_id is None
        and any(annotated(resource.address.kind, "x-unique-ignoring-case", resource.spec))
    )
    for resource, other, path in _duplicates(claims):
        if other.name != resource.name:
            problems.warning(
                "similar-name",
                f"the names of {resource.address} and {other.address} differ in case only; newer "
                "servers refuse the second",
                at=here.mark(resource, *path),
                related=((here.mark(other, *path), "the other one"),),
            )
