"""The comparison of two environments: what is in one of them only, and fields that differ."""

from __future__ import annotations

from enum import StrEnum

from msgspec import UnsetType, field

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.codec.base import encode_value
from reconciler.model.public import Count, Public, derived
from reconciler.model.values import JSON, Path, path_text


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


class FieldSide(Public, frozen=True):
    """A field in one environment."""

    internal = frozenset({"value"})

    value: JSON
    written: str | None = None
    """The text in the files, if references were filled in."""
    at: Mark | None = None

    @derived
    def value_(self) -> JSON | UnsetType:
        """Absent if the field is not set. A secret is the text of its reference."""
        return encode_value(self.value)


class FieldDifference(Public, frozen=True):
    """A field that differs."""

    internal = frozenset({"intent"})

    path: Path
    first: FieldSide
    second: FieldSide
    intent: Intent = Intent.NONE

    @derived
    def name(self) -> str:
        """The path as text."""
        return path_text(self.path)

    @derived
    def intended(self) -> Intent | None:
        """Why the difference is intended, null if it is not."""
        return self.intent if self.intent is not Intent.NONE else None


class ResourceDifference(Public, frozen=True):
    """A resource that differs."""

    address: Address
    name: str = field(name="resource_name")
    """Its name in the first environment."""
    fields: tuple[FieldDifference, ...]

    @property
    def unintended(self) -> tuple[FieldDifference, ...]:
        """The differences that nothing in the files explains."""
        return tuple(field for field in self.fields if field.intent is Intent.NONE)

    @property
    def intended(self) -> tuple[FieldDifference, ...]:
        """The other differences."""
        return tuple(field for field in self.fields if field.intent is not Intent.NONE)


class OnlyIn(Public, frozen=True):
    """A resource or object that one environment does not have."""

    address: Address
    name: str = field(name="resource_name")
    at: Mark | None = None


class EnvironmentComparison(Public, frozen=True):
    """Two environments."""

    schema = "compare"
    version = 1

    first: str
    second: str
    live: bool
    only_first: tuple[OnlyIn, ...]
    only_second: tuple[OnlyIn, ...]
    resources: tuple[ResourceDifference, ...]
    equal: Count
    """Resources without a difference."""

    @property
    def differing(self) -> tuple[ResourceDifference, ...]:
        """The resources with differences that are not intended."""
        return tuple(resource for resource in self.resources if resource.unintended)

    @property
    def intended(self) -> tuple[ResourceDifference, ...]:
        """The resources with intended differences."""
        return tuple(resource for resource in self.resources if resource.intended)

    @derived
    def is_equal(self) -> bool:
        """Whether there are only intended differences."""
        return not (self.only_first or self.only_second or self.differing)
