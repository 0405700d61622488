"""Wait, run calls at the same time, and stop them when a command is asked to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from msgspec import Struct, field

from reconciler.errors import Interrupted
from reconciler.model.event import Event, Waiting
from reconciler.service.pace import ClientSettings

_SHOWN = 2.0
"""Waits of more seconds are reported."""
GRACE = 5.0
"""Seconds that a stop leaves to requests in flight."""
_Result = TypeVar("_Result")


class Stop(Struct, frozen=True):
    """Whether to stop."""

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing new is sent and waits end; requests in flight get a few seconds."""
    forced: asyncio.Event = field(default_factory=asyncio.Event)
    """Requests in flight are abandoned."""

    def request(self) -> None:
        """Request a stop; the second time force it."""
        if self.requested.is_set():
            self.forced.set()
        self.requested.set()


class Waits(Struct):
    """The waits and deadlines of a transport. Its tasks start with the first of them."""

    stop: Stop
    settings: ClientSettings
    emit: Callable[[Event], None]
    _deadlines: set[asyncio.Timeout] = field(default_factory=set)
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return self.stop.requested.is_set()

    def check(self) -> None:
        """Raise Interrupted after a stop."""
        if self.stopped:
            raise Interrupted("interrupted; this request had no effect")

    async def sleep(self, seconds: float, reason: str, change_id: str | None) -> None:
        """Wait, and report it if it takes long. Raises Interrupted."""
        self.check()
        if seconds > _SHOWN:
            self.emit(Waiting(round(seconds, 3), reason, change_id))
        await self.wait(_slept(self.settings, seconds))

    async def wait(self, awaited: Coroutine[Any, Any, object] | asyncio.Future[None]) -> None:
        """Wait for something. Raise Interrupted at a stop, unless it ended before."""
        task = asyncio.ensure_future(awaited)
        try:
            await asyncio.wait({task, self._watch()[0]}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            else:
                self.check()
        finally:
            task.cancel()

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[None]:
        """Limit the time of a block, also by a stop. Raise TimeoutError."""
        self._watch()
        async with asyncio.timeout(seconds) as timeout:
            self._deadlines.add(timeout)
            try:
                yield
            finally:
                self._deadlines.discard(timeout)

    def close(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def _watch(self) -> list[asyncio.Task[Any]]:
        if not self._tasks:
            self._tasks.append(asyncio.ensure_future(self.stop.requested.wait()))
            self._tasks.append(asyncio.ensure_future(self._shorten_deadlines()))
        return self._tasks

    async def _shorten_deadlines(self) -> None:
        now = asyncio.get_running_loop().time
        await self.stop.requested.wait()
        self._shorten(now() + GRACE)
        await self.stop.forced.wait()
        self._shorten(now())

    def _shorten(self, end: float) -> None:
        for timeout in self._deadlines:
            if not timeout.expired():
                timeout.reschedule(min(timeout.when() or end, end))


async def _slept(settings: ClientSettings, seconds: float) -> None:
    await settings.sleep(seconds)


async def together(calls: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Return the results of calls, in their order.

    The first exception cancels the calls that still run, and is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
