"""What differs in live state since the git base, and what of it was written into the files."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.change import FieldChange, Origin
from reconciler.model.codec.base import AddressText
from reconciler.model.file_change import FileChange
from reconciler.model.plan import PlanSource
from reconciler.model.public import Count, Public, derived
from reconciler.model.values import JSON, MISSING, Path, path_text


class Attribution(Public, frozen=True):
    """The entry of the activity log that set the live value."""

    by: str | None
    """The person; null for the service and for requests by API key that it does not attribute."""
    at: str
    """ISO 8601."""


class DriftedField(Public, frozen=True):
    """A field whose live value changed since the base. An absent value is null."""

    internal = frozenset({"change"})

    change: FieldChange
    attribution: Attribution | None = field(default=None, name="changed")
    """Null if unknown."""

    @property
    def path(self) -> Path:
        """The path, with the names that the files use."""
        return self.change.written or self.change.path

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)

    @derived
    def configured(self) -> JSON:
        """The configured value."""
        return _null(self.change.after)

    @derived
    def live(self) -> JSON:
        """The live value."""
        return _null(self.change.before)

    @derived
    def conflict(self) -> bool:
        """The configuration changed too."""
        return self.change.origin is Origin.BOTH


class DriftedObject(Public, frozen=True):
    """A resource whose live object drifted."""

    address: Address
    name: str
    live_id: str
    fields: tuple[DriftedField, ...]
    parent_name: str | None = None
    at: Mark | None = None
    """The resource in the files."""
    paused_by_service: bool = False
    """The service probably paused it after failures."""


class Drift(Public, frozen=True):
    """What differs in live state since the git base."""

    schema = "drift"
    internal = frozenset({"source", "renamed"})
    version = 1

    source: PlanSource
    objects: tuple[DriftedObject, ...]
    compared: Count
    deleted: tuple[Address, ...] = ()
    """Resources of the base without a live object."""
    unmanaged: Count = 0
    remarks: tuple[str, ...] = ()
    renamed: Mapping[Address, str] = {}

    @derived
    def environment(self) -> str:
        """Name of the environment."""
        return self.source.environment

    @derived
    def organization(self) -> str:
        """Id of the organization."""
        return self.source.organization

    @derived
    def base_url(self) -> str:
        """Base URL of the service."""
        return self.source.base_url

    @derived
    def base(self) -> str | None:
        """The commit of the base."""
        return self.source.base

    @derived
    def renamed_(self) -> dict[AddressText, str]:
        """Resources of the base whose object was probably renamed in the service, with its name."""
        return {str(address): name for address, name in self.renamed.items()}

    @property
    def empty(self) -> bool:
        """Whether nothing drifted. Unmanaged objects are no drift."""
        return not (self.objects or self.deleted or self.renamed)


class Placed(Public, frozen=True):
    """A live value that is written."""

    internal = frozenset({"path", "value"})

    address: Address
    path: Path
    value: JSON
    layer: str
    """`resource`, `override ENVIRONMENT` or `defaults`."""
    at: Mark
    """The value before the edit."""
    replaces: str = ""
    """The reference that stays for other environments, "" for none."""

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)


class LeftOut(Public, frozen=True):
    """A drifted field that is not written."""

    internal = frozenset({"path"})

    address: Address
    path: Path
    reason: str

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)


class Pulled(Public, frozen=True):
    """What `pull` writes."""

    schema = "pull"
    internal = frozenset({"drift", "texts", "changes"})
    version = 2

    drift: Drift
    placed: tuple[Placed, ...]
    left_out: tuple[LeftOut, ...]
    texts: Mapping[str, str]
    changes: Mapping[str, FileChange]
    written: bool = True

    @derived
    def environment(self) -> str:
        """Name of the environment."""
        return self.drift.source.environment

    @derived
    def files(self) -> tuple[str, ...]:
        """The changed files."""
        return tuple(self.texts)

    def __repr__(self) -> str:
        # Texts of files may contain secrets.
        return f"Pulled(files={self.files}, placed={len(self.placed)}, written={self.written})"


def _null(value: JSON) -> JSON:
    return None if value is MISSING else value
