"""Bodies of requests, and answers, pages among them, that all resources share."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.clock import parsed, stamp
from reconciler.emulator.refusal import (
    Refusal,
    invalid,
    not_found,
    server_error,
    wrong_media_type,
)

DEFAULT_LIMIT = 100
"""Page size when none is asked for; there is no maximum (service.md, 1.10)."""
_DEEPEST = 200
"""Levels of objects and lists in a body; the service fails at about a thousand."""
_LARGEST = 2**63 - 1
"""What the database can count to: an offset beyond it reads an empty page."""


class JSONAnswer(Response):
    """JSON by orjson."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the JSON of the content."""
        return orjson.dumps(content)


async def body_of(request: Request, *, crash: bool = False) -> dict[str, Any]:
    """Return the JSON object of a request, or the fields of a form. Raise Refusal.

    An empty body is an empty object. `crash` is True for an operation that reads fields of what
    may be no object.
    """
    raw = await request.body()
    if not raw.strip():
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/x-www-form-urlencoded":
        return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
    if media_type != "application/json":
        raise wrong_media_type(media_type or "text/plain")
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        detail = f"JSON parse error - {error}"
        raise Refusal(400, "invalid_request", "parse_error", detail) from None
    if (crash and not isinstance(body, dict)) or _depth(body) > _DEEPEST:
        raise server_error()
    if not isinstance(body, dict):
        raise invalid(None, f"Invalid data. Expected a dictionary, but got {type(body).__name__}.")
    return body


def _depth(value: Any) -> int:
    """Return how deep objects and lists are nested, without a recursion that could fail."""
    depth, level = 0, [value]
    while level:
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        depth += 1
    return depth


def uuid_in(request: Request, name: str) -> str:
    """Return a parameter of the path as a UUID in its usual form. Raise Refusal (404)."""
    try:
        return str(UUID(request.path_params[name]))
    except ValueError:
        raise not_found() from None


def _number(text: str | None, otherwise: int, *, least: int) -> int:
    try:
        number = int(text or "")
    except ValueError:
        return otherwise
    return number if number >= least else otherwise


def page(
    request: Request, count: int, read: Callable[[int, int], Sequence[dict[str, Any]]]
) -> JSONAnswer:
    """Return a limit/offset page; `read` takes limit and offset. Links are absolute."""
    limit = _number(request.query_params.get("limit"), DEFAULT_LIMIT, least=1)
    offset = _number(request.query_params.get("offset"), 0, least=0)
    following = _link(request, limit, offset + limit) if offset + limit < count else None
    before = _link(request, limit, max(0, offset - limit)) if offset > 0 else None
    results = read(min(limit, _LARGEST), min(offset, _LARGEST))
    return JSONAnswer({"count": count, "next": following, "previous": before, "results": results})


def _link(request: Request, limit: int, offset: int) -> str:
    query = {**request.query_params, "limit": str(limit), "offset": str(offset)}
    if offset == 0:
        del query["offset"]
    return link(request, query)


def link(request: Request, query: Mapping[str, str]) -> str:
    """Return the absolute URL of a request with another query, on the request's Host."""
    return str(request.url.replace(query=urlencode(query)))


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
        following = _cursor_link(request, "after", mark(page[-1]))
    if start > 0 and page:
        previous = _cursor_link(request, "before", mark(page[0]))
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
    side, wanted = _read_cursor(cursor)
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


def _read_cursor(cursor: str) -> tuple[str, Mark]:
    try:
        side, value, identity = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error, UnicodeError):
        raise not_found("Invalid cursor") from None
    return side, (value, identity)


def _cursor_link(request: Request, side: str, position: Mark) -> str:
    token = base64.urlsafe_b64encode(orjson.dumps([side, *position])).decode()
    return link(request, {**dict(request.query_params), "cursor": token})
