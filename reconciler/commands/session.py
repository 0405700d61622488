"""The steps that use cases share: load, connect, read the inventory and live state, plan."""

from __future__ import annotations

import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from platform import python_version
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.history import WorkspaceHistory
from reconciler.commands.workspace import Runtime, Workspace, load_workspace
from reconciler.diagnostics import Diagnostic
from reconciler.errors import (
    GitUnavailable,
    ReconcilerError,
    SecretUnavailable,
    ServiceError,
)
from reconciler.files.loading import Loaded
from reconciler.files.yaml.loader import collector_paused
from reconciler.kinds import all_kinds
from reconciler.model.event import Noted
from reconciler.model.kind import Kind
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
from reconciler.service.live import Depth, read_details, read_live
from reconciler.service.transport import Transport, open_transport
from reconciler.version import __version__

_Decided = TypeVar("_Decided")


def load(workspace: Workspace) -> Loaded:
    """Load and check the files, without a network.

    `desired.resources` are the resources by address, `diagnostics` the warnings.

    Raises InvalidConfiguration with all diagnostics, BadUsage for an unknown environment.
    """
    return Session.open(workspace).loaded


class Session(Struct, frozen=True):
    """A workspace that is loaded for one environment, and its secrets.

    `history` is its git history, None outside of a repository.
    """

    workspace: Workspace
    loaded: Loaded
    secrets: SecretResolver
    history: WorkspaceHistory | None

    @classmethod
    def open(cls, workspace: Workspace, *, drafts: Mapping[str, str] | None = None) -> Session:
        """Load the workspace. `drafts` are texts that replace or add files, by path.

        Secrets from environment variables, files and literals are resolved, since known secrets are
        masked: one that was pasted into a live field must not reach a pull request.

        Raises InvalidConfiguration with all diagnostics.
        """
        runtime = workspace.runtime
        loaded, tip, head = load_workspace(
            workspace,
            runtime.environ,
            interactive=runtime.interactive,
            drafts=drafts,
            parsed=runtime.parsed,
        )
        secrets = SecretResolver(loaded.secrets, runtime.environ, plain=loaded.desired.plain_texts)
        if loaded.connection is not None:
            for ref in (loaded.connection.api_key, *loaded.connection.headers.values()):
                secrets.resolve_effortless(ref, for_api_key=True)
        for ref in loaded.desired.secret_users:
            secrets.resolve_effortless(ref)
        history = WorkspaceHistory.of(workspace.folder, loaded, runtime.environ, head)
        session = cls(workspace, loaded, secrets, history)
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

    @property
    def runtime(self) -> Runtime:
        """The process."""
        return self.workspace.runtime

    def note(self, message: str) -> None:
        """Report what was loaded or decided, for `--debug`, with known secrets masked."""
        self.runtime.listen(Noted(self.mask(message)))

    def now(self, transport: Transport) -> datetime:
        """Return the time of the service, and report a clock of this machine that differs."""
        local = self.runtime.now()
        now = transport.now(local)
        if now != local:
            from reconciler.model.times import rough_duration

            words = f"{rough_duration(abs(local - now))} {'ahead' if local > now else 'behind'}"
            message = f"the clock of this machine is {words}; the time of the service is used"
            self.runtime.listen(Noted(message, important=True))
        return now

    @property
    def mask(self) -> Mask:
        """Return the function that masks known secrets in a text."""
        return self.secrets.mask

    def warnings(self, plan: Plan) -> tuple[Diagnostic, ...]:
        """Return the warnings about the files that matter to a reader of a plan.

        Those about what live objects have do not, nor those of which a violation says more.
        """
        refused = {(refusal.rule, refusal.at) for refusal in plan.refusals}
        warnings = about_changes(self.loaded.diagnostics, plan)
        return tuple(item for item in warnings if (item.code, item.at) not in refused)

    async def named(self, transport: Transport, plan: Plan) -> Plan:
        """Return a plan with the name of its organization, if the key may read it."""
        names: Mapping[str, str] = {}
        with suppress(ServiceError):
            names = await read_organizations(transport)
        name = self.mask(names.get(plan.source.organization, ""))
        return replace(plan, source=replace(plan.source, organization_name=name or None))

    def resolve_sent(self, plan: Plan) -> None:
        """Resolve the secrets that a plan sends, so that they are masked where it is shown.

        Missing ones are reported when it is applied, and a plan that is refused starts no command.
        """
        for change in plan.effective if not plan.refusals else ():
            for note in change.secrets:
                if note.use.sent:
                    with suppress(SecretUnavailable):
                        self.secrets.resolve(note.ref)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Transport]:
        """Connect to the service, with known secrets masked in errors.

        Raises ReconcilerError if no service is configured.
        """
        if self.mask not in self.runtime.masks:
            self.runtime.masks.append(self.mask)
        try:
            async with open_transport(
                self.loaded.reachable(),
                secrets=self.secrets,
                settings=self.runtime.client.changed_by(
                    self.workspace.client.over(self.loaded.client)
                ),
                listen=lambda event: self.runtime.listen(masked_in(event, self.mask)),
                stop=self.runtime.stop,
            ) as transport:
                yield transport
        except ReconcilerError as error:
            # Errors may contain live values.
            hint = self.mask(error.hint) if error.hint is not None else None
            masked = error.reworded(self.mask(error.message), hint=hint)
            masked.exit_code = error.exit_code.after(self.runtime.client.sent)
            raise masked from None

    def inventory(
        self, options: PlanOptions, *, push: bool = False, rollback: bool = False
    ) -> Inventory | None:
        """Return what was applied, None without git. Raises GitUnavailable if unreadable.

        `push`: it will be pushed.
        """
        if push:
            self.required_history().check_pushable()
        if options.no_inventory or self.history is None:
            return None
        return self.history.inventory(push=push, rollback=rollback)

    def required_history(self) -> WorkspaceHistory:
        """Return the git history. Raises GitUnavailable outside of a repository."""
        if self.history is None:
            raise GitUnavailable(
                f"{self.workspace.folder} is not in a git repository",
                hint="run in a git clone, or omit --push",
            )
        return self.history

    async def read(self, transport: Transport, depth: Depth | None = None) -> Live:
        """Read the lists of every kind, and what `depth` says beyond them."""
        return await read_live(transport, self.loaded.desired, kinds=all_kinds(), depth=depth)

    async def planned(
        self,
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

        def inside(kind: Kind, parents: Sequence[LiveObject]) -> AbstractSet[str]:
            return parents_to_read(kind, parents, self.loaded.desired, inventory)

        live = await self.read(transport, Depth(inside=inside))

        def decided(live: Live) -> tuple[Selected, Needs]:
            selected = self.selected(live, options, inventory)
            return selected, needs_of(selected, in_full)

        selected, live = await self._completed(transport, live, decided)
        return self.made(selected), live

    async def matched(self, transport: Transport, live: Live) -> tuple[Matching, Live]:
        """Return the objects of the resources, and the live state that decides them.

        What may be the object of a resource is read in full: it may be pending deletion. Resources
        that stay ambiguous are reported.
        """

        def decided(live: Live) -> tuple[Matching, Needs]:
            policy = self.loaded.policy
            matching = match(self.loaded.desired, live, policy=policy, kinds=all_kinds())
            return matching, Needs.of(live, matching.undecided.keys())

        matched, live = await self._completed(transport, live, decided)
        for refusal in matched.unclear:
            self.runtime.listen(Noted(self.mask(refusal.message), important=True))
        return matched, live

    async def _completed(
        self, transport: Transport, live: Live, decide: Callable[[Live], tuple[_Decided, Needs]]
    ) -> tuple[_Decided, Live]:
        """Return what live state decides, and that state with what the decision needs.

        That may be more where an object is gone. Raises ServiceError.
        """
        while True:
            decided, wanted = decide(live)
            if not wanted:
                return decided, live
            live = await self.with_integrations(transport, live, wanted.integrations)
            live = await read_details(
                transport, live, wanted.objects, desired=self.loaded.desired, kinds=all_kinds()
            )

    async def with_integrations(
        self, transport: Transport, live: Live, parent_ids: AbstractSet[str]
    ) -> Live:
        """Return live state with the integrations of some parents. Raises ServiceError."""
        missing = parent_ids - live.integrations.keys()
        if not missing:
            return live
        from reconciler.service.live import read_integrations  # Few files name any.

        return await read_integrations(transport, live, missing, kinds=all_kinds())

    def selected(
        self, live: Live, options: PlanOptions, inventory: Inventory | None = None
    ) -> Selected:
        """Return the objects of the resources, and what a plan is about."""
        context = self.plan_context(options, inventory)
        desired, policy = self.loaded.desired, self.loaded.own_policy
        with collector_paused():
            return select(desired, live, policy, all_kinds(), context=context)

    def needed(self, live: Live, options: PlanOptions) -> Needs:
        """Return what the plan depends on and live state lacks."""
        return needs_of(self.selected(live, options))

    def made(self, selected: Selected) -> Plan:
        """Return the plan that makes live state match the configuration."""
        # Planning creates many values and no cycles, so collecting garbage only costs time.
        with collector_paused():
            return make_plan(selected)

    def plan(self, live: Live, options: PlanOptions, inventory: Inventory | None = None) -> Plan:
        """Return the plan of a live state that was read."""
        return self.made(self.selected(live, options, inventory))

    def plan_context(self, options: PlanOptions, inventory: Inventory | None = None) -> PlanContext:
        """Return what a plan depends on besides configuration and live state. Reads the clock."""
        # Without a base git may be unavailable, or not to be used.
        history = self.history if inventory is not None else None
        context = PlanContext(
            self.runtime.now(),
            __version__,
            inventory,
            options=options,
            head=history.head if history is not None else None,
            head_ref=history.head_ref if history is not None else None,
            uncommitted=history is not None and bool(history.uncommitted),
            declared=self.loaded.declared.keys(),
            has_environments=len(self.loaded.environments) > 1,
            trusted=Trusted(self.loaded.policy, self.loaded.merge_hint, self.loaded.after_merge),
        )
        if inventory is not None:
            return context
        reason = "no git repository" if self.history is None else "--no-inventory"
        return replace(context, no_inventory=reason)
