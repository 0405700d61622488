"""Concurrent calls: results in order, and the first error ends the rest."""

from __future__ import annotations

import asyncio

import pytest

from reconciler.service.pace import together


def test_results_are_in_the_order_of_the_calls() -> None:
    async def call(number: int) -> int:
        await asyncio.sleep(0 if number else 0.001)
        return number

    async def run() -> list[int]:
        return await together(call(number) for number in range(3))

    assert asyncio.run(run()) == [0, 1, 2]


def test_the_first_error_cancels_the_rest_and_is_raised() -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("first")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def run() -> None:
        await together([wait(), fail(), wait()])

    with pytest.raises(ValueError, match="first"):
        asyncio.run(run())
    assert ended == ["cancelled", "cancelled"]
