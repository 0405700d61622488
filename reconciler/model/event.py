"""The events of an apply run, for progress, audit log and report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconciler.errors import ExitCode
from reconciler.model.change import Change
from reconciler.model.plan import Plan

if TYPE_CHECKING:
    # `plan` imports the events, and needs no intervals.
    from reconciler.model.backfill_plan import BackfillPlan, ObjectEnds


class Planned(Struct, frozen=True):
    """The first event, with the plan that is about to be applied."""

    plan: Plan


class BackfillsPlanned(Struct, frozen=True):
    """The first event of a run that starts backfills, with their plan."""

    plan: BackfillPlan


class Started(Struct, frozen=True):
    """A change is about to send its first request."""

    change: Change


class Sending(Struct, frozen=True):
    """A request is about to be sent. `attempt` counts from 1; `change_id` is None outside a run."""

    method: str
    path: str
    attempt: int = 1
    change_id: str | None = None


class Sent(Struct, frozen=True):
    """A request was answered, or ended without an answer (`status` None, `error` says why)."""

    method: str
    path: str
    status: int | None
    attempt: int = 1
    seconds: float = 0.0
    change_id: str | None = None
    error: str | None = None


class Waiting(Struct, frozen=True):
    """Nothing is sent for `seconds`: a rate limit, a retry, a search. `reason` is for readers."""

    seconds: float
    reason: str
    change_id: str | None = None


class Reading(Struct, frozen=True):
    """`read` objects of a collection are read, of `total` if the service has said how many."""

    collection: str
    read: int
    total: int | None = None


class Noted(Struct, frozen=True):
    """Something was loaded or decided, for `--debug`; shown always if it is `important`."""

    message: str
    important: bool = False


class Done(Struct, frozen=True):
    """A change was made. `notices` are the values that the server altered or ignored.

    `adopted`: the outcome of the create was unknown, and its object was found afterwards. `stamp`
    distinguishes a created object from others that had or get its id.
    """

    change: Change
    live_id: str | None
    notices: tuple[str, ...] = ()
    adopted: bool = False
    stamp: str | None = None


class Failed(Struct, frozen=True):
    """A change was not made, or only in part.

    `unknown`: a request may have taken effect. `unexpected`: an error of this program.
    `stale`: the object was modified since the plan was made; nothing was sent.
    `refused`: the service refuses it, so that trying it again changes nothing.
    `live_id`: the object that was created before the failure; `adopted`: it was found after a
    create without a clear answer, so another client may have created it. `stamp` as for `Done`.
    """

    change: Change
    error: str
    hint: str | None = None
    unknown: bool = False
    unexpected: bool = False
    stale: bool = False
    refused: bool = False
    live_id: str | None = None
    adopted: bool = False
    stamp: str | None = None


class Skipped(Struct, frozen=True):
    """A change was not started, because of another or because the run was interrupted."""

    change: Change
    because: str


class Withdrawing(Struct, frozen=True):
    """Our new object is about to be deleted: another applier created the same one before."""

    change: Change
    live_id: str
    twin_id: str


class Withdrawn(Struct, frozen=True):
    """The end of a create whose object was deleted again. `twin_id` is the object that stays."""

    change: Change
    live_id: str
    twin_id: str


class Twins(Struct, frozen=True):
    """Two objects of one name and scope, one of which this run created (`live_id`).

    `because` says why both stay; `hint` has the lines to paste.
    """

    change: Change
    live_id: str
    twin_ids: tuple[str, ...]
    because: str
    hint: str


class Interrupting(Struct, frozen=True):
    """A stop was requested: nothing new is sent. `forced`: requests in flight are abandoned."""

    forced: bool = False


class Verifying(Struct, frozen=True):
    """All changes ended; live state is read and planned again."""


class Report(Struct, frozen=True):
    """How an apply ended, change by change. Every change of the plan is in one of the tuples."""

    done: tuple[Done, ...] = ()
    failed: tuple[Failed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()
    twins: tuple[Twins, ...] = ()
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every change was made, and no twin is left."""
        missing = self.failed or self.skipped or self.withdrawn
        return not (missing or self.twins or self.interrupted)


class Ended(Struct, frozen=True):
    """The last event of a run.

    `verified`: whether the plan after it was made and is empty, None if it was not requested.
    """

    report: Report
    verified: bool | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run."""
        if self.report.interrupted:
            return ExitCode.INTERRUPTED
        if not self.report.complete:
            return ExitCode.PARTLY_APPLIED
        return ExitCode.ERROR if self.verified is False else ExitCode.FINE


class BackfillsEnded(Struct, frozen=True):
    """The last event of a run that starts backfills."""

    ended: tuple[ObjectEnds, ...]
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        fine = all(end.state.fine for item in self.ended for end in item.ends)
        return ExitCode.FINE if fine else ExitCode.PARTLY_APPLIED


Result: TypeAlias = Done | Failed | Skipped | Withdrawn
"""The end of a change."""
Event: TypeAlias = (
    Planned
    | BackfillsPlanned
    | Started
    | Sending
    | Sent
    | Waiting
    | Reading
    | Noted
    | Result
    | Withdrawing
    | Twins
    | Interrupting
    | Verifying
    | Ended
    | BackfillsEnded
)
Listener: TypeAlias = Callable[[Event], None]


class RunInfo(Struct, frozen=True):
    """A run: its id, the version of the program, and who started it where.

    `actor` and `job_url` are the user and the page of a CI job, `reason` is what the user wrote.
    """

    id: str
    tool_version: str
    host: str
    user: str | None = None
    actor: str | None = None
    job_url: str | None = None
    reason: str | None = None


class Record(Struct, frozen=True):
    """An event of a run. `sequence` counts from 1; `time` is ISO 8601."""

    run: RunInfo
    sequence: int
    time: str
    event: Event
