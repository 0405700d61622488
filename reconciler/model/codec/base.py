"""The base of forms, and copies between forms and values."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Struct

_T = TypeVar("_T", bound=Struct)
_ADDRESS = "KIND.KEY, or KIND.id:ID for an unmanaged object."
AddressText: TypeAlias = Annotated[
    str, Meta(description=_ADDRESS, extra_json_schema={"pattern": r"^[^.]+\..+$"})
]
PathForm: TypeAlias = Annotated[
    tuple[str | int, ...],
    Meta(description="Names and list positions, counted from 0.", min_length=1),
]
Body: TypeAlias = dict[str, Any] | None
"""Fields by the names of the API. `{"$secret": PARTS}` is a value that contains secrets; a name
that starts with $ has one more $."""


def copied(target: type[_T], source: object, /, **parts: Any) -> _T:
    """Return a form or a value with the fields of another, `parts` replacing some."""
    names = (name for name in target.__struct_fields__ if name not in parts)
    same = {name: getattr(source, name) for name in names}
    return target(**same, **parts)


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all forms: immutable, without unknown fields."""


class PlaceForm(Form, frozen=True, kw_only=True):
    """A place in the configuration. Line and column count from 1."""

    file: str
    """Path, relative to the workspace."""
    line: Annotated[int, Meta(ge=1)]
    """Line."""
    column: Annotated[int, Meta(ge=1)]
    """Column."""
    length: Annotated[int, Meta(ge=1)]
    """Length of the marked text."""


def optional(target: type[_T], source: object | None, /, **parts: Any) -> _T | None:
    """Return a copy as `copied` does, None for None."""
    return copied(target, source, **parts) if source is not None else None
