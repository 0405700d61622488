"""The use case `rehearse`: apply the plan of now to a copy of the service. Changes nothing.

The copy is the embedded service with live state. It runs on this machine, with placeholders for
secrets, and waits pass in no time.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.applying import execute
from reconciler.client import ClientSettings, Transport
from reconciler.client.placeholders import Placeholders
from reconciler.commands.embedded_service import embedded_service
from reconciler.commands.files import write_private
from reconciler.commands.plan_request import PlanRequest
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.commands.verifying import verify
from reconciler.errors import Interrupted
from reconciler.kinds import all_kinds
from reconciler.model.connection import Connection
from reconciler.model.dialect import Dialect
from reconciler.model.event import Event, Report, Sent
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.plan_options import PlanOptions
from reconciler.model.plan_redaction import redact_report
from reconciler.model.rehearsal import Kill, Rehearsal
from reconciler.model.request import Repeat, Request
from reconciler.model.values import SecretRef
from reconciler.planning.base import Base
from reconciler.planning.copying import EndState, copy_of, end_state, sample
from reconciler.planning.rehearsal import different, problems_of

MOST_KILLS = 50
_SNAPSHOT = "/_emulator/snapshots/start"


class RehearseRequest(Struct, frozen=True):
    """What to rehearse. `kills` is how many runs are killed at most, after different writes."""

    plan: PlanRequest
    kills: int = 0


class Rehearsed(Struct, frozen=True):
    """The result, and the plan."""

    rehearsal: Rehearsal
    planned: PlanResult


async def rehearse(request: RehearseRequest, runtime: Runtime) -> Rehearsed:
    """Make a plan, and apply it to a copy of the service. The service itself is only read.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, GitUnavailable, ServiceError: as for `plan`.
        ReconcilerError: the embedded service did not start.
        Interrupted: a stop was requested.

    """
    session = Session.open(request.plan.workspace, runtime)
    async with session.connected() as transport:
        base = session.base(request.plan)
        plan, live = await session.planned(transport, request.plan.options, base)
        rehearsal = _not_rehearsed(plan, live)
        if not (plan.empty or rehearsal.refusals):
            copy = copy_of(plan, live, all_kinds())
            with _copied_service(copy.seed, rehearsal.dialect) as service:
                stage = _Stage(session, _session_of(session, service), request, plan, live, base)
                rehearsal = await stage.perform(rehearsal)
            estimate = transport.estimate(rehearsal.calls)
            rehearsal = replace(
                rehearsal,
                calls=transport.calls + rehearsal.calls,
                seconds=estimate.seconds,
                limit=None if estimate.limit is None else str(estimate.limit),
                beyond_hour=estimate.beyond_hour,
                assumed=copy.assumed,
            )
        return Rehearsed(rehearsal, PlanResult.of(plan, session, transport))


def _not_rehearsed(plan: Plan, live: Live) -> Rehearsal:
    source = plan.source
    return Rehearsal(
        environment=source.environment,
        base_url=source.base_url,
        organization=source.organization,
        dialect=live.dialect or _likely_dialect(plan),
        dialect_known=live.dialect is not None,
        counts=plan.counts,
        refusals=tuple(refusal for refusal in plan.refusals if not refusal.after_merge),
    )


def _likely_dialect(plan: Plan) -> Dialect:
    """Return the dialect of a server without objects that show it.

    If the plan depends on it, the API key was read: a server of 2026 would have shown itself.
    """
    differing = {kind.name for kind in all_kinds() if kind.differs_by_dialect}
    depends = any(change.address.kind in differing for change in plan.changes)
    return Dialect.V2025 if depends else Dialect.V2026


@contextmanager
def _copied_service(seed: Mapping[str, Any], dialect: Dialect | None) -> Iterator[dict[str, Any]]:
    """Run the embedded service with a seed. The file of the seed exists only until it is read."""
    key = f"phx_{secrets.token_urlsafe(32)}"
    content = orjson.dumps({**seed, "keys": [{"value": key, "scopes": ["*"]}]})
    with tempfile.TemporaryDirectory(prefix="reconciler-rehearsal-") as folder:
        file = Path(folder) / "seed.json"
        write_private(file, content)
        with embedded_service("--seed", str(file), "--dialect", str(dialect)) as service:
            file.unlink()
            yield {**service, "api_key": key}


def _session_of(session: Session, service: Mapping[str, Any]) -> Session:
    """Return the session of the copy: another connection and secrets, no limits, and no waits."""
    time = _Time()
    connection = Connection(
        session.loaded.desired.environment,
        service["base_url"],
        service["organization"],
        SecretRef.of("env", "RECONCILER_API_KEY"),
    )
    given = session.options.client.over(session.loaded.client)
    return replace(
        session,
        options=replace(session.options, client=replace(given, rate=None)),
        loaded=session.loaded.connected_to(connection),
        secrets=Placeholders(service["api_key"]),
        runtime=replace(
            session.runtime,
            listen=lambda _: None,
            client=ClientSettings(clock=time.clock, sleep=time.sleep),
        ),
    )


class _Time(Struct):
    """Time in which a wait takes no time: the clock is moved instead."""

    ahead: float = 0.0

    def clock(self) -> float:
        return monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        end = self.clock() + seconds
        await asyncio.sleep(0)
        # Others that slept at the same time may have moved it already.
        self.ahead += max(0.0, end - self.clock())


class _Killed(BaseException):
    """The end of a run as by a kill: nothing of the program handles it."""


class _Writes(Struct):
    """Counts the writes of a run, and ends it at once after the last one that it may send."""

    last: int | None = None
    labels: list[str] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Sent) and event.method != "GET":
            self.labels.append(f"{event.method} {event.path}")
            if len(self.labels) == self.last:
                raise _Killed


class _Stage(Struct, frozen=True):
    """The rehearsal of one plan: the session of the service, and that of its copy."""

    session: Session
    copy: Session
    request: RehearseRequest
    plan: Plan
    live: Live
    base: Base | None

    async def perform(self, rehearsal: Rehearsal) -> Rehearsal:
        """Return the result of applying the plan, with the calls that the copy took."""
        async with self.copy.connected() as transport:
            await transport.send(Request("POST", _SNAPSHOT, Repeat.AFTER_LOOKING))
            before = transport.calls
            writes = _Writes()
            report = await self._applied(self.plan, self.live, transport, writes)
            calls = transport.calls - before
            verification = await verify(
                self.session, transport, lambda: self._plan_again(transport), report
            )
            if verification.error is not None:
                raise verification.error
            if report.complete:
                # A run that is not complete is not verified.
                calls = transport.calls - before
            result = replace(
                rehearsal,
                problems=problems_of(redact_report(report, self.session.mask)),
                left=tuple(
                    (change.address, change.action)
                    for change in (verification.left.effective if verification.left else ())
                ),
                calls=calls,
                writes=len(writes.labels),
            )
            if not self.request.kills:
                return result
            end = await self._end_state(transport)
        numbers = sample(result.writes, min(self.request.kills, MOST_KILLS))
        kills = [await self._kill(number, end) for number in numbers]
        return replace(result, kills=tuple(kills))

    async def _kill(self, number: int, end: EndState) -> Kill:
        """Kill a run after one of its writes, run again, and compare the end state."""
        writes = _Writes(last=number)
        client = replace(self.copy.options.client, parallelism=1)
        one = replace(self.copy.options, client=client)
        async with replace(self.copy, options=one).connected() as transport:
            await transport.send(Request("POST", f"{_SNAPSHOT}/restore", Repeat.AFTER_LOOKING))
            with suppress(_Killed):
                await self._applied(self.plan, self.live, transport, writes)
        async with self.copy.connected() as transport:
            plan, live = await self._planned(transport, self.request.plan.options)
            await self._applied(plan, live, transport, _Writes())
            problem = different(end, await self._end_state(transport))
        return Kill(number, writes.labels[-1] if writes.labels else "", problem)

    async def _applied(
        self, plan: Plan, live: Live, transport: Transport, writes: _Writes
    ) -> Report:
        """Apply a plan to the copy. Raises Interrupted."""
        transport.listen = writes
        report = await execute(
            plan,
            transport,
            kinds=all_kinds(),
            listen=lambda _: None,
            live=live,
            withdraw=self.session.loaded.policy.withdraw,
        )
        if report.interrupted:
            raise Interrupted("interrupted; nothing was sent to the service")
        transport.listen = None
        return report

    async def _plan_again(self, transport: Transport) -> Plan:
        options = replace(self.request.plan.options, rotate=())
        plan, _ = await self._planned(transport, options)
        return plan

    async def _planned(self, transport: Transport, options: PlanOptions) -> tuple[Plan, Live]:
        options = replace(options, selection=self.plan.selection, planned_before=self.plan.objects)
        return await self.copy.planned(transport, options, self.base)

    async def _end_state(self, transport: Transport) -> EndState:
        live = await self.copy.read(transport, in_full=lambda _: True)
        return end_state(live, all_kinds())
