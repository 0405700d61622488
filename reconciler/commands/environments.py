"""Run a use case in several environments at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from reconciler.commands.runtime import Workspace
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration, OfEnvironment
from reconciler.errors import BadUsage, Interrupted, ReconcilerError
from reconciler.files.loading import with_lines
from reconciler.files.sources import FolderSource
from reconciler.files.workspace_file import read_workspace
from reconciler.model.event import Event, Listener, Noted, Reading
from reconciler.model.text import IMPLICIT_ENVIRONMENT, choice, fits_any
from reconciler.service.pace import together

_R = TypeVar("_R")
_AT_ONCE = 4
"""Environments at once. Each makes as many requests at once as its settings say."""


async def in_each(
    work: Callable[[Workspace], Awaitable[_R]], workspace: Workspace, names: Sequence[str]
) -> tuple[OfEnvironment[_R], ...]:
    """Run a use case in the environments that names and globs select, in the order of the file.

    One that fails does not stop the others. Requests with one key or organization share their rate
    limit.

    Raises BadUsage for a name that selects nothing, InvalidConfiguration, Interrupted.
    """
    turns, sharing = asyncio.Semaphore(_AT_ONCE), workspace.runtime.sharing()

    async def done(environment: str) -> OfEnvironment[_R]:
        async with turns:
            runtime = replace(sharing, listen=_naming(environment, sharing.listen))
            try:
                result = await work(replace(workspace, environment=environment, runtime=runtime))
            except Interrupted:
                raise
            except ReconcilerError as error:
                return OfEnvironment(environment, error=error, exit_code=error.exit_code)
            return OfEnvironment(environment, result)

    results = await together(map(done, _selected(workspace.folder, names)))
    # One may have read a secret of another.
    return workspace.masked(tuple(results))


def _naming(environment: str, listen: Listener) -> Listener:
    """Return a listener that names the environment in what is read and noted."""

    def named(event: Event) -> None:
        match event:
            case Reading(collection):
                listen(replace(event, collection=f"{environment}: {collection}"))
            case Noted(message):
                listen(replace(event, message=f"{environment}: {message}"))
            case _:
                listen(event)

    return named


def _selected(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    problems = DiagnosticCollector()
    workspace = read_workspace(FolderSource(folder), problems, folder=folder)
    if problems.failed:
        documents = {workspace.document.file: workspace.document}
        raise InvalidConfiguration(with_lines(problems.in_order(), documents))
    known = workspace.environments or (IMPLICIT_ENVIRONMENT,)
    globs = [name for name in names if name not in known]
    for glob in globs:
        if not any(fits_any(environment, (glob,)) for environment in known):
            hint = choice(glob, known, "environments")
            raise BadUsage(f"unknown environment '{glob}'", hint=hint)
    return tuple(name for name in known if name in names or fits_any(name, globs))
