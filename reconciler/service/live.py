"""Read live state with as few calls as possible, and refuse objects of an unknown form.

One list per kind covers the organization. Where a list has a short form, `read_details` completes
the objects that a plan depends on. Where there is no such list, objects are read in each parent
that the files or the inventory name. A key that is limited to projects may not list the
organization (service.md, 15.41): then projects are read by id, and exports by project.

An odd answer is never passed on as "does not exist": the object would be created a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.errors import Forbidden, InvalidResponse, NotFound
from reconciler.model.event import Reading
from reconciler.model.kind import Dialect, Integrations, Kind
from reconciler.model.live import Live, LiveObject, Routes, id_text, is_same_id
from reconciler.model.resource import Desired, Resource
from reconciler.model.text import json_shown, printable, shown_in
from reconciler.model.values import JSON, JSONObject
from reconciler.service.access import known_key
from reconciler.service.pace import together
from reconciler.service.pages import complete_list, invalid
from reconciler.service.transport import Transport

_OLD = "this server lists no integrations to API keys"
_NONE = "its list has none for exports, as that of servers before May 2026 for API keys"


class Depth(Struct, frozen=True):
    """What is read beyond the lists."""

    in_full: Callable[[LiveObject], bool] = lambda _: False
    """Whether to read an object of a short list in full."""
    ids: frozenset[str] = frozenset()
    """Objects to read even if no list contains them."""
    parents: frozenset[str] = frozenset()
    """Names or ids of parents, tried as ids where the key may not list parents."""
    inside: Callable[[Kind, Sequence[LiveObject]], AbstractSet[str]] = lambda _, parents: {
        parent.id for parent in parents
    }
    """Return the ids of the parents to read the objects of a kind in, of all live parents, where
    the organization has no list of them. The others are `Live.unread`."""


async def read_live(
    transport: Transport, desired: Desired, *, kinds: Sequence[Kind], depth: Depth | None = None
) -> Live:
    """Read every object of the organization that the configuration may match.

    Raises ServiceError.
    """
    depth, read_at = depth or Depth(), transport.clock()
    reader = _Reader(transport, desired.organization, desired.in_order(), depth)
    surveys = await together(reader.survey(kind) for kind in kinds)
    unlisted = {kind.name for kind, survey in zip(kinds, surveys, strict=True) if survey is None}
    objects: dict[str, tuple[LiveObject, ...]] = {}
    unread: set[tuple[str, str]] = set()
    for kind, survey in zip(kinds, surveys, strict=True):
        if survey is not None:
            items = [*survey, *await reader.hidden(kind, survey)]
        elif kind.parent is None:
            items = await reader.read_existing(kind, reader.named_ids(kind))
        else:
            parents = objects.get(kind.parent, ())
            # Ids of the files that no parent has are reported, and never part of a path.
            named = _parent_ids(desired.in_order()) & {item.id for item in parents}
            ids = depth.inside(kind, parents) | named
            unread |= {(item.kind, item.id) for item in parents if item.id not in ids}
            items = await reader.by_parent(kind, ids)
        objects[kind.name] = tuple(items)
    dialect = _dialect(kinds, objects)
    if dialect is None:
        key = await known_key(transport)
        dialect = key.dialect if key is not None else None
    live = Live(objects, dialect, frozenset(unlisted), frozenset(unread), read_at)
    wanted = {
        (item.kind, item.id) for items in objects.values() for item in items if depth.in_full(item)
    }
    return await read_details(transport, live, wanted, kinds=kinds, desired=desired)


async def check_listable(transport: Transport, desired: Desired, *, kinds: Sequence[Kind]) -> None:
    """Check that what has no parent can be listed, or has an id. Raises what `read_live` raises."""
    reader = _Reader(transport, desired.organization, desired.in_order(), Depth())
    for kind in kinds:
        if kind.parent is None and await reader.survey(kind) is None:
            reader.named_ids(kind)


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
            if error.lacks_scope or error.is_of_organization:
                raise
        except NotFound:
            # Without a parent this is the organization's own path: the organization is unknown.
            if kind.parent is None:
                raise
        return None

    async def hidden(self, kind: Kind, listed: Sequence[LiveObject]) -> list[LiveObject]:
        """Return objects that are named by id but not listed, such as exports of hidden types."""
        ids = self.depth.ids | _pinned(kind, self.resources)
        known = {item.id for item in listed}
        items = await self.read_existing(kind, ids - known)
        return [item for item in items if item.id not in known]

    def named_ids(self, kind: Kind) -> set[str]:
        """Return the ids of the objects to read, where no list is allowed.

        Raises Forbidden for a resource without one: a name can't be looked up then.
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
        return ids

    async def by_parent(self, kind: Kind, ids: Iterable[str]) -> list[LiveObject]:
        """Return the objects below each parent."""
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

    async def read_existing(self, kind: Kind, ids: Iterable[str]) -> list[LiveObject]:
        """Return the objects with some ids, without those that do not exist."""
        routes = Routes(kind, self.organization)

        async def read(live_id: str) -> LiveObject | None:
            try:
                return await read_object(self.transport, routes, live_id)
            except NotFound:
                return None

        # Other text is no id, and could be another path.
        read_ids = sorted(live_id for live_id in ids if id_text(live_id))
        items = await together(read(live_id) for live_id in read_ids)
        return list({item.id: item for item in items if item is not None}.values())


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
    """Return the dialect of the first object that shows it (service.md, 15.46)."""
    dialects = (kind.dialect_of(item.body) for kind in kinds for item in objects[kind.name])
    return next(filter(None, dialects), None)


