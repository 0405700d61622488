"""What the forms share: their base, places, and copies of fields between forms and values."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Struct

_T = TypeVar("_T")
_ADDRESS = "KIND.KEY, and KIND.id:ID for an object that no resource claims."
AddressText: TypeAlias = Annotated[
    str, Meta(description=_ADDRESS, extra_json_schema={"pattern": r"^[^.]+\..+$"})
]
PathForm: TypeAlias = Annotated[
    tuple[str | int, ...],
    Meta(description="Names, and positions in lists counted from 0.", min_length=1),
]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Body: TypeAlias = Annotated[
    dict[str, Any] | None,
    Meta(
        description='Fields by the service\'s names. {"$secret": PARTS} stands for a value with a '
        "secret in it; a name that begins with $ has one $ more."
    ),
]


def doc(text: str) -> Meta:
    """Return the description of a field."""
    return Meta(description=text)


def copied(target: type[_T], source: object, **parts: Any) -> _T:
    """Return a form or a value with the fields of another, and with `parts` in place of some."""
    names = getattr(target, "__struct_fields__", None) or target.__dataclass_fields__  # type: ignore[attr-defined]
    same = {name: getattr(source, name) for name in names if name not in parts}
    return target(**same, **parts)


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all forms: immutable, and strict about what it reads."""


class PlaceForm(Form, frozen=True, kw_only=True):
    """A place in the configuration. Line and column count from 1."""

    file: Annotated[str, doc("Path, relative to the workspace.")]
    line: Annotated[int, Meta(description="Line.", ge=1)]
    column: Annotated[int, Meta(description="Column.", ge=1)]
    length: Annotated[int, Meta(description="Length of the marked text.", ge=1)]


def optional(target: type[_T], source: object | None, **parts: Any) -> _T | None:
    """Return a copy as `copied` does, None for None."""
    return copied(target, source, **parts) if source is not None else None
