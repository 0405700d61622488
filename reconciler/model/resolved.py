"""One resource as an environment has it, each field with the place that it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.errors import Mark
from reconciler.model.address import Address
from reconciler.model.values import JSON, MISSING, Path


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """A place that sets a field, with a word for what it is.

    `layer` is "resource", "override <environment>" or "defaults"; for what a reference leads to
    it is the mapping of the variables, "environment", "default" or "file". `at` is None where
    there is no file to look into.
    """

    layer: str
    at: Mark | None


@dataclass(frozen=True, slots=True)
class FilledReference:
    """A reference that was filled in, such as `${var:bucket}`, and the place of its value."""

    text: str
    origin: FieldOrigin


@dataclass(frozen=True, slots=True)
class Overridden:
    """What a lower layer says about the same field, as written there, and has no say in."""

    written: JSON
    origin: FieldOrigin


@dataclass(frozen=True, slots=True)
class ResolvedField:
    """A managed field: no mapping, unless it is an empty one.

    `value` never holds a secret, only references and, in place of a literal one, words.
    `written` is the text in the file where references were filled in, else `MISSING`.
    `overrides` begin with the layer just below.
    """

    path: Path
    value: JSON
    origin: FieldOrigin
    secret: bool = False
    written: JSON = MISSING
    references: tuple[FilledReference, ...] = ()
    overrides: tuple[Overridden, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedParent:
    """What a resource belongs to: a declared one with its address, or a live one by id or name."""

    address: Address | None = None
    id: str | None = None
    name: str | None = None
    at: Mark | None = None


@dataclass(frozen=True, slots=True)
class ResolvedResource:
    """A resource with its fields in the order in which they are drawn.

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
