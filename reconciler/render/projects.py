"""Projects as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from reconciler.model.project_report import ProjectDetails, ProjectReport
from reconciler.model.values import JSON
from reconciler.model.wording import listed, printable, quoted, several
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import aligned, width_of

_HEADINGS = ("id", "name", "exports", "timezone", "resource")
_MOST_MISSING = 5


def projects_as_text(report: ProjectReport, _: RenderOptions = DEFAULTS) -> str:
    """Return a table of the projects, the resources without one, and the counts."""
    where = f"{report.environment} · {report.base_url} · organization {report.organization}"
    lines = [f"Environment {printable(where)}", ""]
    rows = [
        (
            line.id,
            line.name,
            str(line.exports),
            line.timezone or "-",
            str(line.address) if line.managed else "unmanaged",
        )
        for line in report.projects
    ]
    lines += _table(rows) if rows else ["No projects."]
    if report.missing:
        lines += ["", f"Do not exist yet: {printable(listed(report.missing, _MOST_MISSING))}"]
    unmanaged = sum(not line.managed for line in report.projects)
    note = f", {unmanaged} unmanaged" if unmanaged else ""
    lines += ["", f"{several(len(report.projects), 'project')}{note}."]
    return "".join(f"{line}\n" for line in lines)


def project_as_text(details: ProjectDetails, options: RenderOptions = DEFAULTS) -> str:
    """Return a project with its fields; those that are null only if verbose."""
    title = f"{printable(str(details.address))} {quoted(details.name)} (id {details.id})"
    shown = {
        printable(name): _value(value)
        for name, value in details.fields.items()
        if options.verbose or value is not None
    }
    width = max(map(len, shown), default=0)
    lines = [title, *(f"  {name:{width}}  {value}" for name, value in shown.items())]
    if details.page is not None:
        lines += ["", f"Page: {printable(details.page)}"]
    return "".join(f"{line}\n" for line in lines)


def _value(value: JSON) -> str:
    if isinstance(value, str):
        return printable(value)
    return printable(json.dumps(value, ensure_ascii=False, default=dict))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = [_HEADINGS, *(tuple(map(printable, row)) for row in rows)]
    widths = [max(map(width_of, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        yield f"  {aligned(row, widths)}".rstrip()
