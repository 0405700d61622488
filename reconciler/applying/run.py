"""Apply a plan level by level, and account for every change.

A failure skips only the changes that depend on it. A run always ends with a report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from traceback import extract_tb

from msgspec import Struct, field

from reconciler.applying.actions import Actions, Work
from reconciler.applying.check import Lists
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
from reconciler.service.pace import Stop, together
from reconciler.service.transport import Transport

INTERRUPTED = "the run was interrupted"
_REFUSALS = (400, 401, 403, 409, 415, 422)
_REPORT = "this is an error of reconciler; please report it"
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
    lists = Lists(transport, plan.source.organization, live)
    actions = Actions(lists, mask, plan.deleted_inside)
    run = _Run(transport, actions, listen, mask)
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
    """The state of a run."""

    transport: Transport
    actions: Actions
    listen: Listener
    mask: Mask
    ended: dict[str, Result] = field(default_factory=dict)
    halted: str | None = None
    """Why no new change is started, None if they are."""

    async def apply(self, changes: Iterable[Change]) -> None:
        """Make the changes of a level, scope by scope, some at once."""
        # Changes of a scope share lists, which must not become too old.
        changes = sorted(changes, key=lambda change: str(self.actions.scope_of(change)))
        looking = (change for change in changes if change.action is not Action.DELETE)
        self.actions.lists.expect(map(self.actions.scope_of, looking))
        places = asyncio.Semaphore(self.transport.settings.parallelism)

        async def made(work: Work) -> None:
            async with places:
                if (because := self._obstacle(work.change)) is not None:
                    self._end(Skipped(work.change, because))
                else:
                    self.listen(Started(work.change))
                    await self._end_of(work, self.actions.make(work))

        works = [Work(change) for change in changes]
        await together(map(made, works))
        # One list shows all objects of a scope: all are searched for at the same time.
        unknown = (work for work in works if work.unknown is not None)
        await together(self._end_of(work, self.actions.finish(work)) for work in unknown)

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
            interrupted=self.transport.stop.requested.is_set(),
        )

    def _obstacle(self, change: Change) -> str | None:
        """Return why a change can't be started, None if it can."""
        if self.transport.stop.requested.is_set():
            return INTERRUPTED
        if because := self.halted or self.transport.given_up:
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

    async def _end_of(self, work: Work, making: Awaitable[None]) -> None:
        """Note how a change ended, unless it is unknown so far whether it was made."""
        change = work.change
        try:
            await making
        except Interrupted:
            skipped = Skipped(change, INTERRUPTED)
            self._end(failed(work, INTERRUPTED) if work.made else skipped)
        except ReconcilerError as error:
            # Errors may contain live values.
            end = failed(
                work,
                self.mask(error.message),
                self.mask(error.hint) if error.hint is not None else None,
                unknown=isinstance(error, AmbiguousOutcome),
                refused=isinstance(error, ServiceError) and error.status in _REFUSALS,
                stale=isinstance(error, StalePlan) and not work.made,
            )
            self._end(end)
        except Exception as error:  # noqa: BLE001 - a run always ends with a report
            self.halt(error)
            text = text_of_unexpected(error)
            self._end(failed(work, text, _REPORT, unknown=work.writing, unexpected=True))
        else:
            if work.unknown is None:
                live_id = work.live_id or change.live_id
                self._end(Done(change, live_id, tuple(work.notices), adopted=work.adopted))

    def _end(self, end: Result) -> None:
        self.ended[end.change.id] = end
        self.listen(end)
        for change in self.actions.inside.get(end.change.id, ()):
            if change.id not in self.ended:
                self._end(deleted_with(change, end, self._not_done(end)))


def failed(work: Work, problem: str, hint: str | None = None, **how: bool) -> Failed:
    """Return the end of a change that failed, with what was done before."""
    if work.made:
        problem = f"{', '.join(work.made)}, not finished: {problem}"
        hint = _REST if work.change.action is Action.REPLACE and hint != _REPORT else hint
    return Failed(work.change, problem, hint, live_id=work.live_id, adopted=work.adopted, **how)


def deleted_with(change: Change, end: Result, because: str | None) -> Result:
    """Return the end of a deletion that another one makes, which ended: `because` if it failed."""
    if because is None:
        return Done(change, change.live_id, (f"deleted with {end.change.address}",))
    if isinstance(end, Failed) and end.unknown:
        return Failed(change, f"{because}; outcome unknown", end.hint, unknown=True)
    return Skipped(change, because)


def text_of_unexpected(error: Exception) -> str:
    """Return the type and the place of an error. Its text may contain values."""
    place = extract_tb(error.__traceback__)[-1]
    return f"unexpected {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


def levels_of(changes: Sequence[Change]) -> tuple[tuple[Change, ...], ...]:
    """Return the changes by the number of changes that must come before, one after another.

    Deletions are in levels after all others, unless one of those needs them. The changes must be in
    an order in which each comes after those that it depends on.
    """
    needed: set[str] = set()
    last: list[Change] = []
    others: list[Change] = []
    for change in reversed(changes):
        if change.action is Action.DELETE and change.id not in needed:
            last.append(change)
        else:
            needed.update(change.depends_on)
            others.append(change)
    return (*_by_depth(reversed(others)), *_by_depth(reversed(last)))


def _by_depth(changes: Iterable[Change]) -> tuple[tuple[Change, ...], ...]:
    depths: dict[str, int] = {}
    levels: list[list[Change]] = []
    for change in changes:
        depth = max(
            (depths[needed] + 1 for needed in change.depends_on if needed in depths), default=0
        )
        depths[change.id] = depth
        if depth == len(levels):
            levels.append([])
        levels[depth].append(change)
    return tuple(map(tuple, levels))
