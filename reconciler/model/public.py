"""Public JSON: a value has its fields, and its derived values, under their names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

import orjson
from msgspec import UNSET, Meta, Struct
from msgspec.structs import asdict

from reconciler.model.schemas import time_text
from reconciler.model.text import plain_json
from reconciler.model.values import JSON, MISSING, PLAIN, SecretRef

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
FieldPath: TypeAlias = Annotated[
    tuple[str | int, ...],
    Meta(description="Names and list positions, counted from 0.", min_length=1),
]
Digest: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
SECRET_KEY = "$secret"  # noqa: S105 - a marker
"""`{"$secret": {"parts": […]}}` is a value with secrets. Another name with a `$` gets one more."""
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS


class Term(StrEnum):
    """A word of the public JSON with its meaning, for the schemas and for printed plans."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """Create a member from its word and its meaning."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    @property
    def rank(self) -> int:
        """Its position among the terms, from 0."""
        return _ranks(type(self))[self]


@cache
def _ranks(terms: type[Term]) -> Mapping[Term, int]:
    return {term: position for position, term in enumerate(terms)}


if TYPE_CHECKING:
    derived = property
else:

    class derived(property):  # noqa: N801 - used as property is
        """A property that is part of public JSON. Its docstring describes it.

        Its name in JSON has no `_` at the end, by which it differs from that of a field.
        """


class Public(Struct, frozen=True):
    """A value of public JSON: its fields without the `internal` ones, then what is derived.

    The docstring below a field describes it. A whole report has the `version` of its format and the
    name of its `schema`.

    Fields that are `optional` are absent if they are empty. Those `with_secrets` contain values of
    the configuration.
    """

    internal: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[frozenset[str]] = frozenset()
    with_secrets: ClassVar[frozenset[str]] = frozenset()
    version: ClassVar[int | None] = None
    schema: ClassVar[str] = ""


def as_json(value: object, *, indent: bool = True, sort: bool = False) -> str:
    """Return the public JSON of a value, in which control characters are escapes."""
    options = _OPTIONS | (orjson.OPT_INDENT_2 if indent else 0)
    options |= orjson.OPT_SORT_KEYS if sort else 0
    try:
        text = orjson.dumps(value, _plain, options).decode()
    except orjson.JSONEncodeError:
        # orjson refuses half of a surrogate pair, which a message can quote from a file.
        how: Any = {"indent": 2 if indent else None, "sort_keys": sort}
        text = json.dumps(value, default=_plain, ensure_ascii=False, **how)
    return plain_json(text) + "\n"


def _plain(value: Any) -> Any:
    """Return what orjson can encode. Raises KeyError for a type without public JSON."""
    if isinstance(value, Public):
        return members(value)
    if isinstance(value, Struct):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return _ENCODERS[type(value)](value)


def members(value: Public) -> dict[str, Any]:
    """Return what public JSON has of a value, by the names there."""
    kind = type(value)
    made: dict[str, Any] = {} if kind.version is None else {"format_version": kind.version}
    for key, name in names(kind).items():
        item = getattr(value, name)
        if name in kind.with_secrets:
            item = encode_value(item)
        if item is not UNSET and (item or name not in kind.optional):
            made[key] = item
    return made


def encode_value(value: JSON) -> Any:
    """Return a value of the configuration as public JSON, UNSET for MISSING."""
    if value.__class__ in PLAIN:
        return value
    if value is MISSING:
        return UNSET
    if isinstance(value, SecretRef):
        return {SECRET_KEY: value}
    if isinstance(value, Mapping):
        return {
            f"${name}" if str(name).startswith("$") else str(name): encode_value(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [encode_value(item) for item in value]
    return value


_ENCODERS: Mapping[type, Callable[[Any], Any]] = {
    datetime: time_text,
    timedelta: timedelta.total_seconds,
}


@cache
def names(kind: type[Public]) -> Mapping[str, str]:
    """Return the attributes that values of a type have in public JSON, by their names there."""
    pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    known = {key: name for key, name in pairs if name not in kind.internal}
    for owner in reversed(kind.__mro__):
        for name, item in vars(owner).items():
            if isinstance(item, derived):
                known[name.rstrip("_")] = name
    return known
