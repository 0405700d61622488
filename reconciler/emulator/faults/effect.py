"""The interface of an effect, and the register of all effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.inputs import BadInput
from reconciler.emulator.world import World


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call that a fault happens to. `proceed` answers as the service does without the fault."""

    request: Request
    world: World
    proceed: Callable[[Request], Awaitable[Response]]

    async def answer(self) -> Response:
        """Answer as without the fault."""
        return await self.proceed(self.request)

    async def take_effect(self, when: str) -> None:
        """Let the call take effect if the fault comes `after` it; the answer is lost."""
        if when == "after":
            await self.answer()


class Effect(Protocol):
    """What happens to a call. The fields of the class are the parameters of a rule.

    Those of the names in `PARAMETERS` are checked for every effect.
    """

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the call."""


_EffectClass = TypeVar("_EffectClass", bound=type[Any])
EFFECTS: dict[str, type[Any]] = {}
"""Every effect by the name that rules use."""


def effect(name: str) -> Callable[[_EffectClass], _EffectClass]:
    """Register a dataclass as the effect of that name."""

    def registered(cls: _EffectClass) -> _EffectClass:
        EFFECTS[name] = cls
        return cls

    return registered


def object_of(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, an empty one for anything else."""
    body = orjson.loads(content) if content else {}
    return body if isinstance(body, dict) else {}


def _check_when(when: str) -> None:
    """Raise BadInput unless it is `before` or `after`, relative to the write."""
    if when not in ("before", "after"):
        raise BadInput("'when' must be 'before' or 'after'")


def _check_seconds(seconds: float) -> None:
    """Raise BadInput for a negative or endless duration."""
    if not 0 <= seconds <= 1_000_000:
        raise BadInput("'seconds' must be between 0 and 1000000")


def _check_status(status: int | None) -> None:
    if status is not None and not 200 <= status <= 599:
        raise BadInput("'status' must be between 200 and 599")


PARAMETERS: Mapping[str, Callable[[Any], None]] = {
    "when": _check_when,
    "seconds": _check_seconds,
    "status": _check_status,
}
"""The checks of the parameters that several effects have."""
