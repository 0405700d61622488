"""The steps that use cases share: open a workspace, connect, read what was applied, plan."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from math import ceil
from platform import python_version
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.history import WorkspaceHistory
from reconciler.commands.workspace import Runtime, Workspace, check_outputs, load_workspace
from reconciler.diagnostics import Diagnostic
from reconciler.errors import (
    GitUnavailable,
    ReconcilerError,
    ServiceError,
)
from reconciler.files.loading import Loaded
from reconciler.files.yaml_loader import collector_paused
from reconciler.git.repository import Repository
from reconciler.kinds import all_kinds
from reconciler.model.event import Noted
from reconciler.model.kind import Action, Kind, containers
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.redaction import Mask, masked_in
from reconciler.model.settings import PlanOptions
from reconciler.model.text import several
from reconciler.planning.inventory import Inventory
from reconciler.planning.make import make_plan
from reconciler.planning.match import Matching, match
from reconciler.planning.notes import about_changes
from reconciler.planning.select import (
    Needs,
    PlanContext,
    Selected,
    Trusted,
    needs_of,
    parents_to_read,
    select,
)
from reconciler.service.access import read_organizations
from reconciler.service.http import SecretResolver
from reconciler.service.live import Depth, read_details, read_integrations, read_live
from reconciler.service.pace import Estimate
from reconciler.service.transport import Transport, open_transport
from reconciler.version import __version__

_Decided = TypeVar("_Decided")
_PAGE = 100


class Session(Struct, frozen=True):
    """A workspace that is loaded for one environment, its secrets, and its git history.

    `history` is None outside of a repository.
    """

    workspace: Workspace
    loaded: Loaded
    secrets: SecretResolver
    history: WorkspaceHistory | None

    @property
    def runtime(self) -> Runtime:
        """The process."""
        return self.workspace.runtime

    @property
    def mask(self) -> Mask:
        """The function that masks known secrets in a text."""
        return self.secrets.mask

    def note(self, message: str, *, important: bool = False) -> None:
        """Report what was loaded or decided, with known secrets masked.

        Shown for `--debug`, and always if it is important.
        """
        self.runtime.listen(Noted(self.mask(message), important=important))


def load(workspace: Workspace) -> Loaded:
    """Load and check the files, without a network.

    `desired.resources` are the resources by address, `diagnostics` the warnings.

    Raises InvalidConfiguration with all diagnostics, BadUsage for an unknown environment.
    """
    return open_session(workspace).loaded


def open_session(workspace: Workspace, *, drafts: Mapping[str, str] | None = None) -> Session:
    """Load a workspace. `drafts` are texts that replace or add files, by path.

    Secrets from environment variables, files and literals are resolved, since known secrets are
    masked: one that was pasted into a live field must not reach a pull request.

    Raises InvalidConfiguration with all diagnostics, OutputOfWorkspace.
    """
    check_outputs(workspace)
    runtime = workspace.runtime
    loaded, tip, head = load_workspace(
        workspace,
        runtime.environ,
        interactive=runtime.interactive,
        drafts=drafts,
        parsed=runtime.parsed,
    )
    check_outputs(workspace, loaded.files)
    secrets = SecretResolver(loaded.secrets, runtime.environ, plain=loaded.desired.plain_texts)
    if loaded.connection is not None:
        for ref in (loaded.connection.api_key, *loaded.connection.headers.values()):
            secrets.resolve_effortless(ref, for_api_key=True)
    for ref in loaded.desired.secret_users:
        secrets.resolve_effortless(ref)
    repository, history = Repository.containing(workspace.folder), None
    if repository is not None:
        history = WorkspaceHistory(repository, workspace.folder, loaded, runtime.environ, head)
    session = Session(workspace, loaded, secrets, history)
    if drafts is None or not runtime.masks:
        runtime.masks.append(session.mask)
    session.note(f"reconciler {__version__}, Python {python_version()}, {sys.platform}")
    session.note(
        f"workspace {workspace.folder}, environment {loaded.desired.environment}: "
        f"{several(len(loaded.desired.resources), 'resource')}"
    )
    decided_by = "the files" if tip is None else tip.branch or "the environment variables"
    session.note(f"connection and switches decided by {decided_by}")
    return session


@asynccontextmanager
async def connected(session: Session) -> AsyncIterator[Transport]:
    """Connect to the service, with known secrets masked in errors.

    Raises ReconcilerError if no service is configured.
    """
    runtime, mask = session.runtime, session.mask
    if mask not in runtime.masks:
        runtime.masks.append(mask)
    try:
        async with open_transport(
            session.loaded.reachable(),
            secrets=session.secrets,
            settings=runtime.client.changed_by(
                session.workspace.client.over(session.loaded.client)
            ),
            listen=lambda event: runtime.listen(masked_in(event, mask)),
            stop=runtime.stop,
        ) as transport:
            yield transport
    except ReconcilerError as error:
        # Errors may contain live values.
        hint = mask(error.hint) if error.hint is not None else None
        masked = error.reworded(mask(error.message), hint=hint)
        masked.exit_code = error.exit_code.after(sent=bool(runtime.client.sent))
        raise masked from None


def inventory_of(
    session: Session, options: PlanOptions, *, push: bool = False, rollback: bool = False
) -> Inventory | None:
    """Return what was applied, None without git. `push`: it will be pushed.

    Raises GitUnavailable if it is unreadable, or to be pushed from outside of a repository.
    """
    history = session.history
    if push and history is None:
        raise GitUnavailable(
            f"{session.workspace.folder} is not in a git repository",
            hint="run in a git clone, or omit --push",
        )
    if push and history is not None:
        history.check_pushable()
    if options.no_inventory or history is None:
        return None
    return history.inventory(push=push, rollback=rollback)


async def planned(
    session: Session,
    transport: Transport,
    options: PlanOptions,
    inventory: Inventory | None = None,
    *,
    in_full: AbstractSet[Identity] = frozenset(),
) -> tuple[Plan, Live]:
    """Return the plan that makes live state match the configuration, and that live state.

    Objects that the plan depends on are complete in it, and those of `in_full`.

    Raises ServiceError, and BadUsage for an option that selects nothing.
    """
    desired = session.loaded.desired

    def inside(kind: Kind, parents: Sequence[LiveObject]) -> AbstractSet[str]:
        return parents_to_read(kind, parents, desired, inventory)

    def decided(live: Live) -> tuple[Selected, Needs]:
        chosen = selected(session, live, options, inventory)
        return chosen, needs_of(chosen, in_full)

    live = await read_live(transport, desired, kinds=all_kinds(), depth=Depth(inside=inside))
    chosen, live = await _completed(session, transport, live, decided)
    return _made(chosen), live


async def matched(session: Session, transport: Transport, live: Live) -> tuple[Matching, Live]:
    """Return the objects of the resources, and the live state that decides them.

    What may be the object of a resource is read in full: it may be pending deletion. Resources
    that stay ambiguous are reported. An inventory that cannot be read is not used.
    """
    loaded, policy, inventory = session.loaded, session.loaded.policy, None
    with suppress(GitUnavailable):
        inventory = inventory_of(session, PlanOptions())

    def decided(live: Live) -> tuple[Matching, Needs]:
        known = match(loaded.desired, live, policy=policy, kinds=all_kinds(), inventory=inventory)
        return known, Needs.of(live, known.undecided.keys())

    matching, live = await _completed(session, transport, live, decided)
    for refusal in matching.unclear:
        session.note(refusal.message, important=True)
    return matching, live


async def _completed(
    session: Session,
    transport: Transport,
    live: Live,
    decide: Callable[[Live], tuple[_Decided, Needs]],
) -> tuple[_Decided, Live]:
    """Return what live state decides, and that state with what the decision needs.

    That may be more where an object is gone. Raises ServiceError.
    """
    desired = session.loaded.desired
    while True:
        decided, wanted = decide(live)
        if not wanted:
            return decided, live
        live = await with_integrations(transport, live, wanted.integrations)
        live = await read_details(
            transport, live, wanted.objects, desired=desired, kinds=all_kinds()
        )


async def with_integrations(transport: Transport, live: Live, parent_ids: AbstractSet[str]) -> Live:
    """Return live state with the integrations of some parents. Raises ServiceError."""
    missing = parent_ids - live.integrations.keys()
    return await read_integrations(transport, live, missing, kinds=all_kinds()) if missing else live


def selected(
    session: Session, live: Live, options: PlanOptions, inventory: Inventory | None = None
) -> Selected:
    """Return the objects of the resources, and what a plan is about."""
    context = plan_context(session, options, inventory)
    desired, policy = session.loaded.desired, session.loaded.own_policy
    with collector_paused():
        return select(desired, live, policy, all_kinds(), context=context)


def plan_of(
    session: Session, live: Live, options: PlanOptions, inventory: Inventory | None = None
) -> Plan:
    """Return the plan of a live state that was read."""
    return _made(selected(session, live, options, inventory))


def _made(chosen: Selected) -> Plan:
    # Planning creates many values and no cycles, so collecting garbage only costs time.
    with collector_paused():
        return make_plan(chosen)


def plan_context(
    session: Session, options: PlanOptions, inventory: Inventory | None = None
) -> PlanContext:
    """Return what a plan depends on besides configuration and live state. Reads the clock."""
    loaded = session.loaded
    # Without a base git may be unavailable, or not to be used.
    history = session.history if inventory is not None else None
    reason = "no git repository" if session.history is None else "--no-inventory"
    context = PlanContext(
        session.runtime.now(),
        __version__,
        inventory,
        options=options,
        head=history.head if history is not None else None,
        head_ref=history.head_ref if history is not None else None,
        uncommitted=history is not None and bool(history.uncommitted),
        declared=loaded.declared.keys(),
        has_environments=len(loaded.environments) > 1,
        trusted=Trusted(loaded.policy, loaded.merge_hint, loaded.after_merge),
    )
    return replace(context, no_inventory=reason) if inventory is None else context


def warnings_of(loaded: Loaded, plan: Plan) -> tuple[Diagnostic, ...]:
    """Return the warnings about the files that matter to a reader of a plan.

    Those about what live objects have do not, nor those of which a violation says more.
    """
    refused = {(refusal.rule, refusal.at) for refusal in plan.refusals}
    warnings = about_changes(loaded.diagnostics, plan)
    return tuple(item for item in warnings if (item.code, item.at) not in refused)


class PlanResult(Struct, frozen=True):
    """A plan with known secrets masked, warnings about the files, and the number of calls.

    `estimate` is what applying it takes.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    calls: int
    estimate: Estimate


