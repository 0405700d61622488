"""The fewest calls that answer what is live.

One list a kind for the whole organization; the full shape only of the objects that a resource
could claim, where a kind's list has a short shape. Keys that are limited to projects may not list
an organization (service-facts, trap 41): then the projects that the files name are read one by one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.client import Service, all_pages
from reconciler.errors import Forbidden, NotFound
from reconciler.model.kind import Kind
from reconciler.model.live import Dialect, Live, LiveObject
from reconciler.model.request import Repeat, Request
from reconciler.model.resource import Desired, Resource
from reconciler.model.values import JSONObject

_AN_ID = re.compile(r"[A-Za-z0-9-]+")


def _nothing_more(each: LiveObject) -> bool:
    del each
    return False


@dataclass(frozen=True, slots=True)
class Depth:
    """What is read beyond what the files could mean.

    `in_full` tells of an object in the short shape of its list whether to read it whole. `ids` are
    objects to look for even if no list shows them, `holders` parents that may be named by id: they
    are tried where the key may list none.
    """

    in_full: Callable[[LiveObject], bool] = _nothing_more
    ids: frozenset[str] = frozenset()
    holders: frozenset[str] = frozenset()

    @property
    def tried(self) -> frozenset[str]:
        """What may be an id, of all that is looked for."""
        return frozenset(each for each in self.ids | self.holders if _AN_ID.fullmatch(each))


_JUST_THE_FILES = Depth()


async def read_live(
    service: Service,
    desired: Desired,
    *,
    kinds: Sequence[Kind],
    depth: Depth = _JUST_THE_FILES,
) -> Live:
    """Read every object of the organization that the files could speak about.

    Raises ServiceError.
    """
    resources = desired.in_order()
    surveys = await asyncio.gather(*(_survey(service, kind) for kind in kinds))
    objects: dict[str, tuple[LiveObject, ...]] = {}
    unlisted: set[str] = set()
    for kind, survey in zip(kinds, surveys, strict=True):
        if survey is None:
            if kind.parent is None:
                unlisted.add(kind.name)
            bodies = await _one_by_one(service, kind, resources, objects, tried=depth.tried)
        else:
            wanted = depth.ids | _pinned(kind, resources)
            bodies = [*survey, *await _hidden(service, kind, wanted, survey)]
        found = [_live_object(kind, body) for body in bodies]
        if kind.detail:
            found = await _detailed(service, kind, resources, found, in_full=depth.in_full)
        objects[kind.name] = tuple(found)
    return Live(objects, _dialect(kinds, objects), frozenset(unlisted))


async def _survey(service: Service, kind: Kind) -> list[JSONObject] | None:
    """All objects of the organization, or None where the key or the server has no such list."""
    template = kind.paths.survey or kind.paths.collection
    path = template.format(organization=service.organization)
    try:
        return list(await all_pages(service, path))
    except Forbidden as error:
        if error.lacks_scope:
            raise
        return None
    except NotFound:
        # Without a parent the path is the organization's own: it is unknown, and that is final.
        if kind.parent is None:
            raise
        return None


def _pinned(kind: Kind, resources: Iterable[Resource]) -> frozenset[str]:
    return frozenset(
        each.pinned_id for each in resources if each.address.kind == kind.name and each.pinned_id
    )


async def _hidden(
    service: Service, kind: Kind, wanted: frozenset[str], listed: Sequence[JSONObject]
) -> list[JSONObject]:
    """Objects that are named by id and no list shows, such as exports of hidden types."""
    seen = {str(body.get("id")) for body in listed}
    missing = sorted(wanted - seen)
    read = await asyncio.gather(*(_read(service, kind, each) for each in missing))
    return [body for body in read if body is not None]


async def _one_by_one(
    service: Service,
    kind: Kind,
    resources: Sequence[Resource],
    objects: Mapping[str, tuple[LiveObject, ...]],
    *,
    tried: frozenset[str],
) -> list[JSONObject]:
    """What can be reached without the organization: objects by id, or the lists of parents.

    Whether something is not there can't be told that way, so everything must be pinned.
    """
    if kind.parent is None:
        unpinned = [
            str(each.address)
            for each in resources
            if each.address.kind == kind.name and each.pinned_id is None
        ]
        ids = sorted({*_named_ids(kind, resources), *tried})
        if unpinned or not ids:
            which = f": {', '.join(unpinned)} can't be found by name" if unpinned else ""
            raise Forbidden(
                f"this API key may not list the {kind.collection} of organization "
                f"{service.organization}{which}",
                hint=f"use a key that is not limited, or name each {kind.name} by its id: `id:` in "
                "the files, --project ID for an import",
                status=403,
            )
        bodies = await asyncio.gather(*(_read(service, kind, each) for each in ids))
        return [body for body in bodies if body is not None]
    parents = sorted(
        {each.id for each in objects.get(kind.parent, ())}
        | {each.parent.id for each in resources if each.parent is not None and each.parent.id}
    )
    lists = await asyncio.gather(
        *(all_pages(service, kind.paths.collection.format(parent=parent)) for parent in parents)
    )
    return [body for found in lists for body in found]


def _named_ids(kind: Kind, resources: Iterable[Resource]) -> list[str]:
    """The ids that the files name, as pins or as parents."""
    parents = {each.parent.id for each in resources if each.parent is not None and each.parent.id}
    return sorted(_pinned(kind, resources) | parents)


async def _read(service: Service, kind: Kind, identity: str) -> JSONObject | None:
    """One object in full, None if it is not there."""
    template = kind.paths.survey or kind.paths.collection
    path = template.format(organization=service.organization) + f"{identity}/"
    try:
        answer = await service.send(Request("GET", path, Repeat.SAFE))
    except NotFound:
        return None
    return answer.body if isinstance(answer.body, Mapping) else None


async def _detailed(
    service: Service,
    kind: Kind,
    resources: Sequence[Resource],
    found: Sequence[LiveObject],
    *,
    in_full: Callable[[LiveObject], bool],
) -> list[LiveObject]:
    """The full shape of what a resource could claim; objects on their way out are left out."""
    names, ids = _claimable(kind, resources)

    async def detailed(each: LiveObject) -> LiveObject | None:
        claimable = each.id in ids or each.name.strip().casefold() in names
        if not (claimable or in_full(each)):
            return each
        body = await _read(service, kind, each.id)
        if body is None or kind.pending_deletion(body):
            return None
        return _live_object(kind, body)

    read = await asyncio.gather(*(detailed(each) for each in found))
    return [each for each in read if each is not None]


def _claimable(kind: Kind, resources: Sequence[Resource]) -> tuple[set[str], set[str]]:
    """Names (folded) and ids under which the files could mean an object of this kind."""
    names: set[str] = set()
    ids = set(_named_ids(kind, resources))
    for each in resources:
        if each.address.kind == kind.name:
            names |= {name.strip().casefold() for name in each.lifecycle.renamed_from}
            names.add(each.name.casefold())
        elif each.parent is not None and each.parent.name is not None:
            names.add(each.parent.name.strip().casefold())
    return names, ids


def _live_object(kind: Kind, body: Mapping[str, Any]) -> LiveObject:
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
    """The first that any object tells (trap 46)."""
    for kind in kinds:
        for each in objects[kind.name]:
            dialect = kind.dialect_of(each.body)
            if dialect is not None:
                return dialect
    return None
