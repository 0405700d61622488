"""Apply a plan: changes that are ready run concurrently, and events report what happens.

A failure skips only the changes that depend on it. After a stop, requests in flight finish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.applying.worker import Worker
from reconciler.client import SecretResolver, Transport
from reconciler.errors import AmbiguousOutcome, ReconcilerError
from reconciler.model.change import Change
from reconciler.model.event import (
    Done,
    Failed,
    Interrupting,
    Listener,
    Planned,
    Report,
    Skipped,
    Started,
)
from reconciler.model.kind import Kind
from reconciler.model.plan import Plan
from reconciler.model.redaction import Mask
from reconciler.model.values import secret_refs

CONCURRENCY = 8
"""Changes that run at once."""


async def execute(
    plan: Plan,
    transport: Transport,
    *,
    kinds: Sequence[Kind],
    secrets: SecretResolver,
    listen: Listener,
    stop: asyncio.Event,
) -> Report:
    """Apply every change of the plan and report how each ended.

    `stop` requests a stop: requests in flight finish, and no change is started any more.

    Raises:
        SecretUnavailable: a secret that would be sent can't be resolved; nothing was sent.

    """
    secrets.check(
        (str(change.address), ref)
        for change in plan.effective
        for _, ref in secret_refs([change.body, change.after_create])
    )
    # Listeners mask the plan, which requires that every secret is resolved.
    listen(Planned(plan))
    by_name = {kind.name: kind for kind in kinds}
    worker = Worker(transport, plan.source.organization, by_name, secrets.mask)
    run = _Run(worker, listen, secrets.mask, {change.id: change for change in plan.effective})
    interrupted = False
    while run.waiting or run.running:
        if stop.is_set() and not interrupted:
            interrupted = True
            listen(Interrupting())
        run.skip(interrupted=interrupted)
        run.start()
        if run.running:
            await run.finish()
    results = run.ended.values()
    return Report(
        done=tuple(result for result in results if isinstance(result, Done)),
        failed=tuple(result for result in results if isinstance(result, Failed)),
        skipped=tuple(result for result in results if isinstance(result, Skipped)),
        interrupted=stop.is_set(),
    )


@dataclass(slots=True)
class _Run:
    """The state of a run. `waiting` is in the order of the plan; ids are those of changes."""

    worker: Worker
    listen: Listener
    mask: Mask
    waiting: dict[str, Change]
    running: dict[asyncio.Task[Done | Failed], Change] = field(default_factory=dict)
    ended: dict[str, Done | Failed | Skipped] = field(default_factory=dict)

    def skip(self, *, interrupted: bool) -> None:
        """Skip what can't be started any more. Changes come after those that they depend on."""
        for change in tuple(self.waiting.values()):
            because = "the run was interrupted" if interrupted else self._obstacle(change)
            if because is not None:
                del self.waiting[change.id]
                self._end(Skipped(change, because))

    def start(self) -> None:
        """Start the changes that depend on nothing unfinished, up to the limit."""
        unfinished = {*self.waiting, *(change.id for change in self.running.values())}
        for change in tuple(self.waiting.values()):
            if len(self.running) >= CONCURRENCY:
                return
            if unfinished.isdisjoint(change.depends_on):
                del self.waiting[change.id]
                self.listen(Started(change))
                self.running[asyncio.create_task(self._apply(change))] = change

    async def finish(self) -> None:
        """Wait until at least one change ends."""
        finished, _ = await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
        for task in sorted(finished, key=lambda task: self.running[task].id):
            del self.running[task]
            self._end(task.result())

    def _obstacle(self, change: Change) -> str | None:
        """Return why a change can't be started: something that it depends on was not applied."""
        for needed in change.depends_on:
            result = self.ended.get(needed)
            if result is not None and not isinstance(result, Done):
                outcome = "failed" if isinstance(result, Failed) else "was skipped"
                return f"{result.change.action} of {result.change.address} {outcome}"
        return None

    def _end(self, result: Done | Failed | Skipped) -> None:
        self.ended[result.change.id] = result
        self.listen(result)

    async def _apply(self, change: Change) -> Done | Failed:
        """Apply a change. Errors may contain live values, so secrets are masked in them."""
        try:
            return await self.worker.apply(change)
        except ReconcilerError as error:
            hint = self.mask(error.hint) if error.hint is not None else None
            ambiguous = isinstance(error, AmbiguousOutcome)
            return Failed(change, self.mask(error.message), hint, ambiguous=ambiguous)
