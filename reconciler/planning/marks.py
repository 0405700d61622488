"""Live objects whose name marks them as the new object of a replacement that was cut short."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct, field

from reconciler.model.live import LiveObject, parse_marked_name


class MarkedObject(Struct, frozen=True):
    """A new object with the plain name of its resource and the id of the object it replaces."""

    live: LiveObject
    name: str
    old_id: str


class MarkedObjects(Struct):
    """The marked objects of one kind.

    `plain` has the names without mark, by id, where the old object is gone: such an object is
    the one of its resource, and only the rename is left. `unfinished` are the others.
    """

    plain: dict[str, str] = field(default_factory=dict)
    unfinished: list[MarkedObject] = field(default_factory=list)

    @classmethod
    def of(cls, objects: Iterable[LiveObject], declared: Collection[str]) -> MarkedObjects:
        """Return the marked ones of all live objects of a kind, without `declared` names."""
        listed = list(objects)
        ids = {item.id for item in listed}
        marked = cls()
        for item in listed:
            parsed = parse_marked_name(item.name)
            if parsed is None or item.name.strip() in declared:
                continue
            name, old_id = parsed
            if old_id in ids:
                marked.unfinished.append(MarkedObject(item, name.strip(), old_id))
            else:
                marked.plain[item.id] = name.strip()
        return marked
