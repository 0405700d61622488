"""Decide when a call may be sent: a turn, room in the rate limits, and no pause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from math import inf, isinf

from msgspec import Struct, field

from reconciler.client.failures import Failure, pause
from reconciler.client.limits import ClientSettings, Delay, Limiter
from reconciler.client.waits import Waits
from reconciler.errors import Throttled
from reconciler.model.event import Waiting


class Permit(Struct):
    """Calls that are held in the rate limits until they are used or released.

    `expires`: a call that could only be sent later, such as after a pause, is not sent.
    """

    calls: int = 0
    expires: float = inf


class Turn(Struct):
    """A place among the calls that are sent now. `reached`: the service may have counted it."""

    began: float = 0.0
    taken: bool = False
    reached: bool = False


class Admission(Struct):
    """Admits the calls of one transport, first come first served."""

    limiters: Sequence[Limiter]
    settings: ClientSettings
    waits: Waits
    _sending: int = 0
    _queue: asyncio.Lock = field(default_factory=asyncio.Lock)
    _holders: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def turn(self, permit: Permit | None, change_id: str | None) -> AsyncIterator[Turn]:
        """Wait for a turn and keep it. A call of a permit waits for nothing but a pause.

        Raises Interrupted.
        """
        turn = Turn()
        held = 1 if permit is not None and permit.calls else 0
        if permit is not None:
            permit.calls -= held
        try:
            if held:
                await self._until(self._pause_delay, change_id)
                self._take(turn, held)
            elif self._queue.locked() or self._delay() is not None:
                await self.waits.wait(self._queued(turn, change_id))
            else:
                self._take(turn)
            yield turn
        finally:
            if turn.taken:
                self._leave(turn)
            elif permit is not None:
                permit.calls += held

    @asynccontextmanager
    async def admitted(self, calls: int, spare: int) -> AsyncIterator[Permit]:
        """Hold so many calls, or as many as the limits let one caller hold; release the rest.

        The limits have room for `spare` calls more then, which anybody may send.
        """
        permit = Permit()
        try:
            if self._is_free(calls, spare):
                self._hold(permit, calls)
            else:
                await self.waits.wait(self._held(permit, calls, spare))
            yield permit
        finally:
            self._change_held(-permit.calls)
            permit.calls = 0

    def pause_after(self, error: Failure, *, began: float) -> float:
        """Return the seconds for which all calls have to wait after a failure."""
        # Calls that were sent together fail together: they count as one failure.
        for limiter in self.limiters:
            limiter.pauses += began >= limiter.resumes
        failures = max(limiter.pauses for limiter in self.limiters)
        return pause(max(failures, 1), error, jitter=self.settings.jitter)

    def pause(self, seconds: float, error: Failure, *, began: float) -> None:
        """Let every call wait, then one go first."""
        now = self.settings.clock()
        reason = _reason(error)
        slower = self._slow_down(error, began, now)
        if slower is not None:
            reason = f"{reason}; other clients use this key, so the rate is halved to {slower}"
            self.waits.emit(Waiting(seconds, reason))
        for limiter in self.limiters:
            limiter.pause(now + seconds, reason)

    def succeeded(self, turn: Turn) -> None:
        """Note a success: after a pause more calls may be sent at once."""
        for limiter in self.limiters:
            limiter.succeed(turn.began)

    def _slow_down(self, error: Failure, began: float, now: float) -> str | None:
        """Halve the rate after a 429 below our own count. Return the new one, None if not so."""
        if not isinstance(error, Throttled):
            return None
        fresh = all(began >= limiter.resumes for limiter in self.limiters)
        if not (fresh and all(limiter.is_shared(now) for limiter in self.limiters)):
            return None
        return str([limiter.halve() for limiter in self.limiters].pop())

    async def _queued(self, turn: Turn, change_id: str | None) -> None:
        async with self._queue:
            await self._until(self._delay, change_id)
            self._take(turn)

    async def _held(self, permit: Permit, calls: int, spare: int) -> None:
        # Holders of calls may need others, so the head of the queue must not wait for held ones.
        async with self._holders:
            await self._until(lambda: self._hold_delay(calls), None)
            async with self._queue:
                await self._until(lambda: self._room_delay(calls, spare), None)
                self._hold(permit, calls)

    def _is_free(self, calls: int, spare: int) -> bool:
        """Return whether so many calls can be held now, and no request waits for any."""
        waiting = self._holders.locked() or self._queue.locked()
        return not (waiting or self._hold_delay(calls) or self._room_delay(calls, spare))

    def _hold(self, permit: Permit, calls: int) -> None:
        permit.calls = 0 if self._hold_delay(calls) else self._holdable(calls)
        self._change_held(permit.calls)

    def _holdable(self, calls: int) -> int:
        return min(limiter.holdable(calls) for limiter in self.limiters)

    def _room_delay(self, calls: int, spare: int) -> Delay | None:
        """Return the wait for calls to hold, None also if a rate that was halved forbids it."""
        return (
            None if self._hold_delay(calls) else self._window_delay(self._holdable(calls + spare))
        )

    async def _until(self, delay_now: Callable[[], Delay | None], change_id: str | None) -> None:
        while (delay := delay_now()) is not None:
            if isinf(delay.seconds):
                await self.waits.wait(self.settings.limiters.change())
            else:
                await self.waits.sleep(delay.seconds, delay.reason, change_id)

    def _delay(self) -> Delay | None:
        busy = Delay(inf) if self._sending >= self.settings.parallelism else None
        return _longest([busy, self._pause_delay(), self._window_delay(1)])

    def _pause_delay(self) -> Delay | None:
        now = self.settings.clock()
        return _longest([limiter.pause_delay(now) for limiter in self.limiters])

    def _window_delay(self, calls: int) -> Delay | None:
        now = self.settings.clock()
        return _longest([limiter.delay(calls, now) for limiter in self.limiters])

    def _hold_delay(self, calls: int) -> Delay | None:
        held = self._holdable(calls)
        return _longest([limiter.hold_delay(held) for limiter in self.limiters])

    def _change_held(self, calls: int) -> None:
        for limiter in self.limiters:
            limiter.held += calls
        self.settings.limiters.changed()

    def _take(self, turn: Turn, held: int = 0) -> None:
        turn.taken, turn.began = True, self.settings.clock()
        self._sending += 1
        for limiter in self.limiters:
            limiter.held -= held
            limiter.sending += 1

    def _leave(self, turn: Turn) -> None:
        now = self.settings.clock()
        self._sending -= 1
        for limiter in self.limiters:
            limiter.end(now, counted=turn.reached)
        self.settings.limiters.changed()


def _reason(error: Failure) -> str:
    """Return why all calls have to wait."""
    reasons = {None: "no response", 429: "rate limit of the service (429)"}
    return reasons.get(error.status, f"service unavailable ({error.status})")


def _longest(delays: Sequence[Delay | None]) -> Delay | None:
    return max(filter(None, delays), key=lambda delay: delay.seconds, default=None)
