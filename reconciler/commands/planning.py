"""The use case `plan`, for one environment or for several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.client.limits import Estimate
from reconciler.commands.options import PlanRequest
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.diagnostics import Diagnostic, DiagnosticCollector, InvalidConfiguration
from reconciler.errors import BadUsage, Interrupted, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import choice, fits_any
from reconciler.model.event import Event, Listener, Noted, Reading
from reconciler.model.plan import Note, Plan
from reconciler.model.plan_redaction import redact_plan
from reconciler.planning.estimate import calls_of
from reconciler.reading.access import key_may_write
from reconciler.workspace.git.ci import is_job
from reconciler.workspace.parsed_files import ParsedFiles
from reconciler.workspace.resource_files import with_lines
from reconciler.workspace.sources import FolderSource
from reconciler.workspace.workspace_file import IMPLICIT_ENVIRONMENT, read_workspace

_KEY_MAY_WRITE = Note(
    "key-may-write",
    "the API key of this job may write: plan pull requests with a key that only reads",
)


class PlanResult(Struct, frozen=True):
    """A plan with known secrets masked, warnings about the files, and the number of calls.

    `estimate` is what applying it takes.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    calls: int
    estimate: Estimate

    @classmethod
    def of(
        cls, plan: Plan, session: Session, transport: Transport, *, verify: bool = True
    ) -> PlanResult:
        """Return a plan as it may be printed and saved. `verify` plans again after an apply."""
        return cls(
            redact_plan(plan, session.mask),
            session.warnings(plan),
            transport.calls,
            transport.estimate(calls_of(plan, all_kinds(), verify=verify)),
        )


async def plan(
    request: PlanRequest, runtime: Runtime, *, drafts: Mapping[str, str] | None = None
) -> PlanResult:
    """Make a plan. `drafts` are texts that replace or add files, by path.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, GitUnavailable, ServiceError.

    """
    session = Session.open(request.workspace, runtime, drafts=drafts)
    async with session.connected() as transport:
        base = session.base(request)
        planned, _ = await session.planned(transport, request.options, base)
        if is_job(runtime.environ) and await key_may_write(transport):
            planned = replace(planned, notes=(*planned.notes, _KEY_MAY_WRITE))
        return PlanResult.of(await session.named(transport, planned), session, transport)


_AT_ONCE = 4
"""Environments at once. Each makes as many requests at once as its settings say."""


class PlannedEnvironment(Struct, frozen=True):
    """The plan of an environment, or the error that prevented it."""

    environment: str
    result: PlanResult | None = None
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


async def plan_many(
    request: PlanRequest, environments: Sequence[str], runtime: Runtime
) -> tuple[PlannedEnvironment, ...]:
    """Plan every environment. Requests with one key or organization share their rate limit.

    Raises Interrupted.
    """
    turns, parsed = asyncio.Semaphore(_AT_ONCE), ParsedFiles()

    async def planned(environment: str) -> PlannedEnvironment:
        async with turns:
            workspace = replace(request.workspace, environment=environment)
            listen = _naming(environment, runtime.listen)
            world = replace(runtime, listen=listen, parsed=parsed)
            try:
                result = await plan(replace(request, workspace=workspace), world)
            except Interrupted:
                raise
            except ReconcilerError as error:
                return PlannedEnvironment(environment, error=error)
            return PlannedEnvironment(environment, result)

    return tuple(await together(planned(environment) for environment in environments))


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
