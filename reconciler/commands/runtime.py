"""The workspace and the process as use cases see them, and what they return."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.commands.connecting import WorkspaceFiles
from reconciler.diagnostics import Diagnostic
from reconciler.files.yaml.loader import ParsedFiles
from reconciler.model.event import Listener
from reconciler.model.redaction import Mask, masked_in
from reconciler.model.settings import ClientOptions
from reconciler.service.pace import ClientSettings, Stop

_R = TypeVar("_R")


def _now() -> datetime:
    return datetime.now(tz=UTC)  # noqa: TID251 - the only clock of the program


class Runtime(Struct, frozen=True):
    """The environment variables, the clock, the listener to events, and the request to stop.

    `now` returns an aware datetime. `listen` is called with progress, requests and changes.
    `interactive`: the input is a terminal, so a person runs it. `parsed` are files that several
    environments of a run share. `masks` are those of the sessions so far.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], datetime] = _now
    listen: Listener = field(default=lambda _: None)
    stop: Stop = field(default_factory=Stop)
    client: ClientSettings = field(default_factory=ClientSettings)
    interactive: bool = False
    parsed: ParsedFiles | None = None
    masks: list[Mask] = field(default_factory=list)

    def sharing(self) -> Runtime:
        """Return the runtime for several environments: they parse a file once."""
        return replace(self, parsed=ParsedFiles())

    def mask(self, text: str) -> str:
        """Return a text with the known secrets of all sessions masked."""
        for mask in self.masks:
            text = mask(text)
        return text


class Workspace(WorkspaceFiles, frozen=True):
    """One environment of a workspace, and the process that uses it.

    `client` is how requests are made. It takes precedence over the files.
    """

    client: ClientOptions = field(default_factory=ClientOptions)
    runtime: Runtime = field(default_factory=Runtime)

    def masked(self, value: _R) -> _R:
        """Return a value with the known secrets of the sessions so far masked."""
        return masked_in(value, self.runtime.mask)


class Reported(Struct, Generic[_R], frozen=True):
    """A report, warnings about the files, and the number of calls, None if that is not shown."""

    report: _R
    diagnostics: tuple[Diagnostic, ...] = ()
    calls: int | None = None
