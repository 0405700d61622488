"""How requests are made."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.client.limiter import Limiters
from reconciler.model.client_options import ClientOptions, Window
from reconciler.model.connection import is_loopback

DEFAULT_WINDOWS = (Window(460, 60.0), Window(4_600, 3_600.0))
"""A little below 480 a minute and 4,800 an hour, since others may use the key as well."""


class ClientSettings(Struct, frozen=True):
    """How requests are made. The first five are those of `ClientOptions`.

    rate
        None for the default: DEFAULT_WINDOWS, and no limit for a service on loopback.
    insecure_http
        Whether to send the key unencrypted to a service that is not on loopback.
    clock, sleep, jitter
        Monotonic seconds, waiting, and a number from 0 to 1: parameters, so that no test waits.
    limiters
        The calls of this process, so that connections with one key share its limit.
    """

    parallelism: int = 8
    rate: tuple[Window, ...] | None = None
    timeout: float = 30.0
    max_wait: float = 900.0
    retry_for: float = 300.0
    insecure_http: bool = False
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.SystemRandom().random
    limiters: Limiters = field(default_factory=Limiters)

    def changed_by(self, options: ClientOptions) -> ClientSettings:
        """Return these settings with the options that are given in their place."""
        return replace(self, **options.given())

    def windows(self, base_url: str) -> tuple[Window, ...]:
        """Return the limits of calls to a service."""
        if self.rate is not None:
            return self.rate
        return () if is_loopback(_host_of(base_url)) else DEFAULT_WINDOWS


def _host_of(base_url: str) -> str:
    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""
