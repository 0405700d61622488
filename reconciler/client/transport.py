"""Send requests over HTTP, with the API key, time-outs, retries and rate limits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from math import isinf
from typing import TYPE_CHECKING, TypeVar

import orjson
from msgspec import Struct, field

from reconciler.client.admission import Admission, Permit, Turn
from reconciler.client.exchange import Exchange, Received, SecretResolver, open_http
from reconciler.client.failures import (
    Attempts,
    Breaker,
    Failure,
    concerns_all,
    date_of,
    may_repeat,
    pause,
    with_path,
)
from reconciler.client.limits import ClientSettings, Estimate, estimate
from reconciler.client.waits import Stop, Waits
from reconciler.errors import (
    Expired,
    GivenUp,
    Interrupted,
    ReconcilerError,
    SecretUnavailable,
    ServiceError,
    Throttled,
    Unavailable,
)
from reconciler.model.connection import Connection
from reconciler.model.event import Event, Listener, Sending, Sent
from reconciler.model.request import Answer, Request

if TYPE_CHECKING:
    import httpx

_T = TypeVar("_T")
_KEY = re.compile(r"[!-~]+")
_USUAL_SECONDS = 0.2
"""Seconds for a call, as long as none was made."""
_SKEW = timedelta(minutes=1)
"""How far the clock of this machine may differ from that of the service."""
_LAST_YEAR = 9000
"""Later dates are no clock's: times after them could not be computed."""


