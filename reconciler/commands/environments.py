"""A use case in several environments at once, such as `plan`, `status` and `gaps`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import together
from reconciler.commands.runtime import Runtime
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration
from reconciler.errors import BadUsage, Interrupted, ReconcilerError
from reconciler.model.address import choice, fits_any
from reconciler.model.event import Event, Listener, Noted, Reading
from reconciler.workspace.resource_files import with_lines
from reconciler.workspace.sources import FolderSource
from reconciler.workspace.workspace_file import IMPLICIT_ENVIRONMENT, read_workspace
from reconciler.workspace.yaml.loader import ParsedFiles

_AT_ONCE = 4
"""Environments at once. Each makes as many requests at once as its settings say."""


_R = TypeVar("_R")


class OfEnvironment(Struct, Generic[_R], frozen=True):
    """The result of a use case in an environment, or the error that prevented it."""

    environment: str
    result: _R | None = None
    error: ReconcilerError | None = None


def chosen_environments(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return the environments that names and globs select, in the order of the file.

    Raises BadUsage for one that selects nothing, InvalidConfiguration.
    """
    problems = DiagnosticCollector()
    workspace = read_workspace(FolderSource(folder), problems, folder=folder)
    if problems.failed:
        documents = {workspace.document.file: workspace.document}
        raise InvalidConfiguration(with_lines(problems.in_order(), documents))
    known = workspace.environments or (IMPLICIT_ENVIRONMENT,)
    for name in names:
        if not any(fits_any(environment, (name,)) for environment in known):
            hint = choice(name, known, "environments")
            raise BadUsage(f"unknown environment '{name}'", hint=hint)
    return tuple(environment for environment in known if fits_any(environment, names))


async def in_each(
    work: Callable[[Any, Runtime], Awaitable[_R]],
    request: Any,
    environments: Sequence[str],
    runtime: Runtime,
) -> tuple[OfEnvironment[_R], ...]:
    """Run a use case in every environment: one that fails does not stop the others.

    `request` is that of the use case; its `workspace` gets the environment. Requests with one key
    or organization share their rate limit. Raises Interrupted.
    """
    turns, parsed = asyncio.Semaphore(_AT_ONCE), ParsedFiles()

    async def done(environment: str) -> OfEnvironment[_R]:
        async with turns:
            workspace = replace(request.workspace, environment=environment)
            listen = _naming(environment, runtime.listen)
            world = replace(runtime, listen=listen, parsed=parsed)
            try:
                result = await work(replace(request, workspace=workspace), world)
            except Interrupted:
                raise
            except ReconcilerError as error:
                return OfEnvironment(environment, error=error)
            return OfEnvironment(environment, result)

    return tuple(await together(done(environment) for environment in environments))


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