async def shown_plan(session: Session, transport: Transport, plan: Plan) -> PlanResult:
    """Return a plan as it may be printed and saved, with the name of its organization.

    The name is left out if the key may not read it.
    """
    names: Mapping[str, str] = {}
    with suppress(ServiceError):
        names = await read_organizations(transport)
    name = names.get(plan.source.organization) or None
    named = replace(plan, source=replace(plan.source, organization_name=name))
    return PlanResult(
        masked_in(named, session.mask),
        warnings_of(session.loaded, plan),
        transport.calls,
        transport.estimate(calls_of(plan, all_kinds())),
    )


def calls_of(plan: Plan, kinds: Sequence[Kind]) -> int:
    """Return about how many calls applying a plan takes, and verifying it.

    Lists of the names are read before and after the creates of a kind, and at the end.
    """
    if plan.empty:
        return 0
    # A replacement checks, creates, checks again, deletes and renames.
    writes = {Action.REPLACE: 5, Action.NO_OP: 0}
    sizes = Counter(change.address.kind for change in plan.changes)
    sizes += Counter(unmanaged.address.kind for unmanaged in plan.unmanaged)
    calls, checked_again, parents = 0, 0, containers(kinds)
    for change in plan.sending:
        calls += writes.get(change.action, 1) + (change.after_create is not None)
        # What is in an object to delete is listed.
        calls += change.action is Action.DELETE and change.address.kind in parents
    for kind in kinds:
        survey = max(1, ceil(sizes[kind.name] / _PAGE))
        scopes = {
            (change.parent_id, change.parent)
            for change in plan.effective
            if change.address.kind == kind.name and change.action in (Action.CREATE, Action.REPLACE)
        }
        lists = min(len(scopes), survey) if kind.paths.survey is not None else len(scopes)
        calls += 2 * lists + survey
        if lists:
            # What was created before the last creates is checked again.
            calls += checked_again
            checked_again = lists
    return calls
