"""The steps that use cases share: load, connect, read the git base and live state, plan."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reconciler.client import SecretResolver, Transport, open_transport
from reconciler.commands.runtime import PlanRequest, Runtime, WorkspaceOptions
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.policy import Prune
from reconciler.model.redaction import Mask
from reconciler.model.values import secret_refs
from reconciler.planning.planner import Base, PlanContext, PlanOptions, make_plan
from reconciler.reading import Depth, read_live
from reconciler.version import __version__
from reconciler.workspace import Loaded, base_commit, load, load_at
from reconciler.workspace.yaml.loader import collector_paused


@dataclass(frozen=True, slots=True)
class Session:
    """A workspace that is loaded for one environment, its secrets, and the runtime."""

    options: WorkspaceOptions
    loaded: Loaded
    secrets: SecretResolver
    runtime: Runtime

    @classmethod
    def open(
        cls,
        options: WorkspaceOptions,
        runtime: Runtime,
        *,
        drafts: Mapping[str, str] | None = None,
    ) -> Session:
        """Load the workspace. `drafts` are texts that replace or add files, by path.

        Secrets from environment variables and literals are resolved, since known secrets are
        masked: one that was pasted into a live field must not reach a pull request.

        Raises InvalidConfiguration with all diagnostics.
        """
        loaded = load(
            options.folder,
            kinds=all_kinds(),
            environment=options.environment,
            environ=runtime.environ,
            strict=options.strict,
            drafts=drafts,
        )
        secrets = SecretResolver(loaded.secrets, runtime.environ)
        for resource in loaded.desired.in_order():
            for _, ref in secret_refs(resource.spec):
                secrets.resolve_effortless(ref)
        return cls(options, loaded, secrets, runtime)

    @property
    def mask(self) -> Mask:
        """Return the function that masks known secrets in a text."""
        return self.secrets.mask

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Transport]:
        """Connect to the service, with known secrets masked in errors.

        Raises ReconcilerError if no service is configured.
        """
        try:
            async with open_transport(
                self.loaded.reachable(),
                secrets=self.secrets,
                settings=self.runtime.client,
                listen=self.runtime.listen,
            ) as transport:
                yield transport
        except ReconcilerError as error:
            # Errors may contain live values.
            error.message = self.mask(error.message)
            error.hint = self.mask(error.hint) if error.hint is not None else None
            error.args = (error.message,)
            raise

    def base(self, request: PlanRequest) -> Base | None:
        """Return the workspace at the git base, None without one."""
        folder, environ = self.options.folder, self.runtime.environ
        commit = None if request.no_base else base_commit(folder, ref=request.base, environ=environ)
        if commit is None:
            return None
        desired = load_at(
            folder,
            commit,
            kinds=all_kinds(),
            environment=self.loaded.desired.environment,
            environ=environ,
        )
        return Base(desired, commit) if desired is not None else None

    async def read(self, transport: Transport, *, may_delete: bool = False) -> Live:
        """Read live state, in as much detail as this workspace and its policy need.

        `may_delete` reads objects of every kind in full, since a plan may delete them.
        """
        kinds = all_kinds()
        in_full = {
            kind.name
            for kind in kinds
            if may_delete or self.loaded.policy.prune_of(kind.name) is not Prune.NEVER
        }
        depth = Depth(in_full=lambda live: live.kind in in_full)
        return await read_live(transport, self.loaded.desired, kinds=kinds, depth=depth)

    def plan(self, live: Live, options: PlanOptions, base: Base | None = None) -> Plan:
        """Return the plan that makes live state match the configuration."""
        context = self.plan_context(options, base)
        # Planning creates many values and no cycles, so collecting garbage only costs time.
        with collector_paused():
            return make_plan(
                self.loaded.desired, live, self.loaded.policy, all_kinds(), context=context
            )

    def plan_context(self, options: PlanOptions, base: Base | None = None) -> PlanContext:
        """Return what a plan depends on besides configuration and live state. Reads the clock."""
        return PlanContext(self.runtime.now(), __version__, base, options)
