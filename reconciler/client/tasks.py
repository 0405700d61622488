"""Run calls concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


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