async def read_details(
    transport: Transport,
    live: Live,
    wanted: Collection[tuple[str, str]],
    *,
    desired: Desired,
    kinds: Sequence[Kind],
) -> Live:
    """Return live state with some objects, given by kind and id, in full.

    Objects that no longer exist or are pending deletion are left out, and what is in them.

    Raises:
        InvalidResponse: a list shows an object that cannot be read, or an answer is odd.
        ServiceError.

    """
    objects, gone, details_at = dict(live.objects), set[tuple[str, str]](), dict(live.details_at)
    for kind in kinds:
        items, left = live.of(kind.name), list[LiveObject]()
        short = [item for item in items if not item.complete and (kind.name, item.id) in wanted]
        read = await _in_full(transport, kind, desired.organization, short, details_at)
        for item in items:
            full, place = read.get(item.id, item), (kind.parent or "", item.parent_id or "")
            if full is None or kind.is_deleted(full.body) or place in gone:
                gone.add((kind.name, item.id))
            else:
                left.append(full)
        objects[kind.name] = tuple(left)
    return replace(live, objects=objects, details_at=details_at)


async def _in_full(
    transport: Transport,
    kind: Kind,
    organization: str,
    short: Sequence[LiveObject],
    sent_at: dict[tuple[str, str], float],
) -> dict[str, LiveObject | None]:
    """Return objects in full by id, None for those that are gone. Note when they were requested."""
    progress = Progress(transport, f"{kind.collection} in full")
    read: dict[str, LiveObject | None] = {}
    missing: list[LiveObject] = []

    async def complete(item: LiveObject) -> None:
        routes = Routes(kind, organization, item.parent_id)
        request = routes.read(item.id)
        try:
            answer = await transport.send(request)
            read[item.id] = live_object(
                routes, answer.body, expected_id=item.id, complete=True, label=request.label
            )
            sent_at[kind.name, item.id] = answer.sent_at
        except NotFound:
            missing.append(item)
            read[item.id] = None
        progress.update(None, len(read), len(short))

    await together(complete(item) for item in short)
    await _check_gone(transport, kind, organization, missing)
    return read


async def _check_gone(
    transport: Transport, kind: Kind, organization: str, missing: Sequence[LiveObject]
) -> None:
    """Raise InvalidResponse if a list still shows an object that was answered with 404."""
    for parent_id in sorted({item.parent_id for item in missing}, key=str):
        listed = {item.id for item in await list_scope(transport, kind, organization, parent_id)}
        for item in missing:
            if item.parent_id == parent_id and item.id in listed:
                label = Routes(kind, organization, parent_id).read(item.id).label
                raise InvalidResponse(
                    f"{label}: 404 for an object that is in the list",
                    hint="run it again; if it persists, check that the API key may read this "
                    f"{kind.name}",
                )


