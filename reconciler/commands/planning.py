"""The use case `plan`: load the files, read the live side, decide. Nothing is changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from reconciler.client import SecretResolver, Service, open_service
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.config import Loaded, base_commit, load, load_at
from reconciler.config.loader import collector_paused
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.live import Live
from reconciler.model.plan import Plan, Selection
from reconciler.model.policy import Prune
from reconciler.model.resource import Desired
from reconciler.model.values import secret_refs
from reconciler.planning.planner import Base, Circumstances, PlanOptions, make_plan
from reconciler.reading import Depth, read_live
from reconciler.version import __version__


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What to plan.

    `base` is a git reference, None for what the environment of a CI job tells; `no_base` leaves
    git out of it. `rotate` are address globs whose secrets are sent again.
    """

    workspace: WorkspaceOptions
    selection: Selection = field(default_factory=Selection)
    base: str | None = None
    no_base: bool = False
    rotate: tuple[str, ...] = ()
    allow_replace: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, what it was made from, and how many calls reading took.

    `mask` hides known secrets in whatever is printed of it.
    """

    plan: Plan
    loaded: Loaded
    live: Live
    calls: int
    mask: Callable[[str], str]


def load_workspace(options: WorkspaceOptions, environ: Mapping[str, str]) -> Loaded:
    """The workspace for one environment. Raises InvalidConfiguration with all that is wrong."""
    return load(
        options.folder,
        kinds=all_kinds(),
        environment=options.environment,
        environ=environ,
        strict=options.strict,
    )


def resolver_for(loaded: Loaded, environ: Mapping[str, str]) -> SecretResolver:
    """A resolver that already knows the secrets that can be had without effort.

    A plan needs no secret, but whatever is printed is masked with those that are known: a secret
    that someone pasted into a field of the live side must not reach a pull request.
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
    """The service of the environment. Raises ReconcilerError if none is configured."""
    with told_without_secrets(resolver):
        async with open_service(
            loaded.reachable(), secrets=resolver, settings=runtime.client, listen=runtime.listen
        ) as service:
            yield service


@contextmanager
def told_without_secrets(resolver: SecretResolver) -> Iterator[None]:
    """Errors tell live values, and one of them may be a secret that somebody put there."""
    try:
        yield
    except ReconcilerError as error:
        error.message = resolver.mask(error.message)
        error.hint = resolver.mask(error.hint) if error.hint is not None else None
        error.args = (error.message,)
        raise


async def read_for(service: Service, loaded: Loaded, base: Desired | None = None) -> Live:
    """The live side, as deep as this workspace and policy need it."""
    kinds = all_kinds()
    prunes = {
        kind.name
        for kind in kinds
        if loaded.policy.prune_of(kind.name) is not Prune.NEVER or base is not None
    }
    depth = Depth(in_full=lambda each: each.kind in prunes)
    return await read_live(service, loaded.desired, kinds=kinds, depth=depth)


def read_base(request: PlanRequest, loaded: Loaded, runtime: Runtime) -> Base | None:
    """The workspace at the git base, or None where there is none."""
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


async def plan(request: PlanRequest, runtime: Runtime) -> Planned:
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
    return Planned(made, loaded, live, calls, resolver.mask)


def decide(
    request: PlanRequest,
    loaded: Loaded,
    live: Live,
    *,
    base: Base | None,
    runtime: Runtime,
) -> Plan:
    """The pure part, with the clock read once."""
    given = Circumstances(
        now=runtime.now(),
        tool_version=__version__,
        base=base,
        options=PlanOptions(
            rotate=request.rotate,
            allow_replace=request.allow_replace,
            selection=request.selection,
        ),
    )
    # Planning makes many values and no cycles: the collector would only look at them in vain.
    with collector_paused():
        return make_plan(loaded.desired, live, loaded.policy, all_kinds(), given=given)
