"""The report of `drift`: what differs in live state since the apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import field
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.plan import Change, FieldChange, Origin, PlanSource
from reconciler.model.public import Count, Public, derived
from reconciler.model.text import listed, named, printable, several
from reconciler.model.values import (
    JSON,
    MISSING,
    Path,
    path_text,
)
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.plan_document import applied_commit
from reconciler.render.plan_fields import FieldLine, plain_lines

_MOST_LISTED = 5
_COLUMNS = (
    Column("field", padded=False),
    Column("configured", padded=False),
    Column("live", " -> ", padded=False),
    Column("changed", "  (", ")", padded=False),
)


class Attribution(Public, frozen=True):
    """The entry of the activity log that set the live value."""

    by: str | None
    """The person; null for the service and for requests by API key that it does not attribute."""
    at: str
    """ISO 8601."""


class DriftedField(Public, frozen=True):
    """A field whose live value is not the declared one. An absent value is null."""

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
    """The service paused it after failures."""


class Drift(Public, frozen=True):
    """What differs in live state since the apply."""

    schema = "drift"
    version = 1

    source: PlanSource
    """What the plan was computed from."""
    objects: tuple[DriftedObject, ...]
    compared: Count
    deleted: tuple[Address, ...] = ()
    """Applied resources without a live object."""
    unmanaged: Count = 0
    remarks: tuple[str, ...] = ()
    renamed: Mapping[Address, str] = {}
    """Applied resources whose object was probably renamed in the service, with its name."""

    @property
    def empty(self) -> bool:
        """Whether nothing drifted. Unmanaged objects are no drift."""
        return not (self.objects or self.deleted or self.renamed)


def _null(value: JSON) -> JSON:
    return None if value is MISSING else value


def drift_document(drift: Drift, _: RenderOptions) -> Document:
    """Return what drifted, each field with its configured and its live value."""
    rows = tuple(row for item in drift.objects for row in _rows(item))
    after = [*_rest(drift), *(f"note: {text}" for text in drift.remarks)]
    if drift.objects:
        after.append(
            "hint: reconciler drift --write keeps live values in the files; apply sets them back"
        )
    applied = "nothing recorded as applied"
    if drift.source.applied:
        applied = f"applied {applied_commit(drift.source)}"
    return Document(
        (Cell(f"Drift of {drift.source.environment}"),),
        (Cell(f"Environment {drift.source.environment} · {applied}"),),
        (Table(_COLUMNS, rows, headed=False, indent=6, noun="field"),),
        _counts(drift),
        tuple(after),
    )


def _rows(item: DriftedObject) -> Iterator[Row]:
    parent = f" in {item.parent_name}" if item.parent_name else ""
    place = f"  {item.at.file}:{item.at.line}" if item.at is not None else ""
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(named(item.name))
    group = Group(name, f"{parent}{place}", "~")
    for drifted in item.fields:
        about = Cell(_about(item, drifted))
        for line in _lines(item, drifted):
            sides = ("…", "…") if line.hunk else (line.before or "-", line.after or "-")
            cells = (Cell(line.name, code=True), *(Cell(side, code=True) for side in sides), about)
            yield Row(cells, group=group, lines=line.hunk)


def _lines(item: DriftedObject, field: DriftedField) -> list[FieldLine]:
    """Return the lines of a field, with the configured value before the live one."""
    change = replace(field.change, before=field.change.after, after=field.change.before)
    return list(plain_lines(Change(item.address, Action.UPDATE, item.name, fields=(change,))))


def _about(item: DriftedObject, field: DriftedField) -> str:
    """Return what is known about a field: who changed it and when, and conflicts."""
    parts = ["conflict: the configuration changed too"] if field.conflict else []
    if field.change.origin is Origin.UNKNOWN:
        parts.append("differs from the files")
    if item.paused_by_service and field.change.path == ("paused",):
        parts.append("paused by the service after failures; fix the cause before it is unpaused")
    if (known := field.attribution) is not None:
        by = f"by {known.by}" if known.by is not None else "by the service or an API key"
        parts.append(printable(f"{by}, {known.at}"))
    return "; ".join(parts)


def _counts(drift: Drift) -> str:
    if drift.empty:
        count = several(drift.compared, "resource")
        return f"No drift. Live state is as in the files or as applied ({count})."
    if not drift.objects:
        return ""
    fields = several(sum(len(item.fields) for item in drift.objects), "field")
    of = several(drift.compared, "resource")
    return f"Drift in {len(drift.objects)} of {of} ({fields})."


def _rest(drift: Drift) -> Iterator[str]:
    deleted = [str(address) for address in drift.deleted]
    renamed = [f"{address} to {named(name)}" for address, name in drift.renamed.items()]
    happened = (deleted, "deleted since the apply"), (renamed, "probably renamed")
    for texts, what in happened:
        if texts:
            names = listed(texts, _MOST_LISTED)
            yield f"{several(len(texts), 'live object')} {what}: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"
