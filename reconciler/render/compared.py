"""The comparison of two environments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reconciler.diagnostics import Mark
from reconciler.model.compared import (
    EnvironmentComparison,
    FieldDifference,
    FieldSide,
    Intent,
    OnlyIn,
    ResourceDifference,
)
from reconciler.model.text import quoted, several, shortened
from reconciler.model.values import MISSING, path_text
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import RenderOptions
from reconciler.render.plan.words import first_of
from reconciler.render.style import Colour
from reconciler.render.yaml_line import yaml_line

_LONGEST = 80
_MOST_NAMES = 5


def compared_document(comparison: EnvironmentComparison, options: RenderOptions) -> Document:
    """Return the differences, then the intended ones (grouped unless verbose), and the counts."""
    first, second = comparison.first, comparison.second
    where = "live state" if comparison.live else "configuration"
    rows = (row for item in comparison.differing for row in _rows(item, item.unintended))
    differing = Table(_columns(comparison), tuple(rows), headed=False, indent=6)
    return Document(
        (Cell(f"{first} and {second}"),),
        (Cell(f"Environments {first} and {second} · {where}"),),
        (
            differing,
            _only(first, comparison.only_first),
            _only(second, comparison.only_second),
            _intended(comparison, options),
        ),
        _summary(comparison),
    )


def _columns(comparison: EnvironmentComparison) -> tuple[Column, ...]:
    return (
        Column("field"),
        Column(comparison.first, after=f" in {comparison.first},", padded=False),
        Column(comparison.second, " ", f" in {comparison.second}", padded=False),
        Column("why or where", padded=False),
    )


def _rows(item: ResourceDifference, fields: Sequence[FieldDifference]) -> Iterator[Row]:
    name = Cell(str(item.address), code=True), Cell(quoted(item.name))
    for field in fields:
        sides = (_cell(side) for side in (field.first, field.second))
        cells = Cell(path_text(field.path), code=True), *sides, Cell(_why(field), Colour.DIM)
        yield Row(cells, group=Group(name, sign="~"))


def _why(field: FieldDifference) -> str:
    """Return why a difference is intended, or a place that sets the field."""
    if field.intent is not Intent.NONE:
        return f"({_reason(field)})"
    return _at((field.second if field.first.value is MISSING else field.first).at)


def _at(mark: Mark | None) -> str:
    return place_as_text(mark) if mark is not None else ""


def _reason(field: FieldDifference) -> str:
    written = {side.written for side in (field.first, field.second)}
    if field.intent is Intent.REFERENCE and written:
        return ", ".join(sorted(shortened(text, _LONGEST) for text in written if text))
    return field.intent.meaning


def _only(environment: str, items: Sequence[OnlyIn]) -> Table:
    rows = (
        Row(
            (Cell(str(item.address), code=True), Cell(quoted(item.name)), Cell(_at(item.at))),
            "+",
            Colour.YELLOW,
        )
        for item in items
    )
    titles = (("address", ""), ("name", " "), ("at", "  "))
    columns = tuple(Column(title, before, padded=False) for title, before in titles)
    return Table(columns, tuple(rows), f"Only in {environment}:", headed=False, indent=2)


def _intended(comparison: EnvironmentComparison, options: RenderOptions) -> Table:
    if options.verbose:
        title, columns = "Intended differences:", _columns(comparison)
        rows = [row for item in comparison.intended for row in _rows(item, item.intended)]
    else:
        title = "Intended differences (values: --verbose):"
        why, names = (
            Column(name, before, padded=False)
            for name, before in (("why", "  "), ("resources", " "))
        )
        columns = (Column("field"), why, names)
        rows = [
            Row((Cell(path, code=True), Cell(f"{why}:"), Cell(first_of(keys, _MOST_NAMES))))
            for (path, why), keys in _groups(comparison).items()
        ]
    return Table(columns, tuple(rows), title, headed=False, indent=6, folded=True)


def _groups(comparison: EnvironmentComparison) -> Mapping[tuple[str, str], list[str]]:
    """Return the keys of resources by field and reason of their intended differences."""
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in comparison.intended:
        for field in item.intended:
            keys[path_text(field.path), _reason(field)].append(item.address.key)
    return keys


def _cell(side: FieldSide) -> Cell:
    if side.value is MISSING:
        return Cell("not set")
    return Cell(shortened(yaml_line(side.value), _LONGEST), code=True)


def _summary(comparison: EnvironmentComparison) -> str:
    fields = sum(len(item.unintended) for item in comparison.differing)
    where = several(len(comparison.differing), "resource")
    counts = [f"{several(fields, 'difference')} in {where}"] if fields else []
    for name, items in (
        (comparison.first, comparison.only_first),
        (comparison.second, comparison.only_second),
    ):
        counts += [f"{several(len(items), 'resource')} only in {name}"] if items else []
    intended = sum(len(item.intended) for item in comparison.intended)
    alike = f"{several(intended, 'intended difference')}, {comparison.equal:,} equal"
    return f"{', '.join(counts) or 'No differences'} ({alike})."
