"""The use case `preflight`: let the service test destinations, and report it.

The service really connects to the destination (service.md, 11). Nothing is saved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.client.failures import ADDON
from reconciler.commands.options import PlanRequest, WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import (
    InvalidResponse,
    NotFound,
    ReconcilerError,
    SecretUnavailable,
    ServiceError,
)
from reconciler.model.address import Address
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.naming import Named, Names
from reconciler.model.plan import Change, Plan, Refusal
from reconciler.model.policy import PlanOptions
from reconciler.model.public import Public, Term, derived
from reconciler.model.resource import Resource
from reconciler.model.text import quoted, several
from reconciler.model.values import JSON, JSONObject, Path, mapping_of, secret_refs, value_at
from reconciler.operations.targets import kind_with
from reconciler.planning.differ import create_body
from reconciler.planning.integrations import resolved
from reconciler.planning.matcher import Match
from reconciler.reading.access import missing_feature
from reconciler.reading.calls import NotOffered, ObjectCalls
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import Colour, RenderOptions

_OPERATION = "run_test_step_new"
_NEW = (Action.CREATE, Action.REPLACE)
Approve = Callable[[int], Awaitable[bool]]
"""Is called with the number of destinations that the service would connect to."""


class StepStatus(Term):
    """How a test step ended."""

    PASSED = "passed", "The step succeeded."
    FAILED = "failed", "The step failed."
    SKIPPED = "skipped", "The service does not run it for this destination."


class StepResult(Public, frozen=True):
    """One step that the service ran."""

    name: str
    status: StepStatus
    message: str | None = None
    """As the service returns it."""


class Preflight(Public, frozen=True):
    """The tests of one resource."""

    address: Address
    name: str
    steps: tuple[StepResult, ...] = ()
    """Up to the first failure."""
    untested: str = ""
    """Why the service ran nothing, empty if it did."""
    problems: tuple[str, ...] = ()
    """What is wrong by the files and the policy."""

    @derived
    def failed(self) -> bool:
        """Whether a step failed or a problem is known."""
        return bool(self.problems) or any(step.status is StepStatus.FAILED for step in self.steps)


class PreflightReport(Public, frozen=True):
    """The tests of all resources."""

    schema = "preflight"
    version = 1

    environment: str
    results: tuple[Preflight, ...]

    @derived
    def failed(self) -> bool:
        """Whether any test failed."""
        return any(result.failed for result in self.results)


_BY_WORD = {status.value: status for status in StepStatus}


async def count_steps(calls: ObjectCalls, tag: str) -> int:
    """Return how many steps a type of destination has, 0 for a type without a test.

    Raises NotOffered, ServiceError.
    """
    try:
        body = await calls.send("test_steps", query={"destination": tag})
    except NotFound:
        return 0
    steps = mapping_of(body).get("steps")
    if not isinstance(steps, list):
        raise InvalidResponse("the list of test steps has another form")
    return len(steps)


async def run_steps(
    calls: ObjectCalls, body: JSONObject, count: int, *, is_new: bool
) -> tuple[StepResult, ...]:
    """Run the steps one after another, up to the first failure.

    `body` is that of a create, with references in place of secrets. Raises NotOffered,
    ServiceError.
    """
    name = "run_test_step_new" if is_new else "run_test_step"
    steps: list[StepResult] = []
    for number in range(count):
        steps.append(_step(await calls.send(name, body={**body, "step": number})))
        if steps[-1].status is StepStatus.FAILED:
            break
    return tuple(steps)


def _step(body: JSON) -> StepResult:
    """Return the result of a step: a failure is a 200 as well (service.md, 15.65)."""
    answer = mapping_of(body)
    result = mapping_of(answer.get("result"))
    status, message = _BY_WORD.get(str(result.get("status")).lower()), result.get("message")
    if status is None:
        raise InvalidResponse("the result of a test step has another form")
    return StepResult(
        str(answer.get("name")), status, message if isinstance(message, str) else None
    )


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
        kind, organization = kind_with(_OPERATION), session.loaded.desired.organization
        lacking = await missing_feature(transport, kind, organization, live.dialect)
        every = [*_candidates(session, transport, plan, live, kind, lacking)]
        candidates = _chosen(request.names, every)
        tested = [candidate for candidate in candidates if not candidate.reason]
        if tested and not await approve(len(tested)):
            raise ReconcilerError("not approved; nothing was tested")
        results = await together(candidate.result() for candidate in candidates)
        return PreflightReport(session.loaded.desired.environment, tuple(results))


class _Candidate(Struct, frozen=True):
    """A resource to test. `reason` says why the service can't test it, "" if it can.

    `lacking` is a paid feature that its organization needs and does not have.
    """

    session: Session
    calls: ObjectCalls
    resource: Resource
    change: Change
    refusals: tuple[Refusal, ...]
    lacking: str | None

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

    @property
    def tag_path(self) -> Path:
        """The path of the type of destination."""
        field, variant = self.calls.kind.variants[0]
        return field.name, variant.tag

    async def result(self) -> Preflight:
        """Run the tests. Raises ServiceError if the service fails."""
        problems = tuple(self._problems())
        empty = Preflight(self.resource.address, self.resource.name, problems=problems)
        if self.reason or problems:
            return replace(empty, untested=self.reason or "its configuration has problems")
        tag = str(value_at(self.resource.spec, self.tag_path))
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
        live_tag = value_at(self.calls.live.body, self.tag_path)
        return self.change.action in _NEW or live_tag != tag

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


def _candidates(
    session: Session,
    transport: Transport,
    plan: Plan,
    live: Live,
    kind: Kind,
    lacking: str | None,
) -> Iterator[_Candidate]:
    """Yield every resource that has a destination, in the order of addresses."""
    desired = session.loaded.desired
    changes = {
        change.address: change
        for change in plan.changes
        if change.address.kind == kind.name
        if change.action is not Action.DELETE and change.address in desired.resources
    }
    for address, change in sorted(changes.items()):
        resource = desired.resources[address]
        start = Match(resource, kind, parent_id=change.parent_id)
        identity = kind.name, change.live_id or ""
        live_object = live.by_identity.get(identity) if change.action not in _NEW else None
        if live_object is None:
            live_object = LiveObject(kind.name, "", change.name, {}, change.parent_id)
        yield _Candidate(
            session,
            ObjectCalls(transport, kind, desired.organization, live_object, live.dialect),
            resolved(start, resource, live),
            change,
            tuple(refusal for refusal in plan.refusals if address in refusal.addresses),
            lacking,
        )


def _chosen(texts: tuple[str, ...], candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the resources that texts name, all without texts. Raises BadUsage."""
    names = Names(
        Named.of_resource(item.resource, item.calls.live if item.calls.live.id else None)
        for item in candidates
    )
    chosen = names.addresses(texts)
    return [item for item in candidates if not texts or item.resource.address in chosen]


