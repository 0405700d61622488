"""The use case `preflight`: let the service test destinations, and save nothing.

It is never part of a plan: the service connects to the destination with the real credentials
(docs/service.md, 15.65).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.commands.options import PlanRequest, WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import ReconcilerError, SecretUnavailable, ServiceError
from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.kind import Kind, Variant
from reconciler.model.live import Live, LiveObject
from reconciler.model.naming import Named, Names
from reconciler.model.plan import Plan, Refusal
from reconciler.model.plan_options import PlanOptions
from reconciler.model.preflight import Preflight, PreflightReport
from reconciler.model.resource import Resource
from reconciler.model.values import secret_refs, value_at
from reconciler.operations.destination_tests import count_steps, run_steps
from reconciler.operations.targets import kind_with
from reconciler.planning.bodies import create_body
from reconciler.reading.calls import NotOffered, ObjectCalls

_OPERATION = "run_test_step_new"
_NEW = (Action.CREATE, Action.REPLACE)

Approve = Callable[[int], Awaitable[bool]]
"""Is called with the number of destinations that the service would connect to."""


class PreflightRequest(Struct, frozen=True):
    """Which resources, all without `names`."""

    workspace: WorkspaceOptions
    names: tuple[str, ...] = ()


async def preflight(
    request: PreflightRequest, runtime: Runtime, approve: Approve
) -> PreflightReport:
    """Return the results of the tests.

    Raises InvalidConfiguration, BadUsage, ServiceError, and ReconcilerError without approval.
    """
    session = Session.open(request.workspace, runtime)
    async with session.connected() as transport:
        base = session.base(PlanRequest(request.workspace))
        plan, live = await session.planned(transport, PlanOptions(), base)
        candidates = _chosen(request.names, list(_candidates(session, transport, plan, live)))
        tested = [candidate for candidate in candidates if not candidate.reason]
        if tested and not await approve(len(tested)):
            raise ReconcilerError("not approved; nothing was tested")
        results = await together(candidate.result() for candidate in candidates)
        environment = session.loaded.desired.environment
        return PreflightReport(environment, tuple(results))


class _Candidate(Struct, frozen=True):
    """A resource to test. `reason` says why the service can't test it, "" if it can."""

    session: Session
    calls: ObjectCalls
    resource: Resource
    change: Change
    variant: tuple[str, Variant]
    refusals: tuple[Refusal, ...]

    @property
    def reason(self) -> str:
        """Why the service is not asked."""
        if self.refusals:
            return "the policy refuses its plan"
        if self.calls.live.parent_id is None:
            return f"its {self.calls.kind.parent} does not exist yet"
        if not self.calls.offered(_OPERATION):
            return f"servers of dialect {self.calls.dialect} do not offer tests to API keys"
        return ""

    async def result(self) -> Preflight:
        """Run the tests. Raises ServiceError if the service fails."""
        problems = tuple(self._problems())
        empty = Preflight(self.resource.address, self.resource.name, problems=problems)
        if self.reason or problems:
            return replace(empty, untested=self.reason or "its configuration has problems")
        field, variant = self.variant
        tag = str(value_at(self.resource.spec, (field, variant.tag)))
        try:
            count = await count_steps(self.calls, tag)
            if not count:
                return replace(empty, untested=f"the service has no test for {tag}")
            body = create_body(self.calls.kind, self.resource, self.calls.dialect)
            steps = await run_steps(self.calls, body, count, is_new=self._is_new(tag))
        except (NotOffered, ServiceError) as error:
            return replace(empty, untested=error.message)
        return replace(empty, steps=steps)

    def _is_new(self, tag: str) -> bool:
        """Return whether to test it as a new object: a stored one keeps its type."""
        field, variant = self.variant
        live_tag = value_at(self.calls.live.body, (field, variant.tag))
        return self.change.action in _NEW or live_tag != tag

    def _problems(self) -> Iterator[str]:
        """Yield what can be known without a connection to the destination."""
        yield from (f"{refusal.rule}: {refusal.message}" for refusal in self.refusals)
        for _, ref in secret_refs(self.resource.spec) if not self.refusals else ():
            try:
                self.session.secrets.resolve(ref)
            except SecretUnavailable as error:
                yield error.message


def _candidates(
    session: Session, transport: Transport, plan: Plan, live: Live
) -> Iterator[_Candidate]:
    """Yield every resource that has a destination, in the order of addresses."""
    kind = kind_with(_OPERATION)
    desired = session.loaded.desired
    changes = {
        change.address: change
        for change in plan.changes
        if change.address.kind == kind.name
        if change.action is not Action.DELETE and change.address in desired.resources
    }
    by_id = {item.id: item for item in live.of(kind.name)}
    for address in sorted(changes):
        change = changes[address]
        live_object = by_id.get(change.live_id or "") if change.action not in _NEW else None
        if live_object is None:
            parent_id = change.parent_id
            live_object = LiveObject(kind.name, "", change.name, {}, parent_id)
        yield _Candidate(
            session,
            ObjectCalls(transport, kind, desired.organization, live_object, live.dialect),
            desired.resources[address],
            change,
            _variant_of(kind),
            tuple(refusal for refusal in plan.refusals if address in refusal.addresses),
        )


def _variant_of(kind: Kind) -> tuple[str, Variant]:
    field, variant = next(kind.variants)
    return field.name, variant


def _chosen(texts: tuple[str, ...], candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the resources that texts name, all without texts. Raises BadUsage."""
    names = Names(
        Named.of_resource(item.resource, item.calls.live if item.calls.live.id else None)
        for item in candidates
    )
    chosen = {named.address for text in texts for named in names.named(text)}
    return [item for item in candidates if not texts or item.resource.address in chosen]
