"""What `doctor` checks: files, network, API key and git, and destinations if they are named.

The service really connects to a destination that it tests (service.md, 11). Nothing is saved.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from platform import python_version

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.session import Session, connected, inventory_of, open_session, planned
from reconciler.commands.targets import kind_with
from reconciler.commands.workspace import Workspace, deciding_tip
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import (
    BadUsage,
    Forbidden,
    GitUnavailable,
    InvalidResponse,
    NotFound,
    ReconcilerError,
    SecretUnavailable,
    ServiceError,
    Unauthorized,
)
from reconciler.git.inventory import REFS, REMOTE
from reconciler.git.repository import Repository
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.kind import Action
from reconciler.model.live import LiveObject
from reconciler.model.plan import Change, Refusal
from reconciler.model.public import Public, Term, derived
from reconciler.model.resource import Resource
from reconciler.model.settings import ClientOptions, PlanOptions
from reconciler.model.text import listed, named, printable, several
from reconciler.model.values import Path as FieldPath
from reconciler.model.values import mapping_of, secret_refs, value_at
from reconciler.paths import WORKSPACE_FILE
from reconciler.planning.compare import create_body
from reconciler.planning.integrations import names_in, resolved
from reconciler.planning.match import Match
from reconciler.planning.select import Named, Names, check_clear
from reconciler.render.document import Cell, Column, Document, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.service.access import (
    ALL,
    KeyAccess,
    missing_feature,
    missing_scopes,
    read_key,
    read_organizations,
    read_scope,
    write_scope,
)
from reconciler.service.failures import ADDON
from reconciler.service.live import check_listable
from reconciler.service.operations import NotOffered, ObjectCalls
from reconciler.service.pace import together
from reconciler.service.transport import Transport
from reconciler.version import __version__

_MOST = 5
_NEW_KEY = "create a personal API key in the settings of the service"
_QUICK = ClientOptions(timeout=10.0, max_wait=5.0, retry_for=0.0)
_OPERATION = "run_test_step_new"
_NEW = (Action.CREATE, Action.REPLACE)
Approve = Callable[[int], Awaitable[bool]]
"""Is called with the number of destinations that the service would connect to."""


class Health(Term):
    """How a check ended."""

    FINE = "fine", "As it should be."
    WARNING = "warning", "It works in part, or could not be checked."
    FAILED = "failed", "It does not work."


class Check(Public, frozen=True):
    """One check."""

    name: str
    health: Health
    result: str
    fix: str = ""
    """What to do about it, empty for nothing."""

    @classmethod
    def fine(cls, name: str, result: str) -> Check:
        """Return a check that needs no fix."""
        return cls(name, Health.FINE, result)

    @classmethod
    def warning(cls, name: str, result: str, fix: str = "") -> Check:
        """Return a check of what works in part, or could not be checked."""
        return cls(name, Health.WARNING, result, fix)

    @classmethod
    def failed(cls, name: str, result: str, fix: str = "") -> Check:
        """Return a check of what does not work."""
        return cls(name, Health.FAILED, result, fix)

    @classmethod
    def of(cls, name: str, error: ReconcilerError) -> Check:
        """Return a failed check, with the message and hint of an error."""
        return cls.failed(name, error.message, error.hint or "")


_STEPS = {"passed": Health.FINE, "skipped": Health.WARNING, "failed": Health.FAILED}
"""By the status of a step. A failure is a 200, too (service.md, 15.65)."""


class HealthReport(Public, frozen=True):
    """All checks, in the order in which they were made."""

    schema = "doctor"
    version = 1

    checks: tuple[Check, ...]

    @derived
    def failed(self) -> bool:
        """Whether any check failed."""
        return any(check.health is Health.FAILED for check in self.checks)


def _about_key(key: KeyAccess | None, session: Session, *, is_workspace: bool) -> Iterator[Check]:
    if key is None:
        unknown = "accepted; its scopes and limits are unknown: the server does not show them"
        yield Check.warning("key", unknown)
        return
    scopes = "all scopes" if ALL in key.scopes else ", ".join(key.scopes) or "no scopes"
    made = f", created or rolled {printable(key.made_at[:10])}" if key.made_at else ""
    yield Check.fine("key", f"{named(key.label)}: {printable(scopes)}{made}")
    resources, kinds = session.loaded.desired.in_order(), kinds_by_name()
    has_names = any(any(names_in(kinds[item.address.kind], item.spec)) for item in resources)
    more = (read_scope("integration"),) if has_names else ()
    writes = {item.address.kind for item in resources} if is_workspace else kinds
    to_plan = (*map(read_scope, kinds), *more)
    to_apply = (*((write_scope if it in writes else read_scope)(it) for it in kinds), *more)
    other = "use another key to apply; to plan, a key that only reads is the right one"
    for name, needed, problem, fix in (
        ("scopes to plan", to_plan, Check.failed, f"{_NEW_KEY} with these scopes"),
        ("scopes to apply", to_apply, Check.warning, other),
    ):
        lacking = missing_scopes(key.scopes, needed)
        missing = f"missing: {', '.join(lacking)}"
        yield problem(name, missing, fix) if lacking else Check.fine(name, ", ".join(needed))
    yield _limits(key, session.loaded.reachable().organization)


def _limits(key: KeyAccess, organization: str) -> Check:
    name = "key limits"
    if key.organizations and organization not in key.organizations:
        problem = f"limited to other organizations: {_texts(key.organizations)}"
        return Check.failed(name, problem, f"{_NEW_KEY} for organization {printable(organization)}")
    if key.projects:
        problem = f"limited to projects {_texts(key.projects)}: it cannot list or create projects"
        return Check.warning(name, problem, "set `id` for each project in the files")
    return Check.fine(name, "none that concern this organization")


async def _unlisted(transport: Transport, session: Session) -> Sequence[Check]:
    """Return the error with which other commands end if the key may not list what has no id."""
    try:
        await check_listable(transport, session.loaded.desired, kinds=all_kinds())
    except Forbidden as error:
        return (Check.of("projects", error),)
    return ()


async def _organizations(transport: Transport, session: Session) -> Check:
    name, organization = "organizations", session.loaded.reachable().organization
    try:
        visible = await read_organizations(transport)
    except Forbidden:
        return Check.fine(name, "not shown to this key (scope organization:read)")
    except ReconcilerError as error:
        return Check.of(name, error)
    text = f"visible: {listed([named(text) for text in visible.values()], _MOST)}"
    if organization in visible:
        return Check.fine(name, text)
    problem = f"{printable(organization)} is not visible to the key; {text}"
    return Check.failed(name, problem, f"set `organization` to one of {_texts(tuple(visible))}")


def _texts(values: tuple[str, ...]) -> str:
    return listed([printable(value) for value in values], _MOST)


async def diagnose(
    workspace: Workspace,
    names: tuple[str, ...] = (),
    approve: Approve | None = None,
) -> HealthReport:
    """Return the result of every check. Works without a workspace.

    With `names` and `approve`, the service tests the destinations of these resources. Raises
    BadUsage for unknown names.
    """
    quick = replace(workspace, client=workspace.client.over(_QUICK))
    session, configuration = _configuration(quick)
    version = f"reconciler {__version__}, Python {python_version()}, {sys.platform}"
    checks = [Check.fine("version", version), configuration]
    checks += await _service(session, quick)
    local = {"trusted branch": _trusted(quick), "git": _git(quick.folder, session)}
    for name, about in local.items():
        try:
            checks += [*about]
        except ReconcilerError as error:
            checks.append(Check.of(name, error))
    if names and approve is not None:
        checks += await destination_checks(workspace, names, approve)
    return workspace.masked(HealthReport(tuple(checks)))


def _configuration(workspace: Workspace) -> tuple[Session | None, Check]:
    """Load the workspace. Return None without a workspace, or if it has errors."""
    name = "configuration"
    if not (workspace.folder / WORKSPACE_FILE).exists():
        text = f"no {WORKSPACE_FILE} in this folder: variables of the environment are used"
        return None, Check.fine(name, text)
    try:
        session = open_session(workspace)
    except InvalidConfiguration as error:
        return None, Check.failed(name, error.message, "run `reconciler validate`")
    except ReconcilerError as error:
        return None, Check.of(name, error)
    desired = session.loaded.desired
    text = f"{several(len(desired.resources), 'resource')} in environment {desired.environment}"
    if count := len(session.loaded.diagnostics):
        warnings = f"{text}; {several(count, 'warning')}"
        return session, Check.warning(name, warnings, "run `reconciler validate`")
    return session, Check.fine(name, text)


async def _service(session: Session | None, workspace: Workspace) -> list[Check]:
    """Return the checks of the connection, the key, its scopes and limits, and the organization.

    Without a usable workspace, variables name the service, and scopes for every kind are checked.
    What the variables lack may be in files with errors: it is no failure then.
    """
    name, checks = "connection", list[Check]()
    try:
        used = session
        if used is None:
            with tempfile.TemporaryDirectory() as empty:
                nowhere = replace(workspace, folder=Path(empty), environment=None)
                used = open_session(nowhere, drafts={WORKSPACE_FILE: "version: 1\n"})
        has_errors = session is None and (workspace.folder / WORKSPACE_FILE).exists()
        if has_errors and used.loaded.connection is None:
            return [Check.warning(name, "not checked: the configuration has errors")]
        if headers := used.loaded.reachable().headers:
            checks.append(Check.fine("headers", ", ".join(headers)))
        name = "key"
        async with connected(used) as transport:
            key = await read_key(transport)
            checks += _about_key(key, used, is_workspace=session is not None)
            checks.append(await _organizations(transport, used))
            if session is not None and (key is None or key.projects):
                checks += await _unlisted(transport, used)
    except InvalidConfiguration as error:
        first = error.diagnostics[0]
        checks.append(Check.failed(name, first.message, first.hint or ""))
    except Unauthorized as error:
        checks.append(Check.failed(name, error.message, f"{_NEW_KEY}, and set it here"))
    except ReconcilerError as error:
        checks.append(Check.of(name, error))
    return checks


def _trusted(workspace: Workspace) -> Iterator[Check]:
    """Check which files decide where the key is sent."""
    name, runtime = "trusted branch", workspace.runtime
    tip = deciding_tip(workspace, runtime.environ, interactive=runtime.interactive)
    if tip is None:
        yield Check.fine(name, "the files of this folder decide where the key is sent")
    elif tip.problem:
        yield Check.warning(name, f"none: {tip.problem}", tip.fix)
    else:
        yield Check.fine(name, f"{tip.branch} at {(tip.commit or '')[:7]}")


def _git(folder: Path, session: Session | None) -> Iterator[Check]:
    """Check git, and of a usable workspace the inventory."""
    name = "git"
    repository = Repository.containing(folder)
    if repository is None:
        problem = "this folder is not in a git repository: removed resources are not detected"
        yield Check.warning(name, problem, "commit the workspace to a git repository")
        return
    head = repository.commit("HEAD")
    if head is None:
        yield Check.warning(name, "no commit yet", "commit the workspace")
    elif repository.is_shallow:
        problem = f"shallow clone at {head[:7]}: applied commits may be missing"
        yield Check.warning(name, problem, "fetch the history (checkout step: fetch-depth: 0)")
    else:
        yield Check.fine(name, f"commit {head[:7]}, with its history")
    if session is not None:
        yield _inventory(session)


def _inventory(session: Session) -> Check:
    """Check the inventory of the environment, and say how to fetch and to delete it."""
    name, history = "inventory", session.history
    if session.loaded.connection is None:
        return Check.warning(name, "not known without a connection")
    if history is None or history.head is None:
        return Check.fine(name, "none")
    ref, has_remote = history.ref, REMOTE in history.repository.remotes
    fetch = f"git fetch {REMOTE} '+{REFS}/*:{REFS}/*'"
    try:
        inventory = history.inventory()
    except GitUnavailable as error:
        return Check.of(name, error)
    record = inventory.record
    if record is None:
        fix = f"; `{fetch}` fetches that of {REMOTE}" if has_remote else ""
        return Check.fine(name, f"none at {ref} (`apply` writes it){fix}")
    delete = f"git update-ref -d {ref}"
    delete += f" && git push {REMOTE} :{ref}" if has_remote else ""
    what = f"{several(len(inventory.entries), 'resource')}, applied at {record.applied[:7]}"
    if inventory.behind:
        commits = several(len(set(inventory.behind.values())), "applied commit")
        return Check.warning(name, f"{what}; HEAD lacks {commits}", "merge the applied branch")
    return Check.fine(name, f"{what} ({ref}); delete it with `{delete}`")


_SIGNS = {
    Health.FINE: ("✓", Colour.GREEN),
    Health.WARNING: ("▲", Colour.YELLOW),
    Health.FAILED: ("✗", Colour.RED),
}


def health_document(report: HealthReport, _: RenderOptions) -> Document:
    """Return a row for each check, with its fix below it, and the counts."""
    counts = Counter(check.health for check in report.checks)
    failed, warned = counts[Health.FAILED], counts[Health.WARNING]
    columns = Column("check"), Column("result", padded=False)
    checks = Table(columns, tuple(map(_row, report.checks)), headed=False, wraps=True)
    summary = f"{several(failed, 'check')} failed, {several(warned, 'warning')}."
    return Document((Cell("Checks"),), (), (checks,), summary)


def _row(check: Check) -> Row:
    sign, colour = _SIGNS[check.health]
    fix = (f"fix: {' '.join(check.fix.split())}",) if check.fix else ()
    return Row((Cell(check.name), Cell(check.result)), sign, colour, notes=fix)


async def destination_checks(
    workspace: Workspace, names: tuple[str, ...], approve: Approve
) -> list[Check]:
    """Return a check for each step that the service ran, up to the first failure of each resource.

    Raises BadUsage for unknown names.
    """
    try:
        session = open_session(workspace)
        async with connected(session) as transport:
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
    def _tag_path(self) -> FieldPath:
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
            health = _STEPS.get(str(result.get("status")).lower())
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
    plan, live = await planned(
        session, transport, PlanOptions(), inventory_of(session, PlanOptions())
    )
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
        calls = ObjectCalls(transport, kind, desired.organization, item, live.dialect)
        match = Match(resource, kind, parent_id=change.parent_id)
        refusals = tuple(it for it in plan.refusals if change.address in it.addresses)
        complete = resolved(match, resource, live)
        tests.append(_Test(session, calls, complete, change, refusals, lacking))
    known = Names(
        Named.of_resource(test.resource, test.calls.live if test.calls.live.id else None)
        for test in tests
    )
    chosen = known.addresses(names)
    return [test for test in tests if test.resource.address in chosen]
