"""Send requests over HTTP, with the API key, time-outs, retries and rate limits."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct, field

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
from reconciler.model.event import Event, Listener, Sending, Sent
from reconciler.model.live import Answer, Request
from reconciler.model.settings import Connection
from reconciler.providers.provider import key_flaw_of
from reconciler.service.failures import (
    Attempts,
    Breaker,
    Failure,
    after,
    date_of,
    pause,
    with_path,
)
from reconciler.service.http import Exchange, Received, SecretResolver, open_http
from reconciler.service.pace import ClientSettings, Estimate, Pace, Stop, Waits

if TYPE_CHECKING:
    import httpx

_USUAL_SECONDS = 0.2
"""Seconds for a call, as long as none was made."""
_SKEW = timedelta(minutes=1)
"""How far the clock of this machine may differ from that of the service."""
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_LAST_YEAR = 9000
"""Later dates are no clock's: times after them could not be computed."""


# Without slots, since cached properties need a dict.
class Transport(Struct, dict=True):
    """Sends the requests of one environment."""

    client: httpx.AsyncClient
    connection: Connection
    secrets: SecretResolver
    settings: ClientSettings
    listen: Listener | None = None
    """Gets the events."""
    stop: Stop = field(default_factory=Stop)
    calls: int = 0
    """Counts the requests, repeated ones included."""
    seconds: float = 0.0
    date: tuple[datetime, float] | None = None

    @cached_property
    def _waits(self) -> Waits:
        return Waits(self.stop, self.settings, self.emit)

    @cached_property
    def _breaker(self) -> Breaker:
        return Breaker(self.settings.retry_for)

    @cached_property
    def _places(self) -> asyncio.Semaphore:
        """The calls that may be sent at once."""
        return asyncio.Semaphore(self.settings.parallelism)

    @cached_property
    def _pace(self) -> Pace:
        """The pace of the key. The windows of all connections with it count."""
        windows = self.settings.windows(self.connection.base_url)
        pace = self.settings.paces.setdefault(self._key_digest(), Pace())
        pace.windows = tuple(dict.fromkeys((*pace.windows, *windows)))
        return pace

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
        if self.date is None:
            return local
        date, received = self.date
        current = date + timedelta(seconds=self.clock() - received)
        return local if abs(current - local) <= _SKEW else current

    async def send(
        self, request: Request, *, change_id: str | None = None, not_after: float = inf
    ) -> Answer:
        """Send a request, repeat it if that is safe, and return its answer.

        `change_id` is for the events. `not_after` is a time of the clock: a request that relies on
        what was read is not sent later.

        Raises:
            ServiceError: the service refused (4xx, not repeated), failed or can't be reached.
            AmbiguousOutcome: a write ended without a clear answer.
            GivenUp: the service was given up; nothing was sent.
            Interrupted: a stop was requested, and nothing can have taken effect.
            Expired: its turn came after `not_after`, and nothing can have taken effect.
            SecretUnavailable: the key or a secret of the body can't be resolved.

        """
        attempts = Attempts(request)
        try:
            # A repeat keeps the place: an outage must not leave the outcome of all writes unknown.
            async with self._places:
                answer = await self._sent(attempts, change_id, not_after)
        except ServiceError as error:
            if not isinstance(error, GivenUp):
                self._breaker.ended(error)
            raise
        self._breaker.ended(None)
        return answer

    async def pause(self, seconds: float, reason: str, change_id: str | None = None) -> None:
        """Wait. A wait of over two seconds is an event. Raises Interrupted at a stop."""
        await self._waits.sleep(seconds, reason, change_id)

    def estimate(self, calls: int) -> Estimate:
        """Return how long so many calls will take after those that were sent already."""
        mean = self.seconds / self.calls if self.calls else _USUAL_SECONDS
        interval = mean / self.settings.parallelism
        return self._pace.estimate(calls, now=self.clock(), interval=interval)

    def close(self) -> None:
        """End what waits for a stop."""
        self._waits.close()

    async def _sent(self, attempts: Attempts, change_id: str | None, not_after: float) -> Answer:
        failure: Failure | None = None
        while True:
            try:
                if failure is not None and not after(attempts.request, failure).all_wait:
                    status = failure.status
                    reason = (
                        f"{attempts.request.label} answered {status}, attempt {attempts.count + 1}"
                    )
                    await self.pause(attempts.pause, reason, change_id)
                return await self._attempt(attempts, change_id, not_after)
            except (Throttled, Unavailable) as error:
                failure = error
                too_long = self._wait_after(error, attempts)
                if too_long is not None or not self._repeats(error, attempts):
                    raise self._final(too_long or error, attempts) from None
            except (Interrupted, GivenUp):
                if failure is None:
                    raise
                raise self._final(failure, attempts) from None

    async def _attempt(self, attempts: Attempts, change_id: str | None, not_after: float) -> Answer:
        """Send a request once, when its turn has come."""
        request = attempts.request
        headers = self._headers() | {"Authorization": f"Bearer {self._key()}"}
        content = None
        if request.body is not None:
            content = orjson.dumps(self.secrets.fill(request.body))
            headers["Content-Type"] = "application/json"
        now = await self._pace.turn(self.clock, partial(self._waits.sleep, change_id=change_id))
        self._waits.check()
        self._check_given_up(request, change_id)
        if now > not_after and not attempts.may_have_applied:
            raise Expired(f"{request.label}: not sent, since it had to wait too long")
        attempts.begin(now)
        if request.method != "GET":
            self.settings.sent.append(request.label)
        self.emit(Sending(request.method, request.path, attempts.count, change_id))
        try:
            received = await self._exchanged(attempts, headers, content, change_id)
            body = received.body(request, mask=self.secrets.redactor.detail)
        except ServiceError as caught:
            error = with_path(caught, self.connection.base_url)
            attempts.failed(error)
            self._note(error, attempts)
            raise error from None
        self._note(None, attempts)
        return Answer(received.status, body, attempts.count, attempts.unclear, attempts.sent)

    def _note(self, error: ServiceError | None, attempts: Attempts) -> None:
        """Note how an attempt ended, None for a success."""
        self._breaker.attempted(error, began=attempts.sent, now=self.clock())
        if isinstance(error, Throttled | Unavailable) and after(attempts.request, error).all_wait:
            return
        # A call that was sent before the last pause ended says nothing.
        if attempts.sent >= self._pace.resumes:
            self._pace.failures = 0

    async def _exchanged(
        self,
        attempts: Attempts,
        headers: Mapping[str, str],
        content: bytes | None,
        change_id: str | None,
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
            received = await exchange.run(request, headers=headers, content=content)
            status, problem = received.status, None
            self._note_date(received)
        except ServiceError as error:
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
                    round(seconds, 3),
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
        following = after(attempts.request, error)
        if following.all_wait:
            # Calls that were sent together fail together: they count as one failure.
            self._pace.failures += attempts.sent >= self._pace.resumes
            failures = max(self._pace.failures, 1)
            seconds = pause(failures, error, jitter=self.settings.jitter)
        elif following.at_once:
            seconds = 0.0
        else:
            seconds = pause(attempts.count, error, jitter=self.settings.jitter)
        if attempts.accepts_pause(error, seconds, max_wait=self.settings.max_wait):
            if following.all_wait:
                self._pace.pause(self.clock() + seconds, _reason(error))
            return None
        asked = "the service asks" if error.retry_after is not None else "it needs"
        too_long = (
            f"{asked} to wait {seconds:.0f} s more, "
            f"longer than max_wait ({self.settings.max_wait:g} s)"
        )
        if following.all_wait:
            self._breaker.give_up(too_long)
        return error.reworded(
            f"{error.message}; {too_long}",
            hint="try again later, or raise `client.max_wait` in the workspace file",
        )

    def _repeats(self, error: Failure, attempts: Attempts) -> bool:
        return (
            not self._waits.stopped
            and self.given_up is None
            and attempts.count < after(attempts.request, error).most
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

    def _key_digest(self) -> bytes:
        return hashlib.sha256(self._key().encode()).digest()

    def _key(self) -> str:
        reference = self.connection.api_key
        try:
            key = self.secrets.resolve(reference, for_api_key=True).reveal()
        except SecretUnavailable as error:
            raise error.naming(str(reference), self.connection.written_key) from None
        if (flaw := key_flaw_of(key)) is not None:
            name = f"api_key of environment {self.connection.environment}"
            raise SecretUnavailable(f"{name} {flaw[0]}", hint=flaw[1])
        return key

    def _headers(self) -> dict[str, str]:
        """Return the headers of the configuration. Raises SecretUnavailable."""
        headers = {}
        for name, reference in self.connection.headers.items():
            value = headers[name] = self.secrets.resolve(reference, for_api_key=True).reveal()
            if not _HEADER_VALUE.fullmatch(value):
                raise SecretUnavailable(
                    f"header {name} has characters that no header can have",
                    hint="check for a line break or other text in its value",
                )
        return headers

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


def _reason(error: Failure) -> str:
    """Return why all calls have to wait."""
    reasons = {None: "no response", 429: "rate limit of the service (429)"}
    return reasons.get(error.status, f"service unavailable ({error.status})")


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
