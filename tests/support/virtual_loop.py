"""An event loop whose time jumps to the next timer, for tests that wait long without waiting."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing: what it would wait is added to the time."""

    elapsed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("the test waits for something that never happens")
        self.elapsed += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.elapsed


def run_virtually(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine that does no real I/O. `asyncio.sleep` and time-outs take no time."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main)


class LoopClock:
    """The virtual time in seconds, from 0, for the settings of a transport."""

    def __call__(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
