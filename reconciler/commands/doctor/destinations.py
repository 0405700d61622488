"""The tests of destinations that `doctor NAME` lets the service run.

The service really connects to the destination (service.md, 11). Nothing is saved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from msgspec import Struct

from reconciler.commands.doctor.checks import Check, Health
from reconciler.commands.runtime import Workspace
from reconciler.commands.session import Session
from reconciler.commands.targets import kind_with
from reconciler.errors import (
    BadUsage,
    InvalidResponse,
    NotFound,
    ReconcilerError,
    SecretUnavailable,
    ServiceError,
)
from reconciler.model.kind import Action
from reconciler.model.live import LiveObject
from reconciler.model.plan import Change, Refusal
from reconciler.model.policy import PlanOptions
from reconciler.model.resource import Resource
from reconciler.model.values import Path, mapping_of, secret_refs, value_at
from reconciler.planning.compare import create_body
from reconciler.planning.integrations import resolved
from reconciler.planning.match import Match
from reconciler.planning.select import Named, Names, check_clear
from reconciler.service.access import missing_feature
from reconciler.service.calls import NotOffered, ObjectCalls
from reconciler.service.failures import ADDON
from reconciler.service.transport import Transport
from reconciler.service.waits import together

_OPERATION = "run_test_step_new"
_NEW = (Action.CREATE, Action.REPLACE)
_HEALTH = {"passed": Health.FINE, "skipped": Health.WARNING, "failed": Health.FAILED}
"""By the status of a step. A failure is a 200, too (service.md, 15.65)."""
Approve = Callable[[int], Awaitable[bool]]
"""Is called with the number of destinations that the service would connect to."""


async def destination_checks(
    workspace: Workspace, names: tuple[str, ...], approve: Approve
) -> list[Check]:
    """Return a check for each step that the service ran, up to the first failure of each resource.

    Raises BadUsage for unknown names.
    """
    try:
        session = Session.open(workspace)
        async with session.connected() as transport:
            tests = await _chosen(session, transport, names)
            count = sum(not test.reason for test in tests)
            if count and not await approve(count):
                return [Check.failed("destinations", "not approved; nothing was tested")]
            return [check for of in await together(test.run() for test in tests) for check in of]
    except BadUsage:
        raise
    except ReconcilerError as error:
        return [Check.of("destinations", error)]


class _Test(Struct, frozen=True):
    """The test of a resource. `lacking` is a paid feature that its organization lacks."""

    session: Session
    calls: ObjectCalls
    resource: Resource
    change: Change
    refusals: tuple[Refusal, ...]
    lacking: str | None

    @property
    def reason(self) -> str:
        """Why the service can't test it, "" if it can."""
        if self.refusals:
            return "the policy refuses its plan"
        if self.calls.live.parent_id is None:
            return f"its {self.calls.kind.parent} does not exist yet"
        if not self.calls.offered(_OPERATION):
            return f"servers of dialect {self.calls.dialect} do not offer tests to API keys"
        return ""

    async def run(self) -> list[Check]:
        """Return a check for each problem, or for each step."""
        name = str(self.resource.address)
        if problems := [Check.failed(name, problem) for problem in self._problems()]:
            return problems
        only = "only the files, the policy and the secrets were checked"
        if self.reason:
            return [Check.warning(name, f"not tested: {self.reason}; {only}")]
        try:
            return [check async for check in self._steps(name)] or [
                Check.warning(name, f"not tested: the service has no test for {self._tag}; {only}")
            ]
        except (NotOffered, ServiceError) as error:
            return [Check.warning(name, f"not tested: {error.message}; {only}")]

    def _problems(self) -> Iterator[str]:
        """Yield what can be known without a connection to the destination."""
        yield from (f"{refusal.rule}: {refusal.message}" for refusal in self.refusals)
        if self.lacking is not None:
            yield f"the organization lacks the feature {self.lacking}: {ADDON}"
        for _, ref in secret_refs(self.resource.spec) if not self.refusals else ():
            try:
                self.session.secrets.resolve(ref)
            except SecretUnavailable as error:
                yield error.message

    @property
    def _tag_path(self) -> Path:
        field, variant = self.calls.kind.variants[0]
        return field.name, variant.tag

    @property
    def _tag(self) -> str:
        """The type of its destination."""
        return str(value_at(self.resource.spec, self._tag_path))

    async def _steps(self, name: str) -> AsyncIterator[Check]:
        """Yield a check for each step up to the first failure, none for a type without a test.

        Raises NotOffered, ServiceError.
        """
        body = create_body(self.calls.kind, self.resource, self.calls.dialect)
        # A stored object keeps its type.
        is_new = self.change.action in _NEW or self._tag != value_at(
            self.calls.live.body, self._tag_path
        )
        operation = _OPERATION if is_new else "run_test_step"
        for number in range(await self._count()):
            answer = mapping_of(await self.calls.send(operation, body={**body, "step": number}))
            result = mapping_of(answer.get("result"))
            health = _HEALTH.get(str(result.get("status")).lower())
            if health is None:
                raise InvalidResponse("the result of a test step has another form")
            texts = answer.get("name"), result.get("message")
            yield Check(name, health, ": ".join(str(text) for text in texts if text))
            if health is Health.FAILED:
                return

    async def _count(self) -> int:
        try:
            body = await self.calls.send("test_steps", query={"destination": self._tag})
        except NotFound:
            return 0
        steps = mapping_of(body).get("steps")
        if not isinstance(steps, list):
            raise InvalidResponse("the list of test steps has another form")
        return len(steps)


async def _chosen(session: Session, transport: Transport, names: tuple[str, ...]) -> list[_Test]:
    """Return the tests of the named resources. Raises BadUsage for unknown names."""
    plan, live = await session.planned(transport, PlanOptions(), session.inventory(PlanOptions()))
    check_clear(names, plan.refusals)
    kind, desired = kind_with(_OPERATION), session.loaded.desired
    lacking = await missing_feature(transport, kind, desired.organization, live.dialect)
    tests = []
    for change in sorted(plan.changes, key=lambda change: change.address):
        resource = desired.resources.get(change.address)
        if resource is None or change.address.kind != kind.name or change.action is Action.DELETE:
            continue
        live_id = change.live_id if change.action not in _NEW else None
        new = LiveObject(kind.name, "", change.name, {}, change.parent_id)
        item = live.by_identity.get((kind.name, live_id or ""), new)
        test = _Test(
            session,
            ObjectCalls(transport, kind, desired.organization, item, live.dialect),
            resolved(Match(resource, kind, parent_id=change.parent_id), resource, live),
            change,
            tuple(refusal for refusal in plan.refusals if change.address in refusal.addresses),
            lacking,
        )
        tests.append(test)
    known = Names(
        Named.of_resource(test.resource, test.calls.live if test.calls.live.id else None)
        for test in tests
    )
    chosen = known.addresses(names)
    return [test for test in tests if test.resource.address in chosen]
