"""Projects: a table of all, and the fields of one."""

from __future__ import annotations

import json

from reconciler.model.project_report import ProjectDetails, ProjectLine, ProjectReport
from reconciler.model.text import listed, quoted, several
from reconciler.model.values import JSON
from reconciler.render.document import Cell, Column, Document, Facts, Lines, Row, Table
from reconciler.render.options import RenderOptions

_COLUMNS = tuple(map(Column, ("id", "name", "exports", "timezone", "resource")))
_MOST_MISSING = 5


def projects_document(report: ProjectReport, _: RenderOptions) -> Document:
    """Return a table of the projects, the resources without one, and the counts."""
    where = f"{report.environment} · {report.base_url} · organization {report.organization}"
    table = Table(_COLUMNS, tuple(map(_row, report.projects)), indent=2)
    missing: tuple[str, ...] = ()
    if report.missing:
        missing = (f"Do not exist yet: {listed(report.missing, _MOST_MISSING)}",)
    unmanaged = sum(not line.managed for line in report.projects)
    note = f", {unmanaged} unmanaged" if unmanaged else ""
    return Document(
        (Cell(f"Projects of {report.environment}"),),
        (Cell(f"Environment {where}"),),
        (table if report.projects else Lines(("No projects.",)), Lines(missing)),
        f"{several(len(report.projects), 'project')}{note}.",
    )


def project_document(details: ProjectDetails, options: RenderOptions) -> Document:
    """Return a project with its fields; those that are null only if verbose."""
    name = Cell(str(details.address), code=True), Cell(f"{quoted(details.name)} (id {details.id})")
    fields = tuple(
        (field, Cell(_value(value)))
        for field, value in details.fields.items()
        if options.verbose or value is not None
    )
    page = (f"Page: {details.page}",) if details.page is not None else ()
    return Document(name, name, (Facts(fields, attached=True),), after=page)


def _row(line: ProjectLine) -> Row:
    resource = Cell(str(line.address), code=True) if line.managed else Cell("unmanaged")
    cells = map(Cell, (line.id, line.name, str(line.exports), line.timezone or "-"))
    return Row((*cells, resource))


def _value(value: JSON) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=dict)
