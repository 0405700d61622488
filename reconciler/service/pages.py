"""Read limit/offset lists completely or not at all (service.md, 1.10 and 15.24).

Pages may move while they are read, and a server may give fewer objects than asked. So pages are
followed by what arrived, and a list counts only if it agrees with its own `count`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.errors import IncompleteList, Invalid, InvalidResponse
from reconciler.model.live import Repeat, Request, id_text
from reconciler.model.text import json_shown, shown_in
from reconciler.model.values import JSON, JSONObject
from reconciler.service.pace import together
from reconciler.service.transport import Transport

PAGE = 100
"""The service's own page size: a proxy in front of it may cap larger ones."""
LARGE_PAGE = 500
"""The page size of lists with more than `LARGE_LIST` objects, if the server gives so many."""
LARGE_LIST = 1_000
MOST_OBJECTS = 200_000
"""A longer list is an error: reading it would take hours."""
_MOST_PAGES = 4_000
_AHEAD = 16
"""How many pages are requested at once."""

_PAUSES = (0.5, 2.0)
"""Seconds before the second and the third reading."""


async def complete_list(
    transport: Transport, path: str, *, on_page: Callable[[int, int], None] = lambda *_: None
) -> list[JSONObject]:
    """Return every object of a list, in the order of the list.

    A list is complete if the last page has no next one, ids are distinct, and every page gives the
    number of objects as `count`. Otherwise it is read again, up to three times in all. `on_page` is
    called with the objects read so far and `count`.

    Raises:
        IncompleteList: three readings were incomplete.
        InvalidResponse: an answer is not a page of objects with ids.
        ServiceError: as for any request.

    """
    label = _request(path, 0, PAGE).label
    for pause in (*_PAUSES, None):
        items, problem = await _Reader(transport, path, on_page).read()
        if problem is None:
            return items
        if pause is not None:
            await transport.pause(pause, f"{label}: incomplete list, reading it again")
    raise IncompleteList(
        f"{label}: incomplete list in {len(_PAUSES) + 1} readings: {problem}",
        hint="run it again when no other client creates or deletes these objects; if it persists, "
        "the service or a proxy in front of it returns wrong lists",
    )


class _Page(Struct, frozen=True):
    items: list[JSONObject]
    count: int
    has_next: bool


class _Reader(Struct):
    transport: Transport
    path: str
    on_page: Callable[[int, int], None]
    arrived: int = 0

    async def read(self) -> tuple[list[JSONObject], str | None]:
        """Read all pages once. Return the objects, and why they are incomplete, None if not."""
        used = [await self._page(0, PAGE)]
        at = len(used[0].items)
        ahead: dict[int, _Page] = {}
        if used[0].has_next and used[0].count > LARGE_LIST and at == PAGE:
            ahead[at] = await self._large_page(at)
        while used[-1].has_next and used[-1].items and at < used[-1].count:
            if len(used) == _MOST_PAGES:
                raise invalid(
                    _request(self.path, at, PAGE).label,
                    f"the list does not end: {at} objects in {_MOST_PAGES} pages",
                )
            if at not in ahead:
                ahead = await self._pages(at, used[-1])
            used.append(ahead[at])
            at += len(used[-1].items)
        items = [item for page in used for item in page.items]
        return items, _problem(items, used)

    async def _pages(self, at: int, last: _Page) -> dict[int, _Page]:
        """Return the next pages by offset, if the server gives as many objects as in the last."""
        size = len(last.items)
        offsets = range(at, last.count, size)[:_AHEAD]
        pages = await together(self._page(offset, size) for offset in offsets)
        return dict(zip(offsets, pages, strict=True))

    async def _large_page(self, offset: int) -> _Page:
        """Return a large page, or one of the usual size from a server that refuses large ones."""
        try:
            return await self._page(offset, LARGE_PAGE)
        except Invalid:
            return await self._page(offset, PAGE)

    async def _page(self, offset: int, limit: int) -> _Page:
        request = _request(self.path, offset, limit)
        page = _page_of((await self.transport.send(request)).body, request.label)
        self.arrived += len(page.items)
        self.on_page(min(self.arrived, page.count), page.count)
        return page


def _request(path: str, offset: int, limit: int) -> Request:
    query = {"limit": str(limit)} | ({"offset": str(offset)} if offset else {})
    return Request("GET", path, Repeat.SAFE, query=query)


def page_of(body: JSON, label: str) -> tuple[JSONObject, list[JSONObject], str | None]:
    """Return a page, its objects, and the address of the next one. Raises InvalidResponse."""
    results = body.get("results") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(results, list):
        raise invalid(label, "the response is not a page of objects")
    for number, item in enumerate(results, 1):
        if not isinstance(item, dict):
            raise invalid(label, f"item {number} is {json_shown(item)}, an object was expected")
    following = body.get("next")
    if following is not None and not isinstance(following, str):
        raise invalid(label, f"next is {shown_in(body, 'next')}, an address or null was expected")
    return body, results, following


def _page_of(body: JSON, label: str) -> _Page:
    """Return the body of a page with every type checked. Raises InvalidResponse."""
    page, results, following = page_of(body, label)
    for number, item in enumerate(results, 1):
        if id_text(item.get("id")) is None:
            shown = shown_in(item, "id")
            raise invalid(label, f"item {number} has the id {shown}, a number or text was expected")
    count = page.get("count")
    if isinstance(count, bool) or not isinstance(count, int):
        raise invalid(label, f"count is {shown_in(page, 'count')}, a number was expected")
    if not 0 <= count <= MOST_OBJECTS:
        raise invalid(label, f"count is {count}, a number from 0 to {MOST_OBJECTS} was expected")
    if "next" not in page:
        raise invalid(label, "next is missing, an address or null was expected")
    return _Page(results, count, has_next=following is not None)


def _problem(items: list[JSONObject], pages: list[_Page]) -> str | None:
    """Return why a reading is incomplete, None if it is complete."""
    counts = dict.fromkeys(page.count for page in pages)
    count = pages[-1].count
    if len(counts) > 1:
        listed = " then ".join(map(str, list(counts)[:3]))
        return f"the list changed while it was read, count was {listed}"
    if len(items) != count:
        return f"{len(items)} of {count} objects"
    if pages[-1].has_next:
        return f"a next page after {count} of {count} objects"
    if distinct := len(items) - len({str(item["id"]) for item in items}):
        return f"{distinct} of {count} objects appear twice"
    return None


def invalid(label: str, problem: str) -> InvalidResponse:
    """Return the error for an answer of another form."""
    return InvalidResponse(
        f"{label}: {problem}",
        hint="run it again; if it persists, check that `base_url` is the address of the API",
    )