_SIGNS = {
    StepStatus.PASSED: ("✓", Colour.GREEN),
    StepStatus.SKIPPED: ("-", Colour.DIM),
    StepStatus.FAILED: ("✗", Colour.RED),
}


def preflight_document(report: PreflightReport, _: RenderOptions) -> Document:
    """Return the steps of every resource, why others were not tested, and the counts."""
    failed = sum(result.failed for result in report.results)
    untested = sum(bool(result.untested) for result in report.results)
    tested = len(report.results) - untested
    rows = tuple(row for result in report.results for row in _rows(result))
    columns = Column("step", padded=False), Column("message", ": ", padded=False)
    return Document(
        (Cell(f"Destination tests of {report.environment}"),),
        (Cell(f"Environment {report.environment}"),),
        (Table(columns, rows, headed=False, indent=2),),
        f"{several(tested, 'destination')} tested, {untested} not tested, {failed} failed.",
    )


def _rows(result: Preflight) -> Iterator[Row]:
    name = Cell(str(result.address), Colour.BOLD, code=True), Cell(quoted(result.name))
    group = Group(name)
    for step in result.steps:
        sign, colour = _SIGNS[step.status]
        yield Row((Cell(step.name), Cell(step.message or "")), sign, colour, group)
    for problem in result.problems:
        yield Row((Cell(problem), Cell("")), "✗", Colour.RED, group)
    if result.untested:
        checked = "" if result.problems else "; only checked: files, policy, and that secrets exist"
        yield Row((Cell("not tested"), Cell(f"{result.untested}{checked}")), group=group)
