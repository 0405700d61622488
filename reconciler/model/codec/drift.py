"""The public JSON of drift, and of what `pull` writes."""

from __future__ import annotations

from typing import Literal

import orjson
from msgspec import to_builtins

from reconciler.model.codec.base import AddressText, Count, Form, PlaceForm, copied, optional
from reconciler.model.drift import Attribution, Drift, DriftedField, DriftedObject, Pulled
from reconciler.model.values import JSON, MISSING, path_text
from reconciler.model.wording import plain_json

FORMAT_VERSION: Literal[1] = 1


class AttributionForm(Form, frozen=True, kw_only=True):
    """The entry of the activity log that set the live value."""

    by: str | None
    """The person; null for the service and for requests by API key that it does not attribute."""
    at: str
    """ISO 8601."""

    @classmethod
    def of(cls, attribution: Attribution) -> AttributionForm:
        """Return the form of an attribution."""
        return cls(by=attribution.by, at=attribution.at)


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
            changed=AttributionForm.of(field.attribution) if field.attribution else None,
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
        return cls(
            address=str(item.address),
            name=item.name,
            live_id=item.live_id,
            parent_name=item.parent_name,
            at=optional(PlaceForm, item.at),
            paused_by_service=item.paused_by_service,
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
    unmanaged: Count
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, drift: Drift) -> DriftForm:
        """Return the form of drift."""
        return cls(
            format_version=FORMAT_VERSION,
            environment=drift.source.environment,
            organization=drift.source.organization,
            base_url=drift.source.base_url,
            base=drift.source.base,
            compared=drift.compared,
            objects=tuple(map(DriftedObjectForm.of, drift.objects)),
            deleted=tuple(map(str, drift.deleted)),
            unmanaged=drift.unmanaged,
            remarks=drift.remarks,
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

    format_version: Literal[1]
    environment: str
    written: bool
    files: tuple[str, ...]
    placed: tuple[PlacedForm, ...]
    left_out: tuple[LeftOutForm, ...]
    commits: dict[str, str]
    """By address."""

    @classmethod
    def of(cls, pulled: Pulled) -> PulledForm:
        """Return the form of a result."""
        return cls(
            format_version=FORMAT_VERSION,
            environment=pulled.drift.source.environment,
            written=pulled.written,
            files=tuple(pulled.texts),
            placed=tuple(
                PlacedForm(
                    address=str(item.address),
                    path=path_text(item.path),
                    layer=item.layer,
                    at=copied(PlaceForm, item.at),
                    replaces=item.replaces,
                )
                for item in pulled.placed
            ),
            left_out=tuple(
                LeftOutForm(
                    address=str(item.address), path=path_text(item.path), reason=item.reason
                )
                for item in pulled.left_out
            ),
            commits={str(address): commit for address, commit in pulled.commits.items()},
        )


def drift_as_json(drift: Drift) -> str:
    """Return the JSON of drift."""
    return _encoded(DriftForm.of(drift))


def pulled_as_json(pulled: Pulled) -> str:
    """Return the JSON of what was pulled."""
    return _encoded(PulledForm.of(pulled))


def _encoded(form: Form) -> str:
    text = orjson.dumps(to_builtins(form), option=orjson.OPT_INDENT_2).decode()
    return f"{plain_json(text)}\n"


def _value(value: JSON) -> JSON:
    return None if value is MISSING else value
