"""Read plans from public JSON again.

The types of values are those of their JSON. What is derived is not read: the JSON of an intact plan
is what its value is encoded to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from msgspec import convert

from reconciler.errors import ReconcilerError
from reconciler.model.address import Address
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.plan import Plan
from reconciler.model.public import SECRET_KEY, Public, as_json
from reconciler.model.values import JSON, SecretRef

_T = TypeVar("_T")
_Plan = TypeVar("_Plan", Plan, BackfillPlan)
_HINT = "make the plan again with `reconciler plan --out FILE`"


class InvalidPlanFile(ReconcilerError):
    """A file that is not a plan or an audit log, has another format, or was edited."""


def decode(data: bytes, *, name: str = "<plan>") -> Plan:
    """Return the plan that `encode` encoded. `name` is the file, for errors.

    Raises InvalidPlanFile.
    """
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        content = None
    return decode_content(content, Plan, name=name)


def decode_content(content: object, kind: type[_Plan], *, name: str) -> _Plan:
    """Return the plan of its public JSON as a value. Raises InvalidPlanFile."""
    if not isinstance(content, dict) or "format_version" not in content:
        raise InvalidPlanFile(f"{name}: not a plan file", hint=_HINT)
    check_version(content, kind, name=name)
    try:
        plan = value_of(kind, content)
        if orjson.loads(as_json(plan)) != content:
            raise ValueError("its digests do not match its content")  # noqa: TRY301 - one message
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"plan was edited or damaged: {problem_of(error)}"
        raise InvalidPlanFile(f"{name}: {problem}", hint=_HINT) from None
    return plan


def check_version(content: Mapping[str, Any], kind: type[Public], *, name: str) -> None:
    """Raise InvalidPlanFile for an unsupported format."""
    version = content.get("format_version")
    if version != kind.version:
        problem = f"unsupported format {version!r}, supported: {kind.version}"
        raise InvalidPlanFile(f"{name}: {problem}", hint=_HINT)


def value_of(kind: type[_T], content: object) -> _T:
    """Return the value of a type from its public JSON. Raises ValueError."""
    return convert(_with_secrets(content), kind, dec_hook=_address)


def _address(_: type[Address], text: object) -> Address:
    return Address.parse(str(text))


def _with_secrets(value: Any) -> JSON:
    """Return public JSON with values of the configuration as they were before `encode_value`."""
    if isinstance(value, dict):
        if value.keys() == {SECRET_KEY}:
            return convert(value[SECRET_KEY], SecretRef)
        return {name.removeprefix("$"): _with_secrets(item) for name, item in value.items()}
    return [_with_secrets(item) for item in value] if isinstance(value, list) else value


def problem_of(error: Exception) -> str:
    """Return the message of an error with its place: `changes[0].action: invalid enum value`."""
    message, _, place = str(error).partition(" - at `$")
    message = message[:1].lower() + message[1:]
    return f"{place.rstrip('`').removeprefix('.')}: {message}" if place else message
