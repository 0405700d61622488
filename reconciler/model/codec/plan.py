"""Encode and decode plans without loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import ValidationError, convert, to_builtins

from reconciler.errors import ReconcilerError
from reconciler.model.codec.forms import FORMAT_VERSION, PlanForm
from reconciler.model.plan import Plan
from reconciler.model.text import plain_json

_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
_HINT = "make the plan again with `reconciler plan --out FILE`"


class InvalidPlanFile(ReconcilerError):
    """A file that is not a plan or an audit log, has another format, or was edited."""


def encode(plan: Plan) -> bytes:
    """Return canonical bytes: equal plans give equal bytes."""
    content = to_builtins(PlanForm.of(plan))
    return plain_json(orjson.dumps(content, option=_OPTIONS).decode()).encode()


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
        plan = convert(content, PlanForm).value()
        is_intact = orjson.loads(encode(plan)) == content
    except (ValidationError, ValueError, RecursionError) as error:
        raise InvalidPlanFile(f"{name}: invalid plan: {problem(error)}", hint=_HINT) from None
    if not is_intact:
        raise InvalidPlanFile(
            f"{name}: plan was edited or damaged: its digests do not match its content", hint=_HINT
        )
    return plan


def check_version(content: Mapping[str, Any], *, name: str) -> None:
    """Raise InvalidPlanFile for an unsupported format."""
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise InvalidPlanFile(
            f"{name}: unsupported format {version!r}, supported: {FORMAT_VERSION}",
            hint="make the plan again with this version",
        )


def problem(error: Exception) -> str:
    """Return the message of an error with its place: `changes[0].action: invalid enum value`."""
    message, _, place = str(error).partition(" - at `$")
    message = message[:1].lower() + message[1:]
    return f"{place.rstrip('`').removeprefix('.')}: {message}" if place else message
