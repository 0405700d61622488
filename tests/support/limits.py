"""How long tests wait for what ends by itself. No test has a shorter limit of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

import pytest

LONG = os.environ.get("LONG_TESTS") == "1"
"""Whether this is the long run (`scripts/test --long`): more and random examples."""
TIMEOUT = 3_600 if LONG else 600
"""Seconds until what does not end fails its test. On a machine without other work nothing takes a
tenth of it: a limit finds what hangs, and says nothing about speed."""
_LOOK = 0.05
"""Seconds between looks at a condition."""


class _Process(Protocol):
    """What is used of `subprocess.Popen`."""

    def kill(self) -> None: ...

    def wait(self, timeout: float) -> int: ...


@contextmanager
def limited() -> Iterator[None]:
    """Fail the test where a block does not end, on systems that have an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def fail(*_: object) -> None:
        pytest.fail(f"no end within {TIMEOUT} seconds")

    former = signal.signal(signal.SIGALRM, fail)
    # The block may be inside of another one.
    left, _ = signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, former)


@contextmanager
def time_limit(process: _Process) -> Iterator[None]:
    """Kill a process that outlives the limit of the block, and fail the test."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(TIMEOUT, expire)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if expired.is_set():
            pytest.fail(f"the process did not end within {TIMEOUT} seconds")


def until(condition: Callable[[], object], process: _Process) -> None:
    """Wait for a condition while a process runs, whose time the caller limits."""
    while not condition():
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_LOOK)
            pytest.fail(f"the process ended before, with {code}")
