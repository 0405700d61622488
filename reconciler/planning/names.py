"""Name objects: by address, id, key, name or glob. One rule for every option and argument.

The first of these levels that matches anything wins, so a glob never wins over an exact name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from msgspec import Struct

from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.address import Address, choice, fits_any, nearest
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.plan import IDENTITY, Refusal
from reconciler.model.resource import Resource
from reconciler.model.text import listed, named, printable, quoted

_MOST_LISTED = 10
_HOW = "write an address (kind.key), an id, a key, a name or a glob"


class Named(Struct, frozen=True):
    """The texts that name one object.

    `address` is that of the resource, or `Address.of_unmanaged`. `ids` are live ids, `names` live
    and configured names.
    """

    address: Address
    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of_live(cls, live: LiveObject, address: Address | None = None) -> Named:
        """Return the names of a live object, and those of its resource if it has one."""
        own = Address.of_unmanaged(live.kind, live.id)
        return cls(address or own, (live.id,), (live.name.strip(),))

    @classmethod
    def of_resource(cls, resource: Resource, live: LiveObject | None = None) -> Named:
        """Return the names of a resource, and those of its live object if it has one."""
        ids = (resource.pinned_id, live.id if live is not None else None)
        names = (resource.name, live.name.strip() if live is not None else None)
        return cls(resource.address, tuple(filter(None, ids)), tuple(filter(None, names)))

    @property
    def label(self) -> str:
        """The address, for messages, and the name of an unmanaged object."""
        address = printable(str(self.address))
        has_name = self.address.is_unmanaged and self.names
        return f"{named(self.names[0])} ({address})" if has_name else address

    def exact(self) -> tuple[tuple[str, ...], ...]:
        """Return the texts of each level: address, ids, key and names.

        The address of an object without a resource names it also after a resource has it.
        """
        kind = self.address.kind
        ids = (text for it in self.ids for text in (it, str(Address.of_unmanaged(kind, it))))
        return (str(self.address),), tuple(ids), (self.address.key,), self.names

    def fits(self, glob: str) -> bool:
        """Return whether a glob matches the address, the key or a name."""
        texts = (str(self.address), self.address.key, *self.names)
        return any(fits_any(text, (glob,)) for text in texts)

    def may_match(self, text: str) -> bool:
        """Return whether a text, or a part of a comma list, matches on any level."""
        return any(
            self.fits(part) or any(part in texts for texts in self.exact())
            for part in (text.strip(), *parts(text))
        )


class Names:
    """The objects that an option or argument may name, in the order of their addresses."""

    def __init__(self, objects: Iterable[Named]) -> None:
        self._objects = sorted(objects, key=lambda item: (item.address.kind, item.address.key))
        self._levels: tuple[dict[str, list[Named]], ...] = ({}, {}, {}, {})
        for item in self._objects:
            for level, texts in zip(self._levels, item.exact(), strict=True):
                for text in set(texts):
                    level.setdefault(text, []).append(item)

    def matching(self, text: str) -> tuple[Named, ...]:
        """Return the objects that a text names, none if nothing matches."""
        text = text.strip()
        for level in self._levels:
            if text in level:
                return tuple(level[text])
        return tuple(item for item in self._objects if item.fits(text))

    def split(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return texts, with comma lists split that match nothing as a whole."""
        return tuple(
            part for text in texts for part in ((text,) if self.matching(text) else parts(text))
        )

    def named(self, text: str, option: str = "") -> tuple[Named, ...]:
        """Return the objects that a text or comma list names.

        Raises BadUsage for a text, or a part of a list, that names nothing.
        """
        named: dict[Address, Named] = {}
        for part in self.split((text,)):
            items = self.matching(part)
            if not items:
                raise self.nothing(part, option)
            named |= {item.address: item for item in items}
        return tuple(named.values())

    def addresses(self, texts: Iterable[str], option: str = "") -> frozenset[Address]:
        """Return the addresses of what texts name. Raises BadUsage for one that names nothing."""
        return frozenset(item.address for text in texts for item in self.named(text, option))

    def ids_of(self, addresses: Container[Address]) -> frozenset[str]:
        """Return the live ids of objects."""
        return frozenset(
            live_id for item in self._objects if item.address in addresses for live_id in item.ids
        )

    def one(self, text: str) -> Named:
        """Return the only object that a text names. Raises BadUsage for none and for several."""
        named = self.named(text)
        if len(named) > 1:
            labels = listed([item.label for item in named], _MOST_LISTED)
            raise BadUsage(
                f"{quoted(text)} matches {len(named)} resources", hint=f"use one of: {labels}"
            )
        return named[0]

    def nothing(self, text: str, option: str = "") -> BadUsage:
        """Return the error that a text names nothing, with a similar name."""
        where = f" ({option})" if option else ""
        close = self._nearest(text)
        if close is not None:
            hint = f"did you mean {close.label}?"
        elif self._objects:
            known = listed([item.label for item in self._objects], _MOST_LISTED)
            hint = f"{_HOW}; known: {known}"
        else:
            hint = "there is nothing that it could name"
        return BadUsage(f"nothing matches {quoted(text)}{where}", hint=hint)

    def _nearest(self, text: str) -> Named | None:
        """Return the object with the most similar key or name, also of an address."""
        wanted = text.strip(" *")
        texts = {name: it for it in self._objects[::-1] for name in (it.address.key, *it.names)}
        close = nearest(wanted, texts) or nearest(wanted.rpartition(".")[2], texts)
        return texts[close] if close is not None else None


def check_clear(texts: Iterable[str], refusals: Iterable[Refusal]) -> None:
    """Raise ReconcilerError if a text is the address or key of a resource that is ambiguous."""
    for refusal in refusals:
        names = {text for it in refusal.addresses for text in (str(it), it.key)}
        if refusal.rule in IDENTITY and not names.isdisjoint(texts):
            raise ReconcilerError(refusal.message, hint="use the id of a live object")


def kinds_named(text: str, kinds: Sequence[Kind]) -> frozenset[str]:
    """Return the names of the kinds that a text names, such as a collection (`batch_exports`).

    Raises BadUsage for an unknown one.
    """
    known = {name: kind.name for kind in kinds for name in (kind.name, kind.collection)}
    for part in parts(text):
        if part not in known:
            hint = choice(part, [kind.name for kind in kinds], "kinds")
            raise BadUsage(f"unknown kind {quoted(part)}", hint=hint)
    return frozenset(known[part] for part in parts(text))


def parts(text: str) -> tuple[str, ...]:
    """Return the parts of a comma list."""
    return tuple(part.strip() for part in text.split(","))
