"""Apply a plan level by level, and account for every change.

A failure skips only the changes that depend on it. A run always ends with a report.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from traceback import extract_tb
from typing import Any

from msgspec import Struct, field

from reconciler.applying.change_run import (
    ChangeRun,
    Check,
    levels_of,
    steps_of,
)
from reconciler.applying.checks import Checks
from reconciler.applying.scopes import Scopes
from reconciler.applying.search import NOT_SEARCHED, Search
from reconciler.applying.worker import Worker
from reconciler.client import Stop, Transport
from reconciler.errors import (
    AmbiguousOutcome,
    Interrupted,
    ReconcilerError,
    ServiceError,
    StalePlan,
)
from reconciler.model.event import (
    Done,
    Failed,
    Interrupting,
    Listener,
    Planned,
    Report,
    Result,
    Skipped,
    Started,
)
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Change, Plan
from reconciler.model.redaction import Mask
from reconciler.model.values import secret_refs

INTERRUPTED = "the run was interrupted"
_REFUSALS = (400, 401, 403, 409, 415, 422)
_REST = "plan again: the plan then does the rest of the replacement"


async def execute(
    plan: Plan,
    transport: Transport,
    *,
    listen: Listener,
    live: Live,
) -> Report:
    """Apply every change of the plan and report how each ended.

    `live` is what the plan was made from.

    Raises SecretUnavailable: a secret that would be sent can't be resolved; nothing was sent.
    """
    transport.secrets.check(
        (str(change.address), ref)
        for change in plan.effective
        for _, ref in secret_refs([change.body, change.after_create])
    )
    # Listeners mask the plan, which requires that every secret is resolved.
    listen(Planned(plan))
    mask = transport.secrets.mask
    scopes = Scopes(transport, plan.source.organization, live)
    run = _Run(
        scopes,
        Worker(scopes, mask, Checks(scopes, mask, plan.deleted_inside)),
        Search(scopes),
        listen,
        mask,
        plan.deleted_inside,
    )
    announcement = asyncio.create_task(_announce(transport.stop, listen))
    try:
        for level in levels_of(plan.sending):
            await run.apply(level)
    except Exception as error:  # noqa: BLE001 - a run always ends with a report
        run.halt(error)
    finally:
        announcement.cancel()
    return run.report(plan.effective)


async def _announce(stop: Stop, listen: Listener) -> None:
    """Report a stop when it is requested, not when the next change ends."""
    await stop.requested.wait()
    listen(Interrupting())
    await stop.forced.wait()
    listen(Interrupting(forced=True))


class _Run(Struct):
    """The state of a run.

    unknown
        The creates with an unknown outcome, whose objects are to be searched for.
    inside
        `Plan.deleted_inside`.
    halted
        Why no new change is started, None if they are.
    """

    scopes: Scopes
    worker: Worker
    search: Search
    listen: Listener
    mask: Mask
    inside: Mapping[str, Sequence[Change]]
    ended: dict[str, Result] = field(default_factory=dict)
    unknown: list[ChangeRun] = field(default_factory=list)
    halted: str | None = None

    async def apply(self, changes: Sequence[Change]) -> None:
        """Apply the changes of a level, and search for creates whose outcome is unknown."""
        queue = deque(sorted(map(self._run_of, changes), key=self._turn))
        self.scopes.checks = Counter(
            self.worker.scope_of_checked(run.change)
            for run in queue
            if isinstance(run.steps[0], Check) and run.change.action is not Action.REPLACE
        )
        scopes = [self.worker.scope_of(run.change) for run in queue if run.creates]
        self.scopes.pending = Counter(scope for scope in scopes if scope is not None)
        await self._work(queue)
        await self._search()

    def _run_of(self, change: Change) -> ChangeRun:
        """Return the run of a change. What the plan was made from is a look at its object.

        That is not enough for deletions but of a parent, whose contents are listed before, and for
        replacements.
        """
        kind, steps = change.address.kind, steps_of(change)
        looked = change.action in (Action.UPDATE, Action.PAUSE, Action.UNPAUSE) or (
            change.action is Action.DELETE and self.scopes.has_children(kind)
        )
        seen_at = self.scopes.live.seen_at(kind, change.live_id or "") if looked else -inf
        return ChangeRun(change, steps, checked_at=seen_at)

    def _turn(self, run: ChangeRun) -> tuple[bool, str, str]:
        """Return a key to sort by: what needs no check any more, then scope by scope."""
        scope = self.worker.scope_of_checked(run.change)
        return not self.worker.checks.is_recent(run), scope.kind, scope.parent_id or ""

    def halt(self, error: Exception) -> None:
        """Start nothing new after an error of this program."""
        self.halted = self.halted or text_of_unexpected(error)

    def report(self, changes: Sequence[Change]) -> Report:
        """Return how every change ended, in the order of the plan."""
        for change in changes:
            if change.id not in self.ended:
                self._end(Skipped(change, self.halted or INTERRUPTED))
        ends = [self.ended[change.id] for change in changes]
        return Report(
            done=tuple(end for end in ends if isinstance(end, Done)),
            failed=tuple(end for end in ends if isinstance(end, Failed)),
            skipped=tuple(end for end in ends if isinstance(end, Skipped)),
            interrupted=self.scopes.transport.stop.requested.is_set(),
        )

    async def _work(self, queue: deque[ChangeRun]) -> None:
        """Advance changes concurrently, until the queue is empty."""
        running: set[asyncio.Task[None]] = set()
        try:
            while queue or running:
                while queue and len(running) < self.scopes.transport.settings.parallelism:
                    run = queue.popleft()
                    because = None if run.started else self._obstacle(run.change)
                    if because is not None:
                        self._end(Skipped(run.change, because))
                    else:
                        running.add(asyncio.create_task(self._advance(run)))
                if not running:
                    return
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _obstacle(self, change: Change) -> str | None:
        """Return why a change can't be started, None if it can."""
        if self.scopes.transport.stop.requested.is_set():
            return INTERRUPTED
        if because := self.halted or self.scopes.transport.given_up:
            return because
        ends = (self.ended[needed] for needed in change.depends_on if needed in self.ended)
        return next(filter(None, map(self._not_done, ends)), None)

    def _not_done(self, end: Result) -> str | None:
        """Return how a change ended that others rely on, None if it was made."""
        match end:
            case Failed():
                ended = "failed"
            case Skipped():
                ended = "was skipped"
            case Done():
                return None
        return f"{end.change.action} of {end.change.address} {ended}"

    async def _advance(self, run: ChangeRun) -> None:
        """Take the next steps of a change, and note how it ended."""
        if not run.started:
            run.started = True
            self.listen(Started(run.change))
        try:
            await self.worker.advance(run)
        except Interrupted:
            self._end(stopped(run, INTERRUPTED))
        except ReconcilerError as error:
            if isinstance(error, AmbiguousOutcome) and run.outcome_unknown:
                run.cause = error.message
                self.unknown.append(run)
            else:
                self._end(failed(run, error, self.mask))
        except Exception as error:  # noqa: BLE001 - a run always ends with a report
            self.halt(error)
            self._end(unexpected(run, error))
        else:
            self._end(run.done())

    async def _search(self) -> None:
        """Find the objects of creates whose outcome is unknown, and finish these creates."""
        runs, self.unknown = self.unknown, []
        if not runs:
            return
        problems = dict.fromkeys((run.change.id for run in runs), NOT_SEARCHED)
        try:
            problems = await self.search.run(runs)
        except Interrupted:
            pass
        except Exception as error:  # noqa: BLE001 - a run always ends with a report
            self.halt(error)
        adopted = deque[ChangeRun]()
        for run in runs:
            if run.creation is None or run.outcome_unknown:
                problem = problems.get(run.change.id, NOT_SEARCHED)
                self._end(unknown_create(run, self.mask(f"{run.cause}; {problem}")))
            else:
                adopted.append(run)
        await self._work(adopted)

    def _end(self, end: Result) -> None:
        self.ended[end.change.id] = end
        self.listen(end)
        for change in self.inside.get(end.change.id, ()):
            if change.id not in self.ended:
                self._end(deleted_with(change, end, self._not_done(end)))