class Progress(Struct, frozen=True):
    """Reports how many objects of a collection are read, in all of its lists together."""

    transport: Transport
    collection: str
    _lists: dict[str | None, tuple[int, int]] = field(default_factory=dict)

    def update(self, parent_id: str | None, read: int, total: int) -> None:
        """Report that `read` of `total` objects below a parent are read."""
        self._lists[parent_id] = (read, total)
        reads, totals = zip(*self._lists.values(), strict=True)
        self.transport.emit(Reading(self.collection, sum(reads), sum(totals)))


async def list_scope(
    transport: Transport,
    kind: Kind,
    organization: str,
    parent_id: str | None,
    *,
    on_page: Callable[[int, int], None] = lambda *_: None,
) -> list[LiveObject]:
    """Return every object below a parent, or of the whole organization without one.

    Raises:
        IncompleteList: the list contradicts itself in three readings.
        ServiceError.

    """
    routes = Routes(kind, organization, parent_id)
    label = printable(f"GET {routes.collection}")
    items = await complete_list(transport, routes.collection, on_page=on_page)
    return [
        live_object(routes, item, expected_id=None, complete=not kind.detail, label=label)
        for item in items
    ]


async def read_object(
    transport: Transport,
    routes: Routes,
    live_id: str,
    *,
    change_id: str | None = None,
) -> LiveObject:
    """Return one object in full.

    Raises:
        NotFound: there is no such object.
        InvalidResponse: the answer is not this object.
        ServiceError.

    """
    request = routes.read(live_id)
    body = (await transport.send(request, change_id=change_id)).body
    return live_object(routes, body, expected_id=live_id, complete=True, label=request.label)


def live_object(
    routes: Routes, body: JSON, *, expected_id: str | None, complete: bool, label: str
) -> LiveObject:
    """Return the object of an answer from one of the routes.

    `expected_id` is the id that was requested, None for an object of a list or of a create.
    `complete`: the answer has every field, unlike the short form of a list. `label` is the request,
    for messages.

    Raises InvalidResponse: the body is no object, or its id, name or parent is wrong.
    """
    if not isinstance(body, dict):
        shown = "empty" if body is None else json_shown(body)
        raise invalid(label, f"the response is {shown}, an object was expected")
    live_id, name = id_text(body.get("id")), body.get("name")
    if live_id is None:
        raise invalid(label, f"id is {shown_in(body, 'id')}, a number or text was expected")
    if expected_id is not None and not is_same_id(live_id, expected_id):
        raise invalid(label, f"id is {live_id}, {printable(expected_id)} was expected")
    if not isinstance(name, str):
        raise invalid(label, f"name is {shown_in(body, 'name')}, text was expected")
    parent_id = _parent_of(routes, body, label)
    return LiveObject(routes.kind.name, live_id, name, body, parent_id, complete)


def _parent_of(routes: Routes, body: JSONObject, label: str) -> str | None:
    """Return the id of the parent: that of the path, or that of the body below the organization."""
    kind, parent_id = routes.kind, routes.parent_id
    if kind.parent is None or (parent_id is not None and kind.parent_field not in body):
        return parent_id
    name = kind.parent_field or kind.parent
    own = id_text(body.get(name))
    if own is None:
        raise invalid(label, f"{name} is {shown_in(body, name)}, a number was expected")
    if parent_id not in (None, own):
        raise invalid(label, f"{name} is {own}, {parent_id} was expected")
    return own


async def read_integrations(
    transport: Transport, live: Live, parent_ids: Collection[str], *, kinds: Sequence[Kind]
) -> Live:
    """Return live state with the integrations of some parents: one list for each.

    Raises ServiceError, but not for integrations that the key may not see.
    """
    kind = next(kind for kind in kinds if kind.paths.integrations)
    ordered = sorted(parent_ids)
    tables = await together(_listed(transport, kind, parent_id) for parent_id in ordered)
    read = dict(zip(ordered, tables, strict=True))
    return replace(live, integrations={**live.integrations, **read})


async def _listed(transport: Transport, kind: Kind, parent_id: str) -> Integrations:
    try:
        bodies = await complete_list(transport, kind.paths.integrations.format(parent=parent_id))
    except Forbidden as error:
        return Integrations(hidden=error.message)
    except NotFound:
        return Integrations(hidden=_OLD)
    items = tuple(filter(None, map(kind.integration_of, bodies)))
    return Integrations(items, hidden="" if items else _NONE)
