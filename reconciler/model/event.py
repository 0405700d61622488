"""The events of an apply run, for progress, audit log and report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct, field

from reconciler.exit_codes import ExitCode, code_of_apply
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan
from reconciler.model.public import Count, Positive, Public, derived
from reconciler.model.run import BackfillPlan, ObjectBackfills
from reconciler.model.values import Address

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Method: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"enum": ["DELETE", "GET", "PATCH", "POST", "PUT"]})
]
EndCode: TypeAlias = Annotated[ExitCode, Meta(extra_json_schema={"enum": [0, 3, 130]})]
ChangeId: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": r"^[^.]+\..+:[a-z-]+$"})]


class Planned(Public, frozen=True):
    """The first line of a run, with the plan that is about to be applied."""

    plan: Plan
    """The plan, with known secrets masked."""


class BackfillsPlanned(Public, frozen=True):
    """The first line of a run that starts backfills, with their plan."""

    plan: BackfillPlan
    """The plan, with known secrets masked."""


class OfChange(Public, frozen=True):
    """An event of one change."""

    internal = frozenset({"change"})

    change: Change

    @derived
    def address(self) -> Address:
        """KIND.KEY, or KIND.id:ID for an unmanaged object."""
        return self.change.address

    @derived
    def action(self) -> Action:
        """Action."""
        return self.change.action


class Started(OfChange, frozen=True):
    """A change is about to send its first request."""


class Sending(Public, frozen=True):
    """A request is about to be sent."""

    method: Method
    """HTTP method."""
    path: str
    """Path below `base_url`, without a query."""
    attempt: Positive = 1
    """Number of the attempt, from 1."""
    change_id: ChangeId | None = field(default=None, name="change")
    """ADDRESS:ACTION of the change that sends it, null if it belongs to no single change."""


class Sent(Public, frozen=True):
    """A request was answered, or ended without an answer."""

    method: Method
    """HTTP method."""
    path: str
    """Path below `base_url`, without a query."""
    status: int | None
    """HTTP status, null without an answer."""
    attempt: Positive = 1
    """Number of the attempt, from 1."""
    seconds: Seconds = 0.0
    """Duration."""
    change_id: ChangeId | None = field(default=None, name="change")
    """ADDRESS:ACTION of the change that sends it, null if it belongs to no single change."""
    error: str | None = None
    """Why there was no answer."""


class Waiting(Public, frozen=True):
    """Nothing is sent for some time."""

    seconds: Seconds
    """Duration."""
    reason: str
    """Reason."""
    change_id: ChangeId | None = field(default=None, name="change")
    """ADDRESS:ACTION of the change that waits, null if all wait."""


class Reading(Public, frozen=True):
    """A part of a list was read."""

    collection: str
    """What is listed."""
    read: Count
    """Objects read."""
    total: Count | None = None
    """Objects in the list, null if unknown."""


class Noted(Public, frozen=True):
    """Something was loaded or decided, for `--debug`; shown always if it is `important`."""

    message: str
    important: bool = False


class Done(OfChange, frozen=True):
    """A change was made."""

    live_id: str | None = field(name="id")
    """Id of the object."""
    notices: tuple[str, ...] = ()
    """Values that the server altered or ignored."""
    adopted: bool = False
    """Whether the outcome of the create was unknown, and its object was seen afterwards."""


class Failed(OfChange, frozen=True):
    """A change was not made, or only in part."""

    internal = OfChange.internal | {"refused"}

    error: str
    """Reason."""
    hint: str | None = None
    """What to do, null without a hint."""
    unknown: bool = False
    """Whether a request may have taken effect."""
    unexpected: bool = False
    """Whether it is an error of reconciler."""
    stale: bool = False
    """Whether the object was modified since the plan was made, and nothing was sent."""
    refused: bool = False
    """Whether the service refuses it, so that trying it again changes nothing."""
    live_id: str | None = field(default=None, name="id")
    """Id of the object that was created before the failure, null without one."""
    adopted: bool = False
    """Whether the create had no clear answer, and its object was seen afterwards."""


class Skipped(OfChange, frozen=True):
    """A change was not started, because of another or because the run was interrupted."""

    because: str
    """Reason."""


class Interrupting(Public, frozen=True):
    """A stop was requested: nothing new is sent."""

    forced: bool = False
    """Whether requests in flight are abandoned."""


class Verifying(Public, frozen=True):
    """All changes ended; live state is read and planned again."""


class Report(Struct, frozen=True):
    """How an apply ended, change by change. Every change of the plan is in one of the tuples."""

    done: tuple[Done, ...] = ()
    failed: tuple[Failed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every change was made."""
        return not (self.failed or self.skipped or self.interrupted)

    @property
    def has_created(self) -> bool:
        """Whether a run that was not interrupted created an object."""
        creates = (Action.CREATE, Action.REPLACE)
        made = any(end.change.action in creates for end in self.done)
        return not self.interrupted and (made or any(end.live_id for end in self.failed))


