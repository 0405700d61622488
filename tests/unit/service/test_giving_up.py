"""Retries that are shared by all calls, and services that do not come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reconciler.errors import AmbiguousOutcome, GivenUp, Invalid, NotFound, ReconcilerError
from reconciler.model.event import Event, Sent, Waiting
from reconciler.model.live import Answer, Repeat, Request
from reconciler.service.transport import Transport
from tests.support.transport import virtually

READ = Request("GET", "/x/", Repeat.SAFE)
PATCH = Request("PATCH", "/x/1/", Repeat.SAFE, body={})
CREATE = Request("POST", "/x/", Repeat.AFTER_LOOKING, body={})
Handler = Callable[[int], httpx.Response | Exception]


def ok() -> httpx.Response:
    return httpx.Response(200, json={})


def throttled(**headers: str) -> httpx.Response:
    body = {"code": "throttled", "detail": "Request was throttled."}
    return httpx.Response(429, json=body, headers=headers)


class World:
    """A service that answers by the number of the call, counted from 1, after 0.1 s."""

    def __init__(self, answer: Handler, **settings: Any) -> None:
        self.answer = answer
        self.settings = settings
        self.times: list[float] = []
        self.events: list[Event] = []

    async def _handle(self, _: httpx.Request) -> httpx.Response:
        self.times.append(asyncio.get_running_loop().time())
        number = len(self.times)
        await asyncio.sleep(0.1)
        answer = self.answer(number)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self, main: Callable[[Transport], Any]) -> Any:
        return virtually(self._handle, main, listen=self.events.append, **self.settings)

    def send(self, *requests: Request) -> list[Any]:
        """Send requests at once. Return their answers and errors."""

        async def main(transport: Transport) -> list[Any]:
            sends = (transport.send(request, change_id="c") for request in requests)
            return await asyncio.gather(*sends, return_exceptions=True)

        return list(self.run(main))

    def waits(self) -> list[tuple[float, str]]:
        return [
            (round(event.seconds), event.reason)
            for event in self.events
            if isinstance(event, Waiting)
        ]


@pytest.mark.parametrize(
    ("failing", "resumed", "wait"),
    [
        (throttled(**{"Retry-After": "40"}), 40.1, (40, "rate limit of the service (429)")),
        (httpx.Response(503), 0.35, None),
    ],
    ids=["429", "503"],
)
def test_f11_a_failure_of_all_pauses_all_calls(
    failing: httpx.Response, resumed: float, wait: tuple[float, str] | None
) -> None:
    world = World(lambda number: failing if number <= 8 else ok())
    assert all(isinstance(result, Answer) for result in world.send(*[READ] * 30))
    first, later = world.times[:8], world.times[8:]
    assert first == [0.0] * 8
    assert len(later) == 30
    assert min(later) == pytest.approx(resumed)
    assert world.waits()[-1:] == ([] if wait is None else [wait])


def test_too_many_backfills_pause_their_own_call_only() -> None:
    refusal = httpx.Response(429, json={"code": "too_many_concurrent_backfills", "detail": "-"})
    world = World(lambda number: refusal if number == 1 else ok())
    world.send(CREATE, READ, READ)
    assert [round(time, 1) for time in world.times] == [0.0, 0.0, 0.0, 30.1]
    assert world.waits() == [(30, "POST /x/ answered 429, attempt 2")]


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        (httpx.Response(408), 4),
        (httpx.ReadTimeout("late"), 4),
        (httpx.Response(200, text="<html>please log in</html>"), 3),
    ],
)
def test_f11_a_read_is_repeated(answer: httpx.Response | Exception, attempts: int) -> None:
    world = World(lambda number: answer if number < attempts else ok())
    assert world.send(READ)[0].attempts == attempts
    if isinstance(answer, httpx.Response) and answer.is_success:
        (error,) = World(lambda _: answer).send(READ)
        assert "not JSON (after 3 attempts" in str(error)


def test_f11_a_wait_that_is_too_long_ends_the_run() -> None:
    world = World(lambda _: throttled(**{"Retry-After": "86400"}))
    errors = world.send(*[READ] * 20)
    assert len(world.times) == 8
    assert str(errors[0]).startswith(
        "GET /x/: 429: Request was throttled.; the service asks to wait 86400 s"
    )
    assert all(isinstance(error, GivenUp) for error in errors[8:])
    assert "longer than max_wait (900 s)" in errors[8].message


def test_failures_with_a_success_between_do_not_end_the_run() -> None:
    world = World(lambda number: ok() if number % 9 == 0 else httpx.Response(403), parallelism=1)
    world.send(*[CREATE] * 100)
    assert len(world.times) == 100


def test_f11_a_service_that_died_ends_the_run() -> None:
    world = World(lambda number: ok() if number <= 30 else httpx.ConnectError("refused"))
    errors = [error for error in world.send(*[PATCH] * 200) if isinstance(error, Exception)]
    assert len(world.times) <= 30 + 8 * 26
    assert any(isinstance(error, GivenUp) for error in errors)
    assert world.times[-1] <= 320


def test_after_giving_up_reads_outside_changes_are_sent_once() -> None:
    """The run is verified, and unknown outcomes are searched, if the service answers again."""
    world = World(lambda number: httpx.Response(401) if number <= 10 else httpx.Response(502))

    async def main(transport: Transport) -> None:
        for _ in range(10):
            with pytest.raises(ReconcilerError):
                await transport.send(CREATE)
        assert transport.given_up == "10 requests in a row failed (401)"
        for request, change_id in ((CREATE, None), (READ, "c")):
            with pytest.raises(GivenUp):
                await transport.send(request, change_id=change_id)
        with pytest.raises(ReconcilerError, match="502"):
            await transport.send(READ)
        assert transport.calls == 11

    world.run(main)


@pytest.mark.parametrize(
    ("first", "last", "error", "unclear"),
    [
        (httpx.Response(504), 404, NotFound, True),
        (None, 404, NotFound, False),
        (throttled(), 400, Invalid, False),
    ],
)
def test_f12_an_error_after_an_attempt_without_an_answer_says_so(
    first: httpx.Response | None, last: int, error: type[Exception], *, unclear: bool
) -> None:
    delete = Request("DELETE", "/x/1/", Repeat.SAFE)
    (raised,) = World(lambda n: first if first and n == 1 else httpx.Response(last)).send(delete)
    assert isinstance(raised, error)
    assert (raised.attempts, raised.unclear) == (2 if first else 1, unclear)  # type: ignore[attr-defined]


def test_a_create_with_a_redirect_to_no_address_has_an_unknown_outcome() -> None:
    """tests/security has the redirects that are refused."""
    (error,) = World(lambda _: httpx.Response(302, headers={"Location": "https:x"})).send(CREATE)
    assert isinstance(error, AmbiguousOutcome)
    assert "the headers of the response can't be read" in error.message


def test_every_attempt_is_an_event_with_its_number_duration_and_problem() -> None:
    answers: list[httpx.Response | Exception] = [
        httpx.Response(502),
        httpx.ReadError("reset"),
        ok(),
    ]
    world = World(lambda number: answers[number - 1])
    world.send(PATCH)
    lost = "PATCH /x/1/: connection to https://service.example lost (ReadError)"
    sent = [event for event in world.events if isinstance(event, Sent)]
    assert [(event.status, event.attempt, event.change_id, event.error) for event in sent] == [
        (502, 1, "c", None),
        (None, 2, "c", lost),
        (200, 3, "c", None),
    ]
    assert [round(event.seconds, 3) for event in sent] == [0.1, 0.1, 0.1]
    kinds = [type(event).__name__ for event in world.events]
    assert kinds == ["Sending", "Sent"] * 3
