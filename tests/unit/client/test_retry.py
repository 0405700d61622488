"""Which failures are repeated, after which pause, and what the last one means."""

from __future__ import annotations

import pytest

from reconciler.client.retry import final_error, may_repeat, pause
from reconciler.errors import AmbiguousOutcome, Throttled, Unavailable
from reconciler.model.request import Repeat, Request

READ = Request("GET", "/x/", Repeat.SAFE)
CREATE = Request("POST", "/x/", Repeat.AFTER_LOOKING, body={})
FINAL = Request("POST", "/x/", Repeat.AFTER_LOOKING, body={}, final_codes=frozenset({"too_many"}))


def unsent() -> Unavailable:
    error = Unavailable("can't connect")
    error.sent = False
    return error


@pytest.mark.parametrize(
    ("request_", "error", "repeated"),
    [
        (READ, Throttled("429", status=429), True),
        (CREATE, Throttled("429", status=429), True),
        (CREATE, Throttled("429", status=429, code="too_many"), True),
        (FINAL, Throttled("429", status=429, code="too_many"), False),
        (FINAL, Throttled("429", status=429, code="throttled"), True),
        (CREATE, unsent(), True),
        (CREATE, Unavailable("timeout"), False),
        (CREATE, Unavailable("503", status=503), False),
        (CREATE, Unavailable("503", status=503, code="not_sent"), False),
        (READ, Unavailable("timeout"), True),
        (READ, Unavailable("502", status=502), True),
        (READ, Unavailable("503", status=503), True),
        (READ, Unavailable("504", status=504), True),
        (READ, Unavailable("500", status=500), False),
        (READ, Unavailable("not JSON", status=200), False),
    ],
)
def test_a_request_is_repeated_only_if_that_is_safe_and_may_help(
    request_: Request, error: Throttled | Unavailable, repeated: bool
) -> None:
    assert may_repeat(request_, error) is repeated


def test_pauses_double_up_to_half_a_minute() -> None:
    error = Unavailable("503", status=503)
    longest = [pause(attempt, error, jitter=lambda: 1.0) for attempt in range(1, 9)]
    assert longest == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    shortest = [pause(attempt, error, jitter=lambda: 0.0) for attempt in range(1, 9)]
    assert shortest == [seconds / 2 for seconds in longest]


def test_retry_after_is_honoured_in_full() -> None:
    error = Throttled("429", status=429, retry_after=120.0)
    assert pause(1, error, jitter=lambda: 0.0) == 120.0
    assert pause(4, error, jitter=lambda: 0.5) == 120.5


@pytest.mark.parametrize(
    ("request_", "error", "unknown"),
    [
        (CREATE, Unavailable("timeout"), True),
        (CREATE, Unavailable("500", status=500), True),
        (CREATE, Unavailable("not JSON", status=201), True),
        (CREATE, unsent(), False),
        (CREATE, Throttled("429", status=429), False),
        (READ, Unavailable("timeout"), False),
    ],
)
def test_the_outcome_is_unknown_if_a_create_may_have_taken_effect(
    request_: Request, error: Throttled | Unavailable, unknown: bool
) -> None:
    final = final_error(request_, error)
    assert isinstance(final, AmbiguousOutcome) is unknown
    assert final is error or "outcome unknown" in final.message