class Ended(Public, frozen=True):
    """The last line of a run. A run that was killed has none."""

    internal = frozenset({"report"})

    report: Report
    verified: bool | None = None
    """Whether the plan after the run changes nothing that it changed, null if not requested."""
    unrecorded: str | None = None
    """Why the inventory was not written, null if it was, or was not to be."""

    @derived
    def done(self) -> Count:
        """Changes that were made."""
        return len(self.report.done)

    @derived
    def adopted(self) -> Count:
        """Those of them whose outcome was unknown at first."""
        return sum(done.adopted for done in self.report.done)

    @derived
    def failed(self) -> Count:
        """Changes that were not made, or only in part."""
        return len(self.report.failed)

    @derived
    def unknown(self) -> Count:
        """Those of them that may have taken effect."""
        return sum(failed.unknown for failed in self.report.failed)

    @derived
    def skipped(self) -> Count:
        """Changes that were not started."""
        return len(self.report.skipped)

    @derived
    def interrupted(self) -> bool:
        """Whether a stop was requested."""
        return self.report.interrupted

    @derived
    def exit_code(self) -> EndCode:
        """0: everything was done. 3: something failed, was skipped, not verified or not recorded.

        130: interrupted.
        """
        return code_of_apply(
            interrupted=self.report.interrupted,
            complete=self.report.complete,
            verified=self.verified is not False,
            recorded=self.unrecorded is None,
        )


class BackfillsEnded(Public, frozen=True):
    """The last line of a run that starts backfills. A run that was killed has none."""

    objects: tuple[ObjectBackfills, ...]
    """The backfills of each object, and how they ended."""
    interrupted: bool = False
    """Whether a stop was requested."""

    @derived
    def exit_code(self) -> EndCode:
        """0: everything was started. 3: something was not, or its outcome is unknown.

        130: interrupted.
        """
        return code_of_apply(interrupted=self.interrupted, complete=self.complete)

    @property
    def complete(self) -> bool:
        """Whether every backfill was started, or ended well."""
        return all(end.state.fine for item in self.objects for end in item.ends)


Result: TypeAlias = Done | Failed | Skipped
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
    | Interrupting
    | Verifying
    | Ended
    | BackfillsEnded
)
Listener: TypeAlias = Callable[[Event], None]


class RunInfo(Public, frozen=True):
    """Who started a run, where, and with which version."""

    id: str
    """Id of the run."""
    tool_version: str
    """Version of reconciler."""
    host: str
    """Name of the machine."""
    user: str | None = None
    """User of the machine, null if unknown."""
    actor: str | None = None
    """User that started the CI job, null outside of CI."""
    job_url: str | None = None
    """Page of the CI job, null outside of CI."""
    reason: str | None = None
    """Why the run was started, as its user wrote it, null if not given."""


class Record(Struct, frozen=True):
    """An event of a run."""

    run: RunInfo
    sequence: int
    """Counts from 1."""
    time: str
    """ISO 8601."""
    event: Event
