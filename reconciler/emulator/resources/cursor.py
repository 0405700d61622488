"""Cursor pages: next, previous and results, without a count. A page begins after an item."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.answers import JSONAnswer, link
from reconciler.emulator.clock import parsed, stamp
from reconciler.emulator.refusal import not_found

Mark: TypeAlias = tuple[Any, str]
"""Where an item is in the order: the value that sorts it, and its id."""


def cursor_page(
    request: Request,
    items: Sequence[dict[str, Any]],
    mark: Callable[[dict[str, Any]], Mark],
    *,
    size: int,
    descending: bool,
) -> Response:
    """Return the page of sorted items that the cursor names. Raise Refusal (404) if it is broken.

    Objects that appear at the head of the list later do not shift the pages that follow.
    """
    start = _start(request.query_params.get("cursor"), items, mark, size, descending=descending)
    page = items[start : start + size]
    following = previous = None
    if start + size < len(items):
        following = _link(request, "after", mark(page[-1]))
    if start > 0 and page:
        previous = _link(request, "before", mark(page[0]))
    return JSONAnswer({"next": following, "previous": previous, "results": list(page)})


def ordering_of(request: Request, marks: Mapping[str, Callable[[dict[str, Any]], Mark]]) -> str:
    """Return the ordering: a name, or a name after a minus. An unknown one is `-created_at`."""
    ordering = request.query_params.get("ordering", "")
    return ordering if ordering.removeprefix("-") in marks else "-created_at"


def ordered_page(
    request: Request,
    items: Sequence[dict[str, Any]],
    marks: Mapping[str, Callable[[dict[str, Any]], Mark]],
    *,
    size: int,
) -> Response:
    """Return the page of items that the cursor names, in the order that the request names."""
    ordering = ordering_of(request, marks)
    mark, descending = marks[ordering.removeprefix("-")], ordering.startswith("-")
    ordered = sorted(items, key=mark, reverse=descending)
    return cursor_page(request, ordered, mark, size=size, descending=descending)


def by_creation(item: dict[str, Any]) -> Mark:
    """Return the place of an item in the order of `created_at`."""
    return stamp(parsed(item["created_at"])), item["id"]


def _start(
    cursor: str | None,
    items: Sequence[dict[str, Any]],
    mark: Callable[[dict[str, Any]], Mark],
    size: int,
    *,
    descending: bool,
) -> int:
    """Return the position of the first item of the page."""
    if not cursor:
        return 0
    side, wanted = _read(cursor)
    earlier = 0
    try:
        for item in items:
            position = mark(item)
            if not (position > wanted if descending else position < wanted):
                break
            earlier += 1
    except TypeError:
        raise not_found("Invalid cursor") from None
    if side == "before":
        return max(0, earlier - size)
    return earlier + (earlier < len(items) and mark(items[earlier]) == wanted)


def _read(cursor: str) -> tuple[str, Mark]:
    try:
        side, value, identity = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error, UnicodeError):
        raise not_found("Invalid cursor") from None
    return side, (value, identity)


def _link(request: Request, side: str, position: Mark) -> str:
    token = base64.urlsafe_b64encode(orjson.dumps([side, *position])).decode()
    return link(request, {**dict(request.query_params), "cursor": token})
