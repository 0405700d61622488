"""The base of forms, copies between forms and values, and secrets and absent values in them.

`{"$secret": […]}` is a value with secrets, so a name that starts with `$` gets one more `$`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import UNSET, Meta, Struct, convert

from reconciler.model.values import JSON, MISSING, SecretRef, SecretSource

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
_SECRET_KEY = "$secret"  # noqa: S105 - a marker


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


class ReferenceForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A secret reference."""

    ref: Annotated[str, Meta(extra_json_schema={"pattern": r"^\$\{secret:[^:}]+:"})]
    """Such as ${secret:env:NAME}."""


Parts: TypeAlias = tuple[str | ReferenceForm, ...]


def encode_value(value: JSON) -> Any:
    """Return a value as public JSON, UNSET for MISSING."""
    if value is MISSING:
        return UNSET
    if isinstance(value, SecretRef):
        return {_SECRET_KEY: encode_secret(value)}
    if isinstance(value, Mapping):
        return {
            f"${name}" if str(name).startswith("$") else str(name): encode_value(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [encode_value(item) for item in value]
    return value


def decode_value(value: Any) -> JSON:
    """Return the value that `encode_value` encoded. Raises ValueError."""
    if value is UNSET:
        return MISSING
    if isinstance(value, Mapping):
        if set(value) == {_SECRET_KEY}:
            return decode_secret(convert(value[_SECRET_KEY], Parts))
        return {name.removeprefix("$"): decode_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    return value


def encode_secret(secret: SecretRef) -> Parts:
    """Return the text and the references of a secret, in order."""
    return tuple(
        part if isinstance(part, str) else ReferenceForm(ref=str(part)) for part in secret.parts
    )


def decode_secret(parts: Parts) -> SecretRef:
    """Return the secret of `encode_secret`. Raises ValueError for an unknown source."""
    return SecretRef(
        tuple(part if isinstance(part, str) else SecretSource.parse(part.ref) for part in parts)
    )
