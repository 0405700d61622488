"""Read live state with as few calls as possible.

One list per kind covers the organization. Where a list has a short shape, only the objects that a
resource may match are read in full. A key that is limited to projects may not list the
organization (docs/service.md, 15.41): then projects are read by id, and exports by project.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.client import Transport, all_pages
from reconciler.errors import Forbidden, NotFound
from reconciler.model.kind import Kind
from reconciler.model.live import Dialect, Live, LiveObject
from reconciler.model.resource import Desired, Resource
from reconciler.model.routes import Routes
from reconciler.model.values import JSONObject

_ID = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Depth:
    """What is read beyond what the configuration may match.

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
    transport: Transport, desired: Desired, *, kinds: Sequence[Kind], depth: Depth
) -> Live:
    """Read every object of the organization that the configuration may match.

    Raises ServiceError.
    """
    reader = _Reader(transport, desired.organization, desired.in_order(), depth)
    surveys = await asyncio.gather(*(reader.survey(kind) for kind in kinds))
    objects: dict[str, tuple[LiveObject, ...]] = {}
    unlisted: set[str] = set()
    for kind, survey in zip(kinds, surveys, strict=True):
        if survey is not None:
            bodies = [*survey, *await reader.hidden(kind, survey)]
        elif kind.parent is None:
            unlisted.add(kind.name)
            bodies = await reader.by_id(kind)
        else:
            bodies = await reader.by_parent(kind, objects.get(kind.parent, ()))
        items = [_live_object(kind, body) for body in bodies]
        objects[kind.name] = tuple(await reader.in_full(kind, items) if kind.detail else items)
    return Live(objects, _dialect(kinds, objects), frozenset(unlisted))


@dataclass(frozen=True, slots=True)
class _Reader:
    transport: Transport
    organization: str
    resources: Sequence[Resource]
    depth: Depth

    async def survey(self, kind: Kind) -> list[JSONObject] | None:
        """Return all objects of the organization, None where the key or server has no such list."""
        if kind.parent is not None and kind.paths.survey is None:
            return None
        try:
            return await all_pages(self.transport, Routes(kind, self.organization).collection)
        except Forbidden as error:
            if error.lacks_scope:
                raise
        except NotFound:
            # Without a parent this is the organization's own path: the organization is unknown.
            if kind.parent is None:
                raise
        return None

    async def hidden(self, kind: Kind, listed: Sequence[JSONObject]) -> list[JSONObject]:
        """Return objects that are named by id but not listed, such as exports of hidden types."""
        ids = self.depth.ids | _pinned(kind, self.resources)
        return await self._read_all(kind, ids - {str(body.get("id")) for body in listed})

    async def by_id(self, kind: Kind) -> list[JSONObject]:
        """Return the objects that are named by id, where no list is allowed.

        A name can't be looked up then, so every resource of the kind needs an id.
        """
        unpinned = [
            str(resource.address)
            for resource in self.resources
            if resource.address.kind == kind.name and resource.pinned_id is None
        ]
        chosen = self.depth.ids | self.depth.parents
        ids = _pinned(kind, self.resources) | _parent_ids(self.resources)
        ids |= {text for text in chosen if _ID.fullmatch(text)}
        if unpinned or not ids:
            without_id = f"; without `id`: {', '.join(unpinned)}" if unpinned else ""
            raise Forbidden(
                f"the API key may not list the {kind.collection} of organization "
                f"{self.organization}{without_id}",
                hint=f"use a key that is not limited to projects, or set `id` for each {kind.name} "
                "(for an import: --project ID)",
                status=403,
            )
        return await self._read_all(kind, ids)

    async def by_parent(self, kind: Kind, parents: Sequence[LiveObject]) -> list[JSONObject]:
        """Return the objects below each parent that is live or named by id."""
        ids = {parent.id for parent in parents} | _parent_ids(self.resources)
        routes = [Routes(kind, self.organization, parent_id) for parent_id in sorted(ids)]
        lists = (all_pages(self.transport, route.collection) for route in routes)
        return [body for bodies in await asyncio.gather(*lists) for body in bodies]

    async def in_full(self, kind: Kind, items: Sequence[LiveObject]) -> list[LiveObject]:
        """Replace objects that may match by their full shape; drop those pending deletion."""
        names, ids = _matchable(kind, self.resources)

        async def full(item: LiveObject) -> LiveObject | None:
            matchable = item.id in ids or item.name.strip().casefold() in names
            if not (matchable or self.depth.in_full(item)):
                return item
            body = await self._read(kind, item.id)
            if body is None or kind.pending_deletion(body):
                return None
            return _live_object(kind, body)

        read = await asyncio.gather(*(full(item) for item in items))
        return [item for item in read if item is not None]

    async def _read_all(self, kind: Kind, ids: Iterable[str]) -> list[JSONObject]:
        read = await asyncio.gather(*(self._read(kind, live_id) for live_id in sorted(ids)))
        return [body for body in read if body is not None]

    async def _read(self, kind: Kind, live_id: str) -> JSONObject | None:
        """Return one object in full, None if it does not exist."""
        try:
            body = (await self.transport.send(Routes(kind, self.organization).read(live_id))).body
        except NotFound:
            return None
        return body if isinstance(body, Mapping) else None


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


def _matchable(kind: Kind, resources: Sequence[Resource]) -> tuple[set[str], set[str]]:
    """Return the names (case-folded) and ids by which resources may match objects of a kind."""
    names: set[str] = set()
    for resource in resources:
        if resource.address.kind == kind.name:
            names |= {name.strip().casefold() for name in resource.lifecycle.renamed_from}
            names.add(resource.name.casefold())
        elif resource.parent is not None and resource.parent.name is not None:
            names.add(resource.parent.name.strip().casefold())
    return names, _pinned(kind, resources) | _parent_ids(resources)


def _live_object(kind: Kind, body: JSONObject) -> LiveObject:
    parent = body.get(kind.parent_field) if kind.parent_field else None
    return LiveObject(
        kind=kind.name,
        id=str(body.get("id")),
        name=str(body.get("name") or ""),
        body=body,
        parent_id=str(parent) if parent is not None else None,
    )


def _dialect(
    kinds: Sequence[Kind], objects: Mapping[str, tuple[LiveObject, ...]]
) -> Dialect | None:
    """Return the dialect of the first object that shows it (docs/service.md, 15.46)."""
    dialects = (kind.dialect_of(item.body) for kind in kinds for item in objects[kind.name])
    return next(filter(None, dialects), None)
