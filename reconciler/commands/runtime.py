"""The process as use cases see it, what they return, and one in several environments at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.client import ClientSettings, Stop, together
from reconciler.commands.loading import raise_errors
from reconciler.diagnostics import Diagnostic, DiagnosticCollector, OfEnvironment
from reconciler.errors import BadUsage, Interrupted, ReconcilerError
from reconciler.model.address import choice, fits_any
from reconciler.model.event import Event, Listener, Noted, Reading
from reconciler.model.redaction import Mask
from reconciler.model.text import IMPLICIT_ENVIRONMENT
from reconciler.workspace.sources import FolderSource
from reconciler.workspace.workspace_file import read_workspace
from reconciler.workspace.yaml.loader import ParsedFiles

_R = TypeVar("_R")
_AT_ONCE = 4
"""Environments at once. Each makes as many requests at once as its settings say."""


class Shared(Struct, frozen=True):
    """What the environments of one run share: files that are parsed."""

    parsed: ParsedFiles = field(default_factory=ParsedFiles)


class Runtime(Struct, frozen=True):
    """The environment variables, the clock, the listener to events, and the request to stop.

    `now` returns an aware datetime. `interactive`: the input is a terminal, so a person runs it.
    `shared` is None unless a run has several environments. `masks` are those of the sessions so
    far.
    """

    environ: Mapping[str, str]
    now: Callable[[], datetime]
    listen: Listener = field(default=lambda _: None)
    stop: Stop = field(default_factory=Stop)
    client: ClientSettings = field(default_factory=ClientSettings)
    interactive: bool = False
    shared: Shared | None = None
    masks: list[Mask] = field(default_factory=list)

    def sharing(self) -> Runtime:
        """Return the runtime for several environments: they parse a file once."""
        return replace(self, shared=Shared())

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


async def in_each(
    work: Callable[[Any, Runtime], Awaitable[_R]],
    request: Any,
    names: Sequence[str],
    runtime: Runtime,
) -> tuple[OfEnvironment[_R], ...]:
    """Run a use case in the environments that names and globs select, in the order of the file.

    One that fails does not stop the others. `request` is that of the use case; its `workspace` gets
    the environment. Requests with one key or organization share their rate limit.

    Raises BadUsage for a name that selects nothing, InvalidConfiguration, Interrupted.
    """
    turns, sharing = asyncio.Semaphore(_AT_ONCE), runtime.sharing()

    async def done(environment: str) -> OfEnvironment[_R]:
        async with turns:
            workspace = replace(request.workspace, environment=environment)
            listen = _naming(environment, runtime.listen)
            world = replace(sharing, listen=listen)
            try:
                result = await work(replace(request, workspace=workspace), world)
            except Interrupted:
                raise
            except ReconcilerError as error:
                return OfEnvironment(environment, error=error, exit_code=error.exit_code)
            return OfEnvironment(environment, result)

    return tuple(await together(map(done, _selected(request.workspace.folder, names))))


def _naming(environment: str, listen: Listener) -> Listener:
    """Return a listener that names the environment in what is read and noted."""

    def named(event: Event) -> None:
        match event:
            case Reading(collection):
                listen(replace(event, collection=f"{environment}: {collection}"))
            case Noted(message):
                listen(Noted(f"{environment}: {message}"))
            case _:
                listen(event)

    return named


def _selected(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    problems = DiagnosticCollector()
    workspace = read_workspace(FolderSource(folder), problems, folder=folder)
    raise_errors(problems, workspace.document)
    known = workspace.environments or (IMPLICIT_ENVIRONMENT,)
    globs = [name for name in names if name not in known]
    for glob in globs:
        if not any(fits_any(environment, (glob,)) for environment in known):
            hint = choice(glob, known, "environments")
            raise BadUsage(f"unknown environment '{glob}'", hint=hint)
    return tuple(name for name in known if name in names or fits_any(name, globs))
