"""An event loop on virtual time, in which a service and its clients run.

Where nothing can run, time jumps to the next timer, so that half an hour of retries takes a second,
and the same seed gives the same interleaving. Connections are pairs of sockets: what is written to
one end can be read at the other at once, however busy the machine is. Loopback promises no time.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from tests.support.limits import TIMEOUT

_Result = TypeVar("_Result")
_Protocols = Callable[[], asyncio.BaseProtocol]


class _Selector(selectors.BaseSelector):
    """Selects sockets that are ready; if there are none, it moves the time of its loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._inner = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        waits_for_thread = self._loop.threads and (timeout is None or timeout > 0)
        events = self._inner.select(TIMEOUT if waits_for_thread else 0)
        if not events and timeout != 0:
            if timeout is None or waits_for_thread:
                raise AssertionError("everything waits for something else, and no timer is set")
            self._loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose seconds pass only while all of its tasks wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.threads = 0
        self._served: dict[int, tuple[asyncio.Server, _Protocols]] = {}
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now

    async def create_server(self, protocol_factory: _Protocols, *args: Any, **kwargs: Any) -> Any:
        """Return a server, which gets the connections of this loop to its port."""
        server = await super().create_server(protocol_factory, *args, **kwargs)
        for listening in server.sockets:
            self._served[listening.getsockname()[1]] = (server, protocol_factory)
        return server

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **kwargs: Any
    ) -> Any:
        """Connect to a server of this loop with a pair of sockets, and to others as usual."""
        server, accept = self._served.get(port, (None, None))
        if server is None or not server.is_serving():
            return await super().create_connection(protocol_factory, host, port, **kwargs)
        ours, theirs = socket.socketpair()
        try:
            await self.connect_accepted_socket(accept, theirs)
            return await super().create_connection(protocol_factory, sock=ours)
        except BaseException:  # A request that is cancelled while it connects has no transport yet.
            ours.close()
            theirs.close()
            raise

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Run a function in a thread. Time does not pass meanwhile."""
        future = super().run_in_executor(executor, func, *args)
        self.threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _: object) -> None:
        self.threads -= 1


def run_virtually(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine in a loop of its own on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class LoopClock:
    """The virtual time in seconds, from 0, for the settings of a transport."""

    def __call__(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
