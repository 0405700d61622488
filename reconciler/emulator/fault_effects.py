"""What a fault does to a call. A new fault is a class with `@effect("name")` here."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode
from uuid import UUID, uuid4

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.clock import Clock, iso
from reconciler.emulator.destinations import merged
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.projects import new_project
from reconciler.emulator.refusal import Refusal
from reconciler.emulator.store import StoredExport
from reconciler.emulator.transport import abort
from reconciler.emulator.world import World


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call that a fault happens to. `proceed` answers as the service does without the fault."""

    request: Request
    world: World
    proceed: Callable[[Request], Awaitable[Response]]

    async def answer(self) -> Response:
        """Answer as without the fault."""
        return await self.proceed(self.request)

    async def take_effect(self, when: str) -> None:
        """Let the call take effect if the fault comes `after` it; the answer is lost."""
        if when == "after":
            await self.answer()


class Effect(Protocol):
    """What happens to a call. The fields of the class are the parameters of a rule.

    Those of the names in `PARAMETERS` are checked for every effect.
    """

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the call."""


_EffectClass = TypeVar("_EffectClass", bound=type[Any])
EFFECTS: dict[str, type[Any]] = {}
"""Every effect by the name that rules use."""


def effect(name: str) -> Callable[[_EffectClass], _EffectClass]:
    """Register a dataclass as the effect of that name."""

    def registered(cls: _EffectClass) -> _EffectClass:
        EFFECTS[name] = cls
        return cls

    return registered


def object_of(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, an empty one for anything else."""
    body = orjson.loads(content) if content else {}
    return body if isinstance(body, dict) else {}


def _check_when(when: str) -> None:
    """Raise BadInput unless it is `before` or `after`, relative to the write."""
    if when not in ("before", "after"):
        raise BadInput("'when' must be 'before' or 'after'")


def _check_seconds(seconds: float) -> None:
    """Raise BadInput for a negative or endless duration."""
    if not 0 <= seconds <= 1_000_000:
        raise BadInput("'seconds' must be between 0 and 1000000")


def _check_status(status: int | None) -> None:
    if status is not None and not 200 <= status <= 599:
        raise BadInput("'status' must be between 200 and 599")


PARAMETERS: Mapping[str, Callable[[Any], None]] = {
    "when": _check_when,
    "seconds": _check_seconds,
    "status": _check_status,
}
"""The checks of the parameters that several effects have."""


_PROXY_PAGE = b"<html><head><title>Bad Gateway</title></head><body>Bad Gateway</body></html>"
_SPACES = b" " * 2**20
_UNSET = object()


@effect("latency")
@dataclass(frozen=True, slots=True)
class Latency:
    """Wait `seconds`, then answer."""

    seconds: float = 1.0

    async def answer(self, exchange: Exchange) -> Response:
        """Answer late."""
        await asyncio.sleep(self.seconds)
        return await exchange.answer()


@effect("error")
@dataclass(frozen=True, slots=True)
class Error:
    """Answer `status`, before or after the write took effect.

    `echo` repeats the body of the request in the message, as some validators do.
    """

    status: int = 500
    when: str = "before"
    code: str = "error"
    detail: str = "A server error occurred."
    echo: bool = False

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with an error in the service's shape."""
        await exchange.take_effect(self.when)
        detail = self.detail
        if self.echo:
            detail = (
                f"{detail} Received: {(await exchange.request.body()).decode(errors='replace')}"
            )
        kind = "server_error" if self.status >= 500 else "validation_error"
        return Refusal(self.status, kind, self.code, detail).response()


@effect("throttle")
@dataclass(frozen=True, slots=True)
class Throttled:
    """Answer 429 (or `status`) with `retry_after`, which is sent as written.

    A number is in seconds, null sends no header, and `{date_in: n}` sends the date in n seconds.
    """

    retry_after: Any = 1
    status: int = 429

    def __post_init__(self) -> None:
        if isinstance(self.retry_after, Mapping):
            seconds = self.retry_after.get("date_in")
            if set(self.retry_after) != {"date_in"} or not isinstance(seconds, int | float):
                raise BadInput("'retry_after' must be a number, text, null or {date_in: seconds}")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer that the caller must wait."""
        value = self.retry_after
        if isinstance(value, Mapping):
            value = _http_date(exchange.world.clock, float(value["date_in"]))
        headers = {} if value is None else {"Retry-After": str(value)}
        return Refusal(
            self.status, "throttled_error", "throttled", "Request was throttled.", headers=headers
        ).response()


@effect("drop")
@dataclass(frozen=True, slots=True)
class Drop:
    """Break the connection, before or after the write took effect."""

    when: str = "before"

    async def answer(self, exchange: Exchange) -> Response:
        """End the connection without an answer."""
        await exchange.take_effect(self.when)
        return dropped(exchange.request)


@effect("hang")
@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer, before or after the write took effect, until the client disconnects."""

    when: str = "before"

    async def answer(self, exchange: Exchange) -> Response:
        """Wait for the client to give up."""
        await exchange.take_effect(self.when)
        return await hung(exchange.request)


