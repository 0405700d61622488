"""Limit/offset pages that may move while they are read (service-facts, trap 24)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.client.service import Service
from reconciler.errors import ServiceError
from reconciler.model.request import Repeat, Request

PAGE = 100
"""The service's own page size: what lies in front of it may cap larger ones."""

_READINGS = 3


async def all_pages(service: Service, path: str) -> list[Mapping[str, Any]]:
    """Every object of a list once, in the order of the list.

    The first page tells how many there are, and the rest is read at once. If others create or
    delete meanwhile, pages overlap or skip: when the number of objects is not what was told, the
    list is read again, and what the last reading found is taken.

    Raises ServiceError.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for _ in range(_READINGS):
        first = await _page(service, path, 0)
        count = int(first.get("count") or 0)
        rest = await asyncio.gather(
            *(_page(service, path, offset) for offset in range(PAGE, count, PAGE))
        )
        found = {}
        for page in (first, *rest):
            for each in _results(page, path):
                found.setdefault(str(each.get("id")), each)
        counts = {int(page.get("count") or 0) for page in (first, *rest)}
        if counts == {len(found)}:
            break
    return list(found.values())


async def _page(service: Service, path: str, offset: int) -> Mapping[str, Any]:
    query = {"limit": str(PAGE)} | ({"offset": str(offset)} if offset else {})
    answer = await service.send(Request("GET", path, Repeat.SAFE, query=query))
    if not isinstance(answer.body, Mapping):
        raise _no_page(path)
    return answer.body


def _results(page: Mapping[str, Any], path: str) -> Sequence[Mapping[str, Any]]:
    results = page.get("results")
    if not isinstance(results, list) or not all(isinstance(each, Mapping) for each in results):
        raise _no_page(path)
    return results


def _no_page(path: str) -> ServiceError:
    return ServiceError(
        f"GET {path}: the answer is not a page of objects",
        hint="check that `base_url` is the address of the API",
    )
