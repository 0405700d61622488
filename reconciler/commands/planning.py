"""The use case `plan`: load the configuration, read live state, plan. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from reconciler.client import SecretResolver, Service, open_service
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.policy import Prune
from reconciler.model.resource import Desired
from reconciler.model.values import secret_refs
from reconciler.planning.planner import Base, Circumstances, PlanOptions, make_plan
from reconciler.reading import Depth, read_live
from reconciler.version import __version__
from reconciler.workspace import Loaded, base_commit, load, load_at
from reconciler.workspace.yaml.loader import collector_paused


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What to plan.

    `base` is a git reference, None for the one of the CI job; `no_base` does not use git.
    """

    workspace: WorkspaceOptions
    options: PlanOptions = field(default_factory=PlanOptions)
    base: str | None = None
    no_base: bool = False

    @property
    def steered(self) -> bool:
        """Whether any option narrows or steers what is planned."""
        return self != PlanRequest(self.workspace)


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan, its input, and the number of calls that reading took.

    `mask` masks known secrets in output.
    """

    plan: Plan
    loaded: Loaded
    live: Live
    calls: int
    mask: Callable[[str], str]


def load_workspace(options: WorkspaceOptions, environ: Mapping[str, str]) -> Loaded:
    """Load the workspace for one environment. Raises InvalidConfiguration with all diagnostics."""
    return load(
        options.folder,
        kinds=all_kinds(),
        environment=options.environment,
        environ=environ,
        strict=options.strict,
    )


def resolver_for(loaded: Loaded, environ: Mapping[str, str]) -> SecretResolver:
    """Return a resolver that knows the secrets from environment variables and literals.

    A plan needs no secret, but masks the known ones: a secret that someone put into a live field
    must not reach a pull request.
    """
    resolver = SecretResolver(loaded.secrets, environ)
    for resource in loaded.desired.in_order():
        for _, ref in secret_refs(resource.spec):
            resolver.resolve_effortless(ref)
    return resolver


@asynccontextmanager
async def connected(
    loaded: Loaded, resolver: SecretResolver, runtime: Runtime
) -> AsyncIterator[Service]:
    """Connect to the service of the environment. Raises ReconcilerError if none is configured."""
    with errors_masked(resolver):
        async with open_service(
            loaded.reachable(), secrets=resolver, settings=runtime.client, listen=runtime.listen
        ) as service:
            yield service


@contextmanager
def errors_masked(resolver: SecretResolver) -> Iterator[None]:
    """Mask known secrets in errors, which contain live values."""
    try:
        yield
    except ReconcilerError as error:
        error.message = resolver.mask(error.message)
        error.hint = resolver.mask(error.hint) if error.hint is not None else None
        error.args = (error.message,)
        raise


async def read_for(service: Service, loaded: Loaded, base: Desired | None = None) -> Live:
    """Read live state, in as much detail as this workspace and its policy need."""
    kinds = all_kinds()
    prunes = {
        kind.name
        for kind in kinds
        if loaded.policy.prune_of(kind.name) is not Prune.NEVER or base is not None
    }
    depth = Depth(in_full=lambda live: live.kind in prunes)
    return await read_live(service, loaded.desired, kinds=kinds, depth=depth)


def read_base(request: PlanRequest, loaded: Loaded, runtime: Runtime) -> Base | None:
    """Return the workspace at the git base, None without one."""
    if request.no_base:
        return None
    folder = request.workspace.folder
    commit = base_commit(folder, ref=request.base, environ=runtime.environ)
    if commit is None:
        return None
    desired = load_at(
        folder,
        commit,
        kinds=all_kinds(),
        environment=loaded.desired.environment,
        environ=runtime.environ,
    )
    return Base(desired, commit) if desired is not None else None


async def plan(request: PlanRequest, runtime: Runtime) -> PlanResult:
    """Make a plan.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, GitUnavailable, ServiceError.

    """
    loaded = load_workspace(request.workspace, runtime.environ)
    base = read_base(request, loaded, runtime)
    resolver = resolver_for(loaded, runtime.environ)
    async with connected(loaded, resolver, runtime) as service:
        live = await read_for(service, loaded, base.desired if base is not None else None)
        made = decide(request, loaded, live, base=base, runtime=runtime)
        calls = service.calls.total
    return PlanResult(made, loaded, live, calls, resolver.mask)


def decide(
    request: PlanRequest,
    loaded: Loaded,
    live: Live,
    *,
    base: Base | None,
    runtime: Runtime,
) -> Plan:
    """Make the plan, with the clock read once."""
    given = Circumstances(
        now=runtime.now(),
        tool_version=__version__,
        base=base,
        options=request.options,
    )
    # Planning creates many values and no cycles, so collecting garbage only costs time.
    with collector_paused():
        return make_plan(loaded.desired, live, loaded.policy, all_kinds(), given=given)
