"""The use case `status`: the state of every live object that runs, from the lists only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from statistics import median
from typing import Any

from reconciler.commands.session import plan_of, selected, warnings_of, with_integrations
from reconciler.commands.status.report import ExportStatus, State, StatusNote, StatusReport
from reconciler.commands.targets import Target, Targets, opened
from reconciler.commands.workspace import Reported, Workspace
from reconciler.errors import InvalidResponse
from reconciler.model.kind import Action, Dialect
from reconciler.model.plan import UNRESOLVED, Plan
from reconciler.model.run import (
    BILLING,
    Cause,
    InvalidRun,
    Run,
    cause_of_pause,
    moment_at,
    pause_began,
)
from reconciler.model.settings import PlanOptions
from reconciler.model.text import several
from reconciler.model.times import Interval, Schedule, UnknownSchedule, rough_duration
from reconciler.planning.select import needs_of
from reconciler.service.operations import latest_runs

_SHOWN = 10
"""Runs that an export carries: with fewer, these are all (service.md, 1.1)."""
_DAY = timedelta(days=1)
_LIMITS = {"hour": timedelta(hours=6), "day": _DAY, "week": 3 * _DAY}
_LEAST_LIMIT = timedelta(minutes=20)
_MOST_MISSED = 100_000
_STATES = {
    Cause.SERVICE: State.FAILING,
    Cause.UNKNOWN: State.PAUSED_UNKNOWN,
    Cause.INTENDED: State.PAUSED,
}


def status_of(
    target: Target,
    dialect: Dialect | None,
    now: datetime,
    *,
    differs: bool | None = None,
    page: str | None = None,
) -> ExportStatus:
    """Return the state of an export at a moment, with what is known about it from elsewhere."""
    live = target.live
    facts: dict[str, Any] = {}
    try:
        case = _Case(target, dialect, now)
    except (InvalidResponse, InvalidRun, UnknownSchedule) as error:
        state, notes = State.UNKNOWN, [StatusNote("unreadable", str(error))]
    else:
        state, facts = case.state, case.facts()
        notes = case.notes(state)
    if differs:
        notes.append(StatusNote("differs", "differs from the configuration"))
    return ExportStatus(
        address=target.address,
        name=live.name,
        parent_name=target.parent_name or live.parent_id,
        managed=target.resource is not None,
        state=state,
        interval=str(live.body.get("interval") or ""),
        differs=differs,
        page=page,
        notes=tuple(notes),
        **facts,
    )


def worst_first(exports: Sequence[ExportStatus]) -> tuple[ExportStatus, ...]:
    """Return exports by state, then by failures and lag, the worst first, then by address."""

    def place(export: ExportStatus) -> tuple[object, ...]:
        since = export.paused_since.timestamp() if export.paused_since else 0
        lag = export.lag or timedelta()
        return export.state.rank, -export.failures, -lag, since, export.address

    return tuple(sorted(exports, key=place))


class _Case:
    """The runs and the schedule of one export at a moment."""

    def __init__(self, item: Target, dialect: Dialect | None, now: datetime) -> None:
        body = item.live.body
        self.schedule = Schedule.of(body, dialect)
        self.is_declared = item.declares_pause
        self.cause = cause_of_pause(body, declared=self.is_declared)
        self.paused_since = pause_began(body)
        if not isinstance(body.get("latest_runs") or [], list):
            raise InvalidRun("latest_runs is not a list")
        self.runs = latest_runs(item.live)
        self.updated_at = moment_at(body, "last_updated_at")
        self.now = now
        # How long one attempt of a run may take (service.md, 7.1).
        default = max(_LEAST_LIMIT, self.schedule.step)
        self._limit = _LIMITS.get(self.schedule.interval, default)

    @cached_property
    def last_end(self) -> datetime | None:
        """Return the end of the latest interval that is exported, None if none of them is."""
        return max((run.end for run in self.runs if run.completed and run.end), default=None)

    @cached_property
    def unsettled(self) -> tuple[Run, ...]:
        """Return the runs that failed and whose interval no other run exported."""
        done = [run for run in self.runs if run.completed]
        return tuple(
            run
            for run in self.runs
            if run.failed and not any(_contains(other, run) for other in done)
        )

    @cached_property
    def failures(self) -> int:
        """Return the number of unsettled failures since the newest completed run.

        Runs that have not ended, and cancelled ones, say nothing about the destination.
        """
        count = 0
        for run in self.runs:
            if run.completed:
                break
            count += run in self.unsettled
        return count

    @property
    def newest_failure(self) -> Run | None:
        """Return the newest run if it failed, not counting runs that say nothing."""
        return self.unsettled[0] if self.failures else None

    @property
    def may_be_more(self) -> bool:
        """Return whether none of the runs that are shown completed, and there may be more."""
        return self.last_end is None and len(self.runs) >= _SHOWN

    @cached_property
    def overdue(self) -> Interval | None:
        """Return the first interval that is due and not exported since the last exported one."""
        due = self.schedule.last_due(self.now)
        since = self._known_until()
        if due is None or since is None or since >= due.end:
            return None
        return next(self.schedule.expected(since, due.end), None)

    def _known_until(self) -> datetime | None:
        """Return until when every interval is exported, or was skipped by a pause that ended."""
        since = self.last_end or self._before_first()
        paused_at = self.schedule.last_paused_at
        if self.schedule.paused or paused_at is None or (since and since > paused_at):
            return since
        # No field has the time of unpausing: it is not after the last update.
        return max(filter(None, (since, self.updated_at, paused_at)))

    def _before_first(self) -> datetime | None:
        """Return a moment before the first interval that ought to be exported."""
        ends = [run.end for run in self.runs if run.end is not None]
        if ends:
            return min(ends) - timedelta.resolution
        return self.schedule.created_at

    @cached_property
    def stuck(self) -> Run | None:
        """Return the oldest run that takes longer than one attempt may."""
        begun = [run for run in self.runs if run.pending and run.created_at is not None]
        return next((run for run in reversed(begun) if self._age(run) > self._limit), None)

    def _age(self, run: Run) -> timedelta:
        return self.now - run.created_at if run.created_at is not None else timedelta()

    @property
    def lagging(self) -> bool:
        """Return whether an overdue interval is not just being exported."""
        due = self.schedule.last_due(self.now)
        if self.overdue is None or due is None:
            return self.stuck is not None
        running = any(run.pending and run.end == due.end for run in self.runs)
        return not (running and self.overdue == due) or self.stuck is not None

    @property
    def ended(self) -> bool:
        """Return whether no more runs are scheduled."""
        return self.schedule.end_at is not None and self.schedule.end_at <= self.now

    @property
    def state(self) -> State:
        """Return the worst state that applies. A pause that is intended neither fails nor lags."""
        if self.cause is not None:
            return _STATES[self.cause]
        if self.failures:
            return State.FAILING
        if self.ended:
            return State.ENDED
        if self.lagging:
            return State.LAGGING
        return State.OK if self.runs else State.NEVER_RUN

    def facts(self) -> dict[str, Any]:
        """Return the fields of its status that follow from runs and schedule."""
        return {
            "runs": self.runs,
            "failures": self.failures,
            "all_failed": bool(self.failures) and self.may_be_more,
            "unsettled": len(self.unsettled),
            "lag": None if self.overdue is None else self.now - self.overdue.end,
            "lag_is_least": self.overdue is not None and self.may_be_more,
            "rows_a_day": self.rows_a_day,
            "next_run": self.schedule.next_tick(self.now),
            "paused_since": self.paused_since,
            "paused_by_service": self.cause is Cause.SERVICE,
            "missed": self.missed,
            "cause": self.newest_failure.error if self.newest_failure else None,
        }

    @cached_property
    def missed(self) -> int | None:
        """Return the number of runs that the pause has skipped, None if unknown or not paused."""
        since = self.paused_since
        if since is None:
            return None
        if (self.now - since) / self.schedule.step > _MOST_MISSED:
            return None
        return sum(1 for _ in self.schedule.expected(since - timedelta.resolution, self.now))

    @cached_property
    def rows_a_day(self) -> float | None:
        """Return the median of the rows of completed runs, for a day."""
        rows = [run.records for run in self.runs if run.completed and run.records is not None]
        return median(rows) * (_DAY / self.schedule.step) if rows else None

    def notes(self, state: State) -> list[StatusNote]:
        """Return what a reader should know, the most important first."""
        notes = [*self._notes_of_failures(state), *self._notes_of_a_pause()]
        pending = sum(run.pending for run in self.runs)
        if self.stuck is not None:
            limit = rough_duration(self._limit)
            text = f"a run takes {rough_duration(self._age(self.stuck))}, longer than one attempt "
            notes.append(StatusNote("run-takes-long", f"{text}may ({limit}): it may be stuck"))
        if state is State.LAGGING and not self.runs:
            notes.append(StatusNote("no-run", "it has never run, and a run is due"))
        elif state is State.LAGGING and self.stuck is None and pending:
            notes.append(StatusNote("in-progress", f"{several(pending, 'run')} in progress"))
        elif state is State.NEVER_RUN and (first := self.schedule.next_tick(self.now)):
            notes.append(StatusNote("first-run", f"its first run is at {_time(first)}"))
        if self.ended and not self.schedule.paused:
            missing = ", and its last intervals are not exported" if self.overdue else ""
            text = f"end_at {_time(self.schedule.end_at or self.now)} has passed{missing}"
            notes.append(StatusNote("ended", text))
        return notes

    def _notes_of_failures(self, state: State) -> list[StatusNote]:
        newest = self.newest_failure
        if newest is not None and newest.status == BILLING:
            text = "a billing limit is exceeded: runs fail until billing is settled"
            return [StatusNote("billing-limit", text)]
        count = several(self.failures, "failure") if self.failures else "failures"
        paused = {
            Cause.SERVICE: f"paused by the service after {count}",
            Cause.UNKNOWN: "paused, cause unknown; its last run failed",
        }
        texts = [paused[self.cause]] if self.cause in paused else []
        if newest is not None:
            texts.append(newest.error or f"its last run ended as {newest.status}")
        if texts:
            return [StatusNote("failing", ": ".join(texts))]
        if self.unsettled and state is not State.PAUSED:
            failed, left = sum(run.failed for run in self.runs), len(self.unsettled)
            text = f"{several(failed, 'failed run')} among its last {len(self.runs)}"
            text += f", {left} of them not repeated" if left < failed else ""
            return [StatusNote("failed-runs", text)]
        return []

    def _notes_of_a_pause(self) -> list[StatusNote]:
        if not self.schedule.paused or self.is_declared:
            return []
        if self.paused_since is None:
            return [StatusNote("paused", "the time of the pause is unknown")]
        if not self.missed:
            return []
        return [StatusNote("missed-runs", f"{several(self.missed, 'run')} missed")]


def _contains(outer: Run, inner: Run) -> bool:
    """Return whether the interval of a run contains that of another."""
    if outer.end is None or inner.end is None or outer.end < inner.end:
        return False
    return outer.start is None or (inner.start is not None and outer.start <= inner.start)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


async def status(
    workspace: Workspace, names: Sequence[str] = (), *, projects: Sequence[str] = ()
) -> Reported[StatusReport]:
    """Read live state and return the state of exports, the worst first.

    `names` select exports and `projects` projects, by address, id, key, name or glob; all exports
    without any.

    Raises:
        InvalidConfiguration, ServiceError.
        BadUsage: a name matches nothing.

    """
    async with opened(workspace, "runs") as targets:
        plan, now = await _plan(targets), targets.now()
        session, dialect = targets.session, targets.live.dialect
        compared = {change.address: change.action is not Action.NO_OP for change in plan.changes}
        states = [
            status_of(it, dialect, now, differs=compared.get(it.address), page=targets.page(it))
            for it in targets.chosen(names, projects)
        ]
        missing = () if names or projects else targets.missing
        report = StatusReport(*targets.where, now, worst_first(states), missing)
        warnings, calls = warnings_of(session.loaded, plan), targets.transport.calls
        return workspace.masked(Reported(report, warnings, calls))


async def _plan(targets: Targets) -> Plan:
    """Return the plan in which fields that lists lack are unchanged. Raises ServiceError."""
    session, options, inventory = targets.session, PlanOptions(), targets.matching.inventory
    named = needs_of(selected(session, targets.live, options, inventory)).integrations
    live = await with_integrations(targets.transport, targets.live, named)
    plan = plan_of(session, live, options, inventory)
    for refusal in plan.refusals:
        if refusal.rule == UNRESOLVED:
            session.note(refusal.message, important=True)
    return plan
