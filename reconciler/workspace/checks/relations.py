"""Report contradictions between resources: unknown parents, and duplicate names and ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.address import Address, joined, nearest
from reconciler.model.kind import Kind, containers
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.schemas import known_schema
from reconciler.workspace.declarations import Declaration
from reconciler.workspace.layers import EnvironmentContext
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Unknown, is_misread

_MOST_COMPARED = 1000
"""Keys that are compared to suggest one: a comparison is slow, and there may be many keys."""
_MOST_LISTED = 20
_UNIQUE = "x-unique-ignoring-case"


class ResolvedWorkspace(Struct, frozen=True):
    """A workspace in one environment, its resources in the order of their addresses."""

    context: EnvironmentContext
    declared: Mapping[Address, Declaration]
    desired: Desired

    def mark(self, resource: Resource, *path: str | int) -> Mark:
        """Return the place of a field of a resource."""
        return self.context.places[resource.address].near(path)

    def related(self, resource: Resource, name: str) -> tuple[tuple[Mark, str], ...]:
        """Return a field of another resource as a related place of an error."""
        return ((self.mark(resource, name), f"{name} of {resource.address}"),)


Claim: TypeAlias = tuple[object, Resource]
"""Something that only one resource may have, and a resource that has it."""


def check_relations(resolved: ResolvedWorkspace) -> None:
    """Report contradictions between resources."""
    hints = _ParentHints(resolved.desired)
    for resource in resolved.desired.resources.values():
        _check_parent(resource, resolved, hints)
        if resource.lifecycle.protect and resource.state is State.ABSENT:
            resolved.context.problems.error(
                "protected-and-absent",
                f"{resource.address} has `protect: true` and `state: absent`",
                at=resolved.mark(resource, "state"),
            )
    _check_names(resolved)
    _check_pins(resolved)
    _check_former_names(resolved)
    _check_similar_names(resolved)


def check_shared(
    workspace: Workspace, loaded: Iterable[Desired], kinds: Iterable[Kind], to: DiagnosticCollector
) -> None:
    """Report objects that two environments of one organization declare with different content.

    Organizations from references don't count, since the values may differ between jobs. Parents are
    compared by name, since one key may have two names.
    """
    parents = containers(kinds)
    first: dict[object, tuple[str, Resource]] = {}
    for desired in loaded:
        entry = workspace.section("environments", desired.environment)
        service = f"{entry.get('base_url')} {entry.get('organization', '${')}"
        declared = desired.resources.values() if "${" not in service else ()
        names = {item.address.key: item.name for item in declared if item.address.kind in parents}
        for item in declared:
            parent = names.get(item.parent.key or "", str(item.parent)) if item.parent else None
            identity = (service, item.address.kind, parent, item.name, item.pinned_id)
            other, same = first.setdefault(identity, (desired.environment, item))
            if (same.spec, same.state) != (item.spec, item.state):
                text = f"{item.address} differs between {other} and {desired.environment}, which "
                text += "share an organization: each apply reverts the other one"
                to.warning("shared-object", text, at=item.mark)


def _duplicates(claims: Iterable[Claim]) -> Iterator[tuple[Resource, Resource]]:
    """Yield each resource with the one that has claimed the same before."""
    first: dict[object, Resource] = {}
    for claim, resource in claims:
        other = first.setdefault(claim, resource)
        if other is not resource:
            yield resource, other


class _ParentHints:
    """Hints for unknown parents, cached since all children of a parent have the same."""

    def __init__(self, desired: Desired) -> None:
        self._desired = desired
        self._hints: dict[Address, str] = {}

    @cached_property
    def _keys(self) -> Mapping[str, list[str]]:
        keys: dict[str, list[str]] = {}
        for address in sorted(self._desired.resources, key=lambda address: address.key):
            keys.setdefault(address.kind, []).append(address.key)
        return keys

    def hint(self, parent: Address) -> str:
        """Return the closest declared key, or all of them."""
        if parent not in self._hints:
            keys = self._keys.get(parent.kind, [])
            close = nearest(parent.key, keys) if len(keys) <= _MOST_COMPARED else None
            more = f" and {len(keys) - _MOST_LISTED} more" if len(keys) > _MOST_LISTED else ""
            listed = f"declared: {', '.join(keys[:_MOST_LISTED]) or 'none'}{more}"
            self._hints[parent] = f"did you mean '{close}'?" if close else listed
        return self._hints[parent]


def _check_parent(resource: Resource, resolved: ResolvedWorkspace, hints: _ParentHints) -> None:
    kind, ref = resolved.context.kinds[resource.address.kind], resource.parent
    if ref is None or ref.key is None or kind.parent is None or kind.parent_key is None:
        return
    address = Address(kind.parent, ref.key)
    parent = resolved.desired.resources.get(address)
    if parent is None:
        if not isinstance(ref.key, Unknown) and not resolved.context.undetermined.about(address):
            resolved.context.problems.error(
                "unknown-parent",
                f"unknown {kind.parent} '{ref.key}' in {resource.address}",
                at=resolved.mark(resource, kind.parent_key),
                hint=joined(
                    hints.hint(address), f"for a live {kind.parent} write {{id: …}} or {{name: …}}"
                ),
            )
    elif _is_wanted(resource, resolved) and parent.state is State.ABSENT:
        resolved.context.problems.error(
            "absent-parent",
            f"{resource.address} is in {parent.address}, which has `state: absent`",
            at=resolved.mark(resource, kind.parent_key),
            related=resolved.related(parent, "state"),
        )


def _is_wanted(resource: Resource, resolved: ResolvedWorkspace) -> bool:
    """Return whether the resource shall exist for certain."""
    is_unknown = resource.address in resolved.context.undetermined.states
    return resource.state is State.PRESENT and not is_unknown


def _check_names(resolved: ResolvedWorkspace) -> None:
    """Report resources with the same name in one parent, however they refer to the parent."""
    keys = _keys_by_identity(resolved)
    claims = (
        ((resource.address.kind, _parent_of(resource, resolved, keys), resource.name), resource)
        for resource in resolved.desired.resources.values()
        if resource.pinned_id is None
        and _is_wanted(resource, resolved)
        and _has_known_identity(resource)
    )
    for resource, other in _duplicates(claims):
        kind = resolved.context.kinds[resource.address.kind]
        parent = _parent_of(resource, resolved, keys)
        place = "" if other.parent == resource.parent else f" in {kind.parent}.{parent}"
        resolved.context.problems.error(
            "same-name",
            f"{resource.address} and {other.address} have the same name '{resource.name}'{place}",
            at=resolved.mark(resource, "name"),
            related=resolved.related(other, "name"),
        )


def _has_known_identity(resource: Resource) -> bool:
    ref = resource.parent
    if ref is not None and (is_misread(ref.key) or is_misread(ref.id) or is_misread(ref.name)):
        return False
    return not isinstance(resource.spec.get("name"), Unknown)


_KeysByIdentity: TypeAlias = Mapping[tuple[str | None, str, str | None], str]
"""Keys of parents by kind and by name or pinned id."""


def _keys_by_identity(resolved: ResolvedWorkspace) -> _KeysByIdentity:
    keys: dict[tuple[str | None, str, str | None], str] = {}
    parents = containers(resolved.context.kinds.values())
    for resource in resolved.desired.resources.values():
        kind, key = resource.address.kind, resource.address.key
        if kind not in parents:
            continue
        if not isinstance(resource.spec.get("name"), Unknown):
            keys[(kind, "name", resource.name)] = key
        if resource.pinned_id is not None and not is_misread(resource.pinned_id):
            keys[(kind, "id", resource.pinned_id)] = key
    return keys


def _parent_of(
    resource: Resource, resolved: ResolvedWorkspace, keys: _KeysByIdentity
) -> str | ParentRef | None:
    """Return the key of a parent that is declared, else the reference to it."""
    ref, parent = resource.parent, resolved.context.kinds[resource.address.kind].parent
    if ref is None or ref.key:
        return ref.key if ref is not None else None
    return keys.get((parent, "id", ref.id)) or keys.get((parent, "name", ref.name)) or ref


def _check_pins(resolved: ResolvedWorkspace) -> None:
    claims = (
        ((resource.address.kind, resource.pinned_id), resource)
        for resource in resolved.desired.resources.values()
        if resource.pinned_id is not None and not is_misread(resource.pinned_id)
    )
    for resource, other in _duplicates(claims):
        resolved.context.problems.error(
            "same-id",
            f"{resource.address} and {other.address} have the same id",
            at=resolved.mark(resource, "id"),
            related=resolved.related(other, "id"),
        )


def _check_former_names(resolved: ResolvedWorkspace) -> None:
    """Report former names that two resources share: which one was renamed would be a guess."""
    first: dict[object, Resource] = {}
    for resource in resolved.desired.resources.values():
        for position, name in enumerate(resource.lifecycle.renamed_from):
            claim = (resource.address.kind, str(resource.parent), name)
            other = first.setdefault(claim, resource)
            if not name or other is resource:
                continue
            resolved.context.problems.error(
                "same-former-name",
                f"{resource.address} and {other.address} have the same former name '{name}'",
                at=resolved.mark(resource, "lifecycle", "renamed_from", position),
                related=((other.mark, str(other.address)),) if other.mark is not None else (),
            )


def _check_similar_names(resolved: ResolvedWorkspace) -> None:
    """Report names that differ only in case, for kinds whose newer servers refuse that."""
    kinds = {
        kind
        for kind in resolved.context.kinds
        if _UNIQUE in known_schema(kind)["properties"]["name"]
    }
    claims = (
        ((resource.address.kind, str(resource.parent), resource.name.casefold()), resource)
        for resource in resolved.desired.resources.values()
        if resource.address.kind in kinds
        and resource.state is not State.ABSENT
        and resource.pinned_id is None
    )
    for resource, other in _duplicates(claims):
        if other.name != resource.name:
            resolved.context.problems.warning(
                "similar-name",
                f"the names of {resource.address} and {other.address} differ only in case; newer "
                "servers refuse the second",
                at=resolved.mark(resource, "name"),
                related=resolved.related(other, "name"),
            )
