"""The public JSON of drift, and of what `pull` writes."""

from __future__ import annotations

from typing import Literal

from reconciler.model.codec.base import AddressText, Count, Form, PlaceForm, copied, optional
from reconciler.model.codec.text import json_text
from reconciler.model.drift import Drift, DriftedField, DriftedObject, Pulled
from reconciler.model.values import JSON, MISSING, path_text

FORMAT_VERSION: Literal[1] = 1
PULL_VERSION: Literal[2] = 2


class AttributionForm(Form, frozen=True, kw_only=True):
    """The entry of the activity log that set the live value."""

    by: str | None
    """The person; null for the service and for requests by API key that it does not attribute."""
    at: str
    """ISO 8601."""


class DriftedFieldForm(Form, frozen=True, kw_only=True):
    """A field whose live value changed since the base. An absent value is null."""

    path: str
    configured: JSON
    live: JSON
    conflict: bool
    """The configuration changed too."""
    changed: AttributionForm | None
    """Null if unknown."""

    @classmethod
    def of(cls, field: DriftedField) -> DriftedFieldForm:
        """Return the form of a field."""
        return cls(
            path=path_text(field.path),
            configured=_value(field.change.after),
            live=_value(field.change.before),
            conflict=field.conflict,
            changed=optional(AttributionForm, field.attribution),
        )


class DriftedObjectForm(Form, frozen=True, kw_only=True):
    """A resource whose live object drifted."""

    address: AddressText
    name: str
    live_id: str
    parent_name: str | None
    at: PlaceForm | None
    """The resource in the files."""
    paused_by_service: bool
    """The service probably paused it after failures."""
    fields: tuple[DriftedFieldForm, ...]

    @classmethod
    def of(cls, item: DriftedObject) -> DriftedObjectForm:
        """Return the form of an object."""
        return copied(
            cls,
            item,
            address=str(item.address),
            at=optional(PlaceForm, item.at),
            fields=tuple(map(DriftedFieldForm.of, item.fields)),
        )


class DriftForm(Form, frozen=True, kw_only=True):
    """What differs in live state since the git base."""

    format_version: Literal[1]
    environment: str
    organization: str
    base_url: str
    base: str | None
    """The commit of the base."""
    compared: Count
    objects: tuple[DriftedObjectForm, ...]
    deleted: tuple[AddressText, ...]
    """Resources of the base without a live object."""
    renamed: dict[AddressText, str]
    """Resources of the base whose object was probably renamed in the service, with its name."""
    unmanaged: Count
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, drift: Drift) -> DriftForm:
        """Return the form of drift."""
        source = drift.source
        return copied(
            cls,
            drift,
            format_version=FORMAT_VERSION,
            environment=source.environment,
            organization=source.organization,
            base_url=source.base_url,
            base=source.base,
            objects=tuple(map(DriftedObjectForm.of, drift.objects)),
            deleted=tuple(map(str, drift.deleted)),
            renamed={str(address): name for address, name in drift.renamed.items()},
        )


class PlacedForm(Form, frozen=True, kw_only=True):
    """A live value that is written."""

    address: AddressText
    path: str
    layer: str
    """`resource`, `override ENVIRONMENT` or `defaults`."""
    at: PlaceForm
    """The value before the edit."""
    replaces: str
    """The reference that stays for other environments, "" for none."""


class LeftOutForm(Form, frozen=True, kw_only=True):
    """A drifted field that is not written."""

    address: AddressText
    path: str
    reason: str


class PulledForm(Form, frozen=True, kw_only=True):
    """What `pull` writes."""

    format_version: Literal[2]
    environment: str
    written: bool
    files: tuple[str, ...]
    placed: tuple[PlacedForm, ...]
    left_out: tuple[LeftOutForm, ...]

    @classmethod
    def of(cls, pulled: Pulled) -> PulledForm:
        """Return the form of a result."""
        return cls(
            format_version=PULL_VERSION,
            environment=pulled.drift.source.environment,
            written=pulled.written,
            files=tuple(pulled.texts),
            placed=tuple(
                copied(
                    PlacedForm,
                    item,
                    address=str(item.address),
                    path=path_text(item.path),
                    at=copied(PlaceForm, item.at),
                )
                for item in pulled.placed
            ),
            left_out=tuple(
                copied(LeftOutForm, item, address=str(item.address), path=path_text(item.path))
                for item in pulled.left_out
            ),
        )


def drift_as_json(drift: Drift) -> str:
    """Return the JSON of drift."""
    return json_text(DriftForm.of(drift))


def pulled_as_json(pulled: Pulled) -> str:
    """Return the JSON of what was pulled."""
    return json_text(PulledForm.of(pulled))


def _value(value: JSON) -> JSON:
    return None if value is MISSING else value
