"""Read limit/offset pages, which may move while they are read (docs/service.md, 15.24)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from reconciler.client.transport import Transport
from reconciler.errors import ServiceError
from reconciler.model.request import Repeat, Request

PAGE = 100
"""The service's own page size: a proxy in front of it may cap larger ones."""

_READS = 3


async def all_pages(transport: Transport, path: str) -> list[Mapping[str, Any]]:
    """Return every object of a list once, in the order of the list.

    The first page says how many there are, and the rest is read concurrently. If objects are
    created or deleted meanwhile, pages overlap or skip: where the number of objects differs from
    the count, the list is read again, up to three times.

    Raises ServiceError.
    """
    objects: dict[str, Mapping[str, Any]] = {}
    for _ in range(_READS):
        first = await _page(transport, path, 0)
        offsets = range(PAGE, _count(first), PAGE)
        rest = await asyncio.gather(*(_page(transport, path, offset) for offset in offsets))
        pages = (first, *rest)
        objects = {}
        for page in pages:
            for item in page["results"]:
                objects.setdefault(str(item.get("id")), item)
        if {_count(page) for page in pages} == {len(objects)}:
            break
    return list(objects.values())


async def _page(transport: Transport, path: str, offset: int) -> Mapping[str, Any]:
    query = {"limit": str(PAGE)} | ({"offset": str(offset)} if offset else {})
    page = (await transport.send(Request("GET", path, Repeat.SAFE, query=query))).body
    if isinstance(page, Mapping):
        results = page.get("results")
        if isinstance(results, list) and all(isinstance(item, Mapping) for item in results):
            return page
    raise ServiceError(
        f"GET {path}: the response is not a page of objects",
        hint="check that `base_url` is the address of the API",
    )


def _count(page: Mapping[str, Any]) -> int:
    return int(page.get("count") or 0)
