"""Read live state with as few calls as possible.

One list per kind covers the organization. Where a list has a short form, `read_details` completes
the objects that a plan depends on. A key that is limited to projects may not list the organization
(docs/service.md, 15.41): then projects are read by id, and exports by project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from reconciler.client import Transport, together
from reconciler.errors import Forbidden, NotFound
from reconciler.model.dialect import Dialect
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject, id_text
from reconciler.model.resource import Desired, Resource, State
from reconciler.reading.details import read_details
from reconciler.reading.key import dialect_of_key
from reconciler.reading.objects import Progress, list_scope, read_object


class Depth(Struct, frozen=True):
    """What is read beyond the lists.

    in_full
        Whether to read an object of a short list in full.
    ids
        Objects to read even if no list contains them.
    parents
        Names or ids of parents, tried as ids where the key may not list parents.
    """

    in_full: Callable[[LiveObject], bool] = lambda _: False
    ids: frozenset[str] = frozenset()
    parents: frozenset[str] = frozenset()


async def read_live(
    transport: Transport, desired: Desired, *, kinds: Sequence[Kind], depth: Depth | None = None
) -> Live:
    """Read every object of the organization that the configuration may match.

    Raises ServiceError.
    """
    depth = depth or Depth()
    reader = _Reader(transport, desired.organization, desired.in_order(), depth)
    surveys = await together(reader.survey(kind) for kind in kinds)
    objects: dict[str, tuple[LiveObject, ...]] = {}
    unlisted: set[str] = set()
    for kind, survey in zip(kinds, surveys, strict=True):
        if survey is not None:
            items = [*survey, *await reader.hidden(kind, survey)]
        elif kind.parent is None:
            unlisted.add(kind.name)
            items = await reader.by_id(kind)
        else:
            items = await reader.by_parent(kind, objects.get(kind.parent, ()))
        objects[kind.name] = tuple(items)
    dialect = _dialect(kinds, objects)
    if dialect is None and _depends_on_dialect(desired, kinds):
        dialect = await dialect_of_key(transport)
    live = Live(objects, dialect, frozenset(unlisted))
    wanted = {
        (item.kind, item.id) for items in objects.values() for item in items if depth.in_full(item)
    }
    return await read_details(transport, live, wanted, kinds=kinds, desired=desired)


class _Reader(Struct, frozen=True):
    transport: Transport
    organization: str
    resources: Sequence[Resource]
    depth: Depth

    async def survey(self, kind: Kind) -> list[LiveObject] | None:
        """Return all objects of the organization, None where the key or server has no such list."""
        if kind.parent is not None and kind.paths.survey is None:
            return None
        try:
            return await self._list(kind, None, Progress(self.transport, kind.collection))
        except Forbidden as error:
            if error.lacks_scope:
                raise
        except NotFound:
            # Without a parent this is the organization's own path: the organization is unknown.
            if kind.parent is None:
                raise
        return None

    async def hidden(self, kind: Kind, listed: Sequence[LiveObject]) -> list[LiveObject]:
        """Return objects that are named by id but not listed, such as exports of hidden types."""
        ids = self.depth.ids | _pinned(kind, self.resources)
        return await self._read_existing(kind, ids - {item.id for item in listed})

    async def by_id(self, kind: Kind) -> list[LiveObject]:
        """Return the objects that are named by id, where no list is allowed.

        A name can't be looked up then, so every resource of the kind needs an id.
        """
        unpinned = [
            str(resource.address)
            for resource in self.resources
            if resource.address.kind == kind.name and resource.pinned_id is None
        ]
        ids = _pinned(kind, self.resources) | _parent_ids(self.resources)
        ids |= self.depth.ids | {text for text in self.depth.parents if id_text(text)}
        if unpinned or not ids:
            without_id = f"; without `id`: {', '.join(unpinned)}" if unpinned else ""
            raise Forbidden(
                f"the API key may not list the {kind.collection} of organization "
                f"{self.organization}{without_id}",
                hint=f"use a key that is not limited to projects, or set `id` for each {kind.name} "
                "(for an import: --project ID)",
                status=403,
            )
        return await self._read_existing(kind, ids)

    async def by_parent(self, kind: Kind, parents: Sequence[LiveObject]) -> list[LiveObject]:
        """Return the objects below each parent that is live or named by id."""
        ids = {parent.id for parent in parents} | _parent_ids(self.resources)
        progress = Progress(self.transport, kind.collection)
        lists = await together(self._list(kind, parent_id, progress) for parent_id in sorted(ids))
        return [item for items in lists for item in items]

    async def _list(
        self, kind: Kind, parent_id: str | None, progress: Progress
    ) -> list[LiveObject]:
        return await list_scope(
            self.transport,
            kind,
            self.organization,
            parent_id,
            on_page=partial(progress.update, parent_id),
        )

    async def _read_existing(self, kind: Kind, ids: Iterable[str]) -> list[LiveObject]:
        """Return the objects with some ids, without those that do not exist."""

        async def read(live_id: str) -> LiveObject | None:
            try:
                return await read_object(self.transport, kind, self.organization, live_id)
            except NotFound:
                return None

        # Other text is no id, and could be another path.
        read_ids = sorted(live_id for live_id in ids if id_text(live_id))
        items = await together(read(live_id) for live_id in read_ids)
        return [item for item in items if item is not None]


def _pinned(kind: Kind, resources: Iterable[Resource]) -> set[str]:
    return {
        resource.pinned_id
        for resource in resources
        if resource.address.kind == kind.name and resource.pinned_id
    }


def _parent_ids(resources: Iterable[Resource]) -> set[str]:
    return {
        resource.parent.id
        for resource in resources
        if resource.parent is not None and resource.parent.id
    }


def _dialect(kinds: Sequence[Kind], objects: Mapping[str, Sequence[LiveObject]]) -> Dialect | None:
    """Return the dialect of the first object that shows it (docs/service.md, 15.46)."""
    dialects = (kind.dialect_of(item.body) for kind in kinds for item in objects[kind.name])
    return next(filter(None, dialects), None)


def _depends_on_dialect(desired: Desired, kinds: Sequence[Kind]) -> bool:
    """Return whether objects are wanted whose kind differs by dialect."""
    differing = {kind.name for kind in kinds if kind.differs_by_dialect}
    return any(
        resource.state is State.PRESENT and address.kind in differing
        for address, resource in desired.resources.items()
    )
