"""What differs in live state since the git base, and what of it was written into the files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.change import FieldChange, Origin
from reconciler.model.file_change import FileChange
from reconciler.model.plan import PlanSource
from reconciler.model.values import JSON, Path


class Attribution(Struct, frozen=True):
    """Who set a live value, and when (ISO 8601), by the activity log of the service.

    `by` is None for the service itself and for requests that it does not attribute to a person.
    """

    by: str | None
    at: str


class DriftedField(Struct, frozen=True):
    """A field whose live value changed since the base. `attribution` is None if unknown.

    `path` is as the files write it. `conflict`: the configuration changed too.
    """

    change: FieldChange
    attribution: Attribution | None = None

    @property
    def path(self) -> Path:
        """The path, with the names that the files use."""
        return self.change.written or self.change.path

    @property
    def conflict(self) -> bool:
        """Whether the configuration changed too."""
        return self.change.origin is Origin.BOTH


class DriftedObject(Struct, frozen=True):
    """A resource whose live object drifted.

    `paused_by_service`: the service probably paused it after failures.
    """

    address: Address
    name: str
    live_id: str
    fields: tuple[DriftedField, ...]
    parent_name: str | None = None
    at: Mark | None = None
    paused_by_service: bool = False


class Drift(Struct, frozen=True):
    """What differs in live state since the base of a plan.

    compared
        The number of resources that were compared.
    deleted
        Resources of the base without a live object.
    renamed
        Resources of the base whose object was probably renamed in the service, with its name.
    unmanaged
        The number of live objects that no resource claims.
    remarks
        What limits the result, such as an activity log that cannot be read.
    """

    source: PlanSource
    objects: tuple[DriftedObject, ...]
    compared: int
    deleted: tuple[Address, ...] = ()
    unmanaged: int = 0
    remarks: tuple[str, ...] = ()
    renamed: Mapping[Address, str] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing drifted. Unmanaged objects are no drift."""
        return not (self.objects or self.deleted or self.renamed)


class Placed(Struct, frozen=True):
    """A live value for the files: its path, and the layer that gets it.

    `replaces` is the reference that the layer below keeps for other environments, "" for none.
    """

    address: Address
    path: Path
    value: JSON
    layer: str
    at: Mark
    replaces: str = ""


class LeftOut(Struct, frozen=True):
    """A drifted field that is not written, and why."""

    address: Address
    path: Path
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Pulled:
    """Drift that was written into the files, or would be if not `written`."""

    drift: Drift
    placed: tuple[Placed, ...]
    left_out: tuple[LeftOut, ...]
    texts: Mapping[str, str] = dataclasses.field(repr=False)
    changes: Mapping[str, FileChange] = dataclasses.field(repr=False)
    written: bool = True
