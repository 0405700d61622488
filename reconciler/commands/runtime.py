"""The runtime of the use cases: the process as far as they see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconciler.client import ClientSettings, Stop
from reconciler.model.event import Listener

if TYPE_CHECKING:
    from reconciler.workspace.parsed_files import ParsedFiles


class Runtime(Struct, frozen=True):
    """The environment variables, the clock, the listener to events, and the request to stop.

    `now` returns an aware datetime. `interactive`: the input is a terminal, so a person runs it.
    `parsed` are the files that the environments of one run share.
    """

    environ: Mapping[str, str]
    now: Callable[[], datetime]
    listen: Listener = field(default=lambda _: None)
    stop: Stop = field(default_factory=Stop)
    client: ClientSettings = field(default_factory=ClientSettings)
    interactive: bool = False
    parsed: ParsedFiles | None = None
