"""Public JSON: a value has its fields, and its derived values, under their names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import orjson
from msgspec import UNSET, Meta, Struct
from msgspec.structs import asdict, fields

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.field_types import time_text
from reconciler.model.text import plain_json

Count: TypeAlias = Annotated[int, Meta(ge=0)]
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


class derived(property):  # noqa: N801 - used as property is
    """A property that is part of public JSON. Its docstring describes it.

    Its name in JSON has no `_` at the end, by which it differs from that of a field.
    """


class Public(Struct, frozen=True):
    """A value of public JSON: its fields without the `internal` ones, then what is derived.

    The docstring below a field describes it. A whole report has the `version` of its format and the
    name of its `schema`.
    """

    internal: ClassVar[frozenset[str]] = frozenset()
    version: ClassVar[int | None] = None
    schema: ClassVar[str] = ""


def as_json(value: object, *, indent: bool = True) -> str:
    """Return the public JSON of a value, in which control characters are escapes."""
    options = _OPTIONS | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        text = orjson.dumps(value, _plain, options).decode()
    except orjson.JSONEncodeError:
        # orjson refuses half of a surrogate pair, which a message can quote from a file.
        text = json.dumps(value, default=_plain, ensure_ascii=False, indent=2 if indent else None)
    return plain_json(text) + "\n"


def _plain(value: Any) -> Any:
    """Return what orjson can encode. Raises TypeError for a type without public JSON."""
    if isinstance(value, Public):
        head = {} if value.version is None else {"format_version": value.version}
        values = {key: getattr(value, name) for key, name in names(type(value)).items()}
        return head | {key: item for key, item in values.items() if item is not UNSET}
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Address):
        return str(value)
    if isinstance(value, Mark):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no public JSON")


@cache
def names(kind: type[Public]) -> Mapping[str, str]:
    """Return the attributes that values of a type have in public JSON, by their names there."""
    known = {item.encode_name: item.name for item in fields(kind) if item.name not in kind.internal}
    for owner in reversed(kind.__mro__):
        for name, item in vars(owner).items():
            if isinstance(item, derived):
                known[name.rstrip("_")] = name
    return known
