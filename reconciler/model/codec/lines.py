"""The forms of the lines of an audit log, with descriptions."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from reconciler.model.action import Action
from reconciler.model.codec.base import AddressText, Form
from reconciler.model.codec.forms import PlanForm
from reconciler.model.public import Count

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE", "PUT"]
ChangeId: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": r"^[^.]+\..+:[a-z-]+$"})]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]


class RunForm(Form, frozen=True, kw_only=True):
    """Who started a run, where, and with which version."""

    id: str
    """Id of the run."""
    tool_version: str
    """Version of reconciler."""
    host: str
    """Name of the machine."""
    user: str | None
    """User of the machine, null if unknown."""
    actor: str | None
    """User that started the CI job, null outside of CI."""
    job_url: str | None
    """Page of the CI job, null outside of CI."""
    reason: str | None = None
    """Why the run was started, as its user wrote it, null if not given."""


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="event"):
    """One line of an audit log."""

    format_version: Literal[1]
    """Version of this format."""
    run: str
    """Id of the run. Several runs can append to one file at once."""
    sequence: Positive
    """Number of the event in its run, from 1."""
    time: str
    """Time of the event, ISO 8601."""


class ChangeLine(Line, frozen=True, kw_only=True):
    """A line about one change."""

    address: AddressText
    action: Action
    """Action."""

    @property
    def change_id(self) -> str:
        """The id of the change in the plan."""
        return f"{self.address}:{self.action}"


class RequestLine(Line, frozen=True, kw_only=True):
    """A line about one request."""

    method: Method
    """HTTP method."""
    path: str
    """Path below the base URL, without a query."""
    attempt: Positive
    """Number of the attempt, from 1."""
    change: ChangeId | None
    """ADDRESS:ACTION of the change that sends it, null if it belongs to no single change."""


class PlannedLine(Line, frozen=True, kw_only=True, tag="planned"):
    """The first line of a run, with the plan that is about to be applied."""

    started_by: RunForm
    """Who started the run, where, and with which version."""
    plan: PlanForm
    """The plan, with known secrets masked."""


class StartedLine(ChangeLine, frozen=True, kw_only=True, tag="started"):
    """A change is about to send its first request."""


class SendingLine(RequestLine, frozen=True, kw_only=True, tag="sending"):
    """A request is about to be sent."""


class SentLine(RequestLine, frozen=True, kw_only=True, tag="sent"):
    """A request was answered, or ended without an answer."""

    status: int | None
    """HTTP status, null without an answer."""
    seconds: Seconds
    """Duration."""
    error: str | None
    """Why there was no answer."""


class WaitingLine(Line, frozen=True, kw_only=True, tag="waiting"):
    """Nothing is sent for some time."""

    seconds: Seconds
    """Duration."""
    reason: str
    """Reason."""
    change: ChangeId | None
    """ADDRESS:ACTION of the change that waits, null if all wait."""


class ReadingLine(Line, frozen=True, kw_only=True, tag="reading"):
    """A part of a list was read."""

    collection: str
    """What is listed."""
    read: Count
    """Objects read."""
    total: Count | None
    """Objects in the list, null if unknown."""


class DoneLine(ChangeLine, frozen=True, kw_only=True, tag="done"):
    """A change was made."""

    id: str | None
    """Id of the object."""
    adopted: bool
    """Whether the outcome of the create was unknown, and its object was seen afterwards."""
    notices: tuple[str, ...]
    """Values that the server altered or ignored."""
    stamp: str | None = None
    """`created_at` or `uuid` of a created object, which another one with its id does not have."""


class FailedLine(ChangeLine, frozen=True, kw_only=True, tag="failed"):
    """A change was not made, or only in part."""

    id: str | None
    """Id of the object that was created before the failure, null if there is none."""
    error: str
    """Reason."""
    hint: str | None
    """What to do, null without a hint."""
    unknown: bool
    """Whether a request may have taken effect."""
    unexpected: bool
    """Whether it is an error of reconciler."""
    stale: bool
    """Whether the object was modified since the plan was made, and nothing was sent."""
    adopted: bool = False
    """Whether the create had no clear answer, and its object was seen afterwards."""
    stamp: str | None = None
    """`created_at` or `uuid` of the created object, null if unknown."""


class SkippedLine(ChangeLine, frozen=True, kw_only=True, tag="skipped"):
    """A change was not started."""

    because: str
    """Reason."""


class _TwinLine(ChangeLine, frozen=True, kw_only=True):
    """A line about a new object whose twin was created by another client."""

    id: str
    """Id of the object that this run created."""
    twin_id: str
    """Id of the object that stays."""


class WithdrawingLine(_TwinLine, frozen=True, kw_only=True, tag="withdrawing"):
    """The new object is about to be deleted, because an older twin exists."""


class WithdrawnLine(_TwinLine, frozen=True, kw_only=True, tag="withdrawn"):
    """The new object was deleted again."""


class TwinsLine(ChangeLine, frozen=True, kw_only=True, tag="twins"):
    """Two objects have the same name and scope, and both stay."""

    id: str
    """Id of the object that this run created."""
    twin_ids: tuple[str, ...]
    """Ids of the other objects."""
    because: str
    """Why both stay."""
    hint: str
    """What to do."""


class InterruptingLine(Line, frozen=True, kw_only=True, tag="interrupting"):
    """A stop was requested: nothing new is sent."""

    forced: bool
    """Whether requests in flight are abandoned."""


class VerifyingLine(Line, frozen=True, kw_only=True, tag="verifying"):
    """All changes ended; live state is read and planned again."""


class EndedLine(Line, frozen=True, kw_only=True, tag="ended"):
    """The last line of a run. A run that was killed has none."""

    done: Count
    """Changes that were made."""
    adopted: Count
    """Those of them whose outcome was unknown at first."""
    failed: Count
    """Changes that were not made, or only in part."""
    unknown: Count
    """Those of them that may have taken effect."""
    skipped: Count
    """Changes that were not started."""
    withdrawn: Count
    """Creates whose object was deleted again."""
    twins: Count
    """Creates with a twin that stays."""
    interrupted: bool
    """Whether a stop was requested."""
    verified: bool | None
    """Whether the plan after the run was made and is empty, null if it was not requested."""
    exit_code: Literal[0, 1, 3, 130]
    """0: everything was done. 1: it could not be verified. 3: something failed, was skipped or has
    a twin. 130: interrupted."""


AnyLine: TypeAlias = (
    PlannedLine
    | StartedLine
    | SendingLine
    | SentLine
    | WaitingLine
    | ReadingLine
    | DoneLine
    | FailedLine
    | SkippedLine
    | WithdrawingLine
    | WithdrawnLine
    | TwinsLine
    | InterruptingLine
    | VerifyingLine
    | EndedLine
)
