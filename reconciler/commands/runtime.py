"""What use cases get, the process as far as they see it, and what those of reports return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, field

from reconciler.client import ClientSettings, Stop
from reconciler.diagnostics import Diagnostic
from reconciler.model.event import Listener
from reconciler.model.redaction import Mask

if TYPE_CHECKING:
    from reconciler.workspace.yaml.loader import ParsedFiles


_R = TypeVar("_R")


class Runtime(Struct, frozen=True):
    """The environment variables, the clock, the listener to events, and the request to stop.

    `now` returns an aware datetime. `interactive`: the input is a terminal, so a person runs it.
    `parsed` are the files that the environments of one run share. `masks` are those of the
    sessions so far.
    """

    environ: Mapping[str, str]
    now: Callable[[], datetime]
    listen: Listener = field(default=lambda _: None)
    stop: Stop = field(default_factory=Stop)
    client: ClientSettings = field(default_factory=ClientSettings)
    interactive: bool = False
    parsed: ParsedFiles | None = None
    masks: list[Mask] = field(default_factory=list)

    def mask(self, text: str) -> str:
        """Return a text with the known secrets of all sessions masked."""
        for mask in self.masks:
            text = mask(text)
        return text


class Reported(Struct, Generic[_R], frozen=True):
    """A report, warnings about the files, and the number of calls, None if that is not shown."""

    report: _R
    diagnostics: tuple[Diagnostic, ...] = ()
    calls: int | None = None