@effect("truncate")
@dataclass(frozen=True, slots=True)
class Truncate:
    """Send half of the body, then end the connection."""

    async def answer(self, exchange: Exchange) -> Response:
        """Promise the whole length and send half."""
        response = await exchange.answer()
        body = bytes(response.body)

        async def half() -> AsyncIterator[bytes]:
            yield body[: len(body) // 2]

        return _streamed(response, half(), {"content-length": str(len(body))})


@effect("html")
@dataclass(frozen=True, slots=True)
class Html:
    """Answer with the page of a proxy instead of JSON."""

    status: int = 502
    when: str = "before"

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with HTML."""
        await exchange.take_effect(self.when)
        return Response(_PROXY_PAGE, status_code=self.status, media_type="text/html")


@effect("slow")
@dataclass(frozen=True, slots=True)
class Slow:
    """Send the body in `pieces` over `seconds`."""

    seconds: float = 1.0
    pieces: int = 10

    def __post_init__(self) -> None:
        if self.pieces < 1:
            raise BadInput("'pieces' must be at least 1")

    async def answer(self, exchange: Exchange) -> Response:
        """Send the body with pauses."""
        response = await exchange.answer()
        body = bytes(response.body)
        step = max(1, -(-len(body) // self.pieces))
        pause = self.seconds / max(1, -(-len(body) // step))

        async def slowly() -> AsyncIterator[bytes]:
            for start in range(0, len(body), step):
                await asyncio.sleep(pause)
                yield body[start : start + step]

        return _streamed(response, slowly(), {"content-length": str(len(body))})


@effect("gzip")
@dataclass(frozen=True, slots=True)
class Gzip:
    """Compress the body. `megabytes` of spaces follow the JSON, which stays valid."""

    megabytes: int = 0
    status: int | None = None

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with Content-Encoding: gzip."""
        response = await exchange.answer()
        if self.status is not None:
            response.status_code = self.status
        body = bytes(response.body)

        async def compressed() -> AsyncIterator[bytes]:
            packer = zlib.compressobj(wbits=31)
            yield packer.compress(body)
            for _ in range(self.megabytes):
                yield packer.compress(_SPACES)
                await asyncio.sleep(0)
            yield packer.flush()

        return _streamed(response, compressed(), {"content-encoding": "gzip"})


@effect("body")
@dataclass(frozen=True, slots=True)
class Body:
    """Answer another body with the status of the real answer, or with `status`.

    `value` is any JSON, `text` any text (empty for none), `merge` is merged over the object that
    the service answers. The write takes effect unless `when` is `before`.
    """

    value: Any = _UNSET
    text: str | None = None
    merge: Mapping[str, Any] = field(default_factory=dict)
    status: int | None = None
    when: str = "after"

    def __post_init__(self) -> None:
        if (self.value is not _UNSET) + (self.text is not None) + bool(self.merge) != 1:
            raise BadInput("body: one of 'value', 'text' and 'merge' is required")
        if self.merge and self.when == "before":
            raise BadInput("body: 'merge' needs the answer: 'when' must be 'after'")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the body of the rule."""
        status = 200
        content = b""
        if self.when == "after":
            response = await exchange.answer()
            status, content = response.status_code, bytes(response.body)
        if self.text is not None:
            content = self.text.encode()
        elif self.value is not _UNSET:
            content = orjson.dumps(self.value)
        else:
            content = orjson.dumps({**object_of(content), **self.merge})
        return Response(content, status_code=self.status or status, media_type="application/json")


@effect("other_id")
@dataclass(frozen=True, slots=True)
class OtherId:
    """Answer with the id of another object."""

    async def answer(self, exchange: Exchange) -> Response:
        """Replace `id`: a UUID by another, a number by one far beyond it."""
        response = await exchange.answer()
        body = object_of(bytes(response.body))
        identity = body.get("id")
        if isinstance(identity, int):
            body["id"] = identity + 1_000_000
        elif isinstance(identity, str):
            body["id"] = str(UUID(int=UUID(identity).int ^ 1))
        return JSONAnswer(body, response.status_code)


def dropped(request: Request) -> Response:
    """End the connection. The response is for the log only."""
    abort(request)
    return Response(status_code=499)


async def hung(request: Request) -> Response:
    """Wait until the client disconnects. The response is for the log only."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return Response(status_code=499)


def _http_date(clock: Clock, seconds: float) -> str:
    return format_datetime(clock.now() + timedelta(seconds=seconds), usegmt=True)


def _streamed(
    response: Response, pieces: AsyncIterator[bytes], headers: dict[str, str]
) -> StreamingResponse:
    return StreamingResponse(
        pieces,
        status_code=response.status_code,
        headers={"content-type": "application/json", **headers},
    )


@effect("page")
@dataclass(frozen=True, slots=True)
class Page:
    """Answer a list that is not complete or not consistent.

    cap
        The largest page that the service gives, whatever `limit` asks for.
    count
        What the list says about its length: a number, "omit" for none, "+1" or "-1" for a number
        that is off by so many, or any other JSON.
    repeat, drop
        How many of the first items appear again at the end, and how many of the last are missing.
    """

    cap: int | None = None
    count: Any = _UNSET
    repeat: int = 0
    drop: int = 0

    def __post_init__(self) -> None:
        if self.cap is not None and self.cap < 1:
            raise BadInput("'cap' must be at least 1")
        if self.repeat < 0 or self.drop < 0:
            raise BadInput("'repeat' and 'drop' must not be negative")
        if _is_relative(self.count) and not self.count[1:].isdecimal():
            raise BadInput("'count' must be a number, 'omit', or a difference such as '+1'")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the page with its faults."""
        request = exchange.request
        if self.cap is not None:
            request = await _with_limit(request, self.cap)
        response = await exchange.proceed(request)
        body = object_of(bytes(response.body))
        items = body.get("results")
        if not isinstance(items, list):
            return response
        body["results"] = items[: max(0, len(items) - self.drop)] + items[: self.repeat]
        self._miscount(body)
        return JSONAnswer(body, response.status_code)

    def _miscount(self, body: dict[str, Any]) -> None:
        if self.count is _UNSET:
            return
        if self.count == "omit":
            body.pop("count", None)
        elif _is_relative(self.count):
            body["count"] = max(0, int(body.get("count", 0)) + int(self.count))
        else:
            body["count"] = self.count


@effect("lag")
@dataclass(frozen=True, slots=True)
class Lag:
    """Answer a GET from the state of `seconds` ago, but not from before the rule was set."""

    seconds: float = 5.0

    async def answer(self, exchange: Exchange) -> Response:
        """Answer from the past. Nothing is awaited meanwhile, so no other call reads the past."""
        if exchange.request.method != "GET":
            return await exchange.answer()
        world = exchange.world
        moment = world.clock.now() - timedelta(seconds=self.seconds)
        with world.store.as_of(moment.timestamp()):
            return await exchange.answer()


def _is_relative(count: Any) -> bool:
    return isinstance(count, str) and count[:1] in ("+", "-")


async def _with_limit(request: Request, cap: int) -> Request:
    """Return the same request with `limit` at most the cap."""
    query = dict(request.query_params)
    try:
        limit = min(int(query.get("limit", cap)), cap)
    except ValueError:
        limit = cap
    query["limit"] = str(limit if limit > 0 else cap)
    body = await request.body()

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "query_string": urlencode(query).encode()}, receive)


_ANSWERS = ("error", "drop", "hang")


@effect("late")
@dataclass(frozen=True, slots=True)
class Late:
    """Fail now, and let the write take effect `seconds` later.

    `answer_with` is `error` (with `status`, as a gateway that gave up), `drop` (the connection
    breaks) or `hang` (no answer until the client gives up).
    """

    seconds: float = 5.0
    answer_with: str = "error"
    status: int = 504

    def __post_init__(self) -> None:
        if self.answer_with not in _ANSWERS:
            raise BadInput(f"'answer_with' must be one of {', '.join(_ANSWERS)}")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the failure and defer the work."""
        await exchange.request.body()
        exchange.world.deferred.add(self.seconds, exchange.answer)
        if self.answer_with == "drop":
            return dropped(exchange.request)
        if self.answer_with == "hang":
            return await hung(exchange.request)
        detail = "The upstream server did not answer in time."
        return Refusal(self.status, "server_error", "error", detail).response()


@effect("hidden")
@dataclass(frozen=True, slots=True)
class Hidden:
    """Create now, and show the object `seconds` later, with the `created_at` of its creation.

    With `status` the create answers that error instead of 201.
    """

    seconds: float = 5.0
    status: int | None = None

    async def answer(self, exchange: Exchange) -> Response:
        """Create, hide, and show later."""
        response = await exchange.answer()
        store = exchange.world.store
        identity = _created(response)
        if identity is None:
            return response
        store.set_gone(identity, gone=True)

        async def show() -> None:
            store.set_gone(identity, gone=False)

        exchange.world.deferred.add(self.seconds, show)
        if self.status is None:
            return response
        return Refusal(self.status, "server_error", "error", "A server error occurred.").response()


@effect("twin")
@dataclass(frozen=True, slots=True)
class Twin:
    """Another client makes the same call, `seconds` after this one or just before it.

    A create makes two objects that differ in id and `created_at` only.
    """

    seconds: float = 0.0
    when: str = "after"

    async def answer(self, exchange: Exchange) -> Response:
        """Answer one of two equal calls."""
        await exchange.request.body()
        if self.when == "before":
            await exchange.answer()
            return await exchange.answer()
        response = await exchange.answer()
        exchange.world.deferred.add(self.seconds, exchange.answer)
        await exchange.world.deferred.run_due()
        return response


def _created(response: Response) -> Any:
    if response.status_code != 201:
        return None
    return object_of(bytes(response.body)).get("id")


@effect("edit")
@dataclass(frozen=True, slots=True)
class Edit:
    """Just before the call, another client merges `set` into the object that the path names."""

    set: Mapping[str, Any] = field(default_factory=dict)

    async def answer(self, exchange: Exchange) -> Response:
        """Edit, then answer."""
        self._edit(exchange.world, str(exchange.request.path_params.get("id", "")))
        return await exchange.answer()

    def _edit(self, world: World, identity: str) -> None:
        store, now = world.store, iso(world.clock.now())
        change = dict(self.set)
        export = store.export(identity)
        if export is not None:
            body = {**merged(export.body, change), "last_updated_at": now}
            store.write_export(export.id, body)
            return
        project = store.project(int(identity)) if identity.isdigit() else None
        if project is not None:
            store.write_project(project.id, {**merged(project.body, change), "updated_at": now})


@effect("stale")
@dataclass(frozen=True, slots=True)
class Stale:
    """Before a page other than the first, an object is created at the head of the list, or deleted.

    In a list of projects, which is oldest first, one is added at the end or the first is deleted.
    """

    change: str = "create"

    def __post_init__(self) -> None:
        if self.change not in ("create", "delete"):
            raise BadInput("'change' must be 'create' or 'delete'")

    async def answer(self, exchange: Exchange) -> Response:
        """Shift the list, then answer."""
        request = exchange.request
        if request.query_params.get("offset") not in (None, "0"):
            if request.url.path.rstrip("/").endswith("projects"):
                self._shift_projects(exchange.world, request.path_params.get("organization", ""))
            else:
                self._shift_exports(exchange.world)
        return await exchange.answer()

    def _shift_projects(self, world: World, organization: str) -> None:
        if self.change == "create":
            name = f"Another project {uuid4().hex[:6]}"
            world.store.add_project(organization, new_project(name, iso(world.clock.now())))
        else:
            for project in world.store.projects(organization, limit=1):
                world.store.remove_project(project.id)

    def _shift_exports(self, world: World) -> None:
        store = world.store
        projects = [
            project
            for organization in store.organizations()
            for project in store.project_ids(organization)
        ]
        newest = store.exports(projects, limit=1)
        if self.change == "delete" and newest:
            store.remove_export(newest[0].id)
        elif self.change == "create" and projects:
            now = iso(world.clock.now())
            body = {
                "name": f"Another export {uuid4().hex[:6]}",
                "interval": "hour",
                "destination": {"type": "NoOp", "config": {}, "integration": None},
                "created_at": now,
                "last_updated_at": now,
            }
            store.add_exports([StoredExport(str(uuid4()), projects[0], body)])
