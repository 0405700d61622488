"""Signals: SIGINT, SIGTERM and SIGHUP interrupt a command, or stop a run in order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from reconciler.errors import ExitCode

if TYPE_CHECKING:
    from reconciler.service.pace import Stop

_T = TypeVar("_T")

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_CLEAN_UP_SECONDS = 2.0
"""Time to close connections and remove temporary files after a signal."""


def interrupt_on_signals() -> None:
    """Let every signal raise KeyboardInterrupt, so that it ends a command with a message."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _handled():
        signal.signal(number, _interrupt)


def run(work: Awaitable[_T]) -> _T:
    """Return the result of some work. A signal cancels it, and raises KeyboardInterrupt.

    The second signal ends the process.
    """
    # asyncio takes 50 ms to import, and every command imports this module.
    import asyncio

    async def cancellable() -> _T:
        task, is_requested = asyncio.current_task(), False

        def cancel() -> None:
            nonlocal is_requested
            if is_requested:
                os._exit(ExitCode.INTERRUPTED)
            is_requested = True
            _limit_clean_up()
            if task is not None:
                task.cancel()

        _call_on_signals(cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        interrupt_on_signals()


def stop_on_signals(stop: Stop) -> None:
    """Let signals request a stop of the run in this event loop; the second one forces it."""
    _call_on_signals(stop.request)


def _call_on_signals(callback: Callable[[], object]) -> None:
    """Call a function in the running event loop at every signal."""
    import asyncio

    loop = asyncio.get_running_loop()
    _current.callback = callback
    for number in _handled():
        try:
            loop.add_signal_handler(number, _current)
        except NotImplementedError:
            # The event loop of Windows.
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(_current))


class _Current:
    """Calls the function for signals. One that arrived before the last change calls the new one."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] = lambda: None

    def __call__(self) -> None:
        self.callback()


_current = _Current()


def _handled() -> list[signal.Signals]:
    """Return the signals to handle: `nohup` starts a process with SIGHUP ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    for further in _handled():
        signal.signal(further, _exit_at_once)
    _limit_clean_up()
    raise KeyboardInterrupt


def _limit_clean_up() -> None:
    """End the process soon: a thread that resolves a host name can't be cancelled."""
    watchdog = threading.Timer(_CLEAN_UP_SECONDS, os._exit, [int(ExitCode.INTERRUPTED)])
    watchdog.daemon = True
    watchdog.start()


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    del number, frame
    os._exit(ExitCode.INTERRUPTED)
