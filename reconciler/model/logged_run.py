"""A run as its audit log records it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from msgspec import Struct

from reconciler.errors import ExitCode
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.change import Change
from reconciler.model.event import RunInfo
from reconciler.model.plan import Plan
from reconciler.model.public import Term


class Ending(Term):
    """How a change ended, as far as its log says."""

    DONE = "done", "It was made."
    ADOPTED = "adopted", "Its create had no clear answer, and its object was seen afterwards."
    FAILED = "failed", "It was not made, or only in part."
    STALE = "stale", "The object was modified since the plan was made; nothing was sent."
    UNKNOWN = "unknown", "A request may have taken effect."
    SKIPPED = "skipped", "It was not started."
    WITHDRAWN = "withdrawn", "Its object was deleted again, because an older twin exists."
    NOT_SENT = "not sent", "The run ended before a request changed anything."


class LoggedRequest(Struct, frozen=True):
    """A request that writes. `statuses` are those of its attempts, None without an answer."""

    method: str
    path: str
    change_id: str | None
    statuses: tuple[int | None, ...]

    @property
    def answered(self) -> bool:
        """Whether the last attempt was answered."""
        return self.statuses[-1] is not None

    @property
    def refused(self) -> bool:
        """Whether the service certainly did nothing."""
        return all(map(_refuses, self.statuses))

    @property
    def clear(self) -> bool:
        """Whether it is known if the last attempt took effect."""
        status = self.statuses[-1]
        return _refuses(status) or (status is not None and status < HTTPStatus.MULTIPLE_CHOICES)


def _refuses(status: int | None) -> bool:
    return (
        status is not None
        and status != HTTPStatus.REQUEST_TIMEOUT
        and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    )


class LoggedChange(Struct, frozen=True):
    """A change of a run.

    live_id
        The object that it created or changed, None if unknown.
    detail
        The error, or why it was skipped.
    wrote
        Whether a request that writes was sent and not refused.
    twin_ids
        Objects of the same name and scope that stayed.
    adopted
        Whether its object was found after a create without a clear answer.
    stamp
        What distinguishes a created object from others with its id, None if unknown.
    """

    change: Change
    ending: Ending
    live_id: str | None = None
    detail: str | None = None
    wrote: bool = False
    twin_ids: tuple[str, ...] = ()
    adopted: bool = False
    stamp: str | None = None


class LoggedRun(Struct, frozen=True):
    """A run in an audit log. `exit_code` is None if it was killed. Times are ISO 8601.

    Only the run of a plan has changes and is verified.
    """

    info: RunInfo
    plan: Plan | BackfillPlan
    started_at: str
    last_event_at: str
    changes: tuple[LoggedChange, ...]
    requests: tuple[LoggedRequest, ...]
    exit_code: int | None = None
    verified: bool | None = None

    @property
    def plan_id(self) -> str:
        """The id of its plan."""
        return self.plan.plan_id

    @property
    def unknown(self) -> tuple[LoggedChange, ...]:
        """The changes with an unknown outcome."""
        return tuple(change for change in self.changes if change.ending is Ending.UNKNOWN)

    @property
    def twins(self) -> tuple[LoggedChange, ...]:
        """The changes whose object has a twin that stays."""
        return tuple(
            change
            for change in self.changes
            if change.twin_ids and change.ending is not Ending.WITHDRAWN
        )

    @property
    def unknown_requests(self) -> tuple[LoggedRequest, ...]:
        """The requests of no change, such as backfills, that may have taken effect.

        None of a run that ended well: it found what they did.
        """
        if self.exit_code == ExitCode.FINE:
            return ()
        return tuple(
            request for request in self.requests if request.change_id is None and not request.clear
        )

    @property
    def unanswered(self) -> tuple[LoggedRequest, ...]:
        """The requests that write whose last attempt has no answer."""
        return tuple(request for request in self.requests if not request.answered)


class Audit(Struct, frozen=True):
    """The runs of an audit log in the order of their start, and the one that is shown in full."""

    runs: Sequence[LoggedRun]
    shown: LoggedRun
