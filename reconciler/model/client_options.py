"""How requests are made, as far as the files or the options of a command say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

DURATIONS: Mapping[str, float] = {"timeout": 0.1, "max_wait": 0.0, "retry_for": 0.0}
"""The keys that are times, with the smallest valid one in seconds."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)")
_RATE = re.compile(r"([0-9]{1,9})/(.+)")


class Window(Struct, frozen=True):
    """At most `calls` within `seconds`."""

    calls: int
    seconds: float

    def __str__(self) -> str:
        units = {1.0: "a second", 60.0: "a minute", 3_600.0: "an hour"}
        unit = units.get(self.seconds)
        return f"{self.calls} in {self.seconds:g} s" if unit is None else f"{self.calls} {unit}"


class ClientOptions(Struct, frozen=True):
    """The keys of `client:` and the options of the same names; None where nothing is said.

    parallelism
        Requests at once.
    rate
        The limit of calls, empty for none.
    timeout
        Seconds for one request, connecting and the whole response included.
    max_wait
        The longest wait, in seconds, that the service may ask for.
    retry_for
        Seconds for which a failed request is repeated.
    """

    parallelism: int | None = None
    rate: tuple[Window, ...] | None = None
    timeout: float | None = None
    max_wait: float | None = None
    retry_for: float | None = None

    def over(self, other: ClientOptions) -> ClientOptions:
        """Return these options, and those of `other` where these say nothing."""
        return ClientOptions(**(other.given() | self.given()))

    def given(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        values = asdict(self)
        return {name: value for name, value in values.items() if value is not None}


def duration(name: str, text: str) -> float | None:
    """Return the seconds of a key of `DURATIONS`, written like `30`, `30s`, `5m` or `1h`.

    None for another text, and for a time that is too short.
    """
    seconds = _seconds(text)
    return seconds if seconds is not None and seconds >= DURATIONS[name] else None


def how_to_write(name: str) -> str:
    """Return a hint for an invalid value of a key."""
    if name == "rate":
        return "write calls and seconds, such as 240/60"
    least = DURATIONS[name]
    return "write seconds, or text such as 30s, 5m or 1h" + (
        f", at least {least:g} s" * bool(least)
    )


def rate(text: str) -> tuple[Window, ...] | None:
    """Return the windows of `CALLS/SECONDS` or `off`, None for another text."""
    if text == "off":
        return ()
    match = _RATE.fullmatch(text)
    calls, seconds = (int(match[1]), _seconds(match[2])) if match else (0, None)
    return (Window(calls, seconds),) if calls and seconds else None


def _seconds(text: str) -> float | None:
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else None
