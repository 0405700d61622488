"""The real commands in a world: use cases in the event loop of the service, on virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.commands.apply.execution import apply
from reconciler.commands.drifted import drift
from reconciler.commands.plan import plan
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import ReconcilerError
from reconciler.exit_codes import code_of_plan
from reconciler.git.inventory import ref_of
from reconciler.git.repository import Repository
from reconciler.model.kind import Action
from reconciler.model.plan import Plan, encode
from reconciler.model.settings import PlanOptions, Selection
from reconciler.service.pace import ClientSettings
from tests.model.declared import leaves
from tests.model.identity import Live
from tests.model.outcome import Drifted
from tests.model.world import ELSEWHERE, SECRETS, World, seed_of, write_record, written
from tests.reliability.service import KEY, ORGANIZATION, Line, Service, running_service
from tests.support.git import Git

_JOB = {"CI": "true", "CI_DEFAULT_BRANCH": "main"}


@dataclass
class Ended:
    """How a command ended: the exit code, and the JSON of the plan or the error.

    `unchanged` are the live ids of the no-ops, which only the plan in memory has.
    """

    code: int
    plan: dict[str, Any] = field(default_factory=dict)
    unchanged: dict[str, str | None] = field(default_factory=dict)
    error: str = ""
    text: str = ""
    created: dict[str, str] = field(default_factory=dict)
    after: list[Live] = field(default_factory=list)


@dataclass
class Clone:
    """The clone of a world and a line to the service."""

    world: World
    folder: Path
    ids: list[str]
    service: Service
    line: Line

    @property
    def workspace(self) -> Workspace:
        runtime = Runtime(
            environ={
                "RECONCILER_BASE_URL": self.line.base_url,
                "RECONCILER_ORGANIZATION": ORGANIZATION,
                "RECONCILER_API_KEY": KEY,
                **SECRETS,
                **(_JOB if self.world.job else {}),
            },
            now=self.service.world.clock.now,
            client=ClientSettings(
                clock=asyncio.get_running_loop().time, sleep=asyncio.sleep, jitter=lambda: 0.5
            ),
        )
        environment = self.world.environment
        return Workspace(self.folder, environment, trust_workspace=True, runtime=runtime)

    def options(self, *, plain: bool = False) -> PlanOptions:
        """Return what to plan; `plain` leaves out the options that a saved plan contains."""
        world = self.world
        texts = (world.targets, world.excludes, world.kinds, world.parents)
        selection = Selection() if plain else Selection(*texts)
        return PlanOptions(
            world.rotate,
            allow_replace=world.allow_replace,
            selection=selection,
            no_inventory=world.no_inventory,
        )

    @property
    def ref(self) -> str:
        repository = Repository.containing(self.folder)
        assert repository is not None
        environment = self.world.environment
        return ref_of(repository, environment, self.line.base_url, ORGANIZATION)

    def recorded(self) -> dict[str, dict[str, str]]:
        """Return the entries of the inventory, without one none."""
        git = Git(self.folder)
        if not git.run("for-each-ref", self.ref):
            return {}
        return dict(json.loads(git.run("show", f"{self.ref}:inventory.json")))

    async def plan(self) -> Ended:
        try:
            made = (await plan(self.workspace, self.options())).plan
        except ReconcilerError as error:
            return _failed(error)
        return _of(made, code_of_plan(refused=made.is_refused, changes=not made.empty))

    async def apply(self, saved: Path | None = None) -> Ended:
        try:
            applied = await apply(
                self.workspace,
                self.options(plain=saved is not None),
                plan_file=saved,
                auto_approve=True,
                rollback=self.world.rollback,
            )
        except ReconcilerError as error:
            return _failed(error)
        left, report = applied.verification.left, applied.ended.report
        problems = (applied.verification.error, applied.record_problem, left and left.effective)
        text = f"{report.failed} {' '.join(str(problem) for problem in problems if problem)}"
        created = {
            str(end.change.address): end.live_id
            for end in report.done
            if end.live_id and end.change.action in (Action.CREATE, Action.REPLACE)
        }
        return _of(applied.plan, applied.ended.exit_code, text=text, created=created)

    async def drift(self) -> Drifted:
        options = self.options(plain=True)
        try:
            found = (await drift(self.workspace, options=options, attribute=False)).report
        except ReconcilerError as error:
            return Drifted(error.exit_code)
        fields = {
            (str(item.address), ".".join(map(str, changed.change.path)))
            for item in found.objects
            for changed in item.fields
        }
        deleted, renamed = ({*map(str, items)} for items in (found.deleted, found.renamed))
        return Drifted(0 if found.empty else 2, fields, deleted, renamed)

    async def projects(self) -> list[dict[str, Any]]:
        projects = (await self.service.state())["projects"]
        return [item for item in projects if item["name"] != ELSEWHERE]


def _of(plan: Plan, code: int, **more: Any) -> Ended:
    no_ops = (change for change in plan.changes if change.action is Action.NO_OP)
    unchanged = {str(change.address): change.live_id for change in no_ops}
    return Ended(code, json.loads(encode(plan)), unchanged, **more)


def _failed(error: ReconcilerError) -> Ended:
    text = str(error)
    if isinstance(error, InvalidConfiguration):
        text = "; ".join(f"{item.code}: {item.message}" for item in error.diagnostics)
    return Ended(error.exit_code, error=type(error).__name__, text=text)


def live_of(projects: Iterable[Mapping[str, Any]]) -> list[Live]:
    """Return the live objects of projects as the service stores or is planted with them."""
    found = []
    for project in projects:
        if not project.get("is_pending_deletion"):
            own, parent = {**project, "batch_exports": None}, str(project["id"])
            found.append(Live("project", parent, None, dict(leaves(own))))
            for export in project.get("batch_exports", ()):
                values = dict(leaves(export))
                found.append(Live("batch_export", str(export["id"]), parent, values))
    return found


@asynccontextmanager
async def clone_of(world: World, folder: Path) -> AsyncIterator[Clone]:
    """Yield a clone of a world with its own service."""
    ids = written(world, folder)
    async with running_service(seed_of(world, ORGANIZATION, KEY), world.dialect) as service:
        clone = Clone(world, folder, ids, service, await service.line())
        write_record(world, folder, ids, clone.ref)
        yield clone
