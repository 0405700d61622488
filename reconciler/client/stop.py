"""The request to stop a command: by signals, at two levels."""

from __future__ import annotations

import asyncio

from msgspec import Struct, field


class Stop(Struct, frozen=True):
    """Whether to stop.

    requested
        Nothing new is sent and waits end; requests in flight get a few seconds.
    forced
        Requests in flight are abandoned.
    """

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    forced: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self) -> None:
        """Request a stop; the second time force it."""
        if self.requested.is_set():
            self.forced.set()
        self.requested.set()
