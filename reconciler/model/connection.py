"""The connection of an environment, what references may read, and how requests are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from reconciler.model.values import SecretRef, SecretValue

API_KEY = "RECONCILER_API_KEY"
"""The variable of the API key if the configuration does not name another one."""
ADDRESS = {"base_url": "RECONCILER_BASE_URL", "organization": "RECONCILER_ORGANIZATION"}
"""The variables of the other settings of a connection."""
DURATIONS: Mapping[str, float] = {"timeout": 0.1, "max_wait": 0.0, "retry_for": 0.0}
"""The keys that are times, with the smallest valid one in seconds."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)")
_RATE = re.compile(r"([0-9]{1,9})/(.+)")


class Readable(Struct, frozen=True):
    """What references may read: names and folders of lists, and whether commands may run."""

    env: frozenset[str] = frozenset()
    """The names of `env:`."""
    secrets: frozenset[str] = frozenset()
    """The names of `secrets:`."""
    secret_files: tuple[str, ...] = ()
    """The folders of `secret_files:`, absolute or relative to the workspace."""
    allow_exec: bool = False
    """Whether the policy allows `${secret:exec:…}`."""
    strict: bool = False
    """Whether the files that are loaded do not decide themselves: a command without a terminal."""
    reason: str = ""
    """Why what only the loaded files have does not count, if it does not."""


def untrusted(setting: str, reason: str) -> str:
    """Return the message for a setting of the loaded files that does not count."""
    return f"{setting} cannot be trusted here: {reason}"


class Connection(Struct, frozen=True):
    """The service of an environment. The first request resolves `api_key`."""

    environment: str
    base_url: str
    """Without a trailing slash."""
    organization: str
    api_key: SecretRef
    key_text: str = ""
    """The reference to the API key as it is written, empty if that is how it reads."""
    headers: Mapping[str, SecretRef] = {}
    """Sent with every request, for a proxy in front of the service."""

    @property
    def written_key(self) -> str:
        """The reference to the API key as the files write it."""
        return self.key_text or str(self.api_key)


class SecretSettings(Struct, frozen=True):
    """The settings of the workspace for resolving secrets."""

    folder: str
    """The workspace folder, in which relative paths are."""
    allow_exec: bool = False
    """Whether `${secret:exec:…}` is allowed."""
    literals: Mapping[str, SecretValue] = field(default_factory=dict)
    """The secrets that are written in the files, by the argument of their `SecretSource`."""
    trusted: Readable = field(default_factory=Readable)
    """What may be read."""


def is_loopback(host: str) -> bool:
    """Return whether a host name is that of this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Window(Struct, frozen=True):
    """At most `calls` within `seconds`."""

    calls: int
    seconds: float

    def __str__(self) -> str:
        units = {1.0: "a second", 60.0: "a minute", 3_600.0: "an hour"}
        unit = units.get(self.seconds)
        return f"{self.calls} in {self.seconds:g} s" if unit is None else f"{self.calls} {unit}"


class ClientOptions(Struct, frozen=True):
    """The keys of `client:`, and `--rate`; None where nothing is said."""

    parallelism: int | None = None
    """Requests at once."""
    rate: tuple[Window, ...] | None = None
    """The limit of calls, empty for none."""
    timeout: float | None = None
    """Seconds for one request, connecting and the whole response included."""
    max_wait: float | None = None
    """The longest wait, in seconds, that the service may ask for."""
    retry_for: float | None = None
    """Seconds for which a failed request is repeated."""
    insecure_http: bool | None = None
    """Whether to send the key unencrypted to a service that is not on loopback."""

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
