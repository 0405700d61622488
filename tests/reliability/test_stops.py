"""From a signal to the end of the command, in every state in which it waits."""

from __future__ import annotations

import asyncio
import json
import os
import pty
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Any

import pytest

from tests.reliability.processes import Command, environ_of
from tests.reliability.runs import applier
from tests.reliability.scenarios import Scenario, small
from tests.reliability.service import Line, Service, running_service
from tests.support.cli import without_progress
from tests.support.limits import LONG, TIMEOUT

EXPORTS = "*/batch_exports/"
HANG = {"fault": "hang"}
FOREVER = {"fault": "throttle", "retry_after": 800}
UNAVAILABLE = {"fault": "error", "status": 503}
LOST = {"fault": "error", "status": 504}
WAITS: Mapping[str, Mapping[str, Any]] = {
    "planning": {"match": {"method": "GET"}, **HANG},
    "throttled while planning": {"match": {"method": "GET"}, **FOREVER},
    "throttled while applying": {"match": {"method": "POST"}, **FOREVER},
    "hanging create": {"match": {"method": "POST"}, **HANG},
    "hanging update": {"match": {"method": "PATCH"}, **HANG},
    "retries": {"match": {"method": "PATCH"}, **UNAVAILABLE},
    "search": {"match": {"method": "POST"}, **LOST},
}
STATES = (*WAITS, "rate", "verification", "prompt")
SIGNALS = (Signals.SIGINT, Signals.SIGTERM, Signals.SIGHUP)
PATIENT = {"timeout": "1h", "retry_for": "1h"}
"""A process waits longer than its test may take, so that only the signal ends it."""


async def faults_of(
    wait: str, service: Service, scenario: Scenario, folder: Path
) -> list[Mapping[str, Any]]:
    """Write the files, and return the faults that let a run of them wait."""
    scenario.written(folder)
    if wait in ("rate", "prompt"):
        return []
    if wait in WAITS:
        return [WAITS[wait]]
    # The lists that hang are those after the last write of a run without faults.
    user = await applier(service, folder)
    await user.apply()
    calls = user.line.calls
    last = max(n for n, call in enumerate(calls) if call.method != "GET")
    before = sum(call.method == "GET" for call in calls[: last + 1])
    await service.reset()
    return [{"match": {"method": "GET", "from": before + 1}, **HANG}]


async def started(service: Service, wait: str, folder: Path) -> Command:
    """Return a running apply in a state in which it waits."""
    settings = folder / "reconciler.yaml"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "client": PATIENT}))
    words: list[str | Path] = ["apply", "-C", folder]
    words += ["--rate", "3/3600"] if wait == "rate" else []
    line = await service.line()
    if wait == "prompt":
        return (await asking(line, folder))[0]
    command = Command(folder, *words, "--auto-approve", environ=environ_of(line))
    command.start()

    async def is_waiting() -> bool:
        if wait == "rate":
            return line.arrived == 3
        faults = (await service.admin("GET", "faults"))["faults"]
        return bool(faults[0]["fired"])

    await until(is_waiting)
    return command


async def asking(line: Line, folder: Path) -> tuple[Command, int]:
    """Return an apply that asks for approval, and the other end of its terminal."""
    master, other = pty.openpty()
    name, environ = os.ttyname(other), environ_of(line)
    command = Command(folder, "apply", "-C", folder, environ=environ, terminal=name)
    command.start()
    os.set_blocking(master, False)
    printed = b""

    async def is_asking() -> bool:
        nonlocal printed
        with suppress(BlockingIOError):
            printed += os.read(master, 10_000)
        return b"[y/N]" in printed

    await until(is_asking)
    return command, master


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return once a condition holds."""
    async with asyncio.timeout(TIMEOUT):
        while not await condition():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "states"),
    [(number, STATES if LONG else STATES[nth::3]) for nth, number in enumerate(SIGNALS)],
    ids=[number.name for number in SIGNALS],
)
def test_f5_a_signal_ends_every_wait(
    number: Signals, states: Sequence[str], tmp_path: Path
) -> None:
    """All states at once: they wait. Short runs send one of the signals in each state."""

    async def ended(wait: str) -> tuple[str, int]:
        async with running_service(small().seed) as service:
            folder = tmp_path / wait
            await service.fail(*await faults_of(wait, service, small(), folder))
            command = await started(service, wait, folder)
            command.signal(number)
            code = await command.ended()
            if wait in ("planning", "prompt"):
                assert not [it for it in await service.requests() if it["method"] != "GET"]
            if wait == "planning":
                assert without_progress(command.printed()).strip() == "interrupted"
            return wait, code

    async def run() -> list[tuple[str, int]]:
        return await asyncio.gather(*(ended(wait) for wait in states))

    assert dict(asyncio.run(run())) == dict.fromkeys(states, 130)


def test_f5_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    async def run() -> int:
        async with running_service(small().seed) as service:
            await service.fail(*await faults_of("hanging create", service, small(), tmp_path))
            command = await started(service, "hanging create", tmp_path)
            command.signal(Signals.SIGINT)

            async def is_stopping() -> bool:
                return "Stopping" in command.printed()

            await until(is_stopping)
            command.signal(Signals.SIGINT)
            return await command.ended()

    assert asyncio.run(run()) == 130


def test_f6_an_answer_at_the_prompt_after_another_apply_creates_nothing(tmp_path: Path) -> None:
    async def run() -> tuple[int, int]:
        scenario = small()
        async with running_service(scenario.seed) as service:
            files = scenario.written(tmp_path)
            line = await service.line()
            waiting, master = await asking(line, files)
            another = await service.line()
            words = ("apply", "-C", files, "--auto-approve")
            applied = Command(tmp_path, *words, environ=environ_of(another))
            assert await applied.run() == 0, applied.printed()
            before = await service.state()
            os.write(master, b"y\n")
            code = await waiting.ended()
            assert not any(call.method == "POST" for call in line.calls)
            assert await service.state() == before
            return code, len(line.calls)

    code, calls = asyncio.run(run())
    assert calls > 0
    assert code in (3, 4)
