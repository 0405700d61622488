"""Load, plan, apply, import and compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.workspace import (
    PlanScope,
    Workspace,
    masked,
    options_of,
    plan_request_of,
    runtime_of,
)

if TYPE_CHECKING:
    from reconciler.authoring.environments import EnvironmentComparison
    from reconciler.commands.applying import Applied
    from reconciler.commands.planning import PlanResult
    from reconciler.model.files import Imported
    from reconciler.model.plan import Plan
    from reconciler.workspace.loading import Loaded


async def load(workspace: Workspace) -> Loaded:
    """Load and check the files, without a network.

    `desired.resources` are the resources by address, `diagnostics` the warnings.

    Raises InvalidConfiguration with all diagnostics, BadUsage for an unknown environment.
    """
    from reconciler.commands.session import Session

    return Session.open(options_of(workspace), runtime_of(workspace)).loaded


async def plan(workspace: Workspace, scope: PlanScope | None = None) -> PlanResult:
    """Read live state and return the plan. Changes nothing.

    Raises InvalidConfiguration, AmbiguousIdentity, GitUnavailable, BadUsage, ServiceError.
    """
    from reconciler.commands import planning

    return await planning.plan(plan_request_of(workspace, scope), runtime_of(workspace))


async def apply(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    scope: PlanScope | None = None,
    *,
    approve: Callable[[Plan], bool],
    plan_file: Path | None = None,
    verify: bool = True,
    mark: bool = False,
    log_file: Path | None = None,
) -> Applied:
    """Plan, ask `approve`, apply and verify.

    `plan_file` is a saved plan: it counts as approved. `log_file` is an audit log.

    Raises:
        RefusedByPolicy: a guard refuses the plan; nothing was sent.
        StalePlan: the saved plan is stale; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.
        ReconcilerError: not approved; nothing was sent.
        The errors of `plan`.

    """
    from reconciler.commands import applying
    from reconciler.commands.recording import Outputs

    async def approved(made: Plan) -> bool:
        return approve(made)

    request = applying.ApplyRequest(
        plan_request_of(workspace, scope),
        plan_file=plan_file,
        verify=verify,
        mark=mark,
        outputs=Outputs(log_file),
    )
    screen = applying.Screen(show=lambda _: None, approve=approved)
    return await applying.apply(request, runtime_of(workspace), screen)


async def import_(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    ids: Sequence[str] = (),
    projects: Sequence[str] = (),
    kinds: Sequence[str] = (),
    into: str = "",
    force: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Write live objects into files of the workspace. `dry_run` writes nothing.

    Raises InvalidConfiguration, AmbiguousIdentity, BadUsage, ReconcilerError, ServiceError.
    """
    from reconciler.authoring import importing
    from reconciler.authoring.import_choice import Choice

    choice = Choice(tuple(names), tuple(ids), tuple(projects), tuple(kinds))
    options = importing.ImportOptions(
        options_of(workspace), choice, into=into, force=force, dry_run=dry_run
    )
    return await masked(workspace, partial(importing.import_live, options))


async def compare(
    workspace: Workspace, first: str, second: str, names: Sequence[str] = (), *, live: bool = False
) -> EnvironmentComparison:
    """Compare two environments of the files, or their live states.

    Raises InvalidConfiguration, BadUsage, AmbiguousIdentity, ServiceError.
    """
    from reconciler.authoring import comparing

    request = comparing.CompareRequest(
        options_of(workspace), first, second, live=live, names=tuple(names)
    )
    return (await masked(workspace, partial(comparing.compare, request))).report
