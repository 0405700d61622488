"""A resource in one environment, with the origin of each field."""

from __future__ import annotations

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.field_origin import FieldOrigin
from reconciler.model.values import JSON, MISSING, Path


class FilledReference(Struct, frozen=True):
    """A reference that was filled in, such as `${var:bucket}`, and the place of its value."""

    text: str
    origin: FieldOrigin


class Overridden(Struct, frozen=True):
    """The value of the same field in a lower layer, as written."""

    written: JSON
    origin: FieldOrigin


class ResolvedField(Struct, frozen=True):
    """A managed field: a leaf or an empty mapping.

    `value` contains references in place of secrets, and a placeholder for a literal one. It is
    `MISSING` for a field that `${unset}` leaves unmanaged. `written` is the text in the file if
    references were filled in, else `MISSING`. `overrides` start with the next lower layer.
    """

    path: Path
    value: JSON
    origin: FieldOrigin
    secret: bool = False
    written: JSON = MISSING
    references: tuple[FilledReference, ...] = ()
    overrides: tuple[Overridden, ...] = ()


class ResolvedParent(Struct, frozen=True):
    """The parent: a declared one with its address, or a live one by id or name."""

    address: Address | None = None
    id: str | None = None
    name: str | None = None
    at: Mark | None = None


class ResolvedResource(Struct, frozen=True):
    """A resource with its fields in the order of output.

    `environments` are those that have it. `parent` is None for kinds without one, and for a
    resource of the organization, then `in_organization` is True.
    """

    address: Address
    collection: str
    environment: str
    environments: tuple[str, ...]
    declared_at: Mark
    fields: tuple[ResolvedField, ...]
    parent: ResolvedParent | None = None
    in_organization: bool = False
