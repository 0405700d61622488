"""The input of every decision about a change, besides the resource itself."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.resource import Resource
from reconciler.planning.former import FormerObjects
from reconciler.planning.matcher import Match
from reconciler.planning.new_places import Known


class ChangeContext(Struct):
    """The input of every decision besides the resource itself.

    `rotate` are the resources whose secrets are sent again. `parent_names` are those of live
    objects that may contain others, by kind and id.
    """

    kinds: Mapping[str, Kind]
    live: Live
    former: FormerObjects
    now: datetime
    rotate: Container[Address]
    declared: Mapping[Address, Resource]
    parent_names: Mapping[tuple[str, str], str]
    known: Known
    _children: dict[tuple[str, str], list[LiveObject]] | None = None

    def children(self, parent: LiveObject) -> Sequence[LiveObject]:
        """Return the live children of an object, managed or not. Indexed on first use."""
        if self._children is None:
            self._children = {}
            for objects in self.live.objects.values():
                for child in objects:
                    parent_kind = self.kinds[child.kind].parent
                    if parent_kind is not None and child.parent_id is not None:
                        self._children.setdefault((parent_kind, child.parent_id), []).append(child)
        children = self._children.get((parent.kind, parent.id), [])
        return sorted(children, key=lambda child: (child.name, child.id))

    def parent_name(self, match: Match, parent_id: str | None) -> str | None:
        """Return the name of a parent: the live one, or the declared one if it does not exist."""
        kind, ref = match.kind.parent, match.resource.parent
        if kind is None:
            return None
        if parent_id is not None:
            return self.parent_names.get((kind, parent_id))
        if ref is None or ref.key is None:
            return ref.name if ref is not None else None
        parent = self.declared.get(Address(kind, ref.key))
        return parent.name if parent is not None else None
