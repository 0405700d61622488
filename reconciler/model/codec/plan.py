"""Saved plans of changes and of backfills: public JSON that is read again without loss."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from msgspec import ValidationError, convert

from reconciler.errors import ReconcilerError
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.codec.forms import form_of, value_of
from reconciler.model.plan import Plan, PlanSource, encode

_HINT = "make the plan again with `reconciler plan --out FILE`"
_BACKFILL_HINT = "make the plan again with `reconciler backfill … --out FILE`"
_EDITED = "plan was edited or damaged: its digest"


class InvalidPlanFile(ReconcilerError):
    """A file that is not a plan or an audit log, has another format, or was edited."""


def decode(data: bytes, *, name: str = "<plan>") -> Plan:
    """Return the plan that `encode` encoded. `name` is the file, for errors.

    Raises InvalidPlanFile.
    """
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise InvalidPlanFile(f"{name}: not a plan file: invalid JSON", hint=_HINT) from None
    return decode_content(content, name=name)


def decode_content(content: object, *, name: str) -> Plan:
    """Return the plan of its public JSON as a value. Raises InvalidPlanFile."""
    if not isinstance(content, dict) or "format_version" not in content:
        raise InvalidPlanFile(f"{name}: not a plan file", hint=_HINT)
    check_version(content, name=name)
    try:
        plan = value_of(Plan, convert(content, form_of(Plan)))
        is_intact = orjson.loads(encode(plan)) == content
    except (ValidationError, ValueError, RecursionError) as error:
        raise InvalidPlanFile(f"{name}: invalid plan: {problem(error)}", hint=_HINT) from None
    if not is_intact:
        raise InvalidPlanFile(f"{name}: {_EDITED}s do not match its content", hint=_HINT)
    return plan


def decode_backfills(data: bytes, *, name: str) -> BackfillPlan | None:
    """Return a saved plan of backfills, None for another file. Raises InvalidPlanFile."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    is_one = isinstance(content, dict) and content.get("type") == "backfill"
    return decode_backfill_content(content, name=name) if is_one else None


def decode_backfill_content(content: object, *, name: str) -> BackfillPlan:
    """Return the plan of backfills of its public JSON as a value. Raises InvalidPlanFile."""
    try:
        form: Any = convert(content, form_of(BackfillPlan))
        source = PlanSource(
            form.environment, form.organization, form.base_url, form.tool_version, form.dialect
        )
        plan = value_of(BackfillPlan, form, source=source)
        for item in plan.objects:
            if item.newest_run is not None:
                datetime.fromisoformat(item.newest_run)
    except ValueError as error:
        reason = f"{name}: invalid plan: {problem(error)}"
        raise InvalidPlanFile(reason, hint=_BACKFILL_HINT) from None
    if plan.plan_id != form.plan_id:
        reason = f"{name}: {_EDITED} does not match its content"
        raise InvalidPlanFile(reason, hint=_BACKFILL_HINT)
    return plan


def check_version(content: Mapping[str, Any], *, name: str) -> None:
    """Raise InvalidPlanFile for an unsupported format."""
    version = content.get("format_version")
    if version != Plan.version:
        raise InvalidPlanFile(
            f"{name}: unsupported format {version!r}, supported: {Plan.version}",
            hint="make the plan again with this version",
        )


def problem(error: Exception) -> str:
    """Return the message of an error with its place: `changes[0].action: invalid enum value`."""
    message, _, place = str(error).partition(" - at `$")
    message = message[:1].lower() + message[1:]
    return f"{place.rstrip('`').removeprefix('.')}: {message}" if place else message
