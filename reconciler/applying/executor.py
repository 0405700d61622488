"""Carries out a plan: what is ready runs at once, up to a bound; events tell what happens.

One failure skips what depends on it and nothing else. A stop lets what is in flight finish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.applying.stopping import StopRequest
from reconciler.applying.worker import Worker
from reconciler.client import SecretResolver, Service
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
from reconciler.model.values import secret_refs


@dataclass(slots=True)
class _Run:
    """What has happened so far. `ended` maps the id of a change to its event."""

    waiting: dict[str, Change]
    running: dict[asyncio.Task[Done | Failed], Change] = field(default_factory=dict)
    ended: dict[str, Done | Failed | Skipped] = field(default_factory=dict)


async def execute(  # noqa: PLR0913 - a run has these parts
    plan: Plan,
    service: Service,
    *,
    kinds: Sequence[Kind],
    secrets: SecretResolver,
    listen: Listener,
    stop: StopRequest,
    concurrency: int = 8,
) -> Report:
    """Make every change of the plan and report how each ended.

    Raises:
        SecretUnavailable: a secret that would be sent can't be resolved; nothing was sent.

    """
    secrets.check(
        (str(change.address), ref)
        for change in plan.effective
        for _, ref in secret_refs([change.body, change.after_create])
    )
    # Only now every secret is known, so that a listener can mask them in the plan.
    listen(Planned(plan))
    worker = Worker(service, kinds, mask=secrets.mask)
    run = _Run({change.id: change for change in plan.effective})
    told_of_stop = False
    while run.waiting or run.running:
        if stop.asked and not told_of_stop:
            told_of_stop = True
            listen(Interrupting())
        _skip(run, listen, interrupted=stop.asked)
        _start(run, worker, listen, secrets, concurrency=concurrency)
        if run.running:
            await _settle_one(run, listen)
    return Report(
        done=tuple(each for each in run.ended.values() if isinstance(each, Done)),
        failed=tuple(each for each in run.ended.values() if isinstance(each, Failed)),
        skipped=tuple(each for each in run.ended.values() if isinstance(each, Skipped)),
        interrupted=stop.asked,
    )


def _skip(run: _Run, listen: Listener, *, interrupted: bool) -> None:
    """Give up what can't be begun any more, and what depends on it in turn."""
    skipping = True
    while skipping:
        skipping = False
        for change in tuple(run.waiting.values()):
            because = _why_not(change, run, interrupted=interrupted)
            if because is not None:
                event = Skipped(change, because)
                del run.waiting[change.id]
                run.ended[change.id] = event
                listen(event)
                skipping = True


def _why_not(change: Change, run: _Run, *, interrupted: bool) -> str | None:
    if interrupted:
        return "the run was interrupted"
    for needed in change.depends_on:
        ended = run.ended.get(needed)
        if ended is not None and not isinstance(ended, Done):
            how = "failed" if isinstance(ended, Failed) else "was skipped"
            return f"{ended.change.action} of {ended.change.address} {how}"
    return None


def _start(
    run: _Run, worker: Worker, listen: Listener, secrets: SecretResolver, *, concurrency: int
) -> None:
    for change in tuple(run.waiting.values()):
        if len(run.running) >= concurrency:
            return
        ready = all(
            isinstance(run.ended.get(needed), Done) or needed not in run.waiting
            for needed in change.depends_on
        ) and not any(other.id in change.depends_on for other in run.running.values())
        if ready:
            del run.waiting[change.id]
            listen(Started(change))
            run.running[asyncio.create_task(_attempt(worker, change, secrets))] = change


async def _attempt(worker: Worker, change: Change, secrets: SecretResolver) -> Done | Failed:
    """How a change ended. What failed may tell live values, so secrets are masked in it."""
    try:
        return await worker.carry_out(change)
    except ReconcilerError as error:
        told = secrets.mask(error.message)
        hint = secrets.mask(error.hint) if error.hint is not None else None
        return Failed(change, told, hint, ambiguous=isinstance(error, AmbiguousOutcome))


async def _settle_one(run: _Run, listen: Listener) -> None:
    finished, _ = await asyncio.wait(run.running, return_when=asyncio.FIRST_COMPLETED)
    for task in sorted(finished, key=lambda each: run.running[each].id):
        change = run.running.pop(task)
        event = task.result()
        run.ended[change.id] = event
        listen(event)
