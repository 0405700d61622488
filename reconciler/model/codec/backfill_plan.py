"""The public JSON of backfills: a plan, which can be saved and loaded, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import orjson
from msgspec import ValidationError, convert, to_builtins

from reconciler.model.address import Address
from reconciler.model.backfill_plan import (
    BackfillEnd,
    BackfillPlan,
    BackfillState,
    ObjectBackfills,
    ObjectEnds,
    PlannedBackfill,
)
from reconciler.model.change import Consequence
from reconciler.model.codec.base import AddressText, Form, copied
from reconciler.model.codec.change import ConsequenceForm
from reconciler.model.codec.plan import InvalidPlanFile, problem
from reconciler.model.field_types import time_text
from reconciler.model.kind import Dialect
from reconciler.model.plan import PlanSource
from reconciler.model.public import Count, as_json

_HINT = "make the plan again with `reconciler backfill … --out FILE`"
_TYPE = "backfill"


class BackfillForm(Form, frozen=True, kw_only=True):
    """One backfill. Times are ISO 8601 in UTC; the end is exclusive."""

    start: str
    """Begin of the range."""
    end: str
    """End of the range, exclusive."""
    runs: Count
    """Intervals in the range."""
    partly: Count
    """Of the intervals: how many are exported in part already."""
    trial: bool
    """Whether it is tried before the others, since the last run failed."""
    run: str | None
    """Id of the run that is retried, null for a backfill of a range."""

    @classmethod
    def of(cls, planned: PlannedBackfill) -> BackfillForm:
        """Return the form of a backfill."""
        return copied(cls, planned, start=time_text(planned.start), end=time_text(planned.end))

    def value(self) -> PlannedBackfill:
        """Return the backfill. Raises ValueError."""
        start, end = datetime.fromisoformat(self.start), datetime.fromisoformat(self.end)
        return copied(PlannedBackfill, self, start=start, end=end)


class BackfillEndForm(Form, frozen=True, kw_only=True):
    """How a backfill ended."""

    start: str
    """Begin of the range."""
    end: str
    """End of the range, exclusive."""
    state: BackfillState
    """How it ended."""
    id: str | None
    """Id of the backfill, null if unknown."""
    detail: str | None
    """Reason or progress, null without."""
    hint: str | None
    """What to do, null without a hint."""

    @classmethod
    def of(cls, end: BackfillEnd) -> BackfillEndForm:
        """Return the form of an end."""
        start, until = time_text(end.planned.start), time_text(end.planned.end)
        return copied(cls, end, start=start, end=until)


class ObjectBackfillsForm(Form, frozen=True, kw_only=True):
    """The backfills of one object. `ends` is empty in a saved plan."""

    address: AddressText
    name: str
    """Name of the object."""
    live_id: str
    """Id of the object."""
    parent_id: str | None
    """Id of its project."""
    parent_name: str | None
    """Name of its project, null if unknown."""
    rows: int | None
    """Median rows of a run, null if unknown."""
    known: tuple[str, ...]
    """In a saved plan: ids of backfills of its ranges that were listed when it was made."""
    newest_run: str | None
    """When the newest run was created then, by the clock of the service."""
    backfills: tuple[BackfillForm, ...]
    """The backfills, in order."""
    consequences: tuple[ConsequenceForm, ...]
    """Consequences of all of them."""
    notes: tuple[str, ...]
    """What to know about them."""
    ends: tuple[BackfillEndForm, ...] = ()
    """How they ended, as far as they were started."""

    @classmethod
    def of(cls, item: ObjectBackfills, ends: Iterable[BackfillEnd]) -> ObjectBackfillsForm:
        """Return the form of the backfills of an object, and of how they ended."""
        return copied(
            cls,
            item,
            address=str(item.address),
            backfills=tuple(map(BackfillForm.of, item.backfills)),
            consequences=tuple(copied(ConsequenceForm, it) for it in item.consequences),
            ends=tuple(map(BackfillEndForm.of, ends)),
        )

    def value(self) -> ObjectBackfills:
        """Return the backfills. Raises ValueError."""
        if self.newest_run is not None:
            datetime.fromisoformat(self.newest_run)
        return copied(
            ObjectBackfills,
            self,
            address=Address.parse(self.address),
            backfills=tuple(form.value() for form in self.backfills),
            consequences=tuple(copied(Consequence, form) for form in self.consequences),
        )


class BackfillPlanForm(Form, frozen=True, kw_only=True):
    """A plan of backfills. `plan_id` is the digest of what it does."""

    format_version: Literal[1]
    """Version of this format."""
    type: Literal["backfill"]
    """Distinguishes it from a plan of changes."""
    plan_id: str
    """Digest of what it does."""
    environment: str
    """Name of the environment."""
    organization: str
    """Id of the organization."""
    base_url: str
    """Address of the service."""
    tool_version: str
    """Version of reconciler."""
    dialect: Dialect | None
    """Version of the server, null if unknown."""
    created_at: str
    """Time of the plan, ISO 8601."""
    closes_gaps: bool
    """Whether a backfill is dropped once its range has no gap any more."""
    objects: tuple[ObjectBackfillsForm, ...]
    """The objects, by address."""
    notes: tuple[str, ...]
    """What was left out."""

    @classmethod
    def of(cls, plan: BackfillPlan, ended: Iterable[ObjectEnds] = ()) -> BackfillPlanForm:
        """Return the form of a plan, and of how it ended."""
        source = plan.source
        ends = {item.object.address: item.ends for item in ended}
        return copied(
            cls,
            plan,
            format_version=1,
            type=_TYPE,
            plan_id=plan.id,
            environment=source.environment,
            organization=source.organization,
            base_url=source.base_url,
            tool_version=source.tool_version,
            dialect=source.dialect,
            objects=tuple(
                ObjectBackfillsForm.of(item, ends.get(item.address, ())) for item in plan.objects
            ),
        )

    def value(self) -> BackfillPlan:
        """Return the plan. Raises ValueError."""
        source = PlanSource(
            self.environment, self.organization, self.base_url, self.tool_version, self.dialect
        )
        objects = tuple(form.value() for form in self.objects)
        return copied(BackfillPlan, self, source=source, objects=objects)


def backfills_as_json(plan: BackfillPlan, ended: Iterable[ObjectEnds] = ()) -> str:
    """Return the JSON of a plan, and of how it ended."""
    return as_json(to_builtins(BackfillPlanForm.of(plan, ended)))


def is_backfill_plan(data: bytes) -> bool:
    """Return whether a file is a plan of backfills."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(content, dict) and content.get("type") == _TYPE


def decode_backfills(data: bytes, *, name: str) -> BackfillPlan:
    """Return a saved plan. Raises InvalidPlanFile for another file, and for one that was edited."""
    try:
        form = convert(orjson.loads(data), BackfillPlanForm)
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise _invalid(name, error) from None
    return decode_form(form, name=name)


def decode_form(form: BackfillPlanForm, *, name: str) -> BackfillPlan:
    """Return the plan of a form. Raises InvalidPlanFile for one that was edited."""
    try:
        plan = form.value()
    except ValueError as error:
        raise _invalid(name, error) from None
    if plan.id != form.plan_id:
        raise InvalidPlanFile(
            f"{name}: plan was edited or damaged: its digest does not match its content",
            hint=_HINT,
        )
    return plan


def _invalid(name: str, error: Exception) -> InvalidPlanFile:
    return InvalidPlanFile(f"{name}: invalid plan: {problem(error)}", hint=_HINT)
