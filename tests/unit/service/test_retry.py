"""Which failures are repeated, after which pause, and what the last one means."""

from __future__ import annotations

from math import inf

import pytest

from reconciler.errors import AmbiguousOutcome, Throttled, Unavailable
from reconciler.model.live import Repeat, Request
from reconciler.service.failures import Attempts, Failure, after, pause

READ = Request("GET", "/x/", Repeat.SAFE)
PATCH = Request("PATCH", "/x/1/", Repeat.SAFE, body={})
DELETE = Request("DELETE", "/x/1/", Repeat.SAFE)
CREATE = Request("POST", "/x/", Repeat.AFTER_LOOKING, body={})


def unsent() -> Unavailable:
    error = Unavailable("can't connect")
    error.sent = False
    return error


STEPS = Request("DELETE", "/x/1/", Repeat.IN_STEPS)


@pytest.mark.parametrize(
    ("error", "others", "steps", "create", "all_wait"),
    [
        (Throttled("429", status=429), inf, inf, inf, True),
        (Throttled("429", status=429, code="throttled"), inf, inf, inf, True),
        (Throttled("429", status=429, code="too_many_concurrent_backfills"), inf, inf, inf, False),
        (unsent(), inf, inf, inf, True),
        (Unavailable("no response"), inf, inf, 1, True),
        (Unavailable("503", status=503), inf, inf, 1, True),
        (Unavailable("503", status=503, code="not_sent"), inf, inf, 1, True),
        *(
            (Unavailable("failed", status=status), inf, inf, 1, False)
            for status in (408, 502, 504, 520, 521, 522, 523, 524)
        ),
        (Unavailable("500", status=500), inf, 60, 1, False),
        (Unavailable("not JSON", status=201), 3, 3, 1, False),
        (Unavailable("501", status=501), 1, 1, 1, False),
    ],
)
def test_the_table_of_what_is_repeated(
    error: Failure, others: float, steps: float, create: float, all_wait: bool
) -> None:
    table = [(READ, others), (PATCH, others), (DELETE, others), (STEPS, steps), (CREATE, create)]
    for request, most in table:
        following = after(request, error)
        assert (following.most, following.all_wait) == (most, all_wait)
        assert following.at_once is (request is STEPS and error.status == 500)


def test_pauses_double_up_to_half_a_minute() -> None:
    error = Unavailable("503", status=503)
    longest = [pause(attempt, error, jitter=lambda: 1.0) for attempt in range(1, 9)]
    assert longest == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    shortest = [pause(attempt, error, jitter=lambda: 0.0) for attempt in range(1, 9)]
    assert shortest == [seconds / 2 for seconds in longest]
    assert pause(10_000, error, jitter=lambda: 1.0) == 30.0


def test_retry_after_is_honoured_in_full() -> None:
    error = Throttled("429", status=429, retry_after=120.0)
    assert pause(1, error, jitter=lambda: 0.0) == 120.0
    assert pause(4, error, jitter=lambda: 0.5) == 120.5


def test_f11_a_service_that_asks_for_no_time_again_and_again_is_asked_less_and_less() -> None:
    error = Throttled("429", status=429, retry_after=0.0)
    pauses = [pause(count, error, jitter=lambda: 0.0) for count in (1, 2, 3, 9)]
    assert pauses == [0.25, 0.5, 1.0, 15.0]


def test_a_429_without_retry_after_waits_half_a_minute_then_twice_as_long() -> None:
    error = Throttled("429", status=429)
    assert [pause(count, error, jitter=lambda: 0.0) for count in (1, 2, 3)] == [30, 60, 120]


def attempted(request: Request, *errors: Failure, seconds: float = 1.0) -> Attempts:
    """Return the state after attempts that failed, each after so many seconds."""
    attempts = Attempts(request)
    for number, error in enumerate(errors):
        attempts.begin(number * seconds)
        attempts.failed(error)
    return attempts


@pytest.mark.parametrize(
    ("request_", "errors", "unknown"),
    [
        (CREATE, [Unavailable("timeout")], True),
        (CREATE, [Unavailable("500", status=500)], True),
        (CREATE, [Unavailable("not JSON", status=201)], True),
        (CREATE, [unsent()], False),
        (CREATE, [Throttled("429", status=429)], False),
        (READ, [Unavailable("timeout")], False),
        (PATCH, [Unavailable("timeout")], True),
        (PATCH, [unsent(), unsent()], False),
        (PATCH, [Unavailable("504", status=504), unsent()], True),
        (PATCH, [Unavailable("504", status=504), Throttled("429", status=429)], True),
    ],
)
def test_the_outcome_is_unknown_if_an_attempt_of_a_write_may_have_taken_effect(
    request_: Request, errors: list[Failure], unknown: bool
) -> None:
    final = attempted(request_, *errors).final(errors[-1], now=48.0)
    assert isinstance(final, AmbiguousOutcome) is unknown
    assert ("outcome unknown" in final.message) is unknown
    assert (type(final) is type(errors[-1])) is not unknown
    assert (final.attempts, final.unclear) == (len(errors), unknown)


def test_the_final_error_says_the_attempts_and_the_time() -> None:
    errors = [Unavailable("GET /x/: 503", status=503) for _ in range(6)]
    final = attempted(READ, *errors).final(errors[-1], now=48.4)
    assert final.message == "GET /x/: 503 (after 6 attempts in 48 s)"


def test_retries_end_after_retry_for_and_waits_after_max_wait() -> None:
    error = Unavailable("503", status=503)
    attempts = attempted(READ, error)
    assert attempts.wait(error, 10.0, max_wait=1.0)
    assert attempts.in_time(error, now=290.0, retry_for=300.0)
    assert not attempts.in_time(error, now=291.0, retry_for=300.0)
    asked = Unavailable("503", status=503, retry_after=100.0)
    assert not attempts.wait(asked, 100.0, max_wait=99.0)
    assert attempts.wait(asked, 100.0, max_wait=100.0)
    assert attempts.in_time(asked, now=300.0, retry_for=300.0)


def test_the_waits_for_a_rate_limit_are_added_up_and_do_not_count_as_retries() -> None:
    error = Throttled("429", status=429)
    attempts = attempted(READ, error)
    assert [attempts.wait(error, 30.0, max_wait=89.0) for _ in range(3)] == [True, True, False]
    assert attempts.in_time(error, now=9_999.0, retry_for=1.0)