def failed(run: ChangeRun, error: ReconcilerError, mask: Mask) -> Failed:
    """Return the end of a change that failed. Errors may contain live values: masked."""
    hint = _REST if _is_half_replaced(run) else error.hint
    return Failed(
        run.change,
        mask(_with_parts(run, error.message)),
        mask(hint) if hint is not None else None,
        unknown=isinstance(error, AmbiguousOutcome),
        refused=isinstance(error, ServiceError) and error.status in _REFUSALS,
        stale=isinstance(error, StalePlan) and not run.made,
        **_created(run),
    )


def unknown_create(run: ChangeRun, message: str) -> Failed:
    """Return the end of a create of which no object was found."""
    hint = "plan again in some minutes: what exists by then is compared with the configuration"
    return Failed(run.change, message, hint, unknown=True)


def stopped(run: ChangeRun, because: str, hint: str | None = None) -> Failed | Skipped:
    """Return the end of a change that is not continued."""
    if not run.made:
        return Skipped(run.change, because)
    hint = _REST if hint is None and _is_half_replaced(run) else hint
    return Failed(run.change, _with_parts(run, because), hint, **_created(run))


def deleted_with(change: Change, end: Result, because: str | None) -> Result:
    """Return the end of a deletion that another one makes, which ended: `because` if it failed."""
    if because is None:
        return Done(change, change.live_id, (f"deleted with {end.change.address}",))
    if isinstance(end, Failed) and end.unknown:
        return Failed(change, f"{because}; outcome unknown", end.hint, unknown=True)
    return Skipped(change, because)


def unexpected(run: ChangeRun, error: Exception) -> Failed:
    """Return the end of a change that failed by an error of this program."""
    return Failed(
        run.change,
        _with_parts(run, text_of_unexpected(error)),
        "this is an error of reconciler; please report it",
        unknown=run.writing,
        unexpected=True,
        **_created(run),
    )


def text_of_unexpected(error: Exception) -> str:
    """Return the type and the place of an error. Its text may contain values."""
    place = extract_tb(error.__traceback__)[-1]
    return f"unexpected {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


def _with_parts(run: ChangeRun, problem: str) -> str:
    """Return a message with what was done before, since the change is neither made nor not."""
    return f"{', '.join(run.made)}, not finished: {problem}" if run.made else problem


def _is_half_replaced(run: ChangeRun) -> bool:
    return run.change.action is Action.REPLACE and bool(run.made)


def _created(run: ChangeRun) -> dict[str, Any]:
    """Return what is known of the new object."""
    if run.creation is None:
        return {}
    is_found = run.adopted and not run.outcome_unknown
    return {"live_id": run.creation.live_id, "adopted": is_found}
