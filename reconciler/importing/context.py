"""What import looks up besides the object itself: live state, claims, keys in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.redaction import Mask

Identity = tuple[str, str]
"""Kind and id of a live object."""


def identity_of(live: LiveObject) -> Identity:
    """Return kind and id."""
    return live.kind, live.id


class ImportContext(Struct, frozen=True, dict=True):
    """Live state, the addresses of claimed objects, and all addresses in the files.

    `environment` is the one that resources are written for, "" if the workspace has only one.
    `mask` masks known secrets.
    """

    live: Live
    kinds: Sequence[Kind]
    claims: Mapping[Identity, Address]
    declared: AbstractSet[Address]
    environment: str
    mask: Mask

    @cached_property
    def kinds_by_name(self) -> Mapping[str, Kind]:
        """Return the kinds by name."""
        return {kind.name: kind for kind in self.kinds}

    @cached_property
    def objects(self) -> Mapping[Identity, LiveObject]:
        """Return all live objects, parents first."""
        return {identity_of(live): live for kind in self.kinds for live in self.live.of(kind.name)}

    @cached_property
    def secret_names(self) -> AbstractSet[Identity]:
        """Return unclaimed objects with a known secret in their names: no key is made from it."""
        names = {
            identity: live.name
            for identity, live in self.objects.items()
            if identity not in self.claims
        }
        together = "\n".join(names.values())
        if self.mask(together) == together:
            return frozenset()
        return {identity for identity, name in names.items() if self.mask(name) != name}

    @cached_property
    def _name_counts(self) -> Counter[Identity]:
        return Counter((live.kind, live.name.strip()) for live in self.objects.values())

    def parent_of(self, live: LiveObject) -> LiveObject | None:
        """Return the live object that contains another one, None if there is none."""
        parent_kind = self.kinds_by_name[live.kind].parent
        if parent_kind is None or live.parent_id is None:
            return None
        return self.objects.get((parent_kind, live.parent_id))

    def name_of(self, live: LiveObject) -> str:
        """Return the name as files may contain it, "" if it contains a known secret."""
        return "" if identity_of(live) in self.secret_names else live.name.strip()

    def shares_name(self, live: LiveObject) -> bool:
        """Return whether another object of its kind has the same name, below any parent."""
        return self._name_counts[live.kind, live.name.strip()] > 1
