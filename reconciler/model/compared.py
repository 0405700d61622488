"""The comparison of two environments: what is in one of them only, and fields that differ."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.values import JSON, Path


class Intent(StrEnum):
    """Why a difference is intended. `NONE` is a difference that is not."""

    NONE = ""
    IDENTITY = "identity"
    SECRET = "secret"  # noqa: S105 - a word
    OVERRIDES = "overrides"
    REFERENCE = "reference"

    @property
    def meaning(self) -> str:
        """Words for readers, "" for a difference that is not intended."""
        return _MEANINGS[self]


_MEANINGS = {
    Intent.NONE: "",
    Intent.IDENTITY: "identity of the object",
    Intent.SECRET: "secret of the environment",
    Intent.OVERRIDES: "overrides of both environments",
    Intent.REFERENCE: "reference",
}


class FieldSide(Struct, frozen=True):
    """A field in one environment. `value` is `MISSING` if it is not managed or has no value.

    `written` is the text with references in the files, "" without any. `at` is its place.
    """

    value: JSON
    written: str = ""
    at: Mark | None = None


class FieldDifference(Struct, frozen=True):
    """A field that differs, with its value in the first and in the second environment."""

    path: Path
    first: FieldSide
    second: FieldSide
    intent: Intent = Intent.NONE


class ResourceDifference(Struct, frozen=True):
    """A resource that differs. `name` is that in the first environment."""

    address: Address
    name: str
    fields: tuple[FieldDifference, ...]

    @property
    def unintended(self) -> tuple[FieldDifference, ...]:
        """The differences that nothing in the files explains."""
        return tuple(field for field in self.fields if field.intent is Intent.NONE)

    @property
    def intended(self) -> tuple[FieldDifference, ...]:
        """The other differences."""
        return tuple(field for field in self.fields if field.intent is not Intent.NONE)


class OnlyIn(Struct, frozen=True):
    """A resource or object that one environment does not have. `at` is None for an object."""

    address: Address
    name: str
    at: Mark | None = None


class EnvironmentComparison(Struct, frozen=True):
    """Two environments, of the files or `live`. `equal` counts resources without a difference."""

    first: str
    second: str
    live: bool
    only_first: tuple[OnlyIn, ...]
    only_second: tuple[OnlyIn, ...]
    resources: tuple[ResourceDifference, ...]
    equal: int

    @property
    def differing(self) -> tuple[ResourceDifference, ...]:
        """The resources with differences that are not intended."""
        return tuple(resource for resource in self.resources if resource.unintended)

    @property
    def intended(self) -> tuple[ResourceDifference, ...]:
        """The resources with intended differences."""
        return tuple(resource for resource in self.resources if resource.intended)

    @property
    def is_equal(self) -> bool:
        """Whether there are only intended differences."""
        return not (self.only_first or self.only_second or self.differing)
