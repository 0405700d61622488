"""Drift, and what `pull` writes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.drift import (
    Attribution,
    Drift,
    DriftedField,
    DriftedObject,
    Placed,
    Pulled,
)
from reconciler.model.text import listed, printable, quoted, several
from reconciler.model.values import path_text
from reconciler.render.difference import differences_as_text
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import RenderOptions
from reconciler.render.plan.document import base_name
from reconciler.render.plan.fields import FieldLine, plain_lines
from reconciler.render.style import Colour, Style

_MOST_LISTED = 5
_COLUMNS = (
    Column("field", padded=False),
    Column("configured", padded=False),
    Column("live", " -> ", padded=False),
    Column("changed", "  (", ")", padded=False),
)
_UNATTRIBUTED = "by the service or an API key"
_BY_SERVICE = "probably paused by the service after failures; fix the cause before it is unpaused"


def drift_document(drift: Drift, _: RenderOptions) -> Document:
    """Return what drifted, each field with its configured and its live value."""
    rows = tuple(row for item in drift.objects for row in _rows(item))
    after = [*_rest(drift), *(f"note: {text}" for text in drift.remarks)]
    if drift.objects:
        after.append(
            "hint: reconciler pull writes live values into the files; apply sets them back"
        )
    return Document(
        (Cell(f"Drift of {drift.source.environment}"),),
        (Cell(f"Environment {drift.source.environment} · base {_base(drift)}"),),
        (Table(_COLUMNS, rows, headed=False, indent=6, noun="field"),),
        _counts(drift),
        tuple(after),
    )


def _rows(item: DriftedObject) -> Iterator[Row]:
    parent = f" in {item.parent_name}" if item.parent_name else ""
    place = f"  {item.at.file}:{item.at.line}" if item.at is not None else ""
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(f'"{item.name}"')
    group = Group(name, f"{parent}{place}", "~")
    for field in item.fields:
        about = Cell(_about(item, field))
        for line in _lines(item, field):
            sides = ("…", "…") if line.hunk else (line.before or "-", line.after or "-")
            cells = (Cell(line.name, code=True), *(Cell(side, code=True) for side in sides), about)
            yield Row(cells, group=group, lines=line.hunk)


def pulled_as_text(pulled: Pulled, style: Style, *, diff: bool) -> str:
    """Return the unified difference of the files, or what is written where."""
    if diff:
        return differences_as_text(pulled.changes, style)
    return "".join(f"{_placed(item)}\n" for item in pulled.placed)


def pull_summary(pulled: Pulled) -> str:
    """Return what was left out, and how many values were written."""
    lines = [
        f"left out: {item.address} {printable(path_text(item.path))}: {printable(item.reason)}"
        for item in pulled.left_out
    ]
    lines += [
        f"left out: {address}: its live object was deleted; remove it from the files, or apply "
        "creates it again"
        for address in pulled.drift.deleted
    ]
    lines += [
        f"left out: {address}: its live object was probably renamed to {quoted(name)}; set "
        "`name` or `lifecycle.renamed_from`"
        for address, name in pulled.drift.renamed.items()
    ]
    verb = "Wrote" if pulled.written else "Would write"
    where = several(len(pulled.texts), "file")
    if pulled.placed:
        lines.append(f"{verb} {several(len(pulled.placed), 'value')} to {where}")
    elif not lines:
        lines.append("No drift. Live state has not changed since the base.")
    return "".join(f"{line}\n" for line in lines)


def _placed(item: Placed) -> str:
    stays = f" ({printable(item.replaces)} stays for other environments)" if item.replaces else ""
    place = f"{item.at}: {item.address} {printable(path_text(item.path))}"
    return f"{place} -> {printable(item.layer)}{stays}"


def _base(drift: Drift) -> str:
    source = drift.source
    distance = several(source.base_commits, "commit")
    return base_name(source) + (f" ({distance} ago)" if source.base_commits else "")


def _lines(item: DriftedObject, field: DriftedField) -> list[FieldLine]:
    """Return the lines of a field, with the configured value before the live one."""
    change = replace(field.change, before=field.change.after, after=field.change.before)
    return list(plain_lines(Change(item.address, Action.UPDATE, item.name, fields=(change,))))


def _about(item: DriftedObject, field: DriftedField) -> str:
    """Return what is known about a field: who changed it and when, and conflicts."""
    parts = ["conflict: the configuration changed too"] if field.conflict else []
    if item.paused_by_service and field.change.path == ("paused",):
        parts.append(_BY_SERVICE)
    if field.attribution is not None:
        parts.append(_attribution(field.attribution))
    return "; ".join(parts)


def _attribution(attribution: Attribution) -> str:
    by = f"by {printable(attribution.by)}" if attribution.by is not None else _UNATTRIBUTED
    return f"{by}, {printable(attribution.at)}"


def _counts(drift: Drift) -> str:
    if drift.empty:
        count = several(drift.compared, "resource")
        return f"No drift. Live state has not changed since the base ({count})."
    if not drift.objects:
        return ""
    fields = several(sum(len(item.fields) for item in drift.objects), "field")
    of = several(drift.compared, "resource")
    return f"Drift in {len(drift.objects)} of {of} ({fields})."


def _rest(drift: Drift) -> Iterator[str]:
    if drift.deleted:
        names = listed([str(address) for address in drift.deleted], _MOST_LISTED)
        yield f"{several(len(drift.deleted), 'live object')} deleted since the base: {names}"
    if drift.renamed:
        names = listed(
            [f"{address} to {quoted(name)}" for address, name in drift.renamed.items()],
            _MOST_LISTED,
        )
        yield f"{several(len(drift.renamed), 'live object')} probably renamed: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"
