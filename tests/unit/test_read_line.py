"""Test reading an answer from a terminal while the event loop runs."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TextIO

import pytest

from reconciler.commands.screen import read_line
from tests.support.limits import TIMEOUT

pty = pytest.importorskip("pty", reason="needs a terminal")


class LoopOfWindows(asyncio.SelectorEventLoop):
    """An event loop that can't watch a terminal."""

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        raise NotImplementedError


@pytest.fixture(params=[asyncio.SelectorEventLoop, LoopOfWindows])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[int, TextIO]]:
    """Return the end of a terminal that types, and the one that reads."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as terminal:
        yield ours, terminal
    os.close(ours)


def test_the_loop_runs_until_the_line_is_complete(
    loop: asyncio.AbstractEventLoop, pair: tuple[int, TextIO]
) -> None:
    ours, terminal = pair
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        for _ in range(3):
            await asyncio.sleep(0)
            ticks += 1
        os.write(ours, b"yes\n")

    async def ask() -> str:
        line, _ = await asyncio.gather(read_line(terminal), tick())
        return line

    assert loop.run_until_complete(asyncio.wait_for(ask(), TIMEOUT)) == "yes\n"
    assert ticks == 3


def test_a_cancelled_question_leaves_nothing_that_waits(
    loop: asyncio.AbstractEventLoop, pair: tuple[int, TextIO]
) -> None:
    ours, terminal = pair

    async def ask() -> None:
        asking = asyncio.create_task(read_line(terminal))
        await asyncio.sleep(0)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

    loop.run_until_complete(asyncio.wait_for(ask(), TIMEOUT))
    loop.close()
    os.write(ours, b"late\n")
    for thread in threading.enumerate():
        if thread.name == "prompt":
            thread.join(TIMEOUT)


def test_the_end_of_input_ends_the_line_of_the_question(
    loop: asyncio.AbstractEventLoop,
    pair: tuple[int, TextIO],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, terminal = pair

    async def ask() -> str:
        asking = asyncio.create_task(read_line(terminal))
        await asyncio.sleep(0)
        os.write(ours, b"\x04")
        return await asking

    assert loop.run_until_complete(asyncio.wait_for(ask(), TIMEOUT)) == ""
    assert capsys.readouterr().err == "\n"
