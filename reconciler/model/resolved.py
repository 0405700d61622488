"""A resolved resource, and where each of its fields comes from."""

from __future__ import annotations

from typing import Any, Self

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.public import FieldPath, Public
from reconciler.model.values import FieldOrigin


class PublicOrigin(Public, frozen=True):
    """Where a value comes from."""

    layer: str
    """The layer, such as `resource` or `override production`."""
    file: str | None
    """Path, relative to the workspace; null without a place."""
    line: int | None
    """Line, from 1."""
    column: int | None
    """Column in characters, from 1."""

    @classmethod
    def of(cls, origin: FieldOrigin) -> Self:
        """Return the origin of a value."""
        at = origin.at
        place = (None, None, None) if at is None else (at.file, at.line, at.column)
        return cls(origin.layer, *place)


class PublicReference(Public, frozen=True):
    """A reference that was filled in."""

    reference: str
    """Its text."""
    origin: PublicOrigin
    """Where its value comes from."""


class PublicOverridden(Public, frozen=True):
    """The value of the field in a lower layer."""

    written: Any
    """The value, as written."""
    origin: PublicOrigin
    """Where it is."""


class PublicField(Public, frozen=True):
    """A field that the files manage."""

    path: FieldPath
    """Its path in the resource."""
    name: str
    """The path as text."""
    value: Any
    """The value, with references in place of secrets; null if it is unset."""
    unset: bool
    """Whether `${unset}` leaves it unmanaged."""
    secret: bool
    """Whether it contains a secret."""
    origin: PublicOrigin
    """Where the value comes from."""
    written: Any
    """The text in the file, if references were filled in, else null."""
    references: tuple[PublicReference, ...]
    """The references that were filled in."""
    overrides: tuple[PublicOverridden, ...]
    """The same field in lower layers, the next one first."""


class PublicParent(Public, frozen=True):
    """The parent: a declared one has an address, a live one an id or a name."""

    address: Address | None
    """Its address."""
    id: str | None
    """Its id."""
    name: str | None
    """Its name."""
    declared: Mark | None
    """Where it is declared."""


class PublicResource(Public, frozen=True):
    """A resource with the origin of its fields: `show NAME --format json`."""

    internal = frozenset({"collection", "in_organization"})
    version = 1
    schema = "resolved"

    address: Address
    """Its address."""
    environment: str
    """The environment of the values."""
    environments: tuple[str, ...]
    """The environments that have the resource."""
    declared: Mark
    """Where it is declared."""
    parent: PublicParent | None
    """What it belongs to; null for the organization."""
    fields: tuple[PublicField, ...]
    """The fields, in the order of output."""
    collection: str
    in_organization: bool = False
