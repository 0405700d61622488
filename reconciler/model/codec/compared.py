"""The public JSON of a comparison."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from reconciler.model.codec.base import (
    AddressText,
    Count,
    Form,
    PathForm,
    PlaceForm,
    copied,
    optional,
)
from reconciler.model.codec.text import json_text
from reconciler.model.codec.values import encode_value
from reconciler.model.compared import (
    EnvironmentComparison,
    FieldDifference,
    FieldSide,
    Intent,
    OnlyIn,
    ResourceDifference,
)
from reconciler.model.values import path_text

FORMAT_VERSION: Literal[1] = 1


class SideForm(Form, frozen=True, kw_only=True):
    """A field in one environment."""

    value: Any | UnsetType = UNSET
    """Absent if the field is not set. A secret is the text of its reference."""
    written: str | None
    """The text in the files, if references were filled in."""
    at: PlaceForm | None

    @classmethod
    def of(cls, side: FieldSide) -> SideForm:
        """Return the form of a side."""
        return cls(
            value=encode_value(side.value),
            written=side.written or None,
            at=optional(PlaceForm, side.at),
        )


class FieldDifferenceForm(Form, frozen=True, kw_only=True):
    """A field that differs."""

    path: PathForm
    name: str
    """The path as text."""
    intended: Intent | None
    """Why the difference is intended, null if it is not."""
    first: SideForm
    second: SideForm

    @classmethod
    def of(cls, field: FieldDifference) -> FieldDifferenceForm:
        """Return the form of a difference."""
        return cls(
            path=field.path,
            name=path_text(field.path),
            intended=field.intent if field.intent is not Intent.NONE else None,
            first=SideForm.of(field.first),
            second=SideForm.of(field.second),
        )


class ResourceDifferenceForm(Form, frozen=True, kw_only=True):
    """A resource that differs."""

    address: AddressText
    resource_name: str
    """Its name in the first environment."""
    fields: tuple[FieldDifferenceForm, ...]

    @classmethod
    def of(cls, item: ResourceDifference) -> ResourceDifferenceForm:
        """Return the form of a resource."""
        return cls(
            address=str(item.address),
            resource_name=item.name,
            fields=tuple(map(FieldDifferenceForm.of, item.fields)),
        )


class OnlyInForm(Form, frozen=True, kw_only=True):
    """A resource or object that one environment does not have."""

    address: AddressText
    resource_name: str
    at: PlaceForm | None

    @classmethod
    def of(cls, item: OnlyIn) -> OnlyInForm:
        """Return the form of a resource."""
        place = optional(PlaceForm, item.at)
        return cls(address=str(item.address), resource_name=item.name, at=place)


class ComparisonForm(Form, frozen=True, kw_only=True):
    """Two environments. `is_equal`: there are only intended differences."""

    format_version: Literal[1]
    first: str
    second: str
    live: bool
    is_equal: bool
    only_first: tuple[OnlyInForm, ...]
    only_second: tuple[OnlyInForm, ...]
    resources: tuple[ResourceDifferenceForm, ...]
    equal: Count
    """Resources without a difference."""


def compared_as_json(comparison: EnvironmentComparison) -> str:
    """Return the JSON of a comparison, in which control characters are escapes."""
    return json_text(
        copied(
            ComparisonForm,
            comparison,
            format_version=FORMAT_VERSION,
            only_first=tuple(map(OnlyInForm.of, comparison.only_first)),
            only_second=tuple(map(OnlyInForm.of, comparison.only_second)),
            resources=tuple(map(ResourceDifferenceForm.of, comparison.resources)),
        )
    )
