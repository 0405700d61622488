"""Values to text: plans, diagnostics, reports, progress. Pure. Here is the table of formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from reconciler.errors import BadUsage

if TYPE_CHECKING:
    from reconciler.render.document import Document
    from reconciler.render.options import RenderOptions

Writer: TypeAlias = "Callable[[Any, RenderOptions], str]"
"""Returns text that is empty or ends with a line end."""

DEFAULT = "text"
_PUBLIC = ""
"""The JSON of a value of `model/public.py`."""
_DOCUMENT = "_document"
"""Ends the name of a function that returns a `Document`."""


def _document(place: str) -> dict[str, str]:
    return {"text": place, "html": place, "json": _PUBLIC, "markdown": place}


_WRITERS: Mapping[str, Mapping[str, str]] = {
    "plan": {
        "text": "render.plan_text:plan_as_text",
        "github": "render.ci_reports:plan_as_github",
        "gitlab": "render.ci_reports:plan_as_gitlab",
        "html": "render.html:plan_as_html",
        "json": "render.plan_document:plan_as_json",
        "markdown": "render.plan_markdown:plan_as_markdown",
        "sarif": "render.ci_reports:plan_as_sarif",
    },
    "plans": {
        "text": "render.plan_text:plans_as_text",
        "json": "render.diagnostics:results_as_json",
        "markdown": "render.plan_markdown:plans_as_markdown",
    },
    "diagnostics": {
        "text": "render.diagnostics:diagnostics_for_people",
        "github": "render.ci_reports:diagnostics_as_github",
        "gitlab": "render.ci_reports:diagnostics_as_gitlab",
        "json": "render.diagnostics:diagnostics_as_json",
        "sarif": "render.ci_reports:diagnostics_as_sarif",
    },
    "backfills": {"text": "render.runs:backfills_document", "json": _PUBLIC},
    "resolved": _document("render.show:resolved_document"),
    "imported": _document("commands.import_:imported_document"),
    "audit": _document("render.show:audit_document"),
    "drift": _document("commands.drift:drift_document"),
    "compared": _document("commands.compare:compared_document"),
    "gaps": _document("commands.gaps:gaps_document"),
    "all_gaps": _document("commands.gaps:all_gaps_document")
    | {"json": "render.diagnostics:results_as_json"},
    "statuses": _document("commands.status.report:statuses_document")
    | {"json": "render.diagnostics:results_as_json"},
    "runs": _document("render.runs:runs_document"),
    "logs": _document("render.runs:logs_document"),
    "status": _document("commands.status.report:status_document"),
    "health": _document("commands.doctor.checks:health_document"),
    "projects": _document("commands.projects:projects_document"),
    "project_details": _document("commands.projects:project_document"),
}
"""By result and format: `module:function` below the package, imported when it writes."""

RESULTS = tuple(_WRITERS)


def formats_of(result: str) -> tuple[str, ...]:
    """Return the names of the formats that have a writer for a result, the default first."""
    return tuple(sorted(_WRITERS[result], key=lambda name: (name != DEFAULT, name)))


def writer_of(name: str, result: str) -> Writer:
    """Return the writer of a format for a result. Raises BadUsage if it has none."""
    place = _WRITERS[result].get(name)
    if place is None:
        raise BadUsage(
            f"--format {name} is not supported here",
            hint=f"use one of: {', '.join(formats_of(result))}",
        )
    if place == _PUBLIC:
        from reconciler.model.public import as_json

        return lambda report, _: as_json(report)
    module, _, function = place.partition(":")
    writer: Any = getattr(import_module(f"reconciler.{module}"), function)
    return _written(name, writer) if function.endswith(_DOCUMENT) else writer


def _written(name: str, document_of: Callable[[Any, RenderOptions], Document]) -> Writer:
    """Return the writer of what a function returns as a document."""
    from reconciler.render import document

    if name == DEFAULT:
        return lambda report, how: document.as_text(document_of(report, how), how)
    plain = document.without_terminal
    if name == "markdown":
        return lambda report, how: document.as_markdown(document_of(report, plain(how)), how)
    from reconciler.render.html import as_html

    return lambda report, how: as_html(document_of(report, plain(how, page=True)))
