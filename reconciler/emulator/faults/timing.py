"""Faults of time: writes that take effect, or become visible, later than their answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from reconciler.emulator.faults.answering import dropped, hung
from reconciler.emulator.faults.effect import Exchange, effect, object_of
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.refusal import Refusal

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
        store.hide(identity)

        async def show() -> None:
            store.show(identity)

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