# Without slots, since cached properties need a dict.
class Transport(Struct, dict=True):
    """Sends the requests of one environment. `calls` counts them, repeated ones included.

    Events go to `listen`. `_reader` is the transport of the last reading that it shares.
    """

    client: httpx.AsyncClient
    connection: Connection
    secrets: SecretResolver
    settings: ClientSettings
    listen: Listener | None = None
    stop: Stop = field(default_factory=Stop)
    calls: int = 0
    seconds: float = 0.0
    _admission: Admission | None = None
    date: tuple[datetime, float] | None = None
    _reader: Transport | None = None

    @cached_property
    def _waits(self) -> Waits:
        return Waits(self.stop, self.settings, self.emit)

    @cached_property
    def _breaker(self) -> Breaker:
        return Breaker(self.settings.retry_for)

    @property
    def given_up(self) -> str | None:
        """Why requests are not sent any more: no change, and nothing twice. None if they are."""
        return self._breaker.reason

    def clock(self) -> float:
        """Return the monotonic time in seconds."""
        return self.settings.clock()

    def now(self, local: datetime) -> datetime:
        """Return the time of the service, by its first `Date` header.

        It is `local`, the time of this machine, without one and if both differ by up to a minute.
        """
        known = self.date or (self._reader.date if self._reader is not None else None)
        if known is None:
            return local
        date, received = known
        current = date + timedelta(seconds=self.clock() - received)
        return local if abs(current - local) <= _SKEW else current

    async def send(
        self, request: Request, *, change_id: str | None = None, permit: Permit | None = None
    ) -> Answer:
        """Send a request, repeat it if that is safe, and return its answer.

        `change_id` is for the events. With a `permit`, the first attempt waits for no rate limit.

        Raises:
            ServiceError: the service refused (4xx, not repeated), failed or can't be reached.
            AmbiguousOutcome: a write ended without a clear answer.
            GivenUp: the service was given up; nothing was sent.
            Interrupted: a stop was requested, and nothing can have taken effect.
            Expired: the permit expired, and nothing can have taken effect.
            SecretUnavailable: the key or a secret of the body can't be resolved.

        """
        attempts = Attempts(request)
        try:
            answer = await self._sent(attempts, change_id, permit)
        except ServiceError as error:
            if not isinstance(error, GivenUp):
                self._breaker.ended(error)
            raise
        self._breaker.ended(None)
        return answer

    @asynccontextmanager
    async def admitted(self, calls: int, *, spare: int = 0) -> AsyncIterator[Permit]:
        """Wait until the rate limits have room for so many calls, and hold them for `send`.

        At most half of a limit is held: of a small one fewer, and `send` waits for the others. Do
        not ask for more while calls are held. After them there is room for `spare` calls more, at
        most half of a limit in all. Raises Interrupted.
        """
        async with self._admitting().admitted(calls, spare) as permit:
            yield permit

    async def once(self, what: str, read: Callable[[], Awaitable[_T]]) -> _T:
        """Return a reading, shared with the other environments of a report that use the key."""
        readings = self.settings.readings
        if readings is None:
            return await read()

        async def read_here() -> tuple[_T, Transport]:
            return await read(), self

        key = (self.connection.base_url, self._key_digest(), what)
        reading, self._reader = await readings.once(key, read_here)
        return reading

    async def pause(self, seconds: float, reason: str, change_id: str | None = None) -> None:
        """Wait. A wait of over two seconds is an event. Raises Interrupted at a stop."""
        await self._waits.sleep(seconds, reason, change_id)

    def estimate(self, calls: int) -> Estimate:
        """Return how long so many calls will take after those that were sent already."""
        timed = self if self.calls or self._reader is None else self._reader
        mean = timed.seconds / timed.calls if timed.calls else _USUAL_SECONDS
        return estimate(
            self._admitting().limiters,
            calls,
            now=self.clock(),
            interval=mean / self.settings.parallelism,
        )

    def close(self) -> None:
        """End what waits for a stop."""
        self._waits.close()

    async def _sent(
        self, attempts: Attempts, change_id: str | None, permit: Permit | None
    ) -> Answer:
        failure: Failure | None = None
        while True:
            try:
                if failure is not None and not concerns_all(failure):
                    status = failure.status
                    reason = (
                        f"{attempts.request.label} answered {status}, attempt {attempts.count + 1}"
                    )
                    await self.pause(attempts.pause, reason, change_id)
                return await self._attempt(attempts, change_id, permit)
            except (Throttled, Unavailable) as error:
                failure = error
                too_long = self._wait_after(error, attempts)
                if too_long is not None or not self._repeats(error, attempts):
                    raise self._final(too_long or error, attempts) from None
            except (Interrupted, GivenUp):
                if failure is None:
                    raise
                raise self._final(failure, attempts) from None

    async def _attempt(
        self, attempts: Attempts, change_id: str | None, permit: Permit | None
    ) -> Answer:
        """Send a request once, when its turn has come."""
        request = attempts.request
        headers = {"Authorization": f"Bearer {self._key()}"}
        content = None
        if request.body is not None:
            content = orjson.dumps(self.secrets.fill(request.body))
            headers["Content-Type"] = "application/json"
        async with self._admitting().turn(permit, change_id) as turn:
            self._waits.check()
            self._check_given_up(request, change_id)
            repeats = attempts.may_have_applied
            check = None if permit is None or repeats else self._expiry(request, permit)
            if check is not None:
                check()
            attempts.begin(turn.began)
            self.emit(Sending(request.method, request.path, attempts.count, change_id))
            turn.reached = True
            try:
                received = await self._exchanged(attempts, headers, content, change_id, check)
                body = received.body(request, mask=self.secrets.redactor.detail)
            except ServiceError as caught:
                error = with_path(caught, self.connection.base_url)
                attempts.failed(error)
                turn.reached = not isinstance(error, Unavailable) or error.sent
                self._note(error, turn)
                raise error from None
            self._note(None, turn)
            return Answer(received.status, body, attempts.count, attempts.unclear, attempts.sent)

    def _note(self, error: ServiceError | None, turn: Turn) -> None:
        """Note how an attempt ended, None for a success."""
        self._breaker.attempted(error, began=turn.began, now=self.clock())
        if not (isinstance(error, Throttled | Unavailable) and concerns_all(error)):
            self._admitting().succeeded(turn)

    async def _exchanged(
        self,
        attempts: Attempts,
        headers: Mapping[str, str],
        content: bytes | None,
        change_id: str | None,
        check: Callable[[], None] | None,
    ) -> Received:
        """Send a request, and report how that ended."""
        request = attempts.request
        exchange = Exchange(
            self.client, self.connection.base_url, self.settings.timeout, self._waits
        )
        self.calls += 1
        status: int | None = None
        problem: str | None = "cancelled"
        try:
            received = await exchange.run(request, headers=headers, content=content, check=check)
            status, problem = received.status, None
            self._note_date(received)
        except (ServiceError, Expired) as error:
            problem = error.message
            raise
        else:
            return received
        finally:
            seconds = self.clock() - attempts.sent
            self.seconds += seconds
            self.emit(
                Sent(
                    request.method,
                    request.path,
                    status,
                    attempts.count,
                    seconds,
                    change_id,
                    problem,
                )
            )

    def _note_date(self, received: Received) -> None:
        date = date_of(received.headers.get("date")) if self.date is None else None
        if date is not None and date.year < _LAST_YEAR:
            self.date = date, self.clock()

    def _wait_after(self, error: Failure, attempts: Attempts) -> Failure | None:
        """Let this call wait after a failure, or all calls where it concerns all.

        Return the error of a wait that would be too long.
        """
        everybody = concerns_all(error)
        if everybody:
            seconds = self._admitting().pause_after(error, began=attempts.sent)
        elif attempts.is_step(error):
            seconds = 0.0
        else:
            seconds = pause(attempts.count, error, jitter=self.settings.jitter)
        if attempts.wait(error, seconds, max_wait=self.settings.max_wait):
            if everybody:
                self._admitting().pause(seconds, error, began=attempts.sent)
            return None
        asked = "the service asks" if error.retry_after is not None else "it needs"
        too_long = (
            f"{asked} to wait {seconds:.0f} s more, "
            f"longer than max_wait ({self.settings.max_wait:g} s)"
        )
        if everybody:
            self._breaker.give_up(too_long)
        return error.reworded(
            f"{error.message}; {too_long}",
            hint="try again later, or raise `client.max_wait` (--max-wait)",
        )

    def _repeats(self, error: Failure, attempts: Attempts) -> bool:
        return (
            not self._waits.stopped
            and self.given_up is None
            and may_repeat(attempts.request, error, attempt=attempts.count)
            and attempts.in_time(error, now=self.clock(), retry_for=self._breaker.patience)
        )

    def _final(self, error: Failure, attempts: Attempts) -> ReconcilerError:
        """Return what the last failure means."""
        if self._waits.stopped and not attempts.may_have_applied:
            return Interrupted("interrupted; this request had no effect")
        return attempts.final(error, now=self.clock())

    def _check_given_up(self, request: Request, change_id: str | None) -> None:
        """Raise GivenUp if the service was given up. The run may still be verified."""
        if self.given_up is not None and (change_id is not None or request.method != "GET"):
            raise GivenUp(
                f"{request.label}: not sent: {self.given_up}",
                hint="fix the cause, then run the command again",
            )

    def _expiry(self, request: Request, permit: Permit) -> Callable[[], None] | None:
        """Return a check that the permit has not expired, None if it never does."""

        def check() -> None:
            if self.clock() > permit.expires:
                raise Expired(f"{request.label}: not sent, since it had to wait too long")

        return None if isinf(permit.expires) else check

    def _admitting(self) -> Admission:
        """Return the admission to the limits of the key, and of the organization on its host."""
        if self._admission is None:
            settings, connection = self.settings, self.connection
            windows = settings.windows(connection.base_url)
            scopes = (self._key_digest(), (connection.base_url, connection.organization))
            limiters = [settings.limiters.of(scope, windows) for scope in scopes]
            self._admission = Admission(limiters, settings, self._waits)
        return self._admission

    def _key_digest(self) -> bytes:
        return hashlib.sha256(self._key().encode()).digest()

    def _key(self) -> str:
        reference = self.connection.api_key
        try:
            key = self.secrets.resolve(reference, for_api_key=True).reveal()
        except SecretUnavailable as error:
            raise error.naming(str(reference), self.connection.written_key) from None
        if not _KEY.fullmatch(key):
            raise SecretUnavailable(
                f"api_key of environment {self.connection.environment} contains whitespace or "
                "characters that no key has",
                hint="check for a line break or quotes in its value",
            )
        return key

    def emit(self, event: Event) -> None:
        """Report an event."""
        if self.listen is not None:
            self.listen(event)

    @contextmanager
    def reporting_to(self, listen: Listener) -> Iterator[None]:
        """Report to another listener, as long as a run lasts."""
        before, self.listen = self.listen, listen
        try:
            yield
        finally:
            self.listen = before


@asynccontextmanager
async def open_transport(
    connection: Connection,
    *,
    secrets: SecretResolver,
    settings: ClientSettings,
    listen: Listener | None = None,
    stop: Stop | None = None,
) -> AsyncIterator[Transport]:
    """Yield a transport whose connections are closed at the end."""
    async with open_http(connection.base_url, settings) as client:
        transport = Transport(
            client, connection, secrets, settings, listen=listen, stop=stop or Stop()
        )
        try:
            yield transport
        finally:
            transport.close()
