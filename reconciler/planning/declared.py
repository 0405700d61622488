"""Find the resource that declares a live object today, perhaps by another key than before."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.resource import Desired, Resource


# Without slots, since cached properties need a dict.
class DeclaredObjects(Struct, frozen=True, dict=True):
    """The declared resources and the live objects, by what connects them."""

    desired: Desired
    live: Live
    kinds: Mapping[str, Kind]

    @cached_property
    def objects(self) -> Mapping[tuple[str, str], LiveObject]:
        """Live objects by kind and id."""
        return {(item.kind, item.id): item for kind in self.kinds for item in self.live.of(kind)}

    @cached_property
    def _pinned(self) -> Mapping[tuple[str, str], Resource]:
        resources = self.desired.resources.values()
        return {(item.address.kind, item.pinned_id): item for item in resources if item.pinned_id}

    @cached_property
    def _named(self) -> Mapping[tuple[str, str], list[Resource]]:
        named: dict[tuple[str, str], list[Resource]] = {}
        for resource in self.desired.resources.values():
            if resource.pinned_id is None:
                place = (resource.address.kind, resource.name.strip())
                named.setdefault(place, []).append(resource)
        return named

    def declaring(self, address: Address, live_id: str | None) -> Resource | None:
        """Return the resource of an object, or that of an address if no other has the object."""
        live = self.objects.get((address.kind, live_id or ""))
        own = self.desired.resources.get(address)
        if live is None:
            return own
        candidates = self._of(live)
        return own if own in candidates or not candidates else candidates[0]

    def _of(self, live: LiveObject) -> list[Resource]:
        """Return the resources with the id, or the name and place, of an object."""
        if (pinned := self._pinned.get((live.kind, live.id))) is not None:
            return [pinned]
        named = self._named.get((live.kind, live.name.strip()), ())
        return [resource for resource in named if self._is_in_place(resource, live)]

    def _is_in_place(self, resource: Resource, live: LiveObject) -> bool:
        ref, kind = resource.parent, self.kinds[live.kind].parent
        if ref is None or kind is None:
            return True
        if ref.id is not None:
            return ref.id == live.parent_id
        parent = self.objects.get((kind, live.parent_id or ""))
        if parent is None:
            return False
        if ref.name is not None:
            return ref.name.strip() == parent.name.strip()
        declared = self.desired.resources.get(Address(kind, ref.key or ""))
        return declared is not None and declared in self._of(parent)
