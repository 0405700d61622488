"""Read public JSON again: the forms of values, and saved plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

import orjson
from msgspec import (
    NODEFAULT,
    UNSET,
    Meta,
    Struct,
    UnsetType,
    ValidationError,
    convert,
    defstruct,
    field,
)

from reconciler.diagnostics import Mark
from reconciler.errors import ExitCode, ReconcilerError
from reconciler.model.address import Address
from reconciler.model.backfill_plan import BackfillPlan, ObjectBackfills
from reconciler.model.plan import Plan, PlanSource, encode
from reconciler.model.public import SECRET_KEY, AddressText, Positive, Public, derived, names
from reconciler.model.values import JSON, MISSING, Path, SecretRef, SecretSource

_T = TypeVar("_T", bound=Public)
_PathForm: TypeAlias = Annotated[
    tuple[str | int, ...],
    Meta(description="Names and list positions, counted from 0.", min_length=1),
]
_EVENTS = {item.__name__: item for item in (BackfillPlan, ObjectBackfills)}
"""What the annotations of events name, and their module does not import."""
_HINT = "make the plan again with `reconciler plan --out FILE`"
_EDITED = "plan was edited or damaged: its digest"


class _Place(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in the configuration. Line and column count from 1."""

    file: str
    """Path, relative to the workspace."""
    line: Positive
    """Line."""
    column: Positive
    """Column."""
    length: Positive
    """Length of the marked text."""

    @property
    def mark(self) -> Mark:
        """The place as a value."""
        return Mark(self.file, self.line, self.column, self.length)


class _Reference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A secret reference."""

    ref: Annotated[str, Meta(extra_json_schema={"pattern": r"^\$\{secret:[^:}]+:"})]
    """Such as ${secret:env:NAME}."""


_Parts: TypeAlias = tuple[str | _Reference, ...]
SHAPES: dict[Any, Any] = {
    Address: AddressText,
    ExitCode: int,
    Mark: _Place,
    Path: _PathForm,
    SecretRef: _Parts,
    datetime: str,
    Mapping[str, Any]: dict[str, Any],
    Mapping[str, str]: dict[str, str],
}
"""What public JSON has for the values of some types."""


@cache
def form_of(kind: type[Public]) -> type[Struct]:
    """Return the type of what public JSON has of values; `__declared__` is their type."""
    return defstruct(
        kind.__name__,
        members_of(kind),
        namespace={"__doc__": kind.__doc__, "__declared__": kind},
        forbid_unknown_fields=True,
        kw_only=True,
    )


def members_of(kind: type[Public]) -> list[tuple[str, Any, Any]]:
    """Return the attributes, types and fields of the form of a type."""
    hints = hints_of(kind, localns=_EVENTS, include_extras=True)
    given = kind.__struct_defaults__
    defaults = dict(zip(kind.__struct_fields__[-len(given) :], given, strict=False))
    version = Literal[kind.version]  # type: ignore[name-defined]
    made = [("format_version", version, NODEFAULT)] if kind.version is not None else []
    for key, name in names(kind).items():
        value = getattr(kind, name)
        if isinstance(value, derived):
            hint = hints_of(value.fget, include_extras=True)["return"]
        else:
            hint = hints[name]
        default: Any = NODEFAULT
        if name in kind.optional or UnsetType in get_args(hint) or defaults.get(name) is MISSING:
            default = UNSET
        elif name.rstrip("_") in kind.recent:
            default = defaults[name.rstrip("_")]
        shape = shape_of(_without_none(hint) if name in kind.optional else hint)
        made.append((key.replace("-", "_"), shape, field(name=key, default=default)))
    return made


def _without_none(hint: Any) -> Any:
    parts = get_args(hint)
    return parts[0] if type(None) in parts else hint


def shape_of(hint: Any) -> Any:
    """Return the type that values of a type have in public JSON."""
    if hint in SHAPES:
        return SHAPES[hint]
    if isinstance(hint, type) and issubclass(hint, Public):
        return form_of(hint)
    origin = get_origin(hint)
    if origin is Annotated:
        inner = hint.__origin__
        return Annotated[
            (shape_of(inner) if isinstance(inner, type) else inner, *hint.__metadata__)
        ]
    parts = tuple(map(shape_of, get_args(hint)))
    if origin in (Union, UnionType):
        return Union[parts]  # noqa: UP007 - of parts that are known here only
    return origin[parts] if origin in (tuple, dict) else hint


def value_of(kind: type[_T], form: Struct, **given: Any) -> _T:
    """Return the value of a form; `given` are internal fields. Raises ValueError."""
    for key, name, read in _readers(kind):
        value = getattr(form, key)
        if value is not UNSET:
            given[name] = read(value)
    return kind(**given)


@cache
def _readers(kind: type[Public]) -> list[tuple[str, str, Callable[[Any], Any]]]:
    """Return the attributes of a form, the fields of the value, and how each is read."""
    hints = hints_of(kind, localns=_EVENTS)
    pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return [
        (
            key.replace("-", "_"),
            name,
            decode_value if name in kind.with_secrets else _reader(hints[name]),
        )
        for key, name in pairs
        if name not in kind.internal
    ]


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return a function from what a form has to what a value has of a type."""
    if hint in _READERS:
        return _READERS[hint]
    if isinstance(hint, type) and issubclass(hint, Public):
        return partial(value_of, hint)
    inner = next((_reader(part) for part in get_args(hint) if part is not type(None)), _same)
    if inner is _same:
        return _same
    if get_origin(hint) is tuple:
        return lambda items: tuple(map(inner, items))
    return lambda item: None if item is None else inner(item)


def _same(value: Any) -> Any:
    return value


def decode_value(value: Any) -> JSON:
    """Return the value of the configuration that `encode_value` encoded. Raises ValueError."""
    if isinstance(value, Mapping):
        if set(value) == {SECRET_KEY}:
            return _secret(convert(value[SECRET_KEY], _Parts))
        return {name.removeprefix("$"): decode_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    return value


def _secret(parts: _Parts) -> SecretRef:
    """Return the secret with these parts. Raises ValueError for an unknown source."""
    return SecretRef(
        tuple(part if isinstance(part, str) else SecretSource.parse(part.ref) for part in parts)
    )


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    Address: Address.parse,
    Mark: lambda place: place.mark,
    SecretRef: _secret,
    datetime: datetime.fromisoformat,
}


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


def decode_backfill_content(content: object, *, name: str) -> BackfillPlan:
    """Return the plan of backfills of its public JSON as a value. Raises InvalidPlanFile."""
    try:
        form: Any = convert(content, form_of(BackfillPlan))
        source = PlanSource(
            form.environment, form.organization, form.base_url, form.tool_version, form.dialect
        )
        plan = value_of(BackfillPlan, form, source=source)
    except ValueError as error:
        raise InvalidPlanFile(f"{name}: invalid plan: {problem(error)}") from None
    if plan.plan_id != form.plan_id:
        raise InvalidPlanFile(f"{name}: {_EDITED} does not match its content")
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
