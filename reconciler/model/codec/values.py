"""Encode JSON values of a plan: secrets as references, absent values without a key.

`{"$secret": […]}` is a value with secrets, so a name that starts with `$` gets one more `$`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, convert

from reconciler.model.values import (
    JSON,
    MISSING,
    SecretRef,
    SecretSource,
)

_SECRET_KEY = "$secret"  # noqa: S105 - a marker


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
